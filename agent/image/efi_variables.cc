#include "agent/image/efi_variables.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/lower.h"

namespace muster::efi {
namespace {

constexpr const char* kLoaderGuid =
    "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";  // systemd's, BOOT_LOADER_INTERFACE

std::string path_of(const std::string& name) { return fmt::format("{}{}-{}", kFolder, name, kLoaderGuid); }

Status denied(const std::string& why) { return fail(Code::denied, why); }

std::string why_not(int error) {
  if (error == ENOSPC) return "the EFI variable store is full (ENOSPC)";
  return strerror(error);
}

// Ok if it does not exist.
Status take_away(const Files& files, const std::string& name) {
  const std::string path = path_of(name);
  if (!files.exists(path)) return Ok{};
  const int fd = ::open(files.real(path).c_str(), O_RDONLY | O_CLOEXEC);
  int flags = 0;
  if (fd >= 0 && ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
    flags &= ~FS_IMMUTABLE_FL;
    (void)::ioctl(fd, FS_IOC_SETFLAGS, &flags);
  }
  if (fd >= 0) ::close(fd);
  return files.remove(path);
}

}  // namespace

std::string wide(const std::string& ascii) {
  std::string out;
  for (const char c : ascii) out += std::string{c, '\0'};
  return out + std::string(2, '\0');
}

bool is_set(const Files& files, const std::string& name) { return files.exists(path_of(name)); }

std::string loader_value(const Files& files, const std::string& name) {
  const std::string content = files.read(path_of(name)).value_or("");
  return content.size() > kAttributes ? content.substr(kAttributes) : "";
}

std::string loader_text(const Files& files, const std::string& name) {
  const std::string wide_text = loader_value(files, name);
  std::string out;
  for (size_t i = 0; i + 1 < wide_text.size() && (wide_text[i] || wide_text[i + 1]); i += 2)
    out += wide_text[i + 1] == 0 ? wide_text[i] : '?';
  return out;
}

void remove_loader_variable(const Files& files, const std::string& name) { (void)take_away(files, name); }

Status write_loader_text(const Files& files, const std::string& name, const std::string& text) {
  remove_loader_variable(files, name);
  const std::string content = std::string("\7\0\0\0", kAttributes) + wide(text);
  const int fd = ::open(files.real(path_of(name)).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n != static_cast<ssize_t>(content.size())) error = n < 0 ? errno : ENOSPC;
    ::close(fd);
  }
  if (error != 0) return denied("EFI variable " + name + ": " + why_not(error));
  if (loader_text(files, name) == text) return Ok{};
  return denied("EFI variable " + name + " was written, but cannot be read back");
}

Status drop_default(const Files& files) {
  const Status gone = take_away(files, kDefault);
  if (!is_set(files, kDefault)) return Ok{};
  return fail(Code::conflict, fmt::format("the EFI variable {} overrides loader.conf and cannot be removed{}",
                                          kDefault, gone.ok() ? "" : ": " + gone.error().message));
}

Status came_from(const Files& files, const std::string& partition_guid) {
  const std::string from = lower(loader_text(files, "LoaderDevicePartUUID"));
  if (!from.empty() && from == lower(partition_guid)) return Ok{};
  return denied(fmt::format("systemd-boot was started from {}, not from this disk's EFI system partition",
                            from.empty() ? "an unknown partition" : "partition " + from));
}

Status takes_one_shot(const Files& files) {
  constexpr unsigned kEntryOneShot = 1 << 3;  // EFI_LOADER_FEATURE_ENTRY_ONESHOT
  if (!loader_text(files, "LoaderInfo").starts_with("systemd-boot"))
    return denied("this system was not started by systemd-boot");
  const std::string features = loader_value(files, "LoaderFeatures");
  if (features.empty() || !(static_cast<unsigned char>(features[0]) & kEntryOneShot))
    return denied("this systemd-boot does not support LoaderEntryOneShot");
  return Ok{};
}

}  // namespace muster::efi
