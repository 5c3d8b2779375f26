// Rings: which nodes the orders of a plan are about in turn (controller/run/narrow.h). All nodes' orders
// have the same: each is parsed once. Thread: the reactor's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/json.h"
#include "controller/plan/action_params.h"

namespace muster {

// Of one order, null where it has none.
struct RingsOfOrder {
  std::shared_ptr<const Json> ring, rings;
};

class Rings {
 public:
  static constexpr size_t kMostKept = 64;

  RingsOfOrder of(const ActionParams& params) const;
  void clear() { kept_.clear(); }

 private:
  std::shared_ptr<const Json> parsed(const ActionParams& params, const char* key) const;

  mutable std::map<std::string, std::shared_ptr<const Json>> kept_;  // by its text
};

}  // namespace muster
