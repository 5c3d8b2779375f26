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

bool holds_data(const StorageSpec& storage, const NodeSpec& node) {
  const bool chosen = engine_of(storage).one_server ? node.name == storage.server
                                                    : storage.role.empty() || storage.role == node.role;
  return chosen && node.disks.count(storage.disks) > 0;
}

std::string engine_playbook(const std::string& engine) { return std::string(engine_of(engine).playbook); }

bool is_member(const StorageSpec& storage, const NodeSpec& node) {
  return takes_part(storage, node) && holds_data(storage, node);
}

bool mounts(const StorageSpec& storage, const NodeSpec& node) {
  if (!takes_part(storage, node)) return false;
  const StorageEngine& engine = engine_of(storage);
  const bool chosen = storage.role.empty() || storage.role == node.role;
  if (engine.reach == Reach::of_a_site) return chosen;
  return !engine.one_server || holds_data(storage, node) || chosen;
}

const NodeSpec* storage_leader(const Spec& spec, const StorageSpec& storage) {
  const NodeSpec* first = nullptr;
  for (const NodeSpec& node : spec.nodes) {
    if (!is_member(storage, node)) continue;
    if (node.name == storage.server) return &node;
    if (!first) first = &node;
  }
  return first;
}

}  // namespace muster
