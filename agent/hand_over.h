// A system that is not a node of muster hands over to the RAM system: one that a provider has just installed,
// reached over SSH (controller/power/sakura/provider_install.h). `muster-agent hand-over --stdin` prepares as
// the order `kexec` does (agent/kexec.h), `--now` leaves. Thread: blocking.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// `ready`: one line of JSON in, wire::KexecJob, and one out; on failure nothing is left loaded; denied: this
// system does not allow it. Otherwise the loaded kernel is started.
Status hand_over(bool ready);
// A file of the controller's boot server.
Result<std::string> fetch_from_boot_server(const std::string& base_url, const std::string& path);

}  // namespace muster
