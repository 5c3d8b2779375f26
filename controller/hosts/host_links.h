// HostLinks: the connections of a session to its hosts. Opens a few dozen at a time and keeps all of them
// open; a lost connection is reopened, with growing pauses, until a time limit.
//
// A host counts as reached when its agent has sent its inventory. An error before that is final, except for
// Code::unavailable, which is retried a few times (jump hosts drop some connections if many are opened at
// once, a host boots), and for a sudo that does not answer: the host is opened again as a plain user.
// Once a host was reached, every error is retried, since a host that is booting refuses logins for a while.
// Thread: the reactor's; events are never called inside a call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/alive.h"
#include "controller/hosts/host_wire.h"

namespace muster {

struct HostLinkTiming {
  size_t at_once = 64;  // connections being opened at the same time
  int first_tries = 3;  // attempts until a connection is first established
  // An attempt that lasted longer was not dropped but not answered. It is not repeated: all other hosts wait
  // for this one before anything is measured.
  DurationMs dropped = 10 * kSecond;
  DurationMs look = 2 * kMinute;  // time limit from hello to inventory
  DurationMs again_first = kSecond, again_last = 30 * kSecond;
  DurationMs give_up = 5 * kMinute;  // after the connection was lost
  int breaks = 8;                    // how often a reached host may fail at the same point
};

class HostLinks {
 public:
  using Open = std::function<std::unique_ptr<HostWire>(HostWireOptions, HostWireEvents)>;
  struct Events {
    std::function<void(const std::string& host, const HostHello&)> hello;
    // Called each time the link is opened; polls and posts of the host come only after it.
    std::function<void(const std::string& host, const HostLooked&)> looked;
    std::function<void(const std::string& host, std::set<std::string> have, const Presence&,
                       std::function<void(wire::PollReply)>)>
        poll;
    std::function<void(const std::string& host, wire::EventBatch, std::function<void(Result<uint64_t>)>)>
        post;
    std::function<void(const std::string& host, const Error&)> broken;  // link lost, will be reopened
    std::function<void(const std::string& host, const Error&)> gone;    // link lost for good
  };

  HostLinks(Reactor& reactor, Open open, Events events, HostLinkTiming timing = {});
  ~HostLinks();
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;

  void add(HostWireOptions host);
  // Leaves one host: its events are no longer called.
  void leave(const std::string& host);
  // Leaves all hosts; `done` is called when their commands have ended, or after kLongestLeave.
  void leave_all(std::function<void()> done);

 private:
  struct Link {
    HostWireOptions options;
    std::unique_ptr<HostWire> wire;
    uint64_t opened = 0;  // number of the wire, to ignore events of earlier ones
    int tries = 0, breaks = 0;
    bool opening = false, reached = false, left = false;
    SteadyMs tried = {}, lost_since = {};
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
  bool goes_without_sudo(Link& link, const Error& error);
  bool worth_another(const Link& link, const Error& error) const;
  void bury(Link& link);
  void part(Link& link);
  void all_left();

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
  Alive alive_;
};

}  // namespace muster
