#include "agent/disk/bearers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/lower.h"
#include "host/real_drives.h"

namespace muster {
namespace {

const std::string kBlockFolder = "/sys/class/block/";

// Returns the block devices that can be opened and are not part of something else.
std::vector<std::string> devices(const Files& files) {
  std::vector<std::string> out;
  for (const auto& name : files.list(kBlockFolder)) {
    if (is_never_searched(name) || files.read_line(kBlockFolder + name + "/hidden") == "1") continue;
    if (files.read_line(kBlockFolder + name + "/size", "0") == "0") continue;
    if (files.list(kBlockFolder + name + "/holders").empty()) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Returns the device's file system if it has this UUID; an unreadable device cannot be mounted either.
std::optional<Signature> carried(const Files& files, const std::string& name, const std::string& uuid) {
  const auto device = BlockDevice::open(files.real("/dev/" + name), BlockDevice::Access::read);
  if (!device.ok()) return std::nullopt;
  const auto found = probe_region(*device, 0, device->size());
  if (!found.ok()) return std::nullopt;
  for (const Signature& s : *found)
    if (file_system_uuid(s) == uuid) return s;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> file_system_bearers(const Files& files, const std::string& uuid) {
  std::vector<std::string> out;
  if (uuid.empty()) return out;
  std::set<std::string> parts;  // if all differ, they are the devices of one file system
  for (const auto& name : devices(files))
    if (const auto found = carried(files, name, uuid)) {
      out.push_back(name);
      parts.insert(found->device);
    }
  if (out.size() < 2 || parts.size() < out.size() || parts.count("") > 0) return out;
  const auto link = files.read_link("/dev/disk/by-uuid/" + uuid);
  const std::string named = link.ok() ? link->substr(link->rfind('/') + 1) : "";
  return {std::find(out.begin(), out.end(), named) != out.end() ? named : out.front()};
}

std::vector<std::string> partition_bearers(const Files& files, const std::string& guid) {
  std::vector<std::string> out;
  for (const auto& name : devices(files)) {
    if (guid.empty() || files.exists(kBlockFolder + name + "/partition")) continue;
    const auto device = BlockDevice::open(files.real("/dev/" + name), BlockDevice::Access::read);
    const auto table = device.ok() ? read_gpt(*device) : Result<GptTable>(device.error());
    if (!table.ok()) continue;
    for (const auto& p : table->partitions)
      if (lower(p.guid) == lower(guid)) out.push_back(partition_path(name, p.number));
  }
  return out;
}

std::string file_system_uuid(const Signature& s) {
  const bool known = s.type.starts_with("ext") || s.type == "xfs" || s.type == "btrfs" || s.type == "f2fs";
  if (known) return s.uuid;
  constexpr size_t kSerialDigits = 8;
  if (s.type != "vfat" || s.uuid.size() != kSerialDigits) return "";
  std::string out;  // a 32-bit number, high byte first
  for (const size_t at : {6, 4, 2, 0}) out += s.uuid.substr(at, 2);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out.insert(4, "-");
}

std::string device_number(const Files& files, const std::string& kernel_name) {
  struct stat st = {};
  if (!kernel_name.empty() && ::stat(files.real("/dev/" + kernel_name).c_str(), &st) == 0 &&
      S_ISBLK(st.st_mode))
    return fmt::format("{}:{}", major(st.st_rdev), minor(st.st_rdev));
  return files.read_line(kBlockFolder + kernel_name + "/dev");
}

std::string device_with_number(const Files& files, const std::string& number) {
  for (const auto& name : files.list(kBlockFolder))
    if (!number.empty() && files.read_line(kBlockFolder + name + "/dev") == number) return name;
  return "";
}

std::string disk_of_partition(const Files& files, const std::string& kernel_name) {
  if (!files.exists(kBlockFolder + kernel_name + "/partition")) return "";
  const std::string link = files.read_link(kBlockFolder + kernel_name).value_or("");
  const size_t end = link.rfind('/');
  if (end == std::string::npos || end == 0) return "";
  const size_t begin = link.rfind('/', end - 1);
  return link.substr(begin + 1, end - begin - 1);
}

}  // namespace muster
