#include "agent/steps/disk/array_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "agent/steps/step_modules.h"

namespace muster {
namespace {

int number_in(const Files& files, const std::string& path) {
  return std::atoi(files.read_line(path, "0").c_str());
}

// Returns "recover, 12 %" for sync_action "recover" and sync_completed "251136 / 2095104".
std::string activity_of(const Files& files, const std::string& folder) {
  const std::string action = files.read_line(folder + "sync_action");
  if (action.empty() || action == "idle" || action == "none" || action == "frozen") return "";
  const auto words = split(files.read_line(folder + "sync_completed"), ' ');
  const double done = words.size() == 3 ? std::atof(words[0].c_str()) : 0,
               all = words.size() == 3 ? std::atof(words[2].c_str()) : 0;
  return all > 0 ? fmt::format("{}, {:.0f} %", action, 100 * done / all) : action;
}

}  // namespace

size_t fewest_members(const std::string& level) {
  if (level == "raid1") return 2;
  if (level == "raid5") return 3;
  return level == "raid6" || level == "raid10" ? 4 : 1;
}

bool is_redundant_array(const std::string& level) { return fewest_members(level) > 1; }

ArrayHealth array_health(const Files& files, const std::string& md) {
  const std::string folder = "/sys/block/" + md + "/md/";
  ArrayHealth out;
  out.level = files.read_line(folder + "level");
  out.members = number_in(files, folder + "raid_disks");
  if (!is_redundant_array(out.level)) return out;
  out.lacking = number_in(files, folder + "degraded");
  for (const auto& name : files.list(folder)) {
    if (!name.starts_with("dev-")) continue;
    const auto state = split(files.read_line(folder + name + "/state"), ',');
    const auto is = [&](const char* word) { return std::count(state.begin(), state.end(), word) > 0; };
    if (is("faulty"))
      out.failed.push_back(name.substr(4));
    else if (!is("in_sync"))
      out.waiting.push_back(name.substr(4));
  }
  out.activity = activity_of(files, folder);
  // The array is assembled but was not written to yet: a pending rebuild begins with the first write.
  const bool asleep = files.read_line(folder + "array_state") == "read-auto";
  const bool mending = !out.waiting.empty() && (asleep || !out.activity.empty());
  out.ok = out.failed.empty() && (out.lacking == 0 || mending) &&
           static_cast<int>(out.waiting.size()) >= out.lacking;
  return out;
}

std::string in_words(const ArrayHealth& health) {
  std::string out;
  if (health.lacking > 0 && !health.ok)
    out = fmt::format("degraded: {} of {} members", health.members - health.lacking, health.members);
  else if (!health.ok)
    out = "degraded";
  for (const auto& name : health.failed) out += ", " + name + " failed";
  if (!health.ok)
    for (const auto& name : health.waiting) out += ", " + name + " is not in sync";
  if (!health.activity.empty()) out += (out.empty() ? "" : "; ") + health.activity;
  return out;
}

}  // namespace muster
