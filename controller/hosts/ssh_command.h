// Builds the command that reaches one host's shell: OpenSSH as the site has configured it, or the words of
// `--via`. Its last word is /bin/sh. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// `destination`: in OpenSSH's format, "ops@gpu01" or "ssh://ops@gpu01:2222". `config`: a file to use instead
// of the usual configuration files, unless empty. invalid: a destination that ssh would take for an option.
Result<std::vector<std::string>> ssh_command(const std::string& destination, const std::string& config);

// Splits `via` ("srun --jobid 4711 -N1 -n1 -w {host}") into words like a POSIX shell, without any expansion,
// and replaces `{host}` by `host` in each. invalid: a quote that is not closed, no word, or no {host}.
Result<std::vector<std::string>> via_command(const std::string& via, const std::string& host);

}  // namespace muster
