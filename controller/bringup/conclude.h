// The end of a run: the final verdict on every node, and the report, signed. Of a large cluster that takes
// seconds: only the executor's data is copied on the reactor's thread. Thread, unless noted: that of the
// archive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/pki.h"
#include "base/reactor.h"
#include "base/result.h"
#include "controller/bringup/current_spec.h"
#include "controller/bringup/run_view.h"
#include "controller/report/report.h"
#include "controller/run/executor.h"
#include "controller/store/store.h"

namespace muster {

// Data about a run in addition to its plan and its journal. The daemon adds nothing.
struct AddedToRun {
  std::vector<std::string> notes = {};  // of the report
  // Nodes that are not in the plan -> why: the report shows them as failed with that reason.
  std::map<std::string, std::string> not_measured = {};
  // Node -> run: up to that run a different machine had its name, whose measurements are not this node's
  // history.
  std::map<std::string, int64_t> history_after = {};
};

// What the executor knows of a run. A value.
struct KnownOfRun {
  RunRow row;
  std::shared_ptr<const Plan> plan;      // null: it is not the executor's run
  std::map<std::string, NodeRow> nodes;  // as they are now
  AddedToRun added = {};
};
// Thread: the reactor's.
KnownOfRun known_of(const Executor& executor, const RunRow& run);

// Verdicts and report as rows to be written with the end of the run. Nothing for runs that do not accept
// (discover).
Conclusion conclude(RunArchive& archive, const KnownOfRun& run, const pki::KeyPair& key);

struct AcceptanceParts {
  CurrentSpec& spec;
  const Executor& executor;
  Store& store;
  const pki::KeyPair& key;
  // `work` on another thread, then `done` on the reactor's.
  std::function<void(Reactor::Task work, Reactor::Task done)> offload;
  std::function<AddedToRun()> added = {};  // null: nothing
};
// judge, reservation, follow_up and conclude, which works on another thread. The parts must outlive them.
ExecutorHooks acceptance_hooks(const AcceptanceParts& parts);

// The report of a run, settled: as it was signed, or made now from the journal (then without a digest) when
// the run has not ended or was cancelled.
Result<Report> report_of(RunArchive& archive, const KnownOfRun& run);
// The signed text; not_found if the run has none. 0: the newest run.
Result<std::string> signed_report(RunArchive& archive, int64_t run);
// The content of such a text. Thread: any.
Result<Report> report_from_signed(const std::string& text);

}  // namespace muster
