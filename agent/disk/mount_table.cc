#include "agent/disk/mount_table.h"

#include <sys/statvfs.h>

#include "agent/disk/bearers.h"
#include "base/split.h"

namespace muster {
namespace {

// Decodes octal escapes of mountinfo: "\040" is a blank.
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

std::map<std::string, MountEntry> all_mounts(const Files& files) {
  std::map<std::string, MountEntry> out;
  const auto text = files.read("/proc/self/mountinfo");
  if (!text.ok()) return out;
  for (const auto& line : split(*text, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = split(line.substr(0, dash), ' '), after = split(line.substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 2) continue;
    const std::string target = unescaped(before[4]);
    // Later mounts are on top.
    out[target] = MountEntry{target, after[0], unescaped(after[1]), before[5], before[2]};
  }
  return out;
}

std::optional<MountEntry> find_mount(const Files& files, const std::string& target) {
  const auto all = all_mounts(files);
  const auto found = all.find(target);
  return found == all.end() ? std::nullopt : std::optional<MountEntry>(found->second);
}

bool is_read_only(const Files& files, const std::string& target) {
  const auto entry = find_mount(files, target);
  if (entry && ("," + entry->options + ",").find(",ro,") != std::string::npos) return true;
  struct statvfs now = {};
  return ::statvfs(files.real(target).c_str(), &now) == 0 && (now.f_flag & ST_RDONLY) != 0;
}

std::string kernel_name(const Files& files, const std::string& source) {
  std::string path = source;
  if (source.starts_with("UUID=")) path = "/dev/disk/by-uuid/" + source.substr(5);
  if (!path.starts_with("/dev/")) return source;
  const auto target = files.read_link(path);
  const std::string last = target.ok() ? *target : path;
  return last.substr(last.rfind('/') + 1);
}

bool is_on_device(const Files& files, const MountEntry& entry, const std::string& device) {
  const std::string number = device_number(files, device);
  const bool own_number = number.empty() || entry.device.empty() || entry.device.starts_with("0:");
  return own_number ? kernel_name(files, entry.source) == device : entry.device == number;
}

bool is_mounted(const Files& files, const std::string& device) {
  for (const auto& [target, entry] : all_mounts(files))
    if (is_on_device(files, entry, device)) return true;
  const auto swaps = files.read("/proc/swaps");
  for (const auto& line : split(swaps.ok() ? *swaps : "", '\n'))
    if (kernel_name(files, line.substr(0, line.find_first_of(" \t"))) == device) return true;
  return false;
}

std::string plain_path(const std::string& path) {
  std::string out;
  for (const char c : unescaped(path))
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

}  // namespace muster
