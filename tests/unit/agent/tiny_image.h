// An image of sixteen frames as the controller publishes it.
#pragma once

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/digest.h"
#include "base/manifest.h"

namespace muster::testing {

inline constexpr uint32_t kFrame = 65536;

inline std::string noise(size_t size, unsigned seed) {
  std::string out(size, '\0');
  for (auto& c : out) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return out;
}

struct Image {
  ImageManifest manifest;
  std::string raw, frames;
};

// 16 frames, two of them zero.
inline Image make_image(unsigned seed) {
  Image i;
  i.raw = noise(15 * kFrame + 1000, seed);
  for (const size_t zero : {3, 4})
    std::fill_n(i.raw.begin() + static_cast<long>(zero * kFrame), kFrame, '\0');
  ImageManifest& m = i.manifest;
  m.name = "tiny";
  m.os = "Tiny";
  m.kernel = "6.1";
  m.raw_size = i.raw.size();
  m.frame_size = kFrame;
  for (uint32_t n = 0; n * kFrame < i.raw.size(); ++n) {
    const std::string raw = i.raw.substr(n * kFrame, kFrame);
    ImageFrame f{n, 0, static_cast<uint32_t>(raw.size()), 0, "", "", n == 3 || n == 4};
    if (!f.zero) {
      std::string stored(ZSTD_compressBound(raw.size()), '\0');
      stored.resize(ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 1));
      f.offset = i.frames.size();
      f.stored_bytes = static_cast<uint32_t>(stored.size());
      f.stored_sha256 = sha256(stored);
      f.raw_sha256 = sha256(raw);
      i.frames += stored;
    }
    m.frames.push_back(f);
  }
  m.files = {{"kernel", "vmlinuz", sha256("KERNEL"), 6}, {"bootloader", "BOOTX64.EFI", sha256("LOADER"), 6}};
  m.digest = manifest_digest(m);
  return i;
}

}  // namespace muster::testing
