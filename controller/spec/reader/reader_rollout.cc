// The section `rollout:`, and the rejection of rollouts that could never finish: without images, without a
// canary, or of nodes that are always needed.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/rollout/serving.h"
#include "controller/rollout/window.h"
#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

constexpr const char* kSection = "rollout";
constexpr DurationMs kShortestWindow = 10 * kMinute;

bool has_role(const RolloutSpec& rollout, const std::string& role) {
  return std::find(rollout.roles.begin(), rollout.roles.end(), role) != rollout.roles.end();
}

}  // namespace

void SpecReader::read_rollout() {
  const YamlNode* section = root_.find(kSection);
  if (!section || section->is_text() || section->is_list()) return;
  RolloutSpec out;
  out.canary = static_cast<int>(std::max<int64_t>(1, integer(section, "canary", 1)));
  out.failure_budget = static_cast<int>(std::max<int64_t>(0, integer(section, "failure_budget", 0)));
  read_max_unavailable(*section, out);
  read_duration({section, kSection}, "window", {kShortestWindow, rollout::kLongestWindow}, out.window);
  read_duration({section, kSection}, "drain_timeout", {kShortestDrain, kLongestDrain}, out.drain_timeout);
  out.trial = spec_.limits.trial;
  read_duration({section, kSection}, "trial", {kShortestTrial, kLongestTrial}, out.trial);
  check_rollout_times(*section, out);
  out.acceptance = text(section, "acceptance");
  const std::vector<std::string> profiles = known_profiles();
  if (!out.acceptance.empty() && !profiles.empty())
    must_be_known(*child(section, "acceptance"), "rollout.acceptance", "profile", out.acceptance, profiles);
  read_rebuild(*section, out);
  read_rollout_roles(*section, out);
  spec_.rollout = std::move(out);
}

// "2" or "10 %".
void SpecReader::read_max_unavailable(const YamlNode& rollout, RolloutSpec& out) {
  const YamlNode* at = child(&rollout, "max_unavailable");
  if (!at || !at->is_text()) return;
  const std::string path = "rollout.max_unavailable";
  std::string number = at->text;
  const bool percent = !number.empty() && number.back() == '%';
  if (percent) number.pop_back();
  while (!number.empty() && number.back() == ' ') number.pop_back();
  const bool digits =
      !number.empty() && number.size() <= 4 && number.find_first_not_of("0123456789") == std::string::npos;
  if (!digits)
    return error(
        *at, path,
        fmt::format("'{}' is neither a number such as 2 nor a percentage such as \"10 %\"", at->text));
  const int value = std::stoi(number);
  if (value == 0)
    return error(*at, path, "0 would leave every batch empty: the minimum, and the default, is 1");
  if (percent && value > 100) return error(*at, path, fmt::format("'{}' is more than 100 %", at->text));
  (percent ? out.max_unavailable_percent : out.max_unavailable) = value;
}

void SpecReader::read_rebuild(const YamlNode& rollout, RolloutSpec& out) {
  out.rebuild = muster::value_of(kRebuilds, text(&rollout, "rebuild")).value_or(Rebuild::never);
  const YamlNode* allowed = child(&rollout, "rebuilt_images");
  const bool declared = allowed && yaml_is_boolean(*allowed);
  out.rebuilt_images = out.rebuild != Rebuild::never || (declared && yaml_boolean(*allowed));
  if (out.rebuild != Rebuild::never && declared && !yaml_boolean(*allowed))
    error(*allowed, "rollout.rebuilt_images",
          fmt::format("`rebuild: {}` builds images again, and `false` would void the approval each time: "
                      "leave out one of the two",
                      word_of(kRebuilds, out.rebuild)));
}

void SpecReader::check_rollout_times(const YamlNode& rollout, const RolloutSpec& out) {
  if (out.trial <= out.window) return;
  const bool own = child(&rollout, "trial") != nullptr;
  const YamlNode* at = child(&rollout, own ? "trial" : "window");
  error(at ? *at : rollout, own ? "rollout.trial" : "rollout.window",
        fmt::format(
            "a trial may take {}{}, longer than the window of {} in which batches start: a batch could "
            "still be running when the next rollout is due to start; shorten `trial` or lengthen `window`",
            to_human(out.trial), own ? "" : " (limits.trial)", to_human(out.window)));
}

