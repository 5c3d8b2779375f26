// The command that reaches one host's shell: OpenSSH as the site has configured it, or the words of `--via`.
// Thread: plain functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// `destination`: as OpenSSH takes it, "ops@gpu01" or "ssh://ops@gpu01:2222". `config`: a file that is used
// instead of the usual ones; empty: those. invalid: a destination that would be an option of ssh.
Result<std::vector<std::string>> ssh_command(const std::string& destination, const std::string& config);

// "srun --jobid 4711 -N1 -n1 -w {host}": words as a POSIX shell splits them, without any expansion; `{host}`
// is replaced by `host` in each. invalid: a quote that is not closed, no word, or no {host}.
Result<std::vector<std::string>> via_command(const std::string& via, const std::string& host);

}  // namespace muster
