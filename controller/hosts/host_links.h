// HostLinks: the connections of a session to its hosts. Opens a few dozen at once and keeps all of them open;
// one that is lost is opened again, with growing pauses, until a time limit.
//
// A host is reached when its agent has sent its inventory. An error before that is final, except for a
// connection that broke off, which is retried a few times: a jump host with many connections opened at once
// drops some. After a host was reached any error is retried, since a host that is booting refuses logins for
// a while. Thread: the reactor's; no event comes from inside a call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/hosts/host_wire.h"

namespace muster {

struct HostLinkTiming {
  size_t at_once = 64;            // being opened
  int first_tries = 3;            // of a connection that was never established
  DurationMs look = 2 * kMinute;  // from hello to inventory
  DurationMs again_first = kSecond, again_last = 30 * kSecond;
  DurationMs give_up = 5 * kMinute;  // after it was lost
  int breaks = 8;                    // of a host that was reached: one that dies at the same place each time
};

class HostLinks {
 public:
  using Open = std::function<std::unique_ptr<HostWire>(HostWireOptions, HostWireEvents)>;
  struct Events {
    std::function<void(const std::string& host, const HostHello&)> hello;
    // Each time it is opened. Polls and posts of that host come only after it.
    std::function<void(const std::string& host, const HostLooked&)> looked;
    std::function<void(const std::string& host, std::set<std::string> have, const Presence&,
                       std::function<void(wire::PollReply)>)>
        poll;
    std::function<void(const std::string& host, wire::EventBatch, std::function<void(Result<uint64_t>)>)>
        post;
    std::function<void(const std::string& host, const Error&)> broken;  // it is opened again
    std::function<void(const std::string& host, const Error&)> gone;    // for good
  };

  HostLinks(Reactor& reactor, Open open, Events events, HostLinkTiming timing = {});
  ~HostLinks();
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;

  void add(HostWireOptions host);
  // Leaves one host: no event of it comes from then on.
  void leave(const std::string& host);
  // Leaves all of them; `done` when their commands have ended, or after a while without that.
  void leave_all(std::function<void()> done);

 private:
  struct Link {
    HostWireOptions options;
    std::unique_ptr<HostWire> wire;
    uint64_t opened = 0;  // distinguishes the events of this wire from those of an earlier one
    int tries = 0, breaks = 0;
    bool opening = false, reached = false, left = false;
    SteadyMs lost_since = {};
    DurationMs pause = 0;
    Reactor::TimerId timer = 0;
  };
  void fill();
  void open(const std::string& host);
  HostWireEvents events_for(const std::string& host, uint64_t opened);
  Link* current(const std::string& host, uint64_t opened);
  void set_timer(Link& link, DurationMs delay, std::function<void()> then);
  void stop_timer(Link& link);
  void on_looked(const std::string& host, const HostLooked& looked);
  void on_lost(const std::string& host, const Error& error);
  bool worth_another(const Link& link, const Error& error) const;
  void bury(Link& link);
  void part(Link& link);
  void all_left();

  static constexpr DurationMs kLeave = 10 * kSecond;

  Reactor& reactor_;
  Open open_;
  Events events_;
  HostLinkTiming timing_;
  std::map<std::string, Link> links_;
  std::vector<std::string> waiting_;  // to be opened, in order
  size_t next_waiting_ = 0, opening_ = 0;
  uint64_t opened_ = 0;
  std::map<uint64_t, std::unique_ptr<HostWire>> leaving_;  // until their commands have ended
  std::function<void()> on_all_left_;
  Reactor::TimerId leave_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster
