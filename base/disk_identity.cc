#include "base/disk_identity.h"

#include <fmt/format.h>

namespace muster {
namespace {

using Found = std::vector<const DiskFacts*>;

Found with(const std::vector<DiskFacts>& disks, std::string DiskId::*field, const std::string& value) {
  Found out;
  for (const auto& d : disks)
    if (d.*field == value) out.push_back(&d);
  return out;
}

std::string names(const Found& disks) {
  std::string out;
  for (const auto* d : disks) out += (out.empty() ? "" : ", ") + (d->name.empty() ? "?" : d->name);
  return out;
}

// With this WWID, or this serial number if no WWID is given; if several match, those that match in both.
Result<Found> candidates(const std::vector<DiskFacts>& disks, const DiskId& id) {
  if (id.serial.empty() && id.wwid.empty())
    return fail(Code::invalid, "a disk needs a WWID or a serial number; neither was given");
  if (id.wwid.empty()) return with(disks, &DiskId::serial, id.serial);
  Found found = with(disks, &DiskId::wwid, id.wwid), both;
  if (found.size() > 1 && !id.serial.empty()) {
    for (const auto* d : found)
      if (d->serial == id.serial) both.push_back(d);
    found = both;
  }
  // Found only for the message that a different disk is in its place.
  if (found.empty() && !id.serial.empty()) return with(disks, &DiskId::serial, id.serial);
  return found;
}

}  // namespace

Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const DiskId& id) {
  TRY(const Found found, candidates(disks, id));
  const std::string title = disk_title(id);
  if (found.empty()) return fail(Code::not_found, "there is no disk " + title);
  if (found.size() > 1)
    return fail(Code::conflict, fmt::format("{} disks match disk {}: {}", found.size(), title, names(found)));
  const DiskFacts& disk = *found.front();
  const auto differs = [&](const char* what, const std::string& is, const std::string& expected) {
    return fail(Code::conflict, fmt::format("disk {} ({}) has {} \"{}\", expected \"{}\"", title, disk.name,
                                            what, is, expected));
  };
  if (!id.wwid.empty() && disk.wwid != id.wwid) return differs("WWID", disk.wwid, id.wwid);
  if (!id.serial.empty() && disk.serial != id.serial) return differs("serial number", disk.serial, id.serial);
  if (disk.size_bytes != id.size_bytes)
    return differs("size", std::to_string(disk.size_bytes), std::to_string(id.size_bytes));
  if (!id.model.empty() && disk.model != id.model) return differs("model", disk.model, id.model);
  return disk;
}

std::string disk_key(const DiskId& id) { return id.serial + "\n" + id.wwid; }

std::string disk_title(const DiskId& id) {
  if (id.serial.empty() || id.wwid.empty()) return id.serial + id.wwid;
  return fmt::format("{} ({})", id.serial, id.wwid);
}

bool is_own_array(const std::string& array, const std::string& section, const std::string& node) {
  const auto colon = array.find(':');
  const std::string host = colon == std::string::npos ? "" : array.substr(0, colon);
  return array.substr(colon + 1) == section && (host.empty() || host == "any" || host == node);
}

}  // namespace muster
