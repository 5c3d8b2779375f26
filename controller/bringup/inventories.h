// What the executor knows of nodes' hardware, each node's taken when it is first asked for. Thread: the
// reactor's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/facts.h"
#include "controller/run/executor.h"

namespace muster {

class Inventories {
 public:
  explicit Inventories(const Executor& executor) : executor_(executor) {}
  // Null: never seen, or not readable. Valid as long as this object.
  const HardwareFacts* of(const std::string& node);

 private:
  const Executor& executor_;
  std::map<std::string, std::shared_ptr<const HardwareFacts>> taken_;
};

}  // namespace muster
