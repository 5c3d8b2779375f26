// write_slot(): writes an image into the root slot that this system does not run from, while it runs.
//
// Everything that could prevent the order is checked before the first write: the job is for this node; the
// disk matches its description (identity), has muster's layout and a marker of this node, cluster and
// controller, and / is one of its root slots; the running slot is committed, and the job names the other one;
// that partition is not in use; an EFI variable can be written, /state too, and the running slot's files on
// the ESP are whole; the image rolls back automatically (ImageManifest::trial), fits, and is served as
// announced, as are the programs; the ESP has enough space, after a repair if some of it is lost. The writes
// are ordered so that the running slot stays the default and bootable after a power cut at any point: the
// marker records "writing", the slot's entries are removed, frames are written (correct ones are kept), the
// new root is seeded, kernel, initrd and finally the entry are written to the ESP, everything is read back,
// and the marker records "written". Never changed: the running slot, its files on the ESP, loader.conf, the
// loader itself, the state partition. A repeated order continues; one that had finished is verified and
// succeeds. Thread: blocking, a process of its own (slot_child.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/image/blobs.h"
#include "agent/image/esp_room.h"
#include "agent/image/mounted.h"
#include "agent/image/own_slots.h"
#include "agent/image/slot_frames.h"
#include "base/facts.h"
#include "base/json.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

struct WriteSlotDeps {
  const Files& files;                             // this machine
  std::function<std::vector<DiskFacts>()> disks;  // identities, now
  MakeSource source;
  std::string order = {};  // the order's id without the attempt
  // The slot's file system, grown to `size` bytes when opened for writing.
  std::function<Result<std::unique_ptr<OpenFolder>>(const std::string& device, uint64_t size,
                                                    Mounted::Way way)>
      mount_slot = {};
  std::function<Space(const std::string& folder)> space = {};
  std::function<Status(const OwnSlots& own)> repair_esp = {};  // called while the ESP is not mounted
  // Called before each write; an error stops the work there.
  std::function<Status(std::string_view what)> before_write = {};
  std::function<void(const std::string& text)> say = {};
  std::function<void(uint64_t done, uint64_t total)> progress = {};
  std::function<bool()> cancelled = {};
};
WriteSlotDeps real_write_slot_deps(const Files& files, const wire::SlotJob& job);

struct WriteSlotResult : FrameCounts {
  std::string slot = {};
  bool finished_before = false;
};
Json to_json(const WriteSlotResult& result, const wire::SlotJob& job);

// conflict: not the described disk, in use, not committed, or the running slot. denied: the disk of a
// different node, or an image that would not roll back automatically. invalid: it does not fit. corrupt: the
// served data, or the data read back, is not what was announced.
Result<WriteSlotResult> write_slot(const wire::SlotJob& job, const WriteSlotDeps& deps,
                                   const WriteOptions& options = {});

}  // namespace muster
