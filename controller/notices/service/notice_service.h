// NoticeService: sends notices about causes to the receivers of the spec (docs/notify.md).
//
// Every kTurn it reads the causes, lets the book decide (controller/notices/book.h), writes the book's row,
// and only then hands notices to `send`, one at a time per receiver. What a receiver took leaves the row
// before the next one is sent to it. A controller that is killed in between sends that one again, with the
// same id. What fails is retried until the book gives it up; a receiver that fails is a problem itself
// (Parts::problems). Thread: the reactor's; `done` may be called before the call returns.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/alive.h"
#include "base/json.h"
#include "base/time_zone.h"
#include "controller/causes/cause.h"
#include "controller/notices/book.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class NoticeService {
 public:
  using Done = std::function<void(Result<Json>)>;
  using Sent = std::function<void(Status)>;
  struct Site {
    std::string cluster;
    NotifySpec notify;
    TimeZone zone;
  };
  struct Parts {
    Reactor& reactor;
    Store& store;
    // Of now, among them those of `problems`.
    std::function<std::vector<Cause>()> causes;
    // Problems of the controller (Services::problems): "receiver NAME" is set while that receiver fails.
    std::map<std::string, std::string>& problems;
    // not_found: there is no spec yet.
    std::function<Result<Site>()> site;
    // How the rollout's window of the last day went, or that there was none; "" if none was needed.
    std::function<std::string(TimeMs now)> window;
    // Replaces every "secret:NAME" in a value (Vault::resolve()).
    std::function<Result<Json>(const Json&)> secrets;
    // Delivers, elsewhere; `sent` is called on the reactor's thread.
    std::function<void(const Receiver&, const notices::Notice&, const std::string& cluster, Sent sent)> send;
  };
  // References in `parts` must outlive it.
  explicit NoticeService(Parts parts) : parts_(std::move(parts)) {}
  ~NoticeService();
  NoticeService(const NoticeService&) = delete;
  NoticeService& operator=(const NoticeService&) = delete;

  void begin();

  // The causes that were there when the controller ended; none from the first turn on, which has newer ones.
  std::vector<Cause> recalled();

  // {causes: [{cause, kind, what, detail, next, nodes, since, known, changes, acknowledged}], receivers:
  // [{name, waiting, lost, failures, error, failing_since, last_delivery}], waiting, lost}. failing_since: of
  // the first failure in a row; 0: none.
  Json shown();
  // The acknowledged cause. not_found, conflict, invalid: as acknowledge() in book.h.
  void acknowledge(const std::string& cause, notices::Acknowledged ack, Done done);
  // Sends a notice of state "test" to one receiver, or all ("") -> {receivers: [{name, error}]}, with error
  // "" for one that took it. not_found: no such receiver.
  void test(const std::string& receiver, Done done);
  // Notices that are not delivered yet, and those given up, over all receivers; which of these fail.
  struct Counts {
    int64_t waiting = 0, lost = 0;
    std::map<std::string, bool> failing = {};
  };
  Counts counts() const;

  static constexpr DurationMs kTurn = 5 * kSecond;
  // From the start to the first turn: until agents have reported, nothing is known of their nodes.
  static constexpr DurationMs kGrace = 60 * kSecond;

 private:
  struct Edit {
    std::function<bool(notices::Book&)> apply;  // false: nothing to store
    std::function<void(Status)> done;
  };
  bool load();
  void tick();
  void take_turn();
  void edit(Edit one);
  void flush();
  void send_due();
  void send_one(const Site& site, const Receiver& receiver, const notices::Notice& notice);
  void show_failing();
  void sent(const std::string& receiver, const std::string& id, const Status& result);
  Result<Receiver> with_secrets(const Receiver& receiver) const;

  Parts parts_;
  Alive alive_;
  bool loaded_ = false, writing_ = false, turning_ = false;
  notices::Book book_;          // as stored
  std::deque<Edit> edits_;      // not stored yet
  std::set<std::string> busy_;  // receivers that a notice is on its way to
  SteadyMs begun_, last_turn_;
  Reactor::TimerId timer_ = 0;
};

}  // namespace muster
