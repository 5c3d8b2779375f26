// write_image(): puts an image into the root slot of the OS disk that is not in use, so that it can be
// started.
//
// Order, and why a power cut anywhere is harmless: find the disk by identity, open it exclusively, look at
// its content again (refused with Code::denied unless it is what the plan approved), note the intent on the
// disk itself, make the partitions if they are not muster's yet, write frames into the slot that is not
// started by default, then file systems and identity, and the loader entry last. The other slot and the state
// partition are never written. Every frame is checked against the manifest before it is decompressed; a bad
// one is fetched again and never written. A transfer that was broken off goes on from what is on the disk, by
// hashing it. An order that had come to its end, and is offered once more because its end was not heard or
// was forgotten with a database, succeeds without a write. Thread: blocking, starts its own workers. Never:
// touches another disk, follows a kernel name, trusts the network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/disk/gpt.h"
#include "agent/disk/disk_probe.h"
#include "base/facts.h"
#include "base/manifest.h"
#include "base/wire.h"

namespace muster {

struct ImageMarker;

// Bytes of published files. Each worker has its own.
class BlobSource {
 public:
  virtual ~BlobSource() = default;
  virtual Result<std::string> whole(const std::string& path) = 0;
  virtual Result<std::string> range(const std::string& path, uint64_t offset, uint64_t size) = 0;
};
// HTTP with Range requests. `base_url`: "http://10.20.0.1:7480".
Result<std::unique_ptr<BlobSource>> http_source(const std::string& base_url);

struct SeedRequest {
  const wire::ImageJob& job;
  const ImageManifest& manifest;
  std::string disk;  // "/dev/nvme0n1"
  GptTable layout;
  std::string slot;                          // "a" | "b"
  bool fresh = false;                        // ESP and state have no file systems yet
  std::map<std::string, std::string> files;  // role -> content, checked: kernel, initrd, bootloader
};

// What happens to a slot after its bytes are there; needs mounts, so tests have their own.
class Seeder {
 public:
  virtual ~Seeder() = default;
  // File systems of ESP and state where `fresh`; grows the root; host name, network, agent, identity.
  virtual Status seed(const SeedRequest& request) = 0;
  // Makes the slot the one that is started. The last effect of all.
  virtual Status install_loader(const SeedRequest& request) = 0;
};

struct WriteDeps {
  std::function<std::vector<DiskFacts>()> disks;               // identities, now
  std::function<std::string(const std::string& name)> device;  // kernel name -> path to open
  std::function<Result<std::unique_ptr<BlobSource>>()> source;
  Seeder* seeder = nullptr;
  std::string order = {};  // the order's id without the attempt: what is done is not done again
  std::function<void(uint64_t done, uint64_t total)> progress =
      {};  // stored bytes; from any worker, one at a time
  std::function<bool()> cancelled = {};
};

struct WriteOptions {
  int threads = 0;  // 0: one per core, at least two
  uint64_t request_bytes = 8 << 20;
  int attempts = 8;          // per request
  DurationMs backoff = 250;  // doubles, up to 8 s
};

struct WriteResult {
  std::string slot;
  bool fresh_layout = false, resumed = false;
  bool finished_before = false;  // the same order had come to its end on this disk: nothing was written
  uint32_t frames = 0, fetched = 0, kept = 0, zero = 0;  // kept: found right on the disk
  uint64_t fetched_bytes = 0;
};

// denied: identity is right, but the content is not what was approved, or the disk is not local. conflict:
// another disk than described, or in use. corrupt: the controller serves bytes that do not match the
// manifest.
Result<WriteResult> write_image(const wire::ImageJob& job, const WriteDeps& deps,
                                const WriteOptions& options = {});

// Is what this order would do on this disk done? By the order that the marker names; or the marker is of a
// finished work of this image over the very content that this job was approved for, which is no more. Pure.
bool is_finished(const wire::ImageJob& job, const std::string& order, const DiskContent& content,
                 const ImageMarker* marker);

// May this disk be overwritten for this job? Pure. `marker` may be null.
Status may_write(const wire::ImageJob& job, const DiskContent& content, const ImageMarker* marker);

}  // namespace muster
