// Keeps the host's names from cloud-init, which sets the host name and writes /etc/hosts at each boot if its
// configuration says so. Thread safety: stateless functions.
#pragma once

#include <optional>

#include "agent/steps/files/own_file.h"

namespace muster::steps {

// The file that must exist so that both stay as written; nothing if the host has no cloud-init. The
// provider's data overrides any file on the host, so the modules are also taken off cloud-init's list.
std::optional<OwnFile> keeps_names(const Files& files);

}  // namespace muster::steps
