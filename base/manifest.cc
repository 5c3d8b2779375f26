#include "base/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/record.h"

namespace muster {

MUSTER_RECORD(ImageFrame, index, offset, raw_bytes, stored_bytes, zero, raw_sha256, stored_sha256)
MUSTER_RECORD(ImageFile, role, name, sha256, size)
// Images of older versions keep their digest: they have no `trial`.
MUSTER_RECORD(ImageManifest, format, name, digest, os, kernel, raw_size, frame_size, frames, files,
              sparse(trial))

namespace {

Json body_json(const ImageManifest& manifest) {
  Json out = record_json(manifest);
  out.erase("digest");
  return out;
}

bool is_digest(const std::string& s) {
  return s.size() == 71 && s.compare(0, 7, "sha256:") == 0 &&
         s.find_first_not_of("0123456789abcdef", 7) == std::string::npos;
}

Status check_frame(const ImageManifest& m, size_t i, uint64_t& next_offset) {
  const ImageFrame& f = m.frames[i];
  const auto wrong = [&](const char* what) {
    return fail(Code::invalid, fmt::format("manifest: frame {}: {}", i, what));
  };
  const uint64_t start = uint64_t{i} * m.frame_size;
  if (f.index != i) return wrong("out of order");
  if (start >= m.raw_size || f.raw_bytes != std::min<uint64_t>(m.frame_size, m.raw_size - start))
    return wrong("raw size does not match the image size");
  if (f.zero) return f.stored_bytes == 0 ? Status(Ok{}) : wrong("zero frame with stored bytes");
  if (f.offset != next_offset || f.stored_bytes == 0) return wrong("stored bytes overlap or leave a gap");
  if (f.stored_bytes > m.frame_size + m.frame_size / 8 + 1024)
    return wrong("more stored bytes than a frame can have");
  if (!is_digest(f.stored_sha256) || !is_digest(f.raw_sha256)) return wrong("not a SHA-256");
  next_offset += f.stored_bytes;
  return Ok{};
}

Status check(const ImageManifest& m) {
  if (m.format != kManifestFormat)
    return fail(Code::invalid, fmt::format("manifest: unknown format {}", m.format));
  // One frame is held in memory per worker, compressed and raw: a hostile frame size must not exhaust it.
  if (m.frame_size < 4096 || m.frame_size > (64u << 20) || m.frame_size % 4096)
    return fail(Code::invalid, "manifest: frame size out of range");
  // Not rounded up by an addition, which near the largest size begins again at 0.
  const uint64_t frames = m.raw_size / m.frame_size + (m.raw_size % m.frame_size == 0 ? 0 : 1);
  if (m.raw_size == 0 || m.frames.size() != frames)
    return fail(Code::invalid, "manifest: number of frames does not match the image size");
  uint64_t next_offset = 0;
  for (size_t i = 0; i < m.frames.size(); ++i) TRY_(check_frame(m, i, next_offset));
  for (const auto& f : m.files)
    if (f.name.empty() || f.name[0] == '.' || f.name.find('/') != std::string::npos || !is_digest(f.sha256))
      return fail(Code::invalid, "manifest: bad file entry \"" + f.name + "\"");
  return Ok{};
}

}  // namespace

const ImageFile* ImageManifest::file(std::string_view role) const {
  for (const auto& f : files)
    if (f.role == role) return &f;
  return nullptr;
}

uint64_t ImageManifest::stored_size() const {
  uint64_t sum = 0;
  for (const auto& f : frames) sum += f.stored_bytes;
  return sum;
}

uint64_t ImageManifest::boot_size() const {
  uint64_t sum = 1 << 20;
  for (const char* role : {"kernel", "initrd"})
    if (const ImageFile* f = file(role)) sum += f->size;
  return sum;
}

std::string manifest_digest(const ImageManifest& manifest) { return sha256(dump_json(body_json(manifest))); }

std::string to_text(const ImageManifest& manifest) { return dump_json(record_json(manifest)); }

Result<ImageManifest> manifest_from_text(std::string_view text) {
  TRY(const Json json, parse_json(text));
  TRY(auto m, read_record<ImageManifest>(json, "manifest"));
  TRY_(check(m));
  if (manifest_digest(m) != m.digest)
    return fail(Code::corrupt, "manifest: the digest does not match the content");
  return m;
}

Status check_stored_frame(const ImageFrame& frame, std::string_view stored) {
  if (stored.size() != frame.stored_bytes)
    return fail(Code::corrupt, fmt::format("frame {}: {} bytes instead of {}", frame.index, stored.size(),
                                           frame.stored_bytes));
  if (sha256(stored) != frame.stored_sha256)
    return fail(Code::corrupt, fmt::format("frame {}: SHA-256 of the stored bytes is wrong", frame.index));
  return Ok{};
}

}  // namespace muster
