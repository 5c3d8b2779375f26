// SiteNotices: the NoticeService of the daemon with what it needs of it: receivers of the newest spec, their
// secrets, and threads of its own that deliver. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/causes/cause.h"
#include "controller/current/current_spec.h"
#include "controller/notices/service/notice_service.h"
#include "controller/notices/service/site_zone.h"
#include "controller/ports/store.h"
#include "controller/rollout/rollout_record.h"
#include "controller/trust/vault.h"
#include "sys/reactor.h"
#include "sys/worker_pool.h"

namespace muster {

class SiteNotices {
 public:
  // All references must outlive it.
  struct Parts {
    Reactor& reactor;
    Store& store;
    CurrentSpec& spec;
    Vault& vault;
    std::function<const rollout::Record*()> rollout;  // the newest; null: none
    std::function<std::vector<Cause>()> causes;
    std::map<std::string, std::string>& problems;  // NoticeService::Parts
  };
  explicit SiteNotices(const Parts& parts);

  NoticeService& service() { return *service_; }

 private:
  static constexpr int kDeliveries = 4;  // receivers that are sent to at once

  Result<NoticeService::Site> site();
  void send(const Receiver& receiver, const notices::Notice& notice, const std::string& cluster,
            NoticeService::Sent sent);

  const Parts parts_;
  SiteZone zone_;
  std::unique_ptr<NoticeService> service_;
  WorkerPool deliveries_{kDeliveries};  // ends first: what it returns goes to the service
};

}  // namespace muster
