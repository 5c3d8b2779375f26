// Derives why a command that connects to a host ended, from its output: a known message of OpenSSH, or else
// the last line. Thread safety: stateless functions.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

struct EndedCommand {
  int status = 0;          // exit status, 128 + signal
  std::string err;         // end of its standard error
  std::string last_out;    // last line of its standard output that is not a message
  bool agent_ran = false;  // the host's agent had responded, so the connection was lost later
};

// Returns the reason, with the codes of HostWireEvents::lost (controller/hosts/host_wire.h).
Error lost_reason(const EndedCommand& ended);

// Returns the last line that is not empty, without control characters, at most 300 bytes.
std::string last_line(const std::string& text);

}  // namespace muster
