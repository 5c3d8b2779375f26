// One host of `muster node add --adopt`: how it is reached, which key it has to show, and the agent that was
// sent there and answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/adopt_verb.h"
#include "controller/ssh/ssh.h"

namespace muster::cli {

// `place`: "HOST" or "HOST:PORT". What the spec says about it (`declared`, an object or null) fills in what
// was not said on the command line. The host key is not in it yet.
Result<SshTarget> target_of(const Adopting& what, const std::string& place, const Json& declared);
// The host keys that may be shown: the spec's, else those of --host-key; none: somebody has to look at it.
Result<std::vector<std::string>> allowed_keys(const Adopting& what, const SshTarget& target,
                                              const Json& declared);
// denied: another key than the allowed ones.
Status is_allowed(const SshTarget& target, const std::vector<std::string>& allowed, bool by_spec);

// The agent there, for as long as the connection lasts: one login and one upload for all that is asked.
// Belongs to one thread at a time.
class Host {
 public:
  Host(SshTarget target, const std::string& agent) : target_(std::move(target)), agent_(agent) {}
  // The agent's answer (agent/adopting.h), or the error it told. `timeout`: it may have done what was asked.
  Result<Json> ask(const Json& what, DurationMs deadline);
  // {facts, joined, steps: [{step, module, outcome, diff, message}]}: what it says about the host, and about
  // `steps` there. conflict: it cannot be adopted.
  Result<Json> look(const std::string& node, const std::string& pin, const Json& steps);
  const SshTarget& target() const { return target_; }
  // The public key that let us in, as base64; "" without a connection.
  std::string own_key() const { return session_ ? session_->own_key() : ""; }

 private:
  Status open();
  SshTarget target_;
  const std::string& agent_;  // its content
  std::unique_ptr<SshSession> session_;
  std::unique_ptr<SshDialog> dialog_;  // ends before its session
};

}  // namespace muster::cli
