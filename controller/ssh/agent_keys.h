// The keys of the SSH agent at SSH_AUTH_SOCK, a few at a time.
//
// A server ends the connection after a few keys that it does not know (MaxAuthTries, 6 by default), so an
// agent with many is offered in parts, each with a connection of its own. Speaks the agent protocol
// (draft-miller-ssh-agent) for the list; signing goes through to the agent. Thread: any; each offer has a
// thread of its own, which ends with its socket.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

class AgentKeys {
 public:
  // not_found: there is no agent. failed: it gave no list.
  static Result<AgentKeys> open();
  size_t count() const { return keys_.size(); }
  // A socket at which an agent answers that has only `many` keys from `first` on. The caller's to close.
  Result<int> offer(size_t first, size_t many) const;

 private:
  std::string path_;
  std::vector<std::string> keys_;  // entries of its answer: blob and comment, each with its length
};

}  // namespace muster
