// Whole disks and root slots that runs began to write after a node's last inventory, which is therefore out
// of date for them. Pure functions, no I/O.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/facts.h"
#include "base/time.h"

namespace muster {

// Returns the slots ("" for the whole OS disk) on which writing began after `seen_at` or in the same
// millisecond. `written`: as in NodeRow::disk_written.
std::set<std::string> written_since(const std::map<std::string, TimeMs>& written, TimeMs seen_at);

// Returns the facts of an inventory from before these writes that are still valid: none if the whole disk was
// written. A slot that was written while the node's jobs ran counts as half written until the next inventory.
std::optional<HardwareFacts> still_known(HardwareFacts facts, const std::set<std::string>& written);

}  // namespace muster
