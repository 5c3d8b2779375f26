// The operator's SSH agent (the program at SSH_AUTH_SOCK), one key of it at a time. A server disconnects
// after a few unknown keys (sshd's MaxAuthTries: 6, or 3 with an older muster's playbook), and libssh offers
// all that it sees.
//
// No private key is ever read here: the agent signs. Blocking; one at a time; the view has a thread of its
// own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// Its public keys in the order in which it offers them, as base64 (the second word of a *.pub file).
// `unavailable`: there is no agent, or it does not answer.
Result<std::vector<std::string>> ssh_agent_keys();

// An agent that has one of those keys.
class SshAgentView {
 public:
  virtual ~SshAgentView() = default;
  static Result<std::unique_ptr<SshAgentView>> open();
  // For libssh, which closes it.
  virtual int socket() = 0;
  virtual void show(const std::string& key) = 0;
};

}  // namespace muster
