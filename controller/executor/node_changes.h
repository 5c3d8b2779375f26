// What operators and discovery change in a node's row, each a decision that is made once. Runs change rows
// through the effects of controller/run. Pure functions: the changes hold what they need by value.
#pragma once

#include <string>

#include "controller/executor/node_table.h"

namespace muster {

// Quarantined with that reason. A run's quarantine leaves an operator's in place. `caller`: the operator.
NodeTable::Change quarantined(const std::string& reason, HeldBy by, const std::string& caller);
// No longer quarantined: discovered if its inventory is known, else unknown. Other states stay.
NodeTable::Change released();

// A machine's inventory, as it becomes that of a node.
struct Inventory {
  FactsText facts;
  TimeMs time = 0;
  TimeMs last_seen = 0;                     // 0: unchanged, as no agent of the node has reported
  std::string product_uuid, system_serial;  // "": unknown
};
// Its configuration counts as changed, although no spec did: the next `muster up` configures and accepts it
// again, which ends this. For a secret that was replaced. Nothing for a node that was never accepted.
NodeTable::Change configuration_outdated();
bool is_configuration_outdated(const NodeRow& row);
// Discovered with that inventory; a machine that is bound already stays so.
NodeTable::Change discovered(const Inventory& inventory);

}  // namespace muster
