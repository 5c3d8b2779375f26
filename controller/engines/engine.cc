#include "controller/engines/engine.h"

#include <algorithm>

namespace muster {

const std::vector<const StorageEngine*>& storage_engines() {
  static const std::vector<const StorageEngine*> all = {&kBeegfs, &kCeph,    &kExternal,
                                                        &kLocal,  &kMoosefs, &kNfs};
  return all;
}

const StorageEngine& engine_of(std::string_view name) {
  static const StorageEngine unknown;
  const auto& all = storage_engines();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StorageEngine* one) { return one->name == name; });
  return found == all.end() ? unknown : **found;
}

}  // namespace muster
