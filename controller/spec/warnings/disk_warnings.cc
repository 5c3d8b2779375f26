// Disks: a data group whose selector leaves open whether it means the OS disk, and a provider's installation
// that the OS disk's policy would not let be replaced.
#include <fmt/format.h>

#include <vector>

#include "controller/spec/hardware.h"
#include "controller/spec/warnings/observer.h"

namespace muster::warnings {
namespace {

// True if some text matches both patterns.
bool globs_meet(const std::string& a, const std::string& b) {
  // meet[i][j]: of what follows a's i-th and b's j-th character.
  std::vector<std::vector<char>> meet(a.size() + 1, std::vector<char>(b.size() + 1, 0));
  for (size_t i = a.size() + 1; i-- > 0;)
    for (size_t j = b.size() + 1; j-- > 0;) {
      const bool ends_a = i == a.size(), ends_b = j == b.size();
      if (ends_a && ends_b) meet[i][j] = 1;
      if (!ends_a && a[i] == '*' && (meet[i + 1][j] || (!ends_b && meet[i][j + 1]))) meet[i][j] = 1;
      if (!ends_b && b[j] == '*' && (meet[i][j + 1] || (!ends_a && meet[i + 1][j]))) meet[i][j] = 1;
      if (!ends_a && !ends_b && (a[i] == b[j] || a[i] == '?' || b[j] == '?') && meet[i + 1][j + 1])
        meet[i][j] = 1;
    }
  return meet[0][0] != 0;
}

// Within the tolerance of each.
bool sizes_meet(int64_t a, int64_t b) {
  const double one = static_cast<double>(a), other = static_cast<double>(b);
  constexpr double kLeast = 1 - kSizeTolerance, kMost = 1 + kSizeTolerance;
  return one * kLeast <= other * kMost && other * kLeast <= one * kMost;
}

// The serial numbers that a selector names, as patterns.
std::vector<std::string> serials_of(const DiskMatch& match) {
  std::vector<std::string> out = match.serials;
  if (match.serial) out.push_back(*match.serial);
  return out;
}

bool serials_meet(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (const std::string& one : a)
    for (const std::string& other : b)
      if (globs_meet(one, other)) return true;
  return false;
}

// True if nothing in the selectors says that no disk is both. Where one names single disks and the other has
// no property in common with it, its author knows the disks.
bool may_be_one_disk(const DiskMatch& a, const DiskMatch& b) {
  const auto serials = serials_of(a), others = serials_of(b);
  bool in_common = false;
  const auto apart = [&](bool both, bool meet) {
    in_common = in_common || both;
    return both && !meet;
  };
  if (apart(!serials.empty() && !others.empty(), serials_meet(serials, others)) ||
      apart(a.wwid && b.wwid, a.wwid == b.wwid) ||
      apart(a.transport && b.transport, a.transport == b.transport) ||
      apart(a.model && b.model, a.model && b.model && globs_meet(*a.model, *b.model)) ||
      apart(a.size_bytes && b.size_bytes,
            a.size_bytes && b.size_bytes && sizes_meet(*a.size_bytes, *b.size_bytes)))
    return false;
  const bool single = a.wwid || b.wwid || !serials.empty() || !others.empty();
  return in_common || !single;
}

void os_disk(Observer& o, const NodeGroup& group) {
  const auto& groups = group.first().disks;
  const auto os = groups.find("os");
  const YamlNode* disks = yaml_child(&group.entry, "disks");
  if (os == groups.end() || !disks) return;
  for (const YamlEntry& entry : disks->entries) {
    const auto other = groups.find(entry.key);
    if (other == groups.end() || other == os || !may_be_one_disk(os->second.match, other->second.match))
      continue;
    o.warn(finding::kOsDiskAmbiguous, entry, fmt::format("{}.disks.{}", group.path, entry.key),
           "the disk of group 'os' may match this group, too");
  }
}

void installation(Observer& o, const NodeGroup& group) {
  const NodeSpec& node = group.first();
  const auto os = node.disks.find("os");
  if (node.power.install_image.empty() || os == node.disks.end() || os->second.policy == DiskPolicy::format)
    return;
  const YamlNode& at = *yaml_child(yaml_child(&group.entry, "disks"), "os");
  const YamlNode* policy = yaml_child(&at, "policy");
  o.warn(
      finding::kInstallNotFormat, policy ? *policy : at,
      group.path + (policy ? ".disks.os.policy" : ".disks.os"),
      fmt::format("the provider's system is on the OS disk of {}, so that the plan is refused", node.name));
}

}  // namespace

void disk_warnings(Observer& o) {
  for (const NodeGroup& group : o.groups) {
    os_disk(o, group);
    installation(o, group);
  }
}

}  // namespace muster::warnings
