// Rings: for each order of a plan, the nodes that its steps address in turn (controller/run/narrow.h). All
// nodes' orders have the same rings, so each ring is parsed once. Thread: the reactor's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/json.h"
#include "controller/plan/action_params.h"

namespace muster {

// Null where the order has none.
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

  mutable std::map<std::string, std::shared_ptr<const Json>> kept_;  // by its JSON text
};

}  // namespace muster
