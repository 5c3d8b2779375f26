// Which disks, and which root slots, runs began to write since a node was looked at: what was seen of them
// then says nothing now. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/plan/plan.h"
#include "controller/store/store.h"

namespace muster {

// By node and by the letter of the slot, "" for a whole OS disk: when writing it last began.
using Written = std::map<std::string, std::map<std::string, TimeMs>>;

// Adds what the run began after `since`. Without its plan each of its actions may have written a disk.
void note_written(const std::optional<Plan>& plan, const std::vector<JournalRow>& journal, TimeMs since,
                  Written& written);

// Of what was seen of the node at `seen_at`: nothing where its disk was written since. A slot of a node at
// work that was written beside it counts as half written until the next look.
std::optional<HardwareFacts> still_known(HardwareFacts facts, TimeMs seen_at, const std::string& node,
                                         const Written& written);

}  // namespace muster
