// Is this path really what was declared? Asked before a byte is written: a storage test on a folder of the
// root disk measures the root disk, and says "fine".
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sstream>

#include "kernels/kernels.h"

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

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Follows links such as /dev/md/scratch -> ../md127, within the root of `files`.
std::string resolved(const Files& files, const std::string& path) {
  if (path.empty() || path[0] != '/') return path;
  char* real = ::realpath(files.real(path).c_str(), nullptr);
  if (!real) return path;
  std::string out = real;
  std::free(real);
  std::string root = without_trailing_slash(files.root());
  if (root != "/" && out.compare(0, root.size(), root) == 0) out = out.substr(root.size());
  return out;
}

// A declared word may hold '*': MooseFS 3 calls itself fuse, later ones fuse.mfs.
bool fits(const std::string& declared, const std::string& found) {
  return ::fnmatch(declared.c_str(), found.c_str(), FNM_NOESCAPE) == 0;
}

// Is what is mounted at `point` the file system that "/dev/disk/by-label/NAME" names? Asked of the kernel:
// udev takes such links away for a moment whenever somebody has written to the device.
bool has_declared_label(const Files& files, const std::string& point, const std::string& declared) {
  const std::string by_label = "/dev/disk/by-label/";
  if (declared.compare(0, by_label.size(), by_label) != 0) return false;
  const int fd = ::open(files.real(point).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  char label[FSLABEL_MAX] = {};
  const bool asked = ::ioctl(fd, FS_IOC_GETFSLABEL, label) == 0;
  ::close(fd);
  return asked && label[0] != '\0' &&
         declared.substr(by_label.size()) == std::string(label, ::strnlen(label, sizeof label));
}

}  // namespace

Status check_mount(const Files& files, const MountRule& rule) {
  if (rule.path.empty() || rule.path[0] != '/' || rule.fstype.empty() || rule.source.empty())
    return fail(Code::invalid, "a mount rule needs an absolute path, a file system type and a source");
  TRY(const std::string text, files.read("/proc/self/mountinfo"));
  const std::string wanted = without_trailing_slash(rule.path);
  std::istringstream lines(text);
  std::string line;
  MountEntry found, entry;
  bool any = false;
  while (std::getline(lines, line))
    if (parse_line(line, entry) && entry.point == wanted)
      found = entry, any = true;  // the last one is on top
  if (!any) return fail(Code::denied, fmt::format("{} is not a mount point; nothing was written", wanted));
  const bool same_source = fits(rule.source, found.source) ||
                           resolved(files, found.source) == resolved(files, rule.source) ||
                           has_declared_label(files, wanted, rule.source);
  if (!fits(rule.fstype, found.fstype) || !same_source)
    return fail(Code::denied, fmt::format("{} is {} from {}, declared is {} from {}; nothing was written",
                                          wanted, found.fstype, found.source, rule.fstype, rule.source));
  return Ok{};
}

}  // namespace muster::kernels
