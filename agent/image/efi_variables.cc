#include "agent/image/efi_variables.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "agent/disk/mount_table.h"
#include "base/lower.h"

namespace muster::efi {
namespace {

constexpr const char* kLoaderGuid =
    "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";  // systemd's, BOOT_LOADER_INTERFACE
constexpr const char* kProbe = "MusterProbe-6d757374-6572-4a7b-9c1e-0e6f7b5d2a91";  // muster's own vendor

std::string path_of(const std::string& name) { return fmt::format("{}{}-{}", kFolder, name, kLoaderGuid); }

Status denied(const std::string& why) { return fail(Code::denied, why); }

// Makes a single write, never a new file in place of the old one: each write changes the firmware's variable.
Status put(const Files& files, const std::string& path, const std::string& content) {
  const int fd = ::open(files.real(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n != static_cast<ssize_t>(content.size())) error = n < 0 ? errno : ENOSPC;
    ::close(fd);
  }
  if (error == 0) return Ok{};
  const std::string name = path.substr(path.rfind('/') + 1);
  return denied(fmt::format("EFI variable {}: {}", name.substr(0, name.find('-')),
                            error == ENOSPC ? "the EFI variable store is full (ENOSPC)" : strerror(error)));
}

// Ok if it does not exist.
Status take_away(const Files& files, const std::string& path) {
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

void remove_loader_variable(const Files& files, const std::string& name) {
  (void)take_away(files, path_of(name));
}

Status write_loader_text(const Files& files, const std::string& name, const std::string& text) {
  remove_loader_variable(files, name);
  TRY_(put(files, path_of(name), std::string("\7\0\0\0", kAttributes) + wide(text)));
  if (loader_text(files, name) == text) return Ok{};
  return denied("EFI variable " + name + " was written, but cannot be read back");
}

std::string overrides(const Files& files) {
  std::string out;
  for (const char* name : kOverrides)
    if (is_set(files, name)) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

Status drop_overrides(const Files& files) {
  for (const char* name : kOverrides) {
    const Status gone = take_away(files, path_of(name));
    if (is_set(files, name))
      return fail(Code::conflict,
                  fmt::format("the EFI variable {} overrides loader.conf and cannot be removed{}", name,
                              gone.ok() ? "" : ": " + gone.error().message));
  }
  return Ok{};
}

Status takes_variables(const Files& files) {
  if (files.list(kFolder).empty())
    return denied(fmt::format(
        "there are no EFI variables in {}: efivarfs is not mounted, or this system was not booted by UEFI",
        kFolder));
  if (is_read_only(files, "/sys/firmware/efi/efivars"))
    return denied(fmt::format("{} is mounted read-only, so no boot entry can be set", kFolder));
  return Ok{};
}

Status probe_variables(const Files& files) {
  TRY_(takes_variables(files));
  const std::string path = kFolder + std::string(kProbe);
  const std::string content = std::string("\7\0\0\0", kAttributes) + wide("muster-a-trial.conf");
  (void)take_away(files, path);  // of a probe that was interrupted
  TRY_(put(files, path, content));
  const bool same = files.read(path).value_or("") == content;
  TRY_(take_away(files, path));
  if (same) return Ok{};
  return denied("an EFI variable was written, but cannot be read back");
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

namespace muster {
namespace {

constexpr const char* kEfiVariables = "/sys/firmware/efi/efivars";
constexpr const char* kGlobal = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr const char* kLoader = "\\EFI\\BOOT\\BOOTX64.EFI";
constexpr uint32_t kKept = 7;  // attributes: non-volatile, accessible to boot services and at run time
constexpr size_t kAttributes = 4;

std::string variable_path(const std::string& variable) {
  return fmt::format("{}/{}-{}", kEfiVariables, variable, kGlobal);
}

std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}

// Returns a GUID as bytes: the first three fields are little-endian numbers.
Result<std::string> guid_bytes(const std::string& text) {
  std::string hex;
  for (const char c : text)
    if (c != '-') hex += c;
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return fail(Code::invalid, "not a GUID: " + text);
  std::string out;
  for (const int at : {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15})
    out += static_cast<char>(std::stoi(hex.substr(static_cast<size_t>(at) * 2, 2), nullptr, 16));
  return out;
}

// Returns an EFI_LOAD_OPTION with a short device path: the partition's GUID identifies it on any disk.
Result<std::string> entry_for(const EspPlace& esp) {
  TRY(const std::string guid, guid_bytes(esp.guid));
  constexpr int kMedia = 4, kHardDrive = 1, kFile = 4, kGpt = 2;
  const std::string drive = std::string{kMedia, kHardDrive} + little_endian(42, 2) +
                            little_endian(static_cast<uint64_t>(esp.number), 4) +
                            little_endian(esp.first_block, 8) + little_endian(esp.blocks, 8) + guid +
                            std::string{kGpt, kGpt};
  const std::string name = efi::wide(kLoader);
  const std::string file = std::string{kMedia, kFile} + little_endian(4 + name.size(), 2) + name;
  const std::string path = drive + file + std::string("\x7f\xff\x04\x00", 4);
  return little_endian(1, 4) + little_endian(path.size(), 2) + efi::wide("muster") + path;
}

Status write_variable(const Files& files, const std::string& variable, const std::string& value) {
  return efi::put(files, variable_path(variable), little_endian(kKept, 4) + value);
}

std::optional<std::string> read_variable(const Files& files, const std::string& variable) {
  const auto content = files.read(variable_path(variable));
  if (!content.ok() || content->size() < kAttributes) return std::nullopt;
  return content->substr(kAttributes);
}

std::string boot_name(int number) { return fmt::format("Boot{:04X}", number); }

Result<int> find_or_make(const Files& files, const std::string& entry) {
  constexpr int kEntries = 0x100;
  int free = -1;
  for (int number = 0; number < kEntries; ++number) {
    const auto there = read_variable(files, boot_name(number));
    if (there == entry) return number;
    if (!there && free < 0 && !files.exists(variable_path(boot_name(number)))) free = number;
  }
  if (free < 0) return fail(Code::failed, "the firmware's list of boot entries is full");
  TRY_(write_variable(files, boot_name(free), entry));
  return free;
}

}  // namespace

Status start_first(const Files& files, const EspPlace& esp) {
  if (files.list(kEfiVariables).empty())
    return fail(Code::not_found, "no EFI variables: this system was not booted by UEFI");
  TRY(const std::string entry, entry_for(esp));
  TRY(const int number, find_or_make(files, entry));
  const std::string mine = little_endian(static_cast<uint64_t>(number), 2);
  const std::string before = read_variable(files, "BootOrder").value_or("");
  std::string order = mine;
  for (size_t at = 0; at + 2 <= before.size(); at += 2)
    if (before.substr(at, 2) != mine) order += before.substr(at, 2);
  if (order != before) TRY_(write_variable(files, "BootOrder", order));
  return write_variable(files, "BootNext", mine);
}

}  // namespace muster
