// A real ssh-agent with keys of its own, at SSH_AUTH_SOCK of this process as long as it lives.
#pragma once

#include <signal.h>
#include <stdlib.h>

#include <string>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

namespace muster::testing {

class KeyAgent {
 public:
  KeyAgent() {
    const std::string socket = dir_.path("agent");
    const auto said = make_process()->run({{"ssh-agent", "-a", socket, "-s"}});
    REQUIRE((said.ok() && said->ok()));
    const std::string key = "SSH_AGENT_PID=";
    const size_t at = said->out.find(key);
    REQUIRE(at != std::string::npos);
    pid_ = std::stoi(said->out.substr(at + key.size()));
    ::setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
  }
  ~KeyAgent() {
    kill(pid_, SIGTERM);
    ::unsetenv("SSH_AUTH_SOCK");
  }
  KeyAgent(const KeyAgent&) = delete;
  KeyAgent& operator=(const KeyAgent&) = delete;

  void add(const std::string& private_key) { run({"ssh-add", "-q", private_key}); }
  // Keys that no server knows.
  void add_others(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = dir_.path("key" + std::to_string(made_++));
      run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key});
      add(key);
    }
  }

 private:
  static void run(std::vector<std::string> argv) {
    const auto said = make_process()->run({.argv = std::move(argv)});
    REQUIRE((said.ok() && said->ok()));
  }

  TempDir dir_;
  pid_t pid_ = 0;
  int made_ = 0;
};

}  // namespace muster::testing
