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
#include "base/kernel_line.h"
#include "base/split.h"

namespace muster {
namespace {

std::string folder_of_slot(const std::string& slot) { return "/muster/" + slot; }

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

Status slot_is_startable(const Files& esp, const std::string& slot, const std::string& partition_guid) {
  const auto missing = [&slot](const std::string& what) -> Status {
    return fail(Code::conflict, fmt::format("slot {} cannot be started: {}", slot, what));
  };
  const auto entry = esp.read(entry_path(entry_name(slot)));
  if (!entry.ok()) return missing("it has no boot loader entry");
  const std::string options = entry_value(*entry, "options");
  if (kernel_argument(options, "root") != "root=PARTUUID=" + partition_guid ||
      kernel_argument(options, "muster.slot") != "muster.slot=" + slot)
    return missing("its boot loader entry does not start the slot's partition");
  if (entry_value(*entry, "linux") != kernel_path(slot) || size_of(esp, kernel_path(slot)) == 0)
    return missing("its kernel is missing");
  const std::string initrd = entry_value(*entry, "initrd");
  if (!initrd.empty() && (initrd != initrd_path(slot) || size_of(esp, initrd) == 0))
    return missing("its initrd is missing");
  return Ok{};
}

uint64_t slot_bytes(const Files& esp, const std::string& slot) {
  uint64_t sum = 0;
  for (const auto& path : files_of_slot(esp, slot)) sum += size_of(esp, path);
  return sum;
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
  TRY_(esp.write("/EFI/BOOT/BOOTX64.EFI", r.files.at("bootloader")));
  return esp.write(kLoaderConf, loader_conf(r.slot));
}

}  // namespace muster
