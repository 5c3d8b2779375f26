#include "agent/steps/gpu/cdi_others.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kFolders[] = {"/etc/cdi", "/run/cdi"};  // the later one takes precedence

struct Other {
  std::string path, text;
};

// Returns the names of devices; names of other things have different keys (hookName).
std::set<std::string> names_in(const std::string& text) {
  const auto names = plain_values_of(text, "name");
  return {names.begin(), names.end()};
}

bool has_one_of(const std::string& text, const std::set<std::string>& devices) {
  const auto names = names_in(text);
  return names.empty() ||  // a format that is not supported: assume yes
         std::any_of(devices.begin(), devices.end(),
                     [&](const auto& name) { return names.count(name) != 0; });
}

std::vector<Other> others_in(const Files& files, const std::string& folder, const std::string& own,
                             const std::string& kind, const std::set<std::string>& devices) {
  std::vector<Other> out;
  for (const auto& name : files.list(folder)) {
    const std::string path = folder + "/" + name;
    if (path == own || !(name.ends_with(".yaml") || name.ends_with(".json"))) continue;
    const std::string text = files.read(path).value_or("");
    const auto kinds = plain_values_of(text, "kind");
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end() && has_one_of(text, devices))
      out.push_back({path, text});
  }
  return out;
}

// Describes what is wrong with `other`: a device that it does not define, or a path that does not exist on
// this node; "" if it is complete. `alone`: there is no second file that may define the missing devices.
std::string lacking(const Files& files, const Other& other, const std::set<std::string>& devices,
                    bool alone) {
  const auto names = names_in(other.text);
  for (const auto& device : devices)
    if (alone && names.count(device) == 0) return fmt::format("does not define the device '{}'", device);
  const auto sources = plain_values_of(other.text, "hostPath");
  for (const auto& path : sources)
    if (!files.exists(path)) return fmt::format("names {}, which does not exist on this node", path);
  // For a device with a `hostPath`, `path` is the path in the container; for a hook, it is a program on this
  // node.
  for (const auto& path : plain_values_of(other.text, "path")) {
    const bool has_source = std::any_of(sources.begin(), sources.end(),
                                        [&](const std::string& source) { return source.ends_with(path); });
    if (!has_source && path.starts_with('/') && !files.exists(path))
      return fmt::format("names {}, which does not exist on this node", path);
  }
  return "";
}

}  // namespace

std::vector<std::string> plain_values_of(const std::string& text, const std::string& key) {
  std::vector<std::string> out;
  const auto of_a_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  for (const auto& line : lines_of(text)) {
    if (const size_t first = line.find_first_not_of(" \t"); first == std::string::npos || line[first] == '#')
      continue;
    for (size_t at = 0; (at = line.find(key, at)) != std::string::npos;) {
      const bool begins = at == 0 || !of_a_word(line[at - 1]);
      at += key.size();
      const size_t colon = line.find_first_not_of("\"' \t", at);
      if (!begins || colon == std::string::npos || line[colon] != ':') continue;
      const size_t from = line.find_first_not_of("\"' \t", colon + 1);
      const size_t to = from == std::string::npos ? from : line.find_first_of("\"', \t}]", from);
      if (from != std::string::npos && to != from) out.push_back(line.substr(from, to - from));
    }
  }
  return out;
}

CdiOthers other_cdi_files(const Files& files, const std::string& own, const std::string& kind,
                          const std::set<std::string>& devices) {
  CdiOthers out;
  const auto beside = others_in(files, kFolders[0], own, kind, devices);
  const auto above = others_in(files, kFolders[1], own, kind, devices);
  const auto& winners = above.empty() ? beside : above;
  if (winners.empty()) return out;
  const Other& first = winners.front();
  const bool alone = above.empty() || !beside.empty();
  // Two files in one folder that define the same device cancel each other, even if the other folder also
  // defines it: engines ignore devices in conflict.
  const auto& doubled = beside.size() > 1 ? beside : above;
  if (doubled.size() > 1) {
    out.problem = fmt::format(
        "{} and {} both define {} devices, so container engines use neither definition: remove one file",
        doubled[0].path, doubled[1].path, kind);
  } else if (const std::string lacks = lacking(files, first, devices, alone); !lacks.empty()) {
    out.problem = fmt::format(
        "{} {}, but container engines read devices from this file: regenerate it (`nvidia-ctk cdi generate "
        "--output={}`) or remove it (`rm {}`)",
        first.path, lacks, first.path, first.path);
  } else {
    out.served_by = first.path;
  }
  out.ours_in_the_way = !beside.empty();
  return out;
}

}  // namespace muster::steps
