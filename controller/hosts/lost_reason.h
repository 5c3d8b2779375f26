// Why a command that connects to a host ended, from what it printed: a known message of OpenSSH, or the last
// line. Thread: plain functions.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

struct EndedCommand {
  int status = 0;          // exit status, 128 + signal
  std::string err;         // end of its standard error
  std::string last_out;    // last line of its standard output that is not a message
  bool agent_ran = false;  // the host's agent had answered: then it is the connection that was lost
};

// With the codes of HostWireEvents::lost (controller/hosts/host_wire.h).
Error lost_reason(const EndedCommand& ended);

// The last line that is not empty, without control characters, at most 300 bytes.
std::string last_line(const std::string& text);

}  // namespace muster
