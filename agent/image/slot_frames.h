// Writes the frames of an image into a region of a device: a root slot of a disk, or the slot's partition.
//
// Each frame is checked against the manifest before it is decompressed; a bad one is fetched again and never
// written. On Ok from run(), everything is on the device. Thread: blocking, starts its own workers;
// `progress` is called by any of them, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "agent/disk/block_device.h"
#include "agent/image/blobs.h"
#include "base/manifest.h"

namespace muster {

struct FrameDeps {
  MakeSource source;
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // stored bytes
  std::function<bool()> cancelled = {};
};

struct FrameCounts {
  uint32_t frames = 0, fetched = 0, kept = 0, zero = 0;  // kept: already correct on the device
  uint64_t fetched_bytes = 0;
};

class SlotFrames {
 public:
  // `path`: where the server has frames.zst. `start`: offset of the region on the device.
  SlotFrames(std::string path, const ImageManifest& manifest, const BlockDevice& device, uint64_t start,
             const FrameDeps& deps, const WriteOptions& options)
      : path_(std::move(path)),
        m_(manifest),
        device_(device),
        start_(start),
        deps_(deps),
        options_(options) {}

  // If `keep`, frames that are already correct on the device are neither fetched nor written.
  Result<FrameCounts> run(bool keep);

 private:
  // A run of frames whose stored bytes are adjacent, so that one request fetches them.
  struct Batch {
    uint32_t first = 0, last = 0;  // frame indices, inclusive; frames not needed in between are zero frames
    uint64_t offset = 0, size = 0;
  };
  using Work = std::function<Status(const std::atomic<bool>& failed)>;

  uint64_t place(const ImageFrame& f) const { return start_ + uint64_t{f.index} * m_.frame_size; }
  bool stop_requested() const { return deps_.cancelled && deps_.cancelled(); }
  int threads() const;
  void make_batches(const std::vector<bool>& needed);
  Status in_parallel(const Work& work);
  Status keep_what_is_right(std::vector<bool>& needed);
  Status zero_frames(bool look_first);
  Status fetch_all();
  Status fetch(BlobSource& source, void* zstd, const Batch& batch);

  std::string path_;
  const ImageManifest& m_;
  const BlockDevice& device_;
  uint64_t start_;
  const FrameDeps& deps_;
  const WriteOptions& options_;
  std::vector<Batch> batches_ = {};
  std::mutex progress_mutex_;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace muster
