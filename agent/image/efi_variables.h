// EFI variables of the Boot Loader Interface (systemd-boot, operating system), in the format of efivarfs.
//
// Each write changes the firmware's variable store: it is a single write(2), never a new file in place of the
// old one. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster::efi {

inline constexpr const char* kFolder = "/sys/firmware/efi/efivars/";
inline constexpr size_t kAttributes = 4;  // bytes before each value
inline constexpr const char* kOneShot = "LoaderEntryOneShot";
inline constexpr const char* kDefault = "LoaderEntryDefault";
// Variables that override loader.conf: which entry boots, and how long, or for ever, the menu waits.
// Operators set them in systemd-boot's menu or with bootctl, and they stay.
inline constexpr const char* kOverrides[] = {kDefault, "LoaderEntryPreferred", "LoaderConfigTimeout",
                                             "LoaderConfigTimeoutOneShot"};

// ASCII as UTF-16 with its terminator.
std::string wide(const std::string& ascii);
bool is_set(const Files& files, const std::string& name);
// Without its attributes; "" if the variable does not exist.
std::string loader_value(const Files& files, const std::string& name);
// As text, converted from UTF-16 to ASCII, up to its terminator.
std::string loader_text(const Files& files, const std::string& name);
// Does nothing if the variable does not exist. The kernel marks variables of unknown vendors as immutable,
// against accidental removal; that mark is removed first.
void remove_loader_variable(const Files& files, const std::string& name);
// Removes the old value, writes the text, reads it back. denied: the store is full or cannot be written, or
// the value that is read back differs. Even then, the old value is gone.
Status write_loader_text(const Files& files, const std::string& name, const std::string& text);

// Returns the names of kOverrides that are set, for messages; "": none.
std::string overrides(const Files& files);
// Removes them. conflict: one cannot be removed; the message has its name and the reason.
Status drop_overrides(const Files& files);

// denied: there are no variables (efivarfs is not mounted), or it is mounted read-only. Reads only.
Status takes_variables(const Files& files);
// The same, and also writes a variable of muster's own, reads it back and removes it. denied: the store is
// full, or the firmware rejects the write.
Status probe_variables(const Files& files);

// denied: the loader that started this system was not read from the partition with that PARTUUID, so the
// files there do not determine what boots.
Status came_from(const Files& files, const std::string& partition_guid);
// denied: the system was not started by systemd-boot, or by a version that does not support one-time entries.
Status takes_one_shot(const Files& files);

}  // namespace muster::efi

namespace muster {

// The firmware's boot list, for nodes whose boot order is not controlled by a BMC. On a node with a BMC, the
// firmware's own order applies, and a boot override corrects it. Without a BMC, a list that still starts the
// replaced system, perhaps on a different disk, could not be corrected, so the entry "muster" is put first,
// for the next boot and for later ones.
//
// An EFI system partition as firmware names it.
struct EspPlace {
  int number = 0;
  uint64_t first_block = 0, blocks = 0;  // in units of the disk's logical block size
  std::string guid;                      // of the partition
};

// Creates Boot#### "muster" for \EFI\BOOT\BOOTX64.EFI on that partition if missing, and puts it first in
// BootOrder and in BootNext. Other entries stay in the list after it. not_found: not booted by UEFI.
Status start_first(const Files& files, const EspPlace& esp);

}  // namespace muster
