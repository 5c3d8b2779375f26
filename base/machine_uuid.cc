#include "base/machine_uuid.h"

#include "base/lower.h"
#include "base/placeholders.h"

namespace muster {
namespace {

std::string swapped_uuid(const std::string& u) {
  if (u.size() != 36) return u;
  const auto pairs = [&](size_t from, size_t count) {
    std::string out;
    for (size_t i = count; i-- > 0;) out += u.substr(from + 2 * i, 2);
    return out;
  };
  return pairs(0, 4) + "-" + pairs(9, 2) + "-" + pairs(14, 2) + u.substr(18);
}

}  // namespace

bool same_uuid(const std::string& a, const std::string& b) {
  const std::string one = lower(a), other = lower(b);
  return one == other || swapped_uuid(one) == other;
}

bool names_one_machine(const std::string& uuid) {
  return !is_placeholder_uuid(uuid) && !is_placeholder_uuid(swapped_uuid(lower(uuid)));
}

std::string machine_of(const std::string& uuid) { return names_one_machine(uuid) ? uuid : ""; }

void Machines::bind(const std::string& uuid, const std::string& node) {
  if (names_one_machine(uuid)) nodes_.emplace(lower(uuid), node);
}

void Machines::remark(const std::string& uuid, const std::string& text) {
  for (const std::string& spelling : {lower(uuid), swapped_uuid(lower(uuid))})
    if (const auto found = nodes_.find(spelling); found != nodes_.end()) {
      found->second += ", " + text;
      return;
    }
  bind(uuid, text);
}

std::string Machines::node_of(const std::string& uuid) const {
  for (const std::string& spelling : {lower(uuid), swapped_uuid(lower(uuid))})
    if (const auto found = nodes_.find(spelling); found != nodes_.end()) return found->second;
  return "";
}

}  // namespace muster
