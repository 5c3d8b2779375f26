// The script that a POSIX shell on a host reads first (dash, bash, busybox): finds the rights and the place
// to run the agent with, takes it from standard input, and becomes it.
//
// It prints, each on its own line:
//     MUSTERGO            send the gzipped agent now, and nothing earlier: a shell may read ahead
//     MUSTERNO CODE TEXT  it gives up: what is missing on this host; CODE as in base/result.h
//     MUSTER1 {...}       the agent runs (agent/measure.h); what follows is its protocol
// As root, by login or `sudo -n`, the agent is stored in a file system of its own that no other process sees;
// else in the first folder of a list that allows execution and has room for it. If the script ends early, it
// removes whatever it created. Thread: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

struct BootstrapOptions {
  std::string host;       // its name in the orders
  bool as_user = false;   // no sudo
  size_t packed = 0;      // bytes of the agent as sent
  size_t size = 0;        // and when unpacked
  std::string nvml = {};  // digest of muster-accept-nvml; empty: the command has none
};

// Under 4 KiB, which a pipe takes at once.
std::string bootstrap_script(const BootstrapOptions& options);

inline constexpr std::string_view kGoLine = "MUSTERGO", kNoLine = "MUSTERNO ", kHelloLine = "MUSTER1 ";

// One word for a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace muster
