#include "base/disk_identity.h"

#include <fmt/format.h>

namespace muster {
namespace {

using Found = std::vector<const DiskFacts*>;

Found with(const std::vector<DiskFacts>& disks, std::string DiskFacts::*field, const std::string& value) {
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

// Returns the disks with this WWID, or with this serial number if no WWID is given; if several match, those
// that match in both.
Result<Found> candidates(const std::vector<DiskFacts>& disks, const std::string& serial,
                         const std::string& wwid) {
  if (serial.empty() && wwid.empty())
    return fail(Code::invalid, "a disk needs a WWID or a serial number; neither was given");
  if (wwid.empty()) return with(disks, &DiskFacts::serial, serial);
  Found found = with(disks, &DiskFacts::wwid, wwid), both;
  if (found.size() > 1 && !serial.empty()) {
    for (const auto* d : found)
      if (d->serial == serial) both.push_back(d);
    found = both;
  }
  // Found only for the message that a different disk is in its place.
  if (found.empty() && !serial.empty()) return with(disks, &DiskFacts::serial, serial);
  return found;
}

}  // namespace

Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const std::string& serial,
                            uint64_t size_bytes, const std::string& wwid, const std::string& model) {
  TRY(const Found found, candidates(disks, serial, wwid));
  const std::string title = disk_title(serial, wwid);
  if (found.empty()) return fail(Code::not_found, "there is no disk " + title);
  if (found.size() > 1)
    return fail(Code::conflict, fmt::format("{} disks match disk {}: {}", found.size(), title, names(found)));
  const DiskFacts& disk = *found.front();
  const auto differs = [&](const char* what, const std::string& is, const std::string& expected) {
    return fail(Code::conflict, fmt::format("disk {} ({}) has {} \"{}\", expected \"{}\"", title, disk.name,
                                            what, is, expected));
  };
  if (!wwid.empty() && disk.wwid != wwid) return differs("WWID", disk.wwid, wwid);
  if (!serial.empty() && disk.serial != serial) return differs("serial number", disk.serial, serial);
  if (disk.size_bytes != size_bytes)
    return differs("size", std::to_string(disk.size_bytes), std::to_string(size_bytes));
  if (!model.empty() && disk.model != model) return differs("model", disk.model, model);
  return disk;
}

Result<DiskFacts> find_disk(const std::vector<DiskFacts>& disks, const DiskFacts& seen) {
  return find_disk(disks, seen.serial, seen.size_bytes, seen.wwid, seen.model);
}

std::string disk_key(const std::string& serial, const std::string& wwid) { return serial + "\n" + wwid; }

std::string disk_title(const std::string& serial, const std::string& wwid) {
  if (serial.empty() || wwid.empty()) return serial + wwid;
  return fmt::format("{} ({})", serial, wwid);
}

bool is_own_array(const std::string& array, const std::string& section, const std::string& node) {
  const auto colon = array.find(':');
  const std::string host = colon == std::string::npos ? "" : array.substr(0, colon);
  return array.substr(colon + 1) == section && (host.empty() || host == "any" || host == node);
}

}  // namespace muster
