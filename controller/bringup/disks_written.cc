#include "controller/bringup/disks_written.h"

namespace muster {

std::set<std::string> written_since(const std::map<std::string, TimeMs>& written, TimeMs seen_at) {
  std::set<std::string> out;
  for (const auto& [slot, began] : written)
    if (began >= seen_at) out.insert(slot);
  return out;
}

std::optional<HardwareFacts> still_known(HardwareFacts facts, const std::set<std::string>& written) {
  if (written.count("")) return std::nullopt;
  for (const auto& slot : written) facts.boot.slots[slot].stage = "writing";
  return facts;
}

}  // namespace muster
