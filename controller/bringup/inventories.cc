#include "controller/bringup/inventories.h"

namespace muster {

std::optional<HardwareFacts> facts_of(const NodeRow& row) {
  const auto json = parse_json(row.facts);
  if (!json.ok()) return std::nullopt;
  auto facts = hardware_facts_from_json(*json);
  if (!facts.ok()) return std::nullopt;
  return std::move(facts).value();
}

const HardwareFacts* Inventories::of(const std::string& node) {
  auto found = read_.find(node);
  if (found == read_.end()) found = read_.emplace(node, facts_of(executor_.node_row(node))).first;
  return found->second ? &*found->second : nullptr;
}

}  // namespace muster
