#include "base/machine_uuid.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace muster {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// What firmware of several makers holds where nobody wrote another (rockstor/rockstor-core 1964 and 2143,
// SolidRun/lx2160a_uefi 4, reports to MAAS; Dell's has the characters of a service tag, here blanks).
constexpr const char* kPlaceholders[] = {
    "03000200-0400-0500-0006-000700080009", "12345678-1234-5678-90ab-cddeefaabbcc",
    "12345678-1234-1234-1234-123456789abc", "01020304-0506-0708-090a-0b0c0d0e0f10",
    "00112233-4455-6677-8899-aabbccddeeff", "4c4c4544-0000-2010-8020-80c04f202020",
    "00000000-0000-0000-0807-060504030201", "8a95d198-7f46-11e5-bf8b-08002704d48e",
};

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
  std::string digits = lower(uuid);
  digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
  std::set<std::string> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) bytes.insert(digits.substr(i, 2));
  // Empty, all zeros or ones, counted from zero: nothing that was drawn or built has so few different bytes.
  if (bytes.size() <= 2) return false;
  return std::none_of(std::begin(kPlaceholders), std::end(kPlaceholders),
                      [&](const char* one) { return same_uuid(uuid, one); });
}

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
