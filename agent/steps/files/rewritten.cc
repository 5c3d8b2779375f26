#include "agent/steps/files/rewritten.h"

#include <algorithm>
#include <optional>

namespace muster::steps {
namespace {

constexpr const char* kCloud = "/etc/cloud/cloud.cfg";
constexpr const char* kCloudParts = "/etc/cloud/cloud.cfg.d/";
constexpr const char* kOurs = "zz-muster-hosts.cfg";  // the last file that sets a key wins
constexpr const char* kList = "cloud_init_modules:";

// Returns the items of the list kList in this text, each with its "- "; nullopt if the text has no such list,
// or has it on one line.
std::optional<std::vector<std::string>> items_of(const std::string& text) {
  std::optional<std::vector<std::string>> out;
  bool inside = false;
  for (const auto& line : lines_of(text)) {
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

OwnFile cloud_init_without_hosts(const Files& files) {
  auto items = items_of(files.read(kCloud).value_or(""));
  auto names = files.list(kCloudParts);
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (name == kOurs || name.size() < 5 || name.substr(name.size() - 4) != ".cfg") continue;
    if (auto later = items_of(files.read(kCloudParts + name).value_or(""))) items = std::move(later);
  }
  OwnFile out{std::string(kCloudParts) + kOurs,
              "# Written by muster: /etc/hosts has the cluster's names, which cloud-init would remove at "
              "every boot.\n"
              "manage_etc_hosts: false\n",
              0644};
  if (!items) return out;
  out.text += std::string(kList) + "\n";
  for (const auto& item : *items)
    if (item.find("update_etc_hosts") == std::string::npos &&
        item.find("update-etc-hosts") == std::string::npos)
      out.text += " " + item + "\n";
  return out;
}

}  // namespace

std::vector<OwnFile> keeps_written(const Files& files, const std::string& path) {
  if (path == "/etc/hosts" && files.exists(kCloud)) return {cloud_init_without_hosts(files)};
  return {};
}

}  // namespace muster::steps
