#include "controller/engines/engine.h"

namespace muster {
namespace {

constexpr std::array<const StorageEngine*, 6> kAll = {&kBeegfs, &kCeph,    &kExternal,
                                                      &kLocal,  &kMoosefs, &kNfs};
const StorageEngine kUnknown = {};

}  // namespace

const std::array<const StorageEngine*, 6>& storage_engines() { return kAll; }

// Called for every pair of nodes, so it must not allocate or lock.
const StorageEngine& engine_of(std::string_view name) {
  for (const StorageEngine* one : kAll)
    if (one->name == name) return *one;
  return kUnknown;
}

}  // namespace muster
