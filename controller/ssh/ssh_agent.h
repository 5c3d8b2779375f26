// The operator's SSH agent (the program at SSH_AUTH_SOCK), limited to one of its keys at a time: libssh
// offers all keys that the agent lists, but a server disconnects after a few unknown ones (sshd's
// MaxAuthTries: 6, or 3 with an older muster's playbook).
//
// Private keys are never read: the agent signs. Calls block. Use one SshAgentView at a time; each runs a
// thread of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

// Returns the agent's public keys in its own order, as base64 (the second word of a *.pub file).
// Code::unavailable: no agent is running, or it does not answer.
Result<std::vector<std::string>> ssh_agent_keys();

// A proxy of the SSH agent that offers only the key passed to show().
class SshAgentView {
 public:
  virtual ~SshAgentView() = default;
  static Result<std::unique_ptr<SshAgentView>> open();
  // Returns a socket for libssh, which closes it.
  virtual int socket() = 0;
  virtual void show(const std::string& key) = 0;
};

}  // namespace muster
