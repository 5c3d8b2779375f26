#include "host/disks_under.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/disk_source.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr int kMostLevels = 8;  // a deeper tree is malformed
const std::string kBlock = "/sys/class/block/";

void add_disks(const Files& files, const std::string& name, int levels, std::set<std::string>& out) {
  if (levels == 0) return;
  const std::string folder = kBlock + name;
  const auto parts = files.list(folder + "/slaves");
  for (const auto& part : parts) add_disks(files, part, levels - 1, out);
  if (!parts.empty()) return;
  if (files.exists(folder + "/partition")) {
    const std::string target = files.read_link(folder).value_or("");
    const std::string disk = last_component(target.substr(0, target.rfind('/')));
    if (!disk.empty()) add_disks(files, disk, levels - 1, out);
    return;
  }
  if (files.exists(folder + "/device")) out.insert(name);
}

// Where the serial number of a disk is depends on its kind, so each has several possible ids.
std::set<std::string> ids_of(const Files& files, const std::string& disk) {
  const std::string folder = kBlock + disk, page = files.read(folder + "/device/vpd_pg80").value_or("");
  constexpr size_t kPageHead = 4;
  std::string wwid = hardware_text(files.read_line(folder + "/wwid"));
  if (wwid.empty()) wwid = hardware_text(files.read_line(folder + "/device/wwid"));
  std::set<std::string> out;
  for (const std::string& serial :
       {files.read_line(folder + "/device/serial"), files.read_line(folder + "/serial"),
        page.size() > kPageHead ? page.substr(kPageHead) : std::string()})
    out.insert(disk_source_id({hardware_text(serial), wwid}));
  return out;
}

}  // namespace

Status lies_on(const Files& files, const std::string& device, const std::string& source) {
  std::error_code error;
  const auto real = std::filesystem::canonical(files.real(device), error);
  const auto disks = disks_under(files, error ? last_component(device) : real.filename().string());
  std::set<std::string> left = disk_source_ids(source);
  std::string others;
  const size_t wanted = left.size();
  for (const auto& disk : disks) {
    const auto ids = ids_of(files, disk);
    const auto mine =
        std::find_if(ids.begin(), ids.end(), [&](const std::string& id) { return left.count(id) > 0; });
    if (mine != ids.end())
      left.erase(*mine);
    else
      others += (others.empty() ? "" : ", ") + disk + " (" + *ids.rbegin() + ")";
  }
  if (wanted > 0 && left.empty() && others.empty() && disks.size() == wanted) return Ok{};
  return fail(Code::denied,
              fmt::format("{} is on {}{}; the spec declares {}", device,
                          disks.empty() ? "no disk in this machine" : fmt::format("{} disks", disks.size()),
                          others.empty() ? "" : ", including " + others, source));
}

std::vector<std::string> disks_under(const Files& files, const std::string& kernel_name) {
  std::set<std::string> out;
  add_disks(files, kernel_name, kMostLevels, out);
  return {out.begin(), out.end()};
}

}  // namespace muster
