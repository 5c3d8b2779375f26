#include "sys/zone_files.h"

namespace muster {
namespace {

constexpr const char* kZones = "/usr/share/zoneinfo/";

}  // namespace

Result<TimeZone> read_zone(const Files& files, const std::string& name) {
  const std::string path = name.empty() ? "/etc/localtime" : kZones + name;
  if (name.empty() && !files.exists(path)) return TimeZone();
  const auto file = files.read(path);
  if (!file.ok()) return Error(file.error()).with(path);
  auto zone = TimeZone::read(*file);
  if (!zone.ok()) return Error(zone.error()).with(path);
  return zone;
}

bool has_zones(const Files& files) { return files.exists(std::string(kZones) + "Etc/UTC"); }

}  // namespace muster
