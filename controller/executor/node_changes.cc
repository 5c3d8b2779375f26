#include "controller/executor/node_changes.h"

#include <string_view>

#include "base/machine_uuid.h"

namespace muster {
namespace {

// Behind the digest, so that it equals no other and is shown as before.
constexpr std::string_view kOutdated = "+outdated";

}  // namespace

NodeTable::Change quarantined(const std::string& reason, HeldBy by, const std::string& caller) {
  return [reason, by, caller](NodeRow& row) {
    row.state = NodeState::quarantined;
    row.reason = reason;
    if (by != HeldBy::an_operator) return;
    row.held_by = by;
    row.held_caller = caller;
  };
}

NodeTable::Change released() {
  return [](NodeRow& row) {
    if (row.state != NodeState::quarantined) return;
    row.state = row.facts.empty() ? NodeState::unknown : NodeState::discovered;
    row.reason.clear();
  };
}

NodeTable::Change configuration_outdated() {
  return [](NodeRow& row) {
    if (!row.config_digest.empty() && !is_configuration_outdated(row)) row.config_digest += kOutdated;
  };
}

bool is_configuration_outdated(const NodeRow& row) { return row.config_digest.ends_with(kOutdated); }

NodeTable::Change discovered(const Inventory& inventory) {
  return [inventory](NodeRow& row) {
    row.state = NodeState::discovered;
    row.reason.clear();
    row.facts = inventory.facts;
    row.facts_time = inventory.time;
    if (inventory.last_seen > 0) row.last_seen = inventory.last_seen;
    if (machine_of(row.product_uuid).empty()) row.product_uuid = inventory.product_uuid;
    row.system_serial = inventory.system_serial;
  };
}

}  // namespace muster
