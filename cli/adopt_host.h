// One host of `muster node add --adopt`: how it is reached, which key it must present, and the agent that was
// sent to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/adopt_verb.h"
#include "controller/ssh/ssh.h"

namespace muster::cli {

// `place`: "HOST" or "HOST:PORT". Its declaration in the spec (`declared`, an object or null) fills in what
// the command line omits. The host key is not in it yet.
Result<SshTarget> target_of(const Adopting& what, const std::string& place, const Json& declared);
// The host keys that it may present: the spec's, else those of --host-key; empty: the operator confirms it.
Result<std::vector<std::string>> allowed_keys(const Adopting& what, const SshTarget& target,
                                              const Json& declared);
// denied: its key is not among the allowed ones.
Status is_allowed(const SshTarget& target, const std::vector<std::string>& allowed, bool by_spec);

// The agent on the host, for as long as the connection lasts: one login and one upload for all requests.
// Belongs to one thread at a time.
class Host {
 public:
  Host(SshTarget target, const std::string& agent) : target_(std::move(target)), agent_(agent) {}
  // The agent's answer (agent/adopting.h), or its error. `timeout`: the request may have been carried out.
  Result<Json> ask(const Json& what, DurationMs deadline);
  // {facts, joined, steps: [{step, module, outcome, diff, message}]}: facts of the host, and results of
  // `steps` on it. conflict: it cannot be adopted.
  Result<Json> look(const std::string& node, const std::string& pin, const Json& steps);
  const SshTarget& target() const { return target_; }
  // The public key of the login, as base64; "" without a connection.
  std::string own_key() const { return session_ ? session_->own_key() : ""; }

 private:
  Status open();
  SshTarget target_;
  const std::string& agent_;  // its content
  std::unique_ptr<SshSession> session_;
  std::unique_ptr<SshDialog> dialog_;  // ends before its session
};

}  // namespace muster::cli
