#include "controller/bringup/disks_written.h"

#include <algorithm>

namespace muster {
namespace {

// The slot that it writes, "" for a whole disk; none: it writes neither.
std::optional<std::string> target_of(const Action& action) {
  if (action.kind == ActionKind::image) return "";
  if (action.kind != ActionKind::write_slot || !action.params.is_object()) return std::nullopt;
  const auto slot = action.params.find("slot");
  if (slot == action.params.end() || !slot->is_string()) return "";
  return slot->get<std::string>();
}

}  // namespace

void note_written(const std::optional<Plan>& plan, const std::vector<JournalRow>& journal, TimeMs since,
                  Written& written) {
  std::map<std::string, std::string> writers;
  if (plan)
    for (const auto& action : plan->actions)
      if (auto target = target_of(action)) writers[action.id] = std::move(*target);
  for (const auto& row : journal) {
    if (row.event != "intent" || row.time <= since) continue;
    const auto writer = writers.find(row.action);
    if (plan && writer == writers.end()) continue;
    TimeMs& last = written[row.node][plan ? writer->second : ""];
    last = std::max(last, row.time);
  }
}

std::optional<HardwareFacts> still_known(HardwareFacts facts, TimeMs seen_at, const std::string& node,
                                         const Written& written) {
  const auto found = written.find(node);
  if (found == written.end()) return facts;
  for (const auto& [slot, began] : found->second) {
    if (began <= seen_at) continue;
    if (slot.empty()) return std::nullopt;
    facts.boot.slots[slot].stage = "writing";
  }
  return facts;
}

}  // namespace muster
