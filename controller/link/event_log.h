// EventLog: the controller's live log, which operators follow with server-sent events or `muster logs`.
//
// Rows are written to the store. A subscriber gets rows only once they are durable, in order, and each
// exactly once per subscription. Event rows of other writers (the executor) are delivered too, within
// kLookAgain. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/event_kind.h"
#include "base/names.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class EventLog {
 public:
  // Returns false if its client is gone; the subscription then ends. A call without rows is a keep-alive.
  using Listener = std::function<bool(const std::vector<EventRow>&)>;

  EventLog(Reactor& reactor, Store& store) : reactor_(reactor), store_(store) {}
  ~EventLog();

  void add(int64_t run, const NodeName& node, EventKind kind, const Json& data);
  // Delivers rows after `after_seq`; after_seq < 0: only new rows. `node` empty: rows of all nodes.
  void subscribe(int64_t after_seq, const NodeName& node, Listener listener);
  // Called when a different component has written rows: reads them now.
  void poke();
  void close() { subscribers_.clear(); }

 private:
  static constexpr DurationMs kLookAgain = 500;
  static constexpr DurationMs kSignOfLife = 10 * kSecond;
  static constexpr size_t kBatch = 200;

  struct Subscriber {
    int64_t after;
    NodeName node;
    Listener listener;
    SteadyMs last_sent;
  };
  void deliver();
  bool deliver_to(Subscriber& subscriber);
  void keep_looking();

  Reactor& reactor_;
  Store& store_;
  std::map<uint64_t, Subscriber> subscribers_;
  uint64_t next_id_ = 1;
  Reactor::TimerId timer_ = 0;
  bool posted_ = false;
};

// Returns the sequence number of the newest event row; 0 if there is none.
int64_t newest_event(Store& store);

}  // namespace muster
