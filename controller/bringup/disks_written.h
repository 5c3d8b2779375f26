// What of a node's inventory still holds: what a run began to write since says nothing of what is there now.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/facts.h"
#include "base/time.h"

namespace muster {

// The slots ("" for the whole OS disk) that were begun to be written after `seen_at`; `written` as in
// NodeRow::disk_written.
std::set<std::string> written_since(const std::map<std::string, TimeMs>& written, TimeMs seen_at);

// Of what was seen before these were written: nothing where the disk itself was. A slot that was written
// beside the jobs of the node counts as half written until the next look.
std::optional<HardwareFacts> still_known(HardwareFacts facts, const std::set<std::string>& written);

}  // namespace muster
