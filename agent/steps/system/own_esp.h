// The EFI system partition of the disk that this system runs from, which contains its boot entries.
//
// Found from the root file system down: the partition that / is mounted from (or that the kernel was given as
// root=PARTUUID=...), its disk, and there the one partition named muster-esp. Another disk may also have
// muster's partitions, from an older system or as a copy: its entries are never changed. Not mounted in
// normal operation; mounted at /boot/efi for as long as an OwnEsp lives. Thread: blocking.
#pragma once

#include <string>

#include "agent/step.h"

namespace muster::steps {

inline constexpr const char* kEspFolder = "/boot/efi";

// "nvme0n1p3": the partition that this system runs from. conflict: unknown or ambiguous.
Result<std::string> own_root(const Files& files);
// "nvme0n1p1". conflict names the partitions with that name.
Result<std::string> own_esp(const Files& files);
// "loader/entries/muster-a.conf" below the mounted partition.
std::string boot_entry_path(const std::string& slot);

class OwnEsp {
 public:
  // `access`: "ro" or "rw". conflict: another device is mounted there.
  static Result<OwnEsp> open(StepContext& context, const std::string& access);
  OwnEsp(OwnEsp&& other) noexcept;
  OwnEsp(const OwnEsp&) = delete;
  ~OwnEsp();

 private:
  explicit OwnEsp(StepContext& context) : context_(context) {}
  StepContext& context_;
  bool mounted_ = false;
};

}  // namespace muster::steps
