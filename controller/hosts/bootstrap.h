// The script that a POSIX shell on a host reads first (dash, bash, busybox). It determines the user and the
// folder to run the agent with, reads the agent from standard input, and executes it.
//
// It prints, each on its own line:
//     MUSTERGO            send the gzipped agent now, and nothing earlier: a shell may read ahead
//     MUSTERNO CODE TEXT  it gives up: what is missing on this host; CODE as in base/result.h
//     MUSTER1 {...}       the agent runs (agent/measuring/measure.h); what follows is its protocol
// As root (by login or `sudo -n`), the agent is stored in a private file system that no other process can
// see; else in the first folder of a list that allows execution and has enough space. If the script ends
// early, it removes whatever it created. Thread safety: stateless functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

struct BootstrapOptions {
  std::string host;          // its name in the orders
  bool as_user = false;      // no sudo
  size_t packed = 0;         // bytes of the agent as sent
  size_t size = 0;           // and when unpacked
  std::string nvml = {};     // digest of muster-accept-nvml; empty: the command has none
  std::string session = {};  // HostWireOptions
};

// Returns the script: under 4 KiB, so that it fits into a pipe at once.
std::string bootstrap_script(const BootstrapOptions& options);

inline constexpr std::string_view kGoLine = "MUSTERGO", kNoLine = "MUSTERNO ", kHelloLine = "MUSTER1 ";

std::string shell_word(const std::string& text);

}  // namespace muster
