#include "agent/boot/boot_once.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "agent/disk/bearers.h"
#include "agent/image/efi_variables.h"
#include "base/lower.h"
#include "base/split.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr const char* kMarker = "/var/lib/muster-boot-once";  // in the old system: which loader was set up
constexpr const char* kEntry = "muster-once";
constexpr const char* kGrub = "/boot/grub";
constexpr const char* kGrubFolder = "/boot/grub/muster-once";
constexpr const char* kCustom = "/boot/grub/custom.cfg";
constexpr const char* kBegin = "### BEGIN muster-once: muster-agent takes this away again\n";
constexpr const char* kEnd = "### END muster-once\n";
constexpr const char* kEsp = "/run/muster-esp";
constexpr const char* kSecureBoot = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr size_t kGrubEnvSize = 1024;
constexpr const char* kGrubEnvHead = "# GRUB Environment Block\n";

Status has_room(const Files& files, const std::string& folder, const OneTimeBoot& boot) {
  constexpr uintmax_t kMib = 1 << 20, kSpare = 16 * kMib;
  std::error_code error;
  const auto space = std::filesystem::space(files.real(folder), error);
  const uintmax_t needed = boot.kernel.size() + boot.initrd.size() + kSpare;
  if (error || space.available >= needed) return Ok{};
  return fail(Code::denied, fmt::format("{} MiB is free on the boot loader's partition, but {} MiB is needed",
                                        space.available / kMib, needed / kMib));
}

// `where` exists; its `folder` does not exist yet. A full partition has no space for a folder either, so
// space is checked first, to report the correct error.
Status write_system(const Files& files, const std::string& where, const std::string& folder,
                    const OneTimeBoot& boot) {
  TRY_(has_room(files, where, boot));
  TRY_(files.make_directories(folder, 0700));
  TRY_(files.write(folder + "/vmlinuz", boot.kernel, 0600));
  return files.write(folder + "/initrd", boot.initrd, 0600);
}

void remove_folder(const Files& files, const std::string& folder) {
  for (const auto& name : files.list(folder)) (void)files.remove(folder + "/" + name);
  std::error_code ignored;
  std::filesystem::remove(files.real(folder), ignored);
}

// Rejects a UUID that two devices have: one disk is a copy of the other, and a lookup may find either.
Status one_bearer(const std::string& uuid, const std::vector<std::string>& all) {
  if (all.size() < 2) return Ok{};
  return fail(Code::denied, fmt::format("{} matches {}: they are copies of each other, and it is unclear "
                                        "which one the boot loader would read",
                                        uuid, fmt::join(all, " and ")));
}

// Mounts the partition that the loader itself was started from, accessible to root only.
Status mount_esp(const Files& files, Process& process) {
  const std::string part = lower(efi::loader_text(files, "LoaderDevicePartUUID"));
  if (part.empty() || part.find_first_not_of("0123456789abcdef-") != std::string::npos)
    return fail(Code::denied, "systemd-boot does not report the partition it was started from");
  TRY_(one_bearer("PARTUUID=" + part, partition_bearers(files, part)));
  TRY_(files.make_directories(kEsp, 0700));
  const auto mounted = run_ok(process, {{"mount", "-t", "vfat", "-o", "umask=0077,nosuid,nodev,noexec",
                                         "/dev/disk/by-partuuid/" + part, kEsp}});
  if (!mounted.ok())
    return fail(Code::denied, "mounting the EFI system partition: " + mounted.error().message);
  std::error_code error;
  const auto mode = std::filesystem::status(files.real(kEsp), error).permissions();
  if (!error && (mode & std::filesystem::perms::others_all) == std::filesystem::perms::none) return Ok{};
  (void)run_ok(process, {{"umount", kEsp}});
  return fail(Code::denied,
              "the EFI system partition is readable by all users, so no token was written to it");
}

void clear_esp(const Files& files) {
  (void)files.remove(std::string(kEsp) + "/loader/entries/" + kEntry + ".conf");
  remove_folder(files, std::string(kEsp) + "/" + kEntry);
}

Status write_esp(const Files& files, const OneTimeBoot& boot) {
  const std::string folder = std::string(kEsp) + "/" + kEntry;
  TRY_(write_system(files, kEsp, folder, boot));
  return files.write(
      std::string(kEsp) + "/loader/entries/" + kEntry + ".conf",
      fmt::format("title muster RAM system, once\nlinux /{0}/vmlinuz\ninitrd /{0}/initrd\noptions {1}\n",
                  kEntry, boot.command_line),
      0600);
}

