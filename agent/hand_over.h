// A system that is no node of muster's hands over to the RAM system: one that a provider has just installed,
// reached over SSH (controller/power/sakura/provider_install.h). `muster-agent hand-over --stdin` gets
// ready as the order `kexec` does (agent/kexec.h), `--now` leaves. Thread: blocking.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// `ready`: one line of JSON in, wire::KexecJob, and one out; nothing is left loaded where it fails, and
// denied says that this system does not allow it. Else what was loaded is started.
Status hand_over(bool ready);
// A file of the controller's boot server.
Result<std::string> fetch_from_boot_server(const std::string& base_url, const std::string& path);

}  // namespace muster
