// RunViewer: makes views of an active run (controller/bringup/run_view.h). It caches one run, with the text
// of each of its nodes and actions; each view reads and renders only what happened since the previous one.
// Thread: one at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/bringup/run_records.h"
#include "controller/plan/plan.h"
#include "controller/ports/store.h"

namespace muster {

class RunViewer {
 public:
  // run_view() as text. Errors: those of the archive, and conflict if the journal's rows cannot follow each
  // other.
  Result<std::string> view(RunArchive& archive, const RunRow& row, std::shared_ptr<const Plan> plan);

  void forget(int64_t run);

 private:
  struct Kept;

  std::shared_ptr<Kept> kept_;
};

}  // namespace muster
