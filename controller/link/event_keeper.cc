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

// When the oldest day that is kept began; 0: all are kept. One day more than `keep`: the newest is not over.
TimeMs EventKeeper::oldest_kept() const {
  const DurationMs keep = keep_();
  TimeMs day = reactor_.now() + 1;
  for (DurationMs kept = -kDay; kept < keep; kept += kDay) {
    const auto newest = store_.newest_event_before(day);
    if (!newest.ok()) return 0;
    day = *newest - *newest % kDay;
  }
  return day;
}

void EventKeeper::look() {
  const PurgeEvents purge{oldest_kept(), reactor_.now(), kSlice};
  const auto any = store_.would_purge(purge);
  if (!any.ok() || !*any) return look_after(kLookAgain);
  store_.write({purge}, alive_.wrap([this](const Status& purged) {
    if (!purged.ok()) log::warning("old events were not deleted", {{"error", purged.error().message}});
    look_after(purged.ok() ? kBetweenSlices : kLookAgain);
  }));
}

}  // namespace muster
