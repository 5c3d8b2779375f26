#include "agent/steps/files/cloud_init.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/split.h"

namespace muster::steps {
namespace {

constexpr const char* kCloud = "/etc/cloud/cloud.cfg";
constexpr const char* kCloudParts = "/etc/cloud/cloud.cfg.d/";
constexpr const char* kOurs = "zz-muster-hosts.cfg";  // the last file that sets a key wins
constexpr const char* kList = "cloud_init_modules:";

// Items of the list kList in this text, each with its "- "; nullopt if it has no such list, or on one line.
std::optional<std::vector<std::string>> items_of(const std::string& text) {
  std::optional<std::vector<std::string>> out;
  bool inside = false;
  for (const auto& line : split_lines(text)) {
    const size_t first = line.find_first_not_of(" \t");
    if (line.starts_with(kList)) {
      inside = line.find_first_not_of(" \t\r", std::string(kList).size()) == std::string::npos;
      if (inside) out.emplace();
    } else if (inside && first != std::string::npos && line[first] == '-') {
      out->push_back(line.substr(first));
    } else if (first != std::string::npos && line[first] != '#') {
      inside = false;
    }
  }
  return out;
}

// Names of modules have either sign between their words.
bool writes_names(std::string item) {
  std::replace(item.begin() + 1, item.end(), '-', '_');
  for (const char* module : {"update_etc_hosts", "set_hostname", "update_hostname"})
    if (item.find(module) != std::string::npos) return true;
  return false;
}

}  // namespace

std::optional<OwnFile> keeps_names(const Files& files) {
  if (!files.exists(kCloud)) return std::nullopt;
  auto items = items_of(files.read(kCloud).value_or(""));
  auto names = files.list(kCloudParts);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (name == kOurs || name.size() < 5 || !name.ends_with(".cfg")) continue;
    if (auto later = items_of(files.read(kCloudParts + name).value_or(""))) items = std::move(later);
  }
  OwnFile out{
      std::string(kCloudParts) + kOurs,
      "# Written by muster: the host has its names from the cluster, and cloud-init would replace them "
      "at every boot.\n"
      "preserve_hostname: true\n"
      "manage_etc_hosts: false\n",
      0644};
  if (!items) return out;
  out.text += std::string(kList) + "\n";
  for (const auto& item : *items)
    if (!writes_names(item)) out.text += " " + item + "\n";
  return out;
}

}  // namespace muster::steps
