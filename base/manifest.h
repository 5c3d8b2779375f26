// ImageManifest: the exact content of a published image. Written by the controller when an image is built,
// read by the agent that writes it to a disk; their only shared definition of an image.
//
// The raw image (an ext4 file system) is cut into frames of `frame_size` bytes; the last one may be shorter.
// A frame of zeros only is not stored. The others are independent zstd frames, stored in order in one blob,
// "frames.zst". Each stored frame has two SHA-256 digests: of its stored bytes (checked before anything is
// decompressed) and of its raw bytes (compared with what is already on a disk when a transfer is resumed).
// `digest` is the SHA-256 of the canonical JSON text without that field: it names the image, and plans are
// bound to it. Thread safety: plain value types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

constexpr int kManifestFormat = 1;
constexpr uint32_t kFrameSize = 4 << 20;

struct ImageFrame {
  uint32_t index = 0;   // raw offset = index * frame_size
  uint64_t offset = 0;  // of the stored bytes within frames.zst
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;  // 0 when `zero`
  std::string stored_sha256 = {};
  std::string raw_sha256 = {};
  bool zero = false;
};

// A file that accompanies the file system; stored under its name next to the manifest.
struct ImageFile {
  std::string role;  // kernel | initrd | bootloader
  std::string name;  // "vmlinuz"; a plain file name
  std::string sha256;
  uint64_t size = 0;
};

struct ImageManifest {
  int format = kManifestFormat;
  std::string name;    // "debian-12"
  std::string digest;  // "sha256:<hex>"
  std::string os;      // PRETTY_NAME of the image
  std::string kernel;  // `uname -r` of the booted image
  uint64_t raw_size = 0;
  bool trial = false;  // the image's systemd rolls back an uncommitted boot (kernel parameter muster.trial)
  uint32_t frame_size = kFrameSize;
  std::vector<ImageFrame> frames = {};
  std::vector<ImageFile> files = {};

  // nullptr when the image has no such file.
  const ImageFile* file(std::string_view role) const;
  uint64_t stored_size() const;
  // What kernel and initrd need on the EFI system partition, with clusters, folders and entries.
  uint64_t boot_size() const;
};

// Size of the EFI system partition in muster's layout of a disk. Two systems must fit: the one that runs and
// the one that is written.
constexpr uint64_t kSmallDiskBytes = uint64_t{32} << 30, kSmallEspBytes = 256 << 20, kEspBytes = 512 << 20;
constexpr uint64_t esp_size(uint64_t disk_size) {
  return disk_size >= kSmallDiskBytes ? kEspBytes : kSmallEspBytes;
}

// Canonical, including `digest`.
std::string to_text(const ImageManifest& manifest);
// Computes what `digest` must be; ignores the current value of the field.
std::string manifest_digest(const ImageManifest& manifest);
// invalid: not a manifest of a known format, or inconsistent (frames that overlap, leave gaps, or have wrong
// sizes; file names with a slash). corrupt: the digest does not match the content.
Result<ImageManifest> manifest_from_text(std::string_view text);
// Code::corrupt unless `stored` are exactly the stored bytes of that frame.
Status check_stored_frame(const ImageFrame& frame, std::string_view stored);

}  // namespace muster
