#include "controller/link/event_keeper.h"

#include "sys/log.h"

namespace muster {

EventKeeper::~EventKeeper() {
  alive_.end();
  if (timer_) reactor_.cancel(timer_);
}

void EventKeeper::look_after(DurationMs pause) {
  timer_ = reactor_.after(pause, [this] {
    timer_ = 0;
    look();
  });
}

void EventKeeper::look() {
  const PurgeEvents purge{reactor_.now() - keep_(), reactor_.now(), kSlice};
  const auto any = store_.would_purge(purge);
  if (!any.ok() || !*any) return look_after(kLookAgain);
  store_.write({purge}, alive_.wrap([this](const Status& purged) {
    if (!purged.ok()) log::warning("old events were not deleted", {{"error", purged.error().message}});
    look_after(purged.ok() ? kBetweenSlices : kLookAgain);
  }));
}

}  // namespace muster
