// What the executor knows of nodes' hardware, each node's read when it is first asked for. Thread: the
// reactor's.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/facts.h"
#include "controller/run/executor.h"

namespace muster {

// Nothing: never seen, or not readable.
std::optional<HardwareFacts> facts_of(const NodeRow& row);

class Inventories {
 public:
  explicit Inventories(const Executor& executor) : executor_(executor) {}
  // Null as above. Valid as long as this object.
  const HardwareFacts* of(const std::string& node);

 private:
  const Executor& executor_;
  std::map<std::string, std::optional<HardwareFacts>> read_;
};

}  // namespace muster
