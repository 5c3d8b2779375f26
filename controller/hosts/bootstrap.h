// The script that a POSIX shell on a host reads first (dash, bash, busybox): finds the rights and the place
// to run the agent with, takes it from standard input, and becomes it.
//
// It says, each in a line of its own:
//     MUSTERGO            the gzipped agent is to be sent now, and nothing before: a shell may read ahead
//     MUSTERNO CODE TEXT  it ends: what is missing on this host; CODE as of base/result.h
//     MUSTER1 {...}       the agent runs (agent/measure.h); what follows is its protocol
// As root, by login or `sudo -n`, the agent lies in a file system of its own that nothing else sees; else in
// the first place of a list where a program runs and that has room for it. Whatever it made is removed when
// it ends in between. Thread: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

struct BootstrapOptions {
  std::string host;       // its name in the orders
  bool as_user = false;   // no sudo
  size_t packed = 0;      // bytes of the agent as it is sent
  size_t size = 0;        // and when unpacked
  std::string nvml = {};  // digest of muster-accept-nvml; empty: the command has none
};

// Under 4 KiB, which a pipe takes at once.
std::string bootstrap_script(const BootstrapOptions& options);

inline constexpr std::string_view kGoLine = "MUSTERGO", kNoLine = "MUSTERNO ", kHelloLine = "MUSTER1 ";

// One word for a POSIX shell.
std::string shell_word(const std::string& text);

}  // namespace muster
