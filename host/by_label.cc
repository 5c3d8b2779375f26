#include "host/by_label.h"

#include "base/kernel_line.h"
#include "base/split.h"

namespace muster {

bool is_by_label(const std::string& source) {
  for (const char* start : {"LABEL=", "PARTLABEL=", "/dev/disk/by-label/", "/dev/disk/by-partlabel/"})
    if (source.starts_with(start)) return true;
  return false;
}

std::vector<std::string> fstab_words(const std::string& line) {
  auto out = split_words(line);
  if (!out.empty() && out.front()[0] == '#') out.clear();
  return out;
}

std::vector<std::string> devices_by_label(const Files& files) {
  std::vector<std::string> out;
  for (const auto& line : split_lines(files.read("/etc/fstab").value_or("")))
    if (const auto words = fstab_words(line); words.size() >= 2 && is_by_label(words[0]))
      out.push_back(words[0] + " " + words[1]);
  const std::string key = "root=", root = kernel_argument(files.read_line("/proc/cmdline"), "root");
  if (root.starts_with(key) && is_by_label(root.substr(key.size()))) out.push_back(root + " /");
  return out;
}

}  // namespace muster
