// Disks and root slots that runs began to write since a node's last inventory, which is out of date for them.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/plan/plan.h"
#include "controller/store/store.h"

namespace muster {

// By node, and by slot letter ("" for a whole OS disk): when the last write began.
using Written = std::map<std::string, std::map<std::string, TimeMs>>;

// Adds what the run began after `since`. Where its plan is lost, any of its actions may have written a disk.
void note_written(const std::optional<Plan>& plan, const std::vector<JournalRow>& journal, TimeMs since,
                  Written& written);

// The facts of the inventory at `seen_at` that still hold: none where the disk was written since. A slot that
// was written beside the node's jobs counts as half written until the next inventory.
std::optional<HardwareFacts> still_known(HardwareFacts facts, TimeMs seen_at, const std::string& node,
                                         const Written& written);

}  // namespace muster
