#include "controller/link/event_log.h"

#include "base/json_dump.h"
#include "sys/log.h"

namespace muster {

EventLog::~EventLog() {
  if (timer_) reactor_.cancel(timer_);
}

void EventLog::add(int64_t run, const NodeName& node, EventKind kind, const Json& data) {
  EventRow row;
  row.time = reactor_.now();
  row.run = run;
  row.node = node;
  row.kind = kind.word();
  row.json = dump_json(data);
  store_.write({row}, [this](Status done) {
    if (!done.ok()) log::error("the event could not be stored", {{"error", done.error().message}});
    poke();
  });
}

void EventLog::subscribe(int64_t after_seq, const NodeName& node, Listener listener) {
  if (after_seq < 0) after_seq = newest_event(store_);
  subscribers_.emplace(next_id_++, Subscriber{after_seq, node, std::move(listener), reactor_.steady()});
  poke();
  keep_looking();
}

void EventLog::poke() {
  if (posted_ || subscribers_.empty()) return;
  posted_ = true;
  reactor_.post([this] {
    posted_ = false;
    deliver();
  });
}

void EventLog::keep_looking() {
  if (timer_) return;
  timer_ = reactor_.after(kLookAgain, [this] {
    timer_ = 0;
    deliver();
    if (!subscribers_.empty()) keep_looking();
  });
}

void EventLog::deliver() {
  for (auto it = subscribers_.begin(); it != subscribers_.end();)
    it = deliver_to(it->second) ? std::next(it) : subscribers_.erase(it);
}

bool EventLog::deliver_to(Subscriber& subscriber) {
  for (;;) {
    const auto rows = store_.events(subscriber.after, kBatch, subscriber.node);
    if (!rows.ok()) return true;  // the store logs its own errors; the next call retries
    const bool quiet = reactor_.steady() - subscriber.last_sent >= kSignOfLife;
    if (rows->empty() && !quiet) return true;
    if (!subscriber.listener(*rows)) return false;
    subscriber.last_sent = reactor_.steady();
    if (rows->empty()) return true;
    subscriber.after = rows->back().seq;
    if (rows->size() < kBatch) return true;
  }
}

int64_t newest_event(Store& store) {
  // Store has no call for the last row; halving the step keeps this to a few dozen indexed reads.
  int64_t low = 0, step = 1 << 20;
  while (step > 0) {
    const auto rows = store.events(low + step - 1, 1, "");
    if (rows.ok() && !rows->empty())
      low = rows->front().seq;
    else
      step /= 2;
  }
  return low;
}

}  // namespace muster
