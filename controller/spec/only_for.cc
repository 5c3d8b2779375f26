#include "controller/spec/only_for.h"

#include <fmt/format.h>

#include "base/distribution.h"

namespace muster {
namespace {

using Names = std::map<std::string, OnlyFor>;

std::string refusal_of(const std::string& playbook, const Names& only_for, const Distribution* distribution) {
  const auto found = only_for.find(playbook);
  const std::string why = found == only_for.end() ? "" : why_not_on(found->second, distribution);
  return why.empty() ? "" : fmt::format("playbook '{}' {}", playbook, why);
}

void add_baked(const ImageSpec& image, const Names& only_for, std::vector<RefusedPlaybook>& out) {
  for (size_t i = 0; i < image.bake.size(); ++i)
    if (auto why = refusal_of(image.bake[i], only_for, image.distribution); !why.empty())
      out.push_back({true, image.name, i, std::move(why)});
}

void add_of_role(const Spec& spec, const std::string& role, size_t index, const Names& only_for,
                 std::vector<RefusedPlaybook>& out) {
  const std::string& playbook = spec.roles.at(role)[index];
  if (only_for.count(playbook) == 0) return;
  for (const NodeSpec& node : spec.nodes) {
    const auto image = spec.images.find(node.image);
    if (node.role != role || image == spec.images.end()) continue;
    const std::string why = refusal_of(playbook, only_for, image->second.distribution);
    if (why.empty()) continue;
    out.push_back({false, role, index, fmt::format("{} ({} has image '{}')", why, node.name, node.image)});
    return;
  }
}

}  // namespace

std::string why_not_on(const OnlyFor& only_for, const Distribution* distribution) {
  if (only_for.distribution.empty() || !distribution || only_for.distribution == distribution->id) return "";
  std::string out = fmt::format("is for {} only", distribution_title(only_for.distribution));
  if (!only_for.elsewhere.empty()) out += fmt::format("; on {} {}", distribution->title, only_for.elsewhere);
  return out;
}

std::vector<RefusedPlaybook> refused_playbooks(const Spec& spec,
                                               const std::map<std::string, OnlyFor>& only_for) {
  std::vector<RefusedPlaybook> out;
  for (const auto& [name, image] : spec.images) add_baked(image, only_for, out);
  for (const auto& [role, playbooks] : spec.roles)
    for (size_t i = 0; i < playbooks.size(); ++i) add_of_role(spec, role, i, only_for, out);
  return out;
}

}  // namespace muster