Status arm_systemd_boot(const Files& files, Process& process, const OneTimeBoot& boot) {
  TRY_(mount_esp(files, process));
  const Status written = write_esp(files, boot);
  if (!written.ok()) clear_esp(files);
  const auto unmounted = run_ok(process, {{"umount", kEsp}});
  TRY_(written);
  if (!unmounted.ok())
    return fail(Code::denied, "unmounting the EFI system partition: " + unmounted.error().message);
  const std::string id = std::string(kEntry) + ".conf";
  return efi::write_loader_text(files, efi::kOneShot, id);
}

void forget_systemd_boot(const Files& files, Process& process) {
  if (efi::loader_text(files, efi::kOneShot) == std::string(kEntry) + ".conf")
    efi::remove_loader_variable(files, efi::kOneShot);
  if (!mount_esp(files, process).ok()) return;
  clear_esp(files);
  (void)run_ok(process, {{"umount", kEsp}});
}

Result<std::string> query_grub(Process& process, std::vector<std::string> argv) {
  const std::string program = argv[0];
  auto out = run_ok(process, {std::move(argv)});
  if (!out.ok()) return fail(Code::denied, program + ": " + out.error().message);
  while (!out->empty() && std::isspace(static_cast<unsigned char>(out->back()))) out->pop_back();
  return out;
}

// GRUB must be able to clear the one-time setting in grubenv, which it can on plain file systems only. If it
// could not, every boot would use the entry.
Status can_grub(const Files& files, Process& process) {
  if (files.read("/proc/cmdline").value_or("").find("BOOT_IMAGE=") == std::string::npos)
    return fail(Code::denied, "this system was not started by GRUB or systemd-boot");
  const std::string config = files.read(std::string(kGrub) + "/grub.cfg").value_or("");
  if (config.find("save_env next_entry") == std::string::npos ||
      config.find("set boot_once=true") == std::string::npos)
    return fail(Code::denied, "/boot/grub/grub.cfg does not support a one-time entry (next_entry)");
  if (config.find("/custom.cfg") == std::string::npos)
    return fail(Code::denied, "/boot/grub/grub.cfg does not read custom.cfg");
  const std::string env = std::string(kGrub) + "/grubenv";
  if (!files.exists(env) || files.read_link(env).ok())
    return fail(Code::denied, "/boot/grub/grubenv is missing or is a symbolic link");
  // GRUB only overwrites the existing blocks of grubenv; it writes nothing if its size or format is wrong.
  const std::string block = files.read(env).value_or("");
  if (block.size() != kGrubEnvSize || !block.starts_with(kGrubEnvHead))
    return fail(Code::denied, "/boot/grub/grubenv is not in a format that GRUB can write");
  TRY(const std::string layers, query_grub(process, {"grub-probe", "--target=abstraction", kGrub}));
  TRY(const std::string type, query_grub(process, {"grub-probe", "--target=fs", kGrub}));
  if (!layers.empty())
    return fail(Code::denied, "GRUB cannot write its environment on " + layers +
                                  ", so every boot would use the one-time entry");
  if (type != "ext2" && type != "xfs" && type != "fat")
    return fail(Code::denied, "GRUB cannot write its environment on " + type +
                                  ", so every boot would use the one-time entry");
  return Ok{};
}

// Quotes each word: GRUB's script language has a shell's special characters.
Result<std::string> grub_words(const std::string& command_line) {
  std::string out;
  for (const std::string& word : split_words(command_line)) {
    if (word.find_first_of("'\\\"") != std::string::npos)
      return fail(Code::denied, "GRUB cannot pass a kernel argument that contains quotes");
    out += " '" + word + "'";
  }
  return out;
}

std::string without_block(std::string text) {
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return text;
  return text.erase(begin, end + std::strlen(kEnd) - begin);
}

// An operator's custom.cfg keeps its mode, because it may contain passwords.
Status write_custom(const Files& files, const std::string& text) {
  std::error_code error;
  const auto mode = std::filesystem::status(files.real(kCustom), error).permissions();
  return files.write(kCustom, text, files.exists(kCustom) ? static_cast<unsigned>(mode) & 0777 : 0644);
}

void forget_grub(const Files& files, Process& process) {
  const auto listed = query_grub(process, {"grub-editenv", std::string(kGrub) + "/grubenv", "list"});
  if (listed.ok() &&
      ("\n" + *listed + "\n").find(fmt::format("\nnext_entry={}\n", kEntry)) != std::string::npos)
    (void)query_grub(process, {"grub-editenv", std::string(kGrub) + "/grubenv", "unset", "next_entry"});
  if (const auto custom = files.read(kCustom); custom.ok() && custom->find(kBegin) != std::string::npos) {
    const std::string rest = without_block(*custom);
    (void)(rest.empty() ? files.remove(kCustom) : write_custom(files, rest));
  }
  remove_folder(files, kGrubFolder);
}

