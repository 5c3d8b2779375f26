// Which root slot of muster's this system runs from, and which one is started when nothing else is asked
// for. Nothing is decided by a label or by a kernel name: / is the partition with the number that the kernel
// mounted, its place on the disk is that of the disk's own table, and the disk has muster's marker. Reads
// only. Thread: plain functions.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/disk/gpt.h"
#include "agent/disk/marker.h"
#include "agent/image/mounted.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

struct OwnSlots {
  std::string disk;    // kernel name, "nvme0n1"
  std::string device;  // its device file
  GptTable layout = {};
  ImageMarker marker = {};
  std::string running;  // "a" | "b"

  std::string other() const { return running == "a" ? "b" : "a"; }
  const GptPartition& slot(const std::string& name) const;
  const GptPartition& esp() const;
  const SlotNote* note(const std::string& name) const;
};
// not_found: / is on no root slot of a disk with muster's layout and marker. conflict: the kernel and the
// disk's table are not of one mind.
Result<OwnSlots> own_slots(const Files& files);

// What the marker notes of the running slot; what it does not, by the image's record and the network files.
SlotNote running_note(const Files& files, const OwnSlots& own);

// Kernel name of a partition of that disk, checked against its table: number, start and size as the kernel
// has them. conflict: they are others.
Result<std::string> partition_of(const Files& files, const OwnSlots& own, const GptPartition& partition);
// Mounted, swapped on or part of something else. "": it is not; else how it is, in words.
std::string use_of_partition(const Files& files, const std::string& kernel_name);

// Where muster's own mounts lie for as long as they are worked in: the agent's, and the slot writer's.
inline constexpr const char* kEspPlace = "/run/muster-esp";
inline constexpr const char* kWriterEspPlace = "/run/muster-image/esp";
inline constexpr const char* kWriterSlotPlace = "/run/muster-image/root";
// Those of an agent or a writer that was killed are taken away.
void unmount_left_over(const Files& files);

// The ESP of that disk: where it is mounted already, else mounted at `at` until it is closed. Who reads takes
// no mount away, neither this agent's nor the writer's. conflict: it is to be written, and is mounted
// read-only.
Result<std::unique_ptr<OpenFolder>> open_own_esp(const Files& files, const OwnSlots& own,
                                                 const std::string& at, Mounted::Way way);

// A device that is mounted for writing elsewhere (also out of sight, by another unit) cannot be mounted for
// reading: it is mounted the same way then, by the second call of `mount`.
Result<Mounted> mount_beside(const std::function<Result<Mounted>(Mounted::Way)>& mount, Mounted::Way way);

// The running slot is the one that stands, by loader.conf and by the marker. conflict: it is not (yet).
Status is_committed(const OwnSlots& own, const std::string& standing);

}  // namespace muster
