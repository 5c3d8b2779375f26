// EventKeeper: deletes events that are older than `limits.events.keep`, in slices that the store's writer
// does between other writes, so that neither the reactor nor a run waits for it.
//
// Age is counted in days of the log, and days without events are none. So a clock that is years ahead makes
// no event old, however long it is believed and however often musterd starts with it.
//
// Events are for `muster logs` only: reports, causes, notices and rollouts are made from journals and rows of
// their own. Thread: the reactor's.
#pragma once

#include <functional>

#include "base/alive.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class EventKeeper {
 public:
  EventKeeper(Reactor& reactor, Store& store, std::function<DurationMs()> keep)
      : reactor_(reactor), store_(store), keep_(std::move(keep)) {}
  ~EventKeeper();
  EventKeeper(const EventKeeper&) = delete;
  EventKeeper& operator=(const EventKeeper&) = delete;

  void begin() { look_after(kFirst); }

 private:
  static constexpr DurationMs kFirst = kMinute, kLookAgain = 10 * kMinute, kBetweenSlices = kSecond;
  static constexpr int64_t kSlice = 500;

  void look_after(DurationMs pause);
  void look();
  TimeMs oldest_kept() const;

  Reactor& reactor_;
  Store& store_;
  std::function<DurationMs()> keep_;
  Reactor::TimerId timer_ = 0;
  Alive alive_;
};

}  // namespace muster
