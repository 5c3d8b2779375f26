// Which of muster's root slots this system runs from, and which one boots by default. Other disks may have
// the same labels and kernel names, so / is found by the device number that the kernel mounted, its position
// is compared with the disk's table, and the disk must have muster's marker. Reads only. Stateless functions.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/disk/gpt.h"
#include "agent/disk/marker.h"
#include "agent/image/mounted.h"
#include "base/result.h"
#include "sys/os.h"

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
// not_found: / is not on a root slot of a disk with muster's layout and marker. conflict: the kernel's view
// differs from the disk's partition table.
Result<OwnSlots> own_slots(const Files& files);

// The marker's record of the running slot, completed from the image's record, its files and network files.
SlotNote running_note(const Files& files, const OwnSlots& own);

// Kernel name of a partition. conflict: number, start or size in the kernel differ from the disk's table.
Result<std::string> partition_of(const Files& files, const OwnSlots& own, const GptPartition& partition);
// How a partition is used, for messages: mounted, as swap, or part of another device; "" if unused.
std::string use_of_partition(const Files& files, const std::string& kernel_name);

// Mount points: the agent's, and the two of the slot writer.
inline constexpr const char* kEspPlace = "/run/muster-esp";
inline constexpr const char* kWriterEspPlace = "/run/muster-image/esp";
inline constexpr const char* kWriterSlotPlace = "/run/muster-image/root";
using Unmount = std::function<void(const std::string& place)>;  // a real path
void detach(const std::string& place);
// Removes mounts that were left behind by an agent or a writer that was killed.
void unmount_left_over(const Files& files, const Unmount& unmount = detach);

// Opens the ESP of that disk: where it is already mounted, otherwise mounted at `at` until closed. Opening
// for reading removes no mount, because the writer may be using it at the same time. conflict: opened for
// writing, but mounted read-only.
Result<std::unique_ptr<OpenFolder>> open_own_esp(const Files& files, const OwnSlots& own,
                                                 const std::string& at, Mounted::Way way,
                                                 const Unmount& unmount = detach);

// A device that is mounted for writing elsewhere, perhaps in the mount namespace of a different unit, cannot
// be mounted read-only: `mount` is then called a second time, for writing.
Result<Mounted> mount_beside(const std::function<Result<Mounted>(Mounted::Way)>& mount, Mounted::Way way);

// conflict: /state, which both slots need for the agent's identity and journal, is not mounted, or read-only.
Status state_is_writable(const Files& files);

// conflict: the running slot is not the default one (yet), in loader.conf or in the marker.
Status is_committed(const OwnSlots& own, const std::string& standing);

// Trial boot: this system was booted once, from the root slot that is not the default, and the node rolls
// back unless the step module `slot` (agent/steps/system/slot.cc) commits it. The kernel parameter and the
// file below are also read by the generator in the image (controller/image/customize.cc). A commit ends the
// trial without a restart, so both are read at each call.
// The file is written by the commit, in memory, so it does not survive a boot.
inline constexpr const char* kTrialEnded = "/run/muster-committed";
// `muster.trial=` of this boot, in seconds; "" for a normal boot.
std::string trial_seconds(const Files& files);
bool on_trial(const Files& files);
// True if the running image has the generator that ends an uncommitted trial.
bool goes_back_by_itself(const Files& files);

}  // namespace muster