// The entry exists only in the boot for which it was set, and only if GRUB has certainly cleared that
// setting: GRUB reads its environment again, because save_env fails, perhaps silently, if firmware or disk
// cannot be written, and the next boot would use the entry again. An unreadable environment counts as not
// cleared. In that case, and if the entry does not start, the first entry boots instead of the menu, which
// would wait for input.
std::string grub_entry(const std::string& uuid, const std::string& path, const std::string& words) {
  return fmt::format(
      "if [ \"${{boot_once}}\" = \"true\" ]; then\n"
      "  if [ \"${{default}}\" = \"{0}\" ]; then\n"
      "    set next_entry={0}\n"
      "    load_env next_entry\n"
      "    if [ \"${{next_entry}}\" = \"\" ]; then\n"
      "      set fallback=0\n"
      "      menuentry 'muster RAM system, once' --unrestricted --id {0} {{\n"
      "        search --no-floppy --fs-uuid --set=root {1}\n"
      "        linux {2}/{0}/vmlinuz{3}\n"
      "        initrd {2}/{0}/initrd\n"
      "      }}\n"
      "    else\n"
      "      set default=0\n"
      "    fi\n"
      "    set next_entry=\n"
      "  fi\n"
      "fi\n",
      kEntry, uuid, path, words);
}

Status arm_grub(const Files& files, Process& process, const OneTimeBoot& boot) {
  TRY(const std::string words, grub_words(boot.command_line));
  TRY(const std::string uuid, query_grub(process, {"grub-probe", "--target=fs_uuid", kGrub}));
  TRY(const std::string path, query_grub(process, {"grub-mkrelpath", kGrub}));
  if (uuid.empty() || uuid.find_first_not_of("0123456789abcdefABCDEF-") != std::string::npos ||
      path.empty() || path.find_first_of(" '\"\\\n") != std::string::npos)
    return fail(Code::denied, "unexpected output of grub-probe or grub-mkrelpath: " + uuid + " " + path);
  TRY_(one_bearer("UUID=" + uuid, file_system_bearers(files, uuid)));
  TRY_(write_system(files, kGrub, kGrubFolder, boot));
  TRY_(files.write(std::string(kGrubFolder) + "/entry.cfg", grub_entry(uuid, path, words), 0600));
  const std::string custom = files.read(kCustom).value_or("");
  TRY_(write_custom(
      files,
      without_block(custom) + kBegin +
          fmt::format("if [ -f $prefix/{0}/entry.cfg ]; then source $prefix/{0}/entry.cfg; fi\n", kEntry) +
          kEnd));
  TRY_(query_grub(process, {"grub-reboot", kEntry}));
  TRY(const std::string env, query_grub(process, {"grub-editenv", std::string(kGrub) + "/grubenv", "list"}));
  if (("\n" + env + "\n").find(fmt::format("\nnext_entry={}\n", kEntry)) == std::string::npos)
    return fail(Code::denied, "GRUB's environment does not contain the one-time entry that was set");
  return Ok{};
}

}  // namespace

Result<std::string> one_time_loader(const Files& files, Process& process) {
  const std::string secure = files.read(std::string(efi::kFolder) + kSecureBoot).value_or("");
  if (secure.size() == efi::kAttributes + 1 && secure[efi::kAttributes] == 1)
    return fail(Code::denied, "Secure Boot is on, but the RAM system is not signed and would not start");
  if (efi::loader_text(files, "LoaderInfo").starts_with("systemd-boot")) {
    TRY_(efi::takes_one_shot(files));
    return std::string("systemd-boot");
  }
  TRY_(can_grub(files, process));
  return std::string("grub");
}

Status arm_boot_once(const Files& files, Process& process, const std::string& loader,
                     const OneTimeBoot& boot) {
  TRY_(files.write(kMarker, loader + "\n", 0600));  // first, so that an interrupted setup can be undone
  const Status armed =
      loader == "grub" ? arm_grub(files, process, boot) : arm_systemd_boot(files, process, boot);
  if (!armed.ok()) forget_boot_once(files, process);
  return armed;
}

bool boot_once_armed(const Files& files) { return files.exists(kMarker); }

void forget_boot_once(const Files& files, Process& process) {
  if (!boot_once_armed(files)) return;
  if (files.read_line(kMarker) == "grub")
    forget_grub(files, process);
  else
    forget_systemd_boot(files, process);
  (void)files.remove(kMarker);
  log::info("the boot loader's one-time entry was removed");
}

}  // namespace muster
