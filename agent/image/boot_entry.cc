#include "agent/image/boot_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "agent/image/efi_variables.h"

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

// Returns text as UTF-16 with a terminator.
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

// Makes a single write, never a new file in place of the old one: each write changes the firmware's variable.
Status write_variable(const Files& files, const std::string& variable, const std::string& value) {
  const std::string where = files.real(variable_path(variable)), content = little_endian(kKept, 4) + value;
  const int fd = ::open(where.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return written ? Status(Ok{}) : fail(Code::failed, "EFI variable " + variable + ": " + strerror(error));
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
