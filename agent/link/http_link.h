// The agent's side of the controller's agent API over HTTPS: joining, and the ControllerLink of a joined
// agent.
//
// Owned by agent/main.cc. Blocking HTTP calls run in two threads of the link's own (one for the long poll,
// one for events), so that posting an event never waits for a poll; answers are delivered through the
// reactor. The controller is authenticated by its CA only: the join accepts and stores the CA if its SHA-256
// is the pinned one. While the controller's CA is replaced, ca.pem has two certificates, of which the first
// one signs the controller's certificate (docs/decisions/0058-replacing-the-ca.md).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/core/agent.h"
#include "agent/core/identity.h"
#include "base/steady.h"
#include "base/wire.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster {

struct JoinOptions {
  std::string url, pin;       // pin: "sha256:<hex>" or bare hex of the CA certificate
  std::string key_pem;        // kept between attempts: the same token with the same key gets the same answer
  wire::JoinRequest request;  // without csr_pem
};
// Makes one attempt; blocks. `denied` and `invalid` are permanent; everything else may be retried.
Result<Credentials> join(const JoinOptions& options, std::string* node);

// Returns "sha256:<hex>" for either notation; invalid if it is neither.
Result<std::string> normal_pin(const std::string& pin);
// Percent-encodes one query value: order ids contain '/' and '#'.
std::string query_value(const std::string& text);

// Requests a new certificate for the same key, over a connection with the current one. One attempt; blocks.
// conflict: it is too early to renew.
Result<Credentials> renew(const std::string& url, const std::string& node, const Credentials& present);

// What the agent reports of the CAs that it trusts: the digest of ca.pem; "incomplete" while its certificate
// is not of the last one of them, "" if there is none.
std::string trust_of(const Credentials& credentials);

// A link whose certificate can be replaced while it is up: pending calls finish with the old one.
class RenewableLink : public ControllerLink {
 public:
  virtual Status use(const Credentials& credentials) = 0;
  // `renew` is called, on the reactor's thread, with each answer that has PollReply::renew.
  virtual void on_renew(std::function<void()> renew) = 0;
};
// Each request for orders includes the agent's identity, because a controller that was restarted, or whose
// database was restored, has not received the hello. `storage` returns the state of the node's storage
// (agent/storage/storage_state.h); it is called on a thread of the link, and may block for seconds.
Result<std::unique_ptr<RenewableLink>> make_http_link(Reactor& reactor, const std::string& url,
                                                      const Credentials& credentials,
                                                      const AgentIdentity& identity,
                                                      std::function<std::string()> storage = {});

// False also if the text is not a certificate: then the agent must join again.
bool renewal_due(const std::string& certificate_pem, TimeMs now);

// The agent's certificate is replaced automatically long before it expires. Checked when the agent starts and
// once a day; due after two thirds of its lifetime, by this machine's clock, or when the controller says so,
// but then once a minute at most. The key stays; the new certificate is on the disk before it is used, and
// then the pin in agent.json. A failure is logged and retried the next day, or with the controller's next
// request. Thread: the reactor's.
class Renewal {
 public:
  // All arguments must outlive the reactor's run.
  Renewal(RealReactor& reactor, const Files& files, RenewableLink& link, std::string folder,
          AgentConfig config);
  // Checks now, every day from now on, and when the controller says so.
  void look();

 private:
  void renew_soon();
  void begin(const Credentials& present);
  void keep(const Result<Credentials>& fresh);
  void keep_pin(const std::string& ca_pem) const;

  RealReactor& reactor_;
  const Files& files_;
  RenewableLink& link_;
  const std::string folder_;
  const AgentConfig config_;
  bool busy_ = false;
  SteadyMs begun_ = {};  // the last renewal
};

}  // namespace muster
