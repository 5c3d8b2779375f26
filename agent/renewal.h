// Renewal: the agent's certificate is replaced long before it ends, without anybody doing anything.
//
// Looked at when the agent starts and once a day; due when two thirds of its life are over by this machine's
// clock. The key stays; the new certificate is on the disk before it is used. A failure costs a line in the
// log and is tried again the next day. Thread: the reactor's.
#pragma once

#include <string>

#include "agent/http_link.h"
#include "agent/identity.h"
#include "base/os.h"
#include "base/reactor.h"

namespace muster {

// False too for what is no certificate: joining again is all that helps there.
bool renewal_due(const std::string& certificate_pem, TimeMs now);

class Renewal {
 public:
  // All must outlive the reactor's run.
  Renewal(RealReactor& reactor, const Files& files, RenewableLink& link, std::string folder,
          AgentConfig config);
  void look();  // now, and every day from now on

 private:
  void keep(const Result<Credentials>& fresh);

  RealReactor& reactor_;
  const Files& files_;
  RenewableLink& link_;
  const std::string folder_;
  const AgentConfig config_;
};

}  // namespace muster
