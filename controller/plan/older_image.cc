#include "controller/plan/older_image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace muster {
namespace {

// Returns the name of the image that the node runs; "" if it is not recorded.
std::string name_of_running(const Planning& p, const Draft& d) {
  const auto& facts = d.seen->facts ? d.seen->facts : d.seen->machine;
  if (facts)
    for (const auto& [letter, slot] : facts->boot.slots)
      if (slot.digest == d.seen->image_digest && !slot.image.empty()) return slot.image;
  for (const auto& [name, image] : p.in.images)
    if (image.digest == d.seen->image_digest) return name;
  return "";
}

struct Numbered {
  std::string prefix, digits;
};

Numbered numbered(const std::string& name) {
  size_t at = name.size();
  while (at > 0 && name.size() - at < 6 && std::isdigit(static_cast<unsigned char>(name[at - 1]))) --at;
  return {name.substr(0, at), name.substr(at)};
}

// Joins sorted numbers with the same number of digits: "01-03,07".
std::string joined_numbers(const std::vector<std::string>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && std::stol(numbers[end + 1]) == std::stol(numbers[end]) + 1) ++end;
    out += (out.empty() ? "" : ",") + numbers[i];
    if (end > i) out += "-" + numbers[end];
    i = end + 1;
  }
  return out;
}

}  // namespace

bool runs_older_build(const Planning& p, const Draft& d) {
  const PlannerImage* image = p.image_of(d);
  const NodeState state = d.seen->state;
  if (!image || d.spec->adopt.declared() || d.seen->doubtful || !in_installed(d)) return false;
  if (state != NodeState::accepted && state != NodeState::degraded) return false;
  if (d.seen->image_digest.empty() || d.seen->image_digest == image->digest) return false;
  const std::string running = name_of_running(p, d);
  return running.empty() || running == d.spec->image;
}

std::string names_in_ranges(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::map<std::pair<std::string, size_t>, std::vector<std::string>> groups;
  std::vector<std::string> out;
  for (const auto& name : names) {
    const Numbered n = numbered(name);
    if (n.digits.empty())
      out.push_back(name);
    else
      groups[{n.prefix, n.digits.size()}].push_back(n.digits);
  }
  for (const auto& [key, numbers] : groups)
    out.push_back(numbers.size() == 1 ? key.first + numbers.front()
                                      : fmt::format("{}[{}]", key.first, joined_numbers(numbers)));
  std::sort(out.begin(), out.end());
  return fmt::format("{}", fmt::join(out, ","));
}

void note_older_builds(Planning& p) {
  if (p.kind() != RequestKind::up) return;
  constexpr size_t kShown = 3;
  // An agent of an earlier version does not report the name of its image, which may differ from the declared
  // one.
  std::map<std::pair<std::string, bool>, std::vector<std::string>> by_image;
  for (const auto& d : p.drafts)
    if (d.older && !d.imaging)
      by_image[{d.spec->image, !name_of_running(p, d).empty()}].push_back(d.spec->name);
  for (const auto& [key, nodes] : by_image) {
    const auto& [image, known] = key;
    const std::vector<std::string> shown(nodes.begin(),
                                         nodes.begin() + std::min<long>(kShown, std::ssize(nodes)));
    p.plan.notes.push_back(
        fmt::format("{} node{} {} '{}' ({}{}): run `muster reimage {}` or `muster up --reimage`",
                    nodes.size(), nodes.size() == 1 ? " runs" : "s run",
                    known ? "an older build of image" : "an image that is not the newest build of", image,
                    fmt::join(shown, ", "), nodes.size() > kShown ? ", ..." : "", names_in_ranges(nodes)));
  }
}

}  // namespace muster
