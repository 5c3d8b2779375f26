// Variables by which systemd-boot and an operating system speak to each other (Boot Loader Interface), in the
// kernel's form (efivarfs).
//
// Each write is a change of the firmware's own store: it is made by one write(2), never by a new file in
// place of the old one. Thread: plain functions.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster::efi {

inline constexpr const char* kFolder = "/sys/firmware/efi/efivars/";
inline constexpr size_t kAttributes = 4;  // bytes in front of each value
inline constexpr const char* kOneShot = "LoaderEntryOneShot";
inline constexpr const char* kDefault = "LoaderEntryDefault";

bool is_set(const Files& files, const std::string& name);
// The value without its attributes; "" where there is none.
std::string loader_value(const Files& files, const std::string& name);
// The same as text: UTF-16 of ASCII, up to its end.
std::string loader_text(const Files& files, const std::string& name);
// No error where there is none. The kernel protects variables that it does not know against being removed by
// chance: that is lifted first.
void remove_loader_variable(const Files& files, const std::string& name);
// Removes the old value, writes the text, reads it back. denied says why it is not there then: the store is
// full, it cannot be written, or it shows something else. The old value is gone in any case.
Status write_loader_text(const Files& files, const std::string& name, const std::string& text);

// Takes away the entry that systemd-boot starts whatever loader.conf says (a person at its menu, bootctl).
// conflict: it stays.
Status drop_default(const Files& files);

// denied: the loader that started this system was not read from the partition with that PARTUUID, so that
// nothing on it says what is started.
Status came_from(const Files& files, const std::string& partition_guid);
// Whether the loader that started this system is systemd-boot and takes an entry for one boot; denied says
// what is missing.
Status takes_one_shot(const Files& files);

}  // namespace muster::efi
