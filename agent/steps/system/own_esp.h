// The EFI system partition (ESP) of the disk that this system runs from, with this system's boot entries.
//
// Found from the root file system: the partition that / is mounted from (or root=PARTUUID=... on the kernel
// command line), its disk, and on it the one partition named muster-esp. A second disk may also have muster's
// partitions, from an older system or as a copy: its entries are never changed. Mounted at /boot/efi only
// while an OwnEsp exists. Thread safety: one thread at a time; blocks.
#pragma once

#include <string>

#include "agent/core/step.h"

namespace muster::steps {

inline constexpr const char* kEspFolder = "/boot/efi";

// "nvme0n1p3". conflict: it is unknown or ambiguous.
Result<std::string> own_root(const Files& files);
// "nvme0n1p1". conflict: there is not exactly one; the message lists the candidates.
Result<std::string> own_esp(const Files& files);
// Below the mounted ESP.
std::string boot_entry_path(const std::string& slot);

class OwnEsp {
 public:
  // Mounts the ESP with `access` "ro" or "rw", if needed. conflict: a different device is mounted there.
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
