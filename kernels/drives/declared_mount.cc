// Checks that a path is really the declared mount, before a byte is written: a storage test on a folder of
// the root disk would measure the root disk, and pass. And finds the drives under a file system: from its
// block device down through arrays, volumes and partitions to whole disks, as sysfs shows them.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "base/disk_source.h"
#include "base/split.h"
#include "host/disks_under.h"
#include "kernels/common/kernels.h"
#include "kernels/drives/drives.h"

namespace muster::kernels {
namespace {

struct MountEntry {
  std::string point, fstype, source;
};

// mountinfo writes space, tab, newline and backslash as \040 and so on.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool octal =
        text[i] == '\\' && i + 3 < text.size() &&
        std::all_of(text.begin() + i + 1, text.begin() + i + 4, [](char c) { return c >= '0' && c <= '7'; });
    if (!octal) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

// "36 35 98:0 /root /point options [optional...] - fstype source super-options"
bool parse_line(const std::string& line, MountEntry& out) {
  std::istringstream in(line);
  std::string id, parent, device, root, word;
  if (!(in >> id >> parent >> device >> root >> out.point)) return false;
  while (in >> word)
    if (word == "-") break;
  if (!(in >> out.fstype >> out.source)) return false;
  out.point = unescape(out.point);
  out.source = unescape(out.source);
  return true;
}

// Follows links such as /dev/md/scratch -> ../md127, within the root of `files`.
std::string resolved(const Files& files, const std::string& path) {
  if (path.empty() || path[0] != '/') return path;
  char* real = ::realpath(files.real(path).c_str(), nullptr);
  if (!real) return path;
  std::string out = real;
  std::free(real);
  std::string root = without_trailing_slashes(files.root());
  if (root != "/" && out.compare(0, root.size(), root) == 0) out = out.substr(root.size());
  return out;
}

// A declared word may contain '*': MooseFS 3 has the file system type fuse, later versions fuse.mfs.
bool fits(const std::string& declared, const std::string& found) {
  return ::fnmatch(declared.c_str(), found.c_str(), FNM_NOESCAPE) == 0;
}

// The topmost mount on exactly this path.
std::optional<MountEntry> mounted_at(const std::string& mountinfo, const std::string& path) {
  std::optional<MountEntry> found;
  MountEntry entry;
  for (const std::string& line : split_lines(mountinfo))
    if (parse_line(line, entry) && entry.point == path) found = entry;
  return found;
}

Status not_declared(const std::string& path, const MountEntry& found, const MountRule& rule) {
  return fail(Code::denied,
              fmt::format("{} is mounted as {} from {}, but {} from {} is declared; nothing was written",
                          path, found.fstype, found.source, rule.fstype, rule.source));
}

}  // namespace

Status check_mount(const Files& files, const MountRule& rule) {
  if (rule.path.empty() || rule.path[0] != '/' || rule.fstype.empty() || rule.source.empty())
    return fail(Code::invalid, "a mount rule needs an absolute path, a file system type and a source");
  TRY(const std::string text, files.read("/proc/self/mountinfo"));
  const std::string wanted = without_trailing_slashes(rule.path);
  const auto found = mounted_at(text, wanted);
  if (!found) return fail(Code::denied, fmt::format("{} is not a mount point; nothing was written", wanted));
  if (is_disk_source(rule.source)) {
    if (auto on = lies_on(files, found->source, rule.source); !on.ok())
      return std::move(on).error().with(wanted + " is not as declared; nothing was written");
  } else if (!fits(rule.source, found->source) &&
             resolved(files, found->source) != resolved(files, rule.source)) {
    return not_declared(wanted, *found, rule);
  }
  return fits(rule.fstype, found->fstype) ? Status(Ok{}) : not_declared(wanted, *found, rule);
}

std::string mounted_source(const Files& files, const std::string& path) {
  const auto found =
      mounted_at(files.read("/proc/self/mountinfo").value_or(""), without_trailing_slashes(path));
  return found ? found->source : "";
}

BackingDrives drives_under(const Files& files, const std::string& device) {
  std::error_code error;
  const auto real = std::filesystem::canonical(files.real(device), error);
  if (error) return {};
  const std::string name = real.filename().string();
  std::set<std::string> drives;
  for (const auto& disk : disks_under(files, name)) {
    const std::string folder = "/sys/class/block/" + disk;
    std::string serial = files.read_line(folder + "/device/serial");
    if (serial.empty()) serial = files.read_line(folder + "/serial");
    drives.insert(serial.empty() ? disk : serial);
  }
  return {{drives.begin(), drives.end()}, files.read_line("/sys/class/block/" + name + "/md/level")};
}

}  // namespace muster::kernels
