// What a client of a server on the internet needs: the address of a name, and the roots that the system
// trusts. Thread: any; blocks.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster {

// An IPv4 address of `host`, from the system's resolver. unavailable: there is none, or not in time.
Result<std::string> first_address(const std::string& host, DurationMs deadline);
// For HttpClientOptions::ca_pem.
Result<std::string> system_roots();

}  // namespace muster
