// Renewal: the agent's certificate is replaced automatically long before it expires.
//
// Checked when the agent starts and once a day; due after two thirds of its lifetime, by this machine's
// clock. The key stays; the new certificate is on the disk before it is used. A failure is logged and retried
// the next day. Thread: the reactor's.
#pragma once

#include <string>

#include "agent/core/identity.h"
#include "agent/link/http_link.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster {

// False also if the text is not a certificate: then the agent must join again.
bool renewal_due(const std::string& certificate_pem, TimeMs now);

class Renewal {
 public:
  // All arguments must outlive the reactor's run.
  Renewal(RealReactor& reactor, const Files& files, RenewableLink& link, std::string folder,
          AgentConfig config);
  void look();  // checks now, and every day from now on

 private:
  void keep(const Result<Credentials>& fresh);

  RealReactor& reactor_;
  const Files& files_;
  RenewableLink& link_;
  const std::string folder_;
  const AgentConfig config_;
};

}  // namespace muster
