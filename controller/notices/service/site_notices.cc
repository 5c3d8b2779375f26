#include "controller/notices/service/site_notices.h"

#include <utility>

#include "controller/notices/service/delivery.h"
#include "controller/rollout/window_result.h"
#include "sys/contain.h"

namespace muster {
namespace {

constexpr const char* kZone = "time zone";  // topic

}  // namespace

SiteNotices::SiteNotices(const Parts& parts)
    : parts_(parts),
      service_(std::make_unique<NoticeService>(NoticeService::Parts{
          parts_.reactor, parts_.store, parts_.causes, parts_.problems, [this] { return site(); },
          [this](TimeMs now) {
            const rollout::Record* record = parts_.rollout();
            return record ? rollout::window_line(*record, now) : std::string();
          },
          [this](const Json& values) { return parts_.vault.resolve(values); },
          [this](const Receiver& receiver, const notices::Notice& notice, const std::string& cluster,
                 NoticeService::Sent sent) { send(receiver, notice, cluster, std::move(sent)); }})) {}

Result<NoticeService::Site> SiteNotices::site() {
  TRY(const auto current, parts_.spec.get());
  const Spec& spec = current->spec;
  NoticeService::Site out{spec.cluster, spec.notify, zone_.of(spec.time_zone)};
  if (zone_.error().empty() || spec.notify.receivers.empty())
    parts_.problems.erase(kZone);
  else
    parts_.problems[kZone] = "quiet hours and daily lines go by UTC: " + zone_.error();
  return out;
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
