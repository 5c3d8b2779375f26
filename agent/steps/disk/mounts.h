// Flags of what is mounted (agent/disk/mount_table.h).
#pragma once

#include <string>

#include "agent/disk/mount_table.h"
#include "agent/steps/step_modules.h"
#include "base/os.h"

namespace muster::steps {

// No privileges from files of other users.
inline constexpr const char* kSafeFlags = "nosuid,nodev";
// Which of nosuid, nodev and noexec are in `options` and not in force on the mount at `target`, for people;
// "" if none.
std::string lacking_flags(const Files& files, const std::string& target, const std::string& options);
// Puts those into force; users of the mount are not disturbed.
Status set_flags(StepContext& context, const std::string& target, const std::string& options);

}  // namespace muster::steps
