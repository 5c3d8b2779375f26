#include "agent/link/renewal.h"

#include "sys/log.h"
#include "sys/pki.h"

namespace muster {

bool renewal_due(const std::string& certificate_pem, TimeMs now) {
  const auto info = pki::read_certificate(certificate_pem);
  return info.ok() && now > info->not_before + (info->not_after - info->not_before) / 3 * 2;
}

Renewal::Renewal(RealReactor& reactor, const Files& files, RenewableLink& link, std::string folder,
                 AgentConfig config)
    : reactor_(reactor), files_(files), link_(link), folder_(std::move(folder)), config_(std::move(config)) {}

void Renewal::look() {
  reactor_.after(kDay, [this] { look(); });
  auto present = read_credentials(files_, folder_);
  if (!present.ok() || !renewal_due(present->certificate_pem, reactor_.now())) return;
  auto fresh = std::make_shared<Result<Credentials>>(fail(Code::failed, "not requested"));
  reactor_.offload([this, present = *present, fresh] { *fresh = renew(config_.url, config_.node, present); },
                   [this, fresh] { keep(*fresh); });
}

void Renewal::keep(const Result<Credentials>& fresh) {
  const Status kept = fresh.ok() ? write_credentials(files_, folder_, *fresh) : Status(fresh.error());
  if (!kept.ok())
    return log::warning("the certificate could not be renewed; retrying tomorrow",
                        {{"error", kept.error().message}});
  // The new certificate is on the disk, and the old one is valid for another third of its lifetime: the agent
  // uses the new one after its next start.
  const Status used = link_.use(*fresh);
  if (used.ok())
    log::info("certificate renewed", {{"node", config_.node}});
  else
    log::warning("certificate renewed, but the link uses the old one until the agent restarts",
                 {{"error", used.error().message}});
}

}  // namespace muster
