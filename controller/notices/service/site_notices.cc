#include "controller/notices/service/site_notices.h"

#include <utility>

#include "controller/notices/service/delivery.h"
#include "controller/rollout/window_result.h"
#include "sys/contain.h"

namespace muster {

SiteNotices::SiteNotices(const Parts& parts)
    : parts_(parts),
      service_(std::make_unique<NoticeService>(NoticeService::Parts{
          parts_.reactor, parts_.store, parts_.causes, parts_.problems, [this] { return site(); },
          [this](TimeMs after) {
            const rollout::Record* record = parts_.rollout();
            return record ? rollout::window_line(*record, after) : std::string();
          },
          [this](const Json& values) { return parts_.vault.resolve(values); },
          [this](const Receiver& receiver, const notices::Notice& notice, const std::string& cluster,
                 NoticeService::Sent sent) { send(receiver, notice, cluster, std::move(sent)); }})) {}

Result<NoticeService::Site> SiteNotices::site() {
  TRY(const auto current, parts_.spec.get());
  return NoticeService::Site{current->spec.cluster, current->spec.notify, zone_.of(current->spec.time_zone)};
}

void SiteNotices::send(const Receiver& receiver, const notices::Notice& notice, const std::string& cluster,
                       NoticeService::Sent sent) {
  deliveries_.run([this, receiver, notice, cluster, sent = std::move(sent)] {
    Status result = fail(Code::failed, "the delivery was not finished: see musterd's log");
    contain_exceptions("a delivery", [&] { result = deliver(receiver, notice, cluster, DeliveryPaths()); });
    parts_.reactor.post([sent, result] { sent(result); });
  });
}

}  // namespace muster
