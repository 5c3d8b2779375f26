#include "controller/spec/disk_match.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/disk_identity.h"

namespace muster {

bool disk_matches(const DiskMatch& match, const DiskFacts& disk) {
  if (!is_local_transport(disk.transport)) return false;
  // The spec's reader rejects empty text and bare wildcards; if one arrives nevertheless, it selects no disk.
  const auto fits = [](const std::optional<std::string>& wanted, const std::string& found, bool glob) {
    if (!wanted) return true;
    if (wanted->find_first_not_of("*? \t") == std::string::npos) return false;
    return glob ? glob_match(*wanted, found) : *wanted == found;
  };
  if (!match.serial && !match.wwid && !match.model && !match.transport && !match.size_bytes &&
      match.serials.empty())
    return false;
  if (!fits(match.transport, disk.transport, false) || !fits(match.serial, disk.serial, true) ||
      !fits(match.wwid, disk.wwid, false) || !fits(match.model, disk.model, true))
    return false;
  const auto listed = [&](const std::string& serial) { return fits(serial, disk.serial, false); };
  if (!match.serials.empty() && std::none_of(match.serials.begin(), match.serials.end(), listed))
    return false;
  if (!match.size_bytes) return true;
  const double wanted = static_cast<double>(*match.size_bytes), found = static_cast<double>(disk.size_bytes);
  return wanted > 0 && found >= wanted * 0.98 && found <= wanted * 1.02;
}

}  // namespace muster
