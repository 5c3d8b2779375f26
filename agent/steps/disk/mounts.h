// Flags of what is mounted (agent/disk/mount_table.h).
#pragma once

#include <string>

#include "agent/disk/mount_table.h"
#include "agent/steps/step_modules.h"
#include "base/os.h"

namespace muster::steps {

// No privileges through set-user-ID programs or device files on the mount.
inline constexpr const char* kSafeFlags = "nosuid,nodev";
// Which of nosuid, nodev and noexec are in `options` but not in force on the mount at `target`, for messages;
// "" if none.
std::string lacking_flags(const Files& files, const std::string& target, const std::string& options);
// Puts those into force; users of the mount are not disturbed.
Status set_flags(StepContext& context, const std::string& target, const std::string& options);

}  // namespace muster::steps
