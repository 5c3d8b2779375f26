// The whole `muster` command, run in this process with its output caught.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/digest.h"
#include "cli/run.h"

namespace muster::testing {

struct Ran {
  int exit;
  std::string out, err;
};

inline Ran muster_command(std::vector<std::string> arguments) {
  const std::string base = "/tmp/muster-cli-test-" + random_hex(6);
  std::fflush(nullptr);
  const int saved[2] = {::dup(1), ::dup(2)};
  for (const int fd : {1, 2}) {
    const int file = ::open((base + (fd == 1 ? ".out" : ".err")).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(file, fd);
    ::close(file);
  }
  std::vector<const char*> argv = {"muster"};
  for (const auto& a : arguments) argv.push_back(a.c_str());
  Ran ran{cli::run(static_cast<int>(argv.size()), argv.data()), "", ""};
  std::fflush(nullptr);
  std::cout.flush();
  for (const int fd : {1, 2}) {
    ::dup2(saved[fd - 1], fd);
    ::close(saved[fd - 1]);
    std::ifstream in(base + (fd == 1 ? ".out" : ".err"));
    (fd == 1 ? ran.out : ran.err).assign(std::istreambuf_iterator<char>(in), {});
    ::unlink((base + (fd == 1 ? ".out" : ".err")).c_str());
  }
  return ran;
}

}  // namespace muster::testing
