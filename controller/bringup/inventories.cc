#include "controller/bringup/inventories.h"

namespace muster {

const HardwareFacts* Inventories::of(const std::string& node) {
  auto found = taken_.find(node);
  if (found == taken_.end()) found = taken_.emplace(node, source_(node).facts()).first;
  return found->second.get();
}

}  // namespace muster
