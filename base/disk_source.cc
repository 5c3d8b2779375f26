#include "base/disk_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/split.h"

namespace muster {
namespace {

// Escapes the characters that would end an id, or the mount option that contains it.
std::string escaped(const std::string& id) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  std::string out;
  for (const char c : id)
    out += kPlain.find(c) != std::string_view::npos ? std::string(1, c)
                                                    : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

std::string hardware_text(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != 0 && c != '\n') out += c >= 32 && c < 127 ? c : '?';
  return trim(out, " ");
}

std::string disk_source_id(const DiskId& id) { return escaped(id.wwid) + "/" + escaped(id.serial); }

std::string disk_source(const std::vector<DiskFacts>& disks) {
  std::set<std::string> ids;
  for (const auto& d : disks) ids.insert(disk_source_id(d));
  std::string out = kDiskSource;
  for (const auto& id : ids) out += (out == kDiskSource ? "" : ",") + id;
  return out;
}

bool is_disk_source(const std::string& source) { return source.starts_with(kDiskSource); }

std::set<std::string> disk_source_ids(const std::string& source) {
  std::set<std::string> out;
  for (size_t at = std::string_view(kDiskSource).size(); at < source.size();) {
    const size_t end = std::min(source.find(',', at), source.size());
    if (end > at) out.insert(source.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace muster
