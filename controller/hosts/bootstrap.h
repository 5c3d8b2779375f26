// What a host's shell reads first: a line that becomes /bin/sh in any shell, and a script for that (dash,
// bash, busybox, ksh). The script determines the user and the folder to run the agent with, reads the agent
// from standard input, and executes it.
//
// A start-up file may have replaced the login shell by another (`exec zsh`), which reads the input then. So
// the first line is sent alone, as a shell may read ahead, and the script once /bin/sh has answered. The host
// prints, each on its own line:
//     MUSTERTTY           standard input is a terminal: binary data cannot pass, and it gives up
//     MUSTERSH            /bin/sh runs: send the script now, and nothing earlier; once for each first line
//     MUSTERSUDO          `sudo -n` starts, which may take its time
//     MUSTERUSER          the agent's user is certain: sudo has answered, or is not needed
//     MUSTERGO            send the gzipped agent now, and nothing earlier
//     MUSTERNO CODE TEXT  it gives up: what is missing on this host; CODE as in base/result.h
//     MUSTER1 {...}       the agent runs (agent/measuring/measure.h); what follows is its protocol
// sudo starts once: if it refuses, the agent runs as this user. As root (by login or sudo), the agent is
// stored in a private file system that no other process can see; else in the first folder of a list that
// allows execution and has enough space. If the script ends early, it removes whatever it created; a sudo
// that answers after the connection was closed finds no input and ends. Thread safety: stateless functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

struct BootstrapOptions {
  std::string host;           // its name in the orders
  bool as_user = false;       // no sudo
  size_t packed = 0;          // bytes of the agent as sent
  size_t size = 0;            // and when unpacked
  std::string nvml = {};      // digest of muster-accept-nvml; empty: the command has none
  std::string why_user = {};  // why no sudo, if the host is the reason
  std::string session = {};   // HostWireOptions
};

// Returns the first line, with its end: under 256 bytes, which a terminal takes as one line. It may be sent
// several times until the host answers.
std::string bootstrap_first_line();
// Returns the script as one line, with its end: under 4 KiB, so that it fits into a pipe at once.
std::string bootstrap_script(const BootstrapOptions& options);

inline constexpr std::string_view kTerminalLine = "MUSTERTTY", kShellLine = "MUSTERSH",
                                  kSudoLine = "MUSTERSUDO", kUserLine = "MUSTERUSER", kGoLine = "MUSTERGO",
                                  kNoLine = "MUSTERNO ", kHelloLine = "MUSTER1 ";

}  // namespace muster
