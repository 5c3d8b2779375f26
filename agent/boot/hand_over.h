// Hands over to the RAM system from a system that is not a node of muster: one that a provider has just
// installed, reached over SSH (controller/power/provider/provider_install.h). `muster-agent hand-over
// --stdin` prepares this as the order `kexec` does (agent/boot/kexec.h), `--now` carries it out. Thread:
// blocking.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// If `ready`, loads the kernel: reads a wire::KexecJob as one line of JSON and prints one line; on failure no
// kernel stays loaded; denied: this system does not allow it. If not, starts the loaded kernel.
Status hand_over(bool ready);
// Fetches a file from the controller's boot server.
Result<std::string> fetch_from_boot_server(const std::string& base_url, const std::string& path);

}  // namespace muster
