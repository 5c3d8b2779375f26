// Flags of mounted file systems (agent/disk/mount_table.h). Thread safety: stateless functions.
#pragma once

#include <string>

#include "agent/disk/mount_table.h"
#include "agent/steps/step_modules.h"
#include "sys/os.h"

namespace muster::steps {

// With these flags, set-user-ID bits and device files on the mount have no effect.
inline constexpr const char* kSafeFlags = "nosuid,nodev";
// Returns a message that names which of nosuid, nodev and noexec are in `options` but not set on the mount at
// `target`; "" if all are set.
std::string lacking_flags(const Files& files, const std::string& target, const std::string& options);
// Sets these missing flags by a remount, which does not interrupt users of the mount.
Status set_flags(StepContext& context, const std::string& target, const std::string& options);

}  // namespace muster::steps
