#include "agent/image/esp_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "agent/image/image_job.h"
#include "agent/image/layout.h"
#include "base/digest.h"
#include "base/kernel_line.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr const char* kLoaderFile = "/EFI/BOOT/BOOTX64.EFI";  // the one that firmware starts

uint64_t size_of(const Files& esp, const std::string& path) {
  struct stat st = {};
  return ::stat(esp.real(path).c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

std::vector<std::string> files_of_slot(const Files& esp, const std::string& slot) {
  std::vector<std::string> out;
  for (const auto& name : esp.list(folder_of_slot(slot))) {
    const std::string path = folder_of_slot(slot) + "/" + name;
    if (!esp.is_directory(path)) out.push_back(path);
  }
  return out;
}

// True if it begins like a program that systemd-boot can start (PE), as each Linux kernel for UEFI does.
bool begins_as_kernel(const std::string& begin) { return begin.starts_with("MZ"); }

// True if it begins like an archive (cpio) that the kernel unpacks, or like one that is compressed.
bool begins_as_initrd(const std::string& begin) {
  using namespace std::string_literals;
  static const std::vector<std::string> kMagic = {"07070"s,    "\x1f\x8b"s,         "\x28\xb5\x2f\xfd"s,
                                                  "\3757zXZ"s, "\x02\x21\x4c\x18"s, "\x04\x22\x4d\x18"s,
                                                  "BZh"s,      "\x89LZO"s,          "\x5d\0\0"s};
  return std::any_of(kMagic.begin(), kMagic.end(), [&](const auto& m) { return begin.starts_with(m); });
}

std::string begin_of(const std::string& path) {
  std::string out(8, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : ::pread(fd, out.data(), out.size(), 0);
  if (fd >= 0) ::close(fd);
  out.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return out;
}

// Returns how the file differs from its record; "" if it does not. From the disk: the page cache would return
// what was written even if the disk had lost it.
std::string wrong_file(const Files& esp, const std::string& path, const NotedFile& noted, Proof proof,
                       bool (*begins_right)(const std::string&)) {
  const uint64_t size = size_of(esp, path);
  if (size == 0) return "is missing";
  if (noted.size == 0) return begins_right(begin_of(esp.real(path))) ? "" : "is damaged";
  if (size != noted.size) return fmt::format("has {} bytes instead of {}", size, noted.size);
  if (proof == Proof::sizes) return "";
  drop_cached(esp, path);
  const auto found = sha256_file(esp.real(path));
  if (!found.ok()) return "cannot be read: " + found.error().message;
  return *found == noted.sha256 ? "" : "is damaged: its SHA-256 is not the recorded one";
}

// By the kernel's rules: the last `panic=` is used, in seconds; 0 halts, a negative value restarts at once.
bool restarts_after_panic(const std::string& options) {
  const std::string key = "panic=", last = kernel_argument(options, "panic");
  if (!last.starts_with(key) || last.size() == key.size()) return false;
  char* end = nullptr;
  const long seconds = std::strtol(last.c_str() + key.size(), &end, 0);
  return *end == '\0' && seconds != 0;
}

// Returns the rest of the line that begins with that key; "" if there is none.
std::string entry_value(const std::string& entry, const std::string& key) {
  for (const std::string& line : split(entry, '\n'))
    if (line.starts_with(key + " ")) return line.substr(key.size() + 1);
  return "";
}

}  // namespace

std::string loader_conf(const std::string& slot) {
  return fmt::format("timeout 0\ndefault muster-{}.conf\neditor no\n", slot);
}

std::string standing_slot(const Files& esp) {
  const std::string text = esp.read(kLoaderConf).value_or("");
  for (const char* slot : {"a", "b"})
    if (text == loader_conf(slot)) return slot;
  return "";
}

std::string entry_name(const std::string& slot) { return "muster-" + slot + ".conf"; }
std::string trial_name(const std::string& slot) { return "muster-" + slot + "-trial.conf"; }
std::string entry_path(const std::string& file_name) { return "/loader/entries/" + file_name; }
std::string kernel_path(const std::string& slot) { return folder_of_slot(slot) + "/vmlinuz"; }
std::string initrd_path(const std::string& slot) { return folder_of_slot(slot) + "/initrd"; }

Result<std::string> loader_entry(const SeedRequest& r) {
  for (const std::string& wrong : {wrong_console(r.job.console), wrong_kernel_options(r.job.kernel_options)})
    if (!wrong.empty()) return fail(Code::invalid, "the boot loader's entry: " + wrong);
  const GptPartition* slot = slot_partition(r.layout, r.slot);
  if (!slot) return fail(Code::invalid, "unknown root slot " + r.slot);
  std::string options =
      fmt::format("root=PARTUUID={} rootfstype=ext4 rw quiet muster.slot={}", slot->guid, r.slot);
  options += console_arguments(r.job.console);
  if (kernel_argument(r.job.kernel_options, "panic").empty())
    options += std::string(" ") + kRestartAfterPanic;
  if (!r.job.kernel_options.empty()) options += " " + r.job.kernel_options;
  std::string entry = fmt::format("title {} (slot {})\nversion {}\nlinux {}\n", r.manifest.os, r.slot,
                                  r.manifest.kernel, kernel_path(r.slot));
  if (r.files.count("initrd")) entry += "initrd " + initrd_path(r.slot) + "\n";
  return entry + "options " + options + "\n";
}

Result<std::string> trial_entry(const std::string& entry, int64_t seconds) {
  const size_t at = entry.find("\noptions ");
  const size_t end = at == std::string::npos ? at : entry.find('\n', at + 1);
  if (end == std::string::npos)
    return fail(Code::conflict, "the slot's boot loader entry has no `options` line");
  // With `init=`, the kernel panics and restarts if that program cannot be executed. Without it, the kernel
  // would fall back to a shell, which waits at the console forever.
  std::string more =
      fmt::format(" muster.trial={} systemd.watchdog_sec=120 systemd.crash_reboot=1 init=/sbin/init",
                  std::max<int64_t>(seconds, 1));
  if (!restarts_after_panic(entry.substr(at + 1, end - at - 1)))
    more += std::string(" ") + kRestartAfterPanic;
  return std::string(entry).insert(end, more);
}

std::string folder_of_slot(const std::string& slot) { return "/muster/" + slot; }

void drop_cached(const Files& files, const std::string& path) {
  const int fd = ::open(files.real(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

Status slot_is_startable(const Files& esp, const std::string& slot, const std::string& partition_guid,
                         const SlotNote* note, Proof proof) {
  const auto wrong = [&slot](const std::string& what) -> Status {
    return fail(Code::conflict, fmt::format("slot {} cannot be started: {}", slot, what));
  };
  if (size_of(esp, kLoaderFile) == 0) return wrong("the boot loader is missing");
  const auto entry = esp.read(entry_path(entry_name(slot)));
  if (!entry.ok()) return wrong("it has no boot loader entry");
  const std::string options = entry_value(*entry, "options");
  if (kernel_argument(options, "root") != "root=PARTUUID=" + partition_guid ||
      kernel_argument(options, "muster.slot") != "muster.slot=" + slot)
    return wrong("its boot loader entry does not start the slot's partition");
  const SlotNote noted = note ? *note : SlotNote{};
  if (entry_value(*entry, "linux") != kernel_path(slot))
    return wrong("its boot loader entry does not name its kernel");
  if (const auto why = wrong_file(esp, kernel_path(slot), noted.kernel, proof, begins_as_kernel);
      !why.empty())
    return wrong("its kernel " + why);
  const std::string initrd = entry_value(*entry, "initrd");
  if (initrd.empty() && noted.initrd.size == 0) return Ok{};
  if (initrd != initrd_path(slot)) return wrong("its boot loader entry does not name its initrd");
  if (const auto why = wrong_file(esp, initrd, noted.initrd, proof, begins_as_initrd); !why.empty())
    return wrong("its initrd " + why);
  return Ok{};
}

// Lists all files, because an interrupted Files::write() leaves its temporary file behind, and nothing else
// would remove it.
Status clear_slot_folder(const Files& esp, const std::string& slot) {
  for (const auto& path : files_of_slot(esp, slot)) TRY_(esp.remove(path));
  return Ok{};
}

Status change_standing(const Files& esp, const std::string& from, const std::string& to) {
  const std::string before = loader_conf(from), after = loader_conf(to);
  const size_t at = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first - before.begin());
  if (before.size() != after.size() || at >= after.size())
    return fail(Code::invalid, "slot " + to + " cannot replace slot " + from);
  const std::string where = esp.real(kLoaderConf);
  const auto failed = [](const char* what) -> Status {
    return fail(Code::failed, std::string("loader.conf: ") + what + ": " + strerror(errno));
  };
  const int fd = ::open(where.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return failed("opening");
  std::string found(after.size() + 1, '\0');
  const ssize_t n = ::pread(fd, found.data(), found.size(), 0);
  found.resize(n < 0 ? 0 : static_cast<size_t>(n));
  Status out = Ok{};
  if (found != before)
    out = fail(Code::conflict, found == after ? "loader.conf already names slot " + to
                                              : "loader.conf was not written by muster for slot " + from +
                                                    ", so the file was left unchanged");
  else if (::pwrite(fd, after.data() + at, 1, static_cast<off_t>(at)) != 1)
    out = failed("writing");
  else if (::fdatasync(fd) != 0)
    out = failed("syncing");
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);  // so that the next read comes from the disk
  ::close(fd);
  return out;
}

// Used by the RAM system's writer. loader.conf comes last: until then, the other slot boots.
Status seed_esp(const Files& esp, const SeedRequest& r) {
  TRY(const std::string entry, loader_entry(r));
  // The slot's old files are removed first, because the ESP may be too small for the old and the new kernel.
  TRY_(esp.remove(entry_path(trial_name(r.slot))));
  TRY_(clear_slot_folder(esp, r.slot));
  TRY_(esp.write(kernel_path(r.slot), r.files.at("kernel")));
  if (const auto initrd = r.files.find("initrd"); initrd != r.files.end())
    TRY_(esp.write(initrd_path(r.slot), initrd->second));
  TRY_(esp.write(entry_path(entry_name(r.slot)), entry));
  TRY_(esp.write("/EFI/systemd/systemd-bootx64.efi", r.files.at("bootloader")));
  TRY_(esp.write(kLoaderFile, r.files.at("bootloader")));
  return esp.write(kLoaderConf, loader_conf(r.slot));
}

}  // namespace muster
