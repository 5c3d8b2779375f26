// One host of `muster node add --adopt`: its SSH address, the host key it must present, the uploaded agent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/adopt_verb.h"
#include "controller/ssh/ssh.h"

namespace muster::cli {

// Returns the SSH target for `place` ("HOST" or "HOST:PORT"). `declared`, the node's entry in the spec (an
// object or null), supplies what the command line omits. The target's host key is not set yet.
Result<SshTarget> target_of(const Adopting& what, const std::string& place, const Json& declared);
// Returns the host keys that are allowed: the spec's, else those of --host-key; empty: the operator confirms.
Result<std::vector<std::string>> allowed_keys(const Adopting& what, const SshTarget& target,
                                              const Json& declared);
// Checks the host key of `target`. denied: it is not in `allowed`. `by_spec`: these keys come from the spec.
Status is_allowed(const SshTarget& target, const std::vector<std::string>& allowed, bool by_spec);

// A connection to the host and the agent uploaded through it: one login and one upload for all requests.
// Thread: one at a time.
class Host {
 public:
  Host(SshTarget target, const std::string& agent) : target_(std::move(target)), agent_(agent) {}
  // The agent's answer (agent/joining/adopting.h) or error. `timeout`: the request may have taken effect.
  Result<Json> request(const Json& what, DurationMs deadline);
  // Returns {facts, joined, steps: [{step, module, outcome, diff, message}]}: the host's facts, and the
  // results of checking `steps` on it. conflict: the host cannot be adopted.
  Result<Json> look(const std::string& node, const std::string& pin, const Json& steps);
  const SshTarget& target() const { return target_; }
  // The public key of the login, as base64; "" without a connection.
  std::string own_key() const { return session_ ? session_->own_key() : ""; }

 private:
  Status open();
  SshTarget target_;
  const std::string& agent_;  // content of the agent's binary
  std::unique_ptr<SshSession> session_;
  std::unique_ptr<SshDialog> dialog_;  // destroyed before its session
};

}  // namespace muster::cli