void SpecReader::read_rollout_roles(const YamlNode& rollout, RolloutSpec& out) {
  const YamlNode* declared = child(&rollout, "roles");
  const size_t errors = errors_.size();
  if (declared && declared->is_list()) {
    std::vector<std::string> known;
    for (const auto& [role, playbooks] : spec_.roles) known.push_back(role);
    for (size_t i = 0; i < declared->items.size(); ++i) {
      const YamlNode& at = declared->items[i];
      if (!at.is_text()) continue;
      const std::string path = fmt::format("rollout.roles[{}]", i);
      if (has_role(out, at.text)) error(at, path, fmt::format("role '{}' is listed twice", at.text));
      must_be_known(at, path, "role", at.text, known);
      out.roles.push_back(at.text);
      if (spec_.roles.count(at.text)) check_rollout_role(at, path, at.text);
    }
    std::sort(out.roles.begin(), out.roles.end());
  } else if (!declared) {
    for (const NodeSpec& node : spec_.nodes)
      if (!node.image.empty() && spec_.plays(node, "scheduler") && !has_role(out, node.role))
        out.roles.push_back(node.role);
    std::sort(out.roles.begin(), out.roles.end());
    if (out.roles.empty() && !nodes_incomplete_)
      error(rollout, kSection,
            spec_.images.empty()
                ? "no image is declared: there is nothing to roll out"
                : "no role has an image and the playbook `scheduler`: list the roles in `roles`");
    for (const std::string& role : out.roles) check_rollout_role(rollout, kSection, role);
  }
  if (errors == errors_.size() && !out.roles.empty() && !nodes_incomplete_)
    check_canaries(declared ? *declared : rollout, out);
}

void SpecReader::check_rollout_role(const YamlNode& at, const std::string& path, const std::string& role) {
  if (nodes_incomplete_) return;
  const rollout::Serving serving = rollout::serving_of(spec_);
  std::string needed;  // a storage section that needs one of the nodes; empty: none does
  bool imaged = false, free = false;
  for (const NodeSpec& node : spec_.nodes) {
    if (node.role != role) continue;
    if (node.adopt.declared())
      return error(at, path,
                   fmt::format("{} of role '{}' was adopted with its existing system and is never re-imaged: "
                               "give it a role that is not in a rollout",
                               node.name, role));
    if (node.image.empty()) continue;
    imaged = true;
    std::string why;
    if (const auto found = serving.groups_of.find(node.name); found != serving.groups_of.end())
      for (const size_t group : found->second)
        if (serving.groups[group].can_miss <= 0) why = serving.groups[group].name;
    free = free || why.empty();
    if (!why.empty()) needed = why;
  }
  if (!imaged)
    error(at, path, fmt::format("role '{}' has no node with an image: there is nothing to roll out", role));
  else if (!free)
    error(at, path,
          fmt::format("storage '{}' would stop if any node of role '{}' were down, so a rollout could never "
                      "re-image one: add copies (or servers), or use a different role",
                      needed, role));
}

// Each image needs a node that can be its canary: one with a BMC, so that it can be reset when it hangs, and
// without storage that other nodes use.
void SpecReader::check_canaries(const YamlNode& at, const RolloutSpec& rollout) {
  const rollout::Serving serving = rollout::serving_of(spec_);
  std::set<std::string> images, switched, possible;
  for (const NodeSpec& node : spec_.nodes) {
    if (node.image.empty() || !has_role(rollout, node.role)) continue;
    images.insert(node.image);
    if (!is_switched(node)) continue;
    switched.insert(node.image);
    if (!serving.groups_of.count(node.name) && !serving.special.count(node.name)) possible.insert(node.image);
  }
  for (const std::string& image : images) {
    if (possible.count(image)) continue;
    error(at, at.is_list() ? "rollout.roles" : kSection,
          switched.count(image)
              ? fmt::format("image '{}' has no node that could be its canary: each node with a BMC serves "
                            "storage that others use, is a lead node, or runs Slurm's controller",
                            image)
              : fmt::format(
                    "image '{}' has no node that could be its canary: none of its nodes has a BMC, which is "
                    "needed to reset a hung node",
                    image));
  }
}

}  // namespace muster
