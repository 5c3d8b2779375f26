#include "agent/steps/mounts.h"

#include "agent/steps/modules.h"

namespace muster::steps {
namespace {

// Octal escapes of mountinfo: "\040" is a blank.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3') {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<MountEntry> find_mount(const Files& files, const std::string& target) {
  const auto text = files.read("/proc/self/mountinfo");
  if (!text.ok()) return {};
  std::optional<MountEntry> found;
  for (const auto& line : lines_of(*text)) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = split(line.substr(0, dash), ' '), after = split(line.substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 2 || unescaped(before[4]) != target) continue;
    found = MountEntry{target, after[0], unescaped(after[1]), before[5], before[2]};  // later ones lie on top
  }
  return found;
}

std::string kernel_name(const Files& files, const std::string& source) {
  std::string path = source;
  if (source.rfind("LABEL=", 0) == 0) path = "/dev/disk/by-label/" + source.substr(6);
  if (source.rfind("UUID=", 0) == 0) path = "/dev/disk/by-uuid/" + source.substr(5);
  if (path.rfind("/dev/", 0) != 0) return source;
  const auto target = files.read_link(path);
  const std::string last = target.ok() ? *target : path;
  return last.substr(last.rfind('/') + 1);
}

}  // namespace muster::steps
