// write_image(): writes an image into the root slot of the OS disk that is not in use, and makes that slot
// the default.
//
// Order, and why a power cut anywhere is harmless: find the disk by identity, open it exclusively, probe its
// content again (Code::denied unless it is what the plan approved), compare kernel and initrd with the space
// on the ESP, remove the EFI variables that override loader.conf, record the intent on the disk itself, make
// the partitions if they are not muster's yet, write frames into the slot that is not the default (by
// loader.conf, or the marker if there is none), then file systems and identity, and the loader entry last.
// The other slot and the state partition are never written. Every frame is checked against the manifest
// before it is decompressed; a bad one is fetched again and never written. Correct data already in the slot,
// from an earlier image or an interrupted transfer, is neither fetched nor written. An order that had
// finished, and is sent again because its result was lost, succeeds without a write. Thread: blocking, starts
// its own workers. Never: changes a different disk, selects by a kernel name, trusts the network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/disk/disk_probe.h"
#include "agent/disk/gpt.h"
#include "agent/image/blobs.h"
#include "agent/image/esp_room.h"
#include "agent/image/slot_frames.h"
#include "base/facts.h"
#include "base/manifest.h"
#include "base/wire.h"

namespace muster {

struct ImageMarker;
struct SlotNote;

struct SeedRequest {
  const wire::ImageJob& job;
  const ImageManifest& manifest;
  std::string disk;  // "/dev/nvme0n1"
  GptTable layout;
  std::string slot;                          // "a" | "b"
  bool fresh = false;                        // ESP and state have no file systems yet
  std::map<std::string, std::string> files;  // role -> content, checked: kernel, initrd, bootloader
};

// The steps for a slot after its bytes are written; they need mounts, so tests have their own version.
class Seeder {
 public:
  virtual ~Seeder() = default;
  // Returns the default slot of the boot loader on this disk ("/dev/nvme0n1"); "" if unknown.
  virtual std::string standing(const std::string& /*disk*/) { return ""; }
  // Returns the space for the slot's kernel and initrd on this disk's ESP, after a repair of the ESP if some
  // of it is lost; none: unknown.
  virtual std::optional<EspRoom> room(const std::string& /*disk*/, const std::string& /*slot*/) { return {}; }
  // Removes the variables that override loader.conf (efi_variables.h): they may name the slot that is about
  // to be written, or keep the new system from being started.
  virtual Status drop_overrides() { return Ok{}; }
  // Makes the file systems of ESP and state if `fresh`; grows the root; host name, network, agent, identity.
  virtual Status seed(const SeedRequest& request) = 0;
  // Makes the slot the default. The last change of all.
  virtual Status install_loader(const SeedRequest& request) = 0;
};

struct WriteDeps {
  std::function<std::vector<DiskFacts>()> disks;               // identities, now
  std::function<std::string(const std::string& name)> device;  // kernel name -> path to open
  MakeSource source;
  Seeder* seeder = nullptr;
  std::string order = {};  // the order's id without the attempt: finished work is not repeated
  std::function<void(uint64_t done, uint64_t total)> progress =
      {};  // stored bytes; from any worker, one at a time
  std::function<bool()> cancelled = {};
};

struct WriteResult : FrameCounts {
  std::string slot = {};
  bool fresh_layout = false, resumed = false;
  bool finished_before = false;  // the same order had already finished on this disk: nothing was written
};

// denied: the identity matches, but the content is not what was approved, or the disk is not local. conflict:
// the disk differs from its description, or is in use. corrupt: the bytes that the controller serves do not
// match the manifest.
Result<WriteResult> write_image(const wire::ImageJob& job, const WriteDeps& deps,
                                const WriteOptions& options = {});

// The record of a slot that is written with that image.
SlotNote slot_note(const wire::ImageJob& job, const ImageManifest& manifest, const char* stage,
                   const std::string& order);

// True if this order's work on this disk is done: the marker names the order, or records that this image was
// written over the approved content, and that content is gone. Pure function.
bool is_finished(const wire::ImageJob& job, const std::string& order, const DiskContent& content,
                 const ImageMarker* marker);

// True if the marker is of this node, cluster and controller. A marker without cluster or CA counts if the
// controller's own record shows that it imaged this node. Pure function.
bool is_ours(const wire::ImageJob& job, const ImageMarker& marker);
// denied: the disk with the job's identity is not a local disk of this machine, or it is read-only.
Result<DiskFacts> find_local_disk(const wire::ImageJob& job, const std::vector<DiskFacts>& disks);

// Checks that this disk may be overwritten for this job. `marker` may be null. Pure function.
Status may_write(const wire::ImageJob& job, const DiskContent& content, const ImageMarker* marker);

}  // namespace muster
