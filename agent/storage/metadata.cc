#include "agent/storage/metadata.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace muster {
namespace {

constexpr const char* kMooseFs = "/var/lib/mfs";
constexpr const char* kCeph = "/var/lib/ceph";

bool has_ceph_monitor(const Files& files) {
  if (files.exists("/state/ceph/mon/store.db")) return true;
  const std::string all = std::string(kCeph) + "/mon";
  const auto names = files.list(all);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return files.exists(all + "/" + name + "/store.db"); });
}

constexpr const char* kRetired = "master.retired";

bool is_metadata(const std::string& name) {
  return name.starts_with("metadata") || name.starts_with("changelog");
}

// Returns the version of an image: "MFSM", blank, format, then the version, most significant byte first. 0:
// not an image, truncated, or an empty image ("MFSM NEW").
uint64_t image_version(const std::string& head) {
  if (head.size() < 16 || !head.starts_with("MFSM ") || head.starts_with("MFSM NEW")) return 0;
  uint64_t out = 0;
  for (size_t i = 8; i < 16; ++i) out = out << 8 | static_cast<unsigned char>(head[i]);
  return out;
}

// True if the end mark of a complete image is present; an interrupted copy has none, and no master would
// start with it.
bool is_whole(const std::string& tail) {
  const std::string mark = "[MFS EOF MARKER]";
  return tail.size() >= mark.size() && tail.compare(tail.size() - mark.size(), mark.size(), mark) == 0;
}

// The file may be large.
std::string piece(const Files& files, const std::string& path, bool from_end) {
  constexpr long kPiece = 64 << 10;
  std::string out(kPiece, '\0');
  FILE* in = std::fopen(files.real(path).c_str(), "rbe");
  if (!in) return "";
  if (from_end && std::fseek(in, -kPiece, SEEK_END) != 0) std::rewind(in);
  out.resize(std::fread(out.data(), 1, out.size(), in));
  std::fclose(in);
  return out;
}

// "4711: 1700000000|CREATE(...)" is change 4711, after which the version is 4712. A truncated last line does
// not count.
uint64_t version_behind(const std::string& changes) {
  const size_t end = changes.rfind('\n');
  if (end == std::string::npos) return 0;
  const size_t before = end == 0 ? std::string::npos : changes.rfind('\n', end - 1);
  const char* line = changes.c_str() + (before == std::string::npos ? 0 : before + 1);
  char* colon = nullptr;
  const uint64_t number = std::strtoull(line, &colon, 10);
  return colon != line && *colon == ':' ? number + 1 : 0;
}

std::optional<MooseFsCopy> copy_in(const Files& files, const std::string& folder, bool of_logger) {
  const char* image = of_logger ? "metadata_ml.mfs.back" : "metadata.mfs";
  const char* changes = of_logger ? "changelog_ml" : "changelog";
  MooseFsCopy out{folder, {}};
  uint64_t latest_image = 0;
  for (const auto& name : files.list(folder)) {
    const bool is_image = name.starts_with(image);
    if (!is_image && !name.starts_with(changes)) continue;
    struct stat s = {};
    if (::stat(files.real(folder + "/" + name).c_str(), &s) != 0) continue;
    out.files.push_back(name);
    out.written = std::max<int64_t>(out.written, s.st_mtime);
    const std::string path = folder + "/" + name, tail = piece(files, path, true);
    const uint64_t version = !is_image        ? version_behind(tail)
                             : is_whole(tail) ? image_version(piece(files, path, false))
                                              : 0;
    if (is_image) latest_image = std::max(latest_image, version);
    out.version = std::max(out.version, version);
  }
  if (latest_image == 0) return std::nullopt;
  return out;
}

}  // namespace

std::optional<MooseFsCopy> latest_moosefs_copy(const Files& files) {
  const std::string all = moosefs_folder(files);
  auto out = copy_in(files, all + "/metalogger", true);
  for (const auto& name : files.list(all)) {
    if (!name.starts_with(kRetired)) continue;
    auto one = copy_in(files, all + "/" + name, false);
    if (one && (!out || one->version > out->version)) out = std::move(one);
  }
  return out;
}

std::string free_retired_folder(const Files& files) {
  const std::string first = moosefs_folder(files) + "/" + kRetired;
  std::string out = first;
  for (int i = 2; files.exists(out); ++i) out = first + "." + std::to_string(i);
  return out;
}

std::string moosefs_folder(const Files& files) {
  return files.is_directory("/state") ? "/state/mfs" : kMooseFs;
}

bool has_moosefs_metadata(const Files& files) {
  const auto names = files.list(moosefs_folder(files) + "/master");
  return std::any_of(names.begin(), names.end(), is_metadata);
}

bool moosefs_metadata_is_new(const Files& files) {
  const std::string folder = moosefs_folder(files) + "/master";
  bool empty = false;
  for (const auto& name : files.list(folder)) {
    if (!name.starts_with("metadata") || name == "metadata.crc") continue;
    // The previous image, which the master keeps next to the current one.
    if (name.starts_with("metadata.mfs.back.")) continue;
    if (!piece(files, folder + "/" + name, false).starts_with("MFSM NEW")) return false;
    empty = true;
  }
  return empty;
}

int64_t moosefs_metadata_written(const Files& files) {
  const std::string folder = moosefs_folder(files) + "/master";
  int64_t out = 0;
  for (const auto& name : files.list(folder)) {
    struct stat s = {};
    if (is_metadata(name) && ::stat(files.real(folder + "/" + name).c_str(), &s) == 0)
      out = std::max<int64_t>(out, s.st_mtime);
  }
  return out;
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
