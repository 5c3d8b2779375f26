#include "agent/storage/metadata.h"

#include <algorithm>

namespace muster {
namespace {

// Made by the engines' packages.
constexpr const char* kMooseFs = "/var/lib/mfs";
constexpr const char* kCeph = "/var/lib/ceph";

bool has_ceph_monitor(const Files& files) {
  if (files.exists("/state/ceph/mon/store.db")) return true;
  const std::string all = std::string(kCeph) + "/mon";
  const auto names = files.list(all);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return files.exists(all + "/" + name + "/store.db"); });
}

}  // namespace

std::string moosefs_folder(const Files& files) {
  return files.is_directory("/state") ? "/state/mfs" : kMooseFs;
}

bool has_moosefs_metadata(const Files& files) {
  for (const auto& name : files.list(moosefs_folder(files) + "/master"))
    if (name.rfind("metadata", 0) == 0 || name.rfind("changelog", 0) == 0) return true;
  return false;
}

std::string ceph_monitor_folder(const Files& files, const std::string& node) {
  return files.is_directory("/state") ? "/state/ceph/mon" : std::string(kCeph) + "/mon/ceph-" + node;
}

std::map<std::string, bool> storage_metadata(const Files& files) {
  std::map<std::string, bool> out;
  if (files.is_directory(kMooseFs)) out["moosefs"] = has_moosefs_metadata(files);
  if (files.is_directory(kCeph)) out["ceph"] = has_ceph_monitor(files);
  return out;
}

}  // namespace muster
