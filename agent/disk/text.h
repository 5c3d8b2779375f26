// Reads fields of untrusted superblocks as text: labels, UUIDs, the kind of ext file system. A field that
// extends beyond the block is cut off there. Pure functions, no I/O.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/digest.h"

namespace muster {

// Returns text up to the first zero byte, without trailing blanks; non-printable or non-ASCII becomes '?'.
inline std::string text_at(std::string_view block, size_t at, size_t size) {
  std::string out;
  for (const char c : block.substr(std::min(at, block.size()), size)) {
    if (c == 0) break;
    out += c >= 32 && c < 127 ? c : '?';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

inline std::string uuid_at(std::string_view block, size_t at) {
  const std::string h = to_hex(std::string(block.substr(std::min(at, block.size()), 16)));
  return h.size() < 32 ? h
                       : fmt::format("{}-{}-{}-{}-{}", h.substr(0, 8), h.substr(8, 4), h.substr(12, 4),
                                     h.substr(16, 4), h.substr(20));
}

// Returns the kind of ext file system. `features`: its compatible, incompatible and read-only flags.
inline const char* ext_type(std::string_view features) {
  const bool journal = features.size() == 12 && (features[0] & 4),
             extents = features.size() == 12 && (features[4] & 0x40);
  return extents ? "ext4" : journal ? "ext3" : "ext2";
}

}  // namespace muster
