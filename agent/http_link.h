// The agent's side of the controller's agent API over HTTPS: joining, and the ControllerLink of a joined
// agent.
//
// Owned by agent/main.cc. Blocking HTTP calls run in two threads of the link's own (one for the long poll,
// one for events), so that posting an event never waits for a poll; answers come back through the reactor.
// The controller is authenticated by its CA only: at join the CA is accepted if its SHA-256 is the pinned
// one, and kept.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/agent.h"
#include "agent/identity.h"
#include "base/reactor.h"
#include "base/wire.h"

namespace muster {

struct JoinOptions {
  std::string url, pin;       // pin: "sha256:<hex>" or bare hex of the CA certificate
  std::string key_pem;        // kept between attempts: the same token with the same key gets the same answer
  wire::JoinRequest request;  // without csr_pem
};
// One attempt. Blocking. `denied` and `invalid` will fail again; everything else may be retried.
Result<Credentials> join(const JoinOptions& options, std::string* node);

// "sha256:<hex>" of either spelling; invalid when it is neither.
Result<std::string> normal_pin(const std::string& pin);
// Percent-encoding of one query value: order ids contain '/' and '#'.
std::string query_value(const std::string& text);

// A new certificate for the same key, over a connection with the present one. One attempt; blocking.
// conflict: too early.
Result<Credentials> renew(const std::string& url, const std::string& node, const Credentials& present);

// A link whose certificate can change while it is up: pending calls end with the old one.
class RenewableLink : public ControllerLink {
 public:
  virtual Status use(const Credentials& credentials) = 0;
};
// Each request for orders has the agent's identity: a controller that was restarted, or whose database was
// restored, has not received the hello. `storage`: the state of the node's storage for it
// (agent/storage_state.h); called on a thread of the link, and may block for seconds.
Result<std::unique_ptr<RenewableLink>> make_http_link(Reactor& reactor, const std::string& url,
                                                      const Credentials& credentials,
                                                      const AgentIdentity& identity,
                                                      std::function<std::string()> storage = {});

}  // namespace muster
