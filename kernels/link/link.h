// Measurements of the network between two nodes, over TCP. Contract: kernels/common/kernels.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/common/turns.h"

namespace muster::kernels {

// --- link.cc
struct LinkServerOptions {
  std::string bind = {};  // numeric address
  uint16_t port = 0;      // 0: any free one (tests)
  double seconds = 60;    // stops accepting after this time; each accepted connection may take as long again
  int sessions = 0;       // exits after this many connections; 0 = only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
  std::optional<Flip> flip = {};
};
// Listens once open() has returned, so a client that is started afterwards never finds the port closed.
class LinkServer {
 public:
  static Result<LinkServer> open(LinkServerOptions options);
  uint16_t port() const { return listener_.port(); }
  // Serves until the deadline or the last session.
  Measurement run();

 private:
  LinkServer(LinkServerOptions options, Listener listener)
      : options_(std::move(options)), listener_(std::move(listener)) {}
  LinkServerOptions options_;
  Listener listener_;
};

// One stream is copied by one core at either end, which is not enough for a fast port.
inline constexpr int kMostStreams = 8;

struct LinkOptions {
  std::string to = {};
  uint16_t port = 0;
  double seconds = 1.0;        // for both directions together
  std::string bind = {};       // local address, to choose the path; empty: the system's choice
  double connect_seconds = 5;  // how long to retry: the peer's server may still be starting
  WantedTurn turn = {};        // needs a link-serve at `bind` and `port` as well
  int streams = 0;             // at once; 0: as many as the port's speed needs, at most kMostStreams
  std::optional<Flip> flip = {};
};
// Metrics: send_mbps, receive_mbps (payload verified on receipt, of all streams together; 1 MB = 10^6
// bytes), rtt_ms (median), rtt_p99_ms; with several streams (detail.streams) also stream_send_mbps and
// stream_receive_mbps, of one by itself. detail.own_port: own_port() of the local address; detail.turn:
// the turn that was granted, if one was wanted.
Measurement run_link(const Files& files, const LinkOptions& options);

// --- own_port.cc
// Returns the port with this address: {"interface", "mac", "speed_mbps" if known, "ports"}; null: no port has
// it. `ports`: the hardware that carries it (host/port_ability.h), several for a bond, none for software:
// [{"interface", "speed_mbps", "place", "model", "ability_gbps", "ability_source", "partner_gbps"}].
Json own_port(const Files& files, const std::string& address);
Json port_named(const Files& files, const std::string& interface);  // the same, of an interface
// How many streams a port of this speed needs, so that none has to carry more than 10 Gb/s; unknown (0): 1.
int streams_for(double speed_mbps, size_t cores);
// Returns the active RDMA ports, which NCCL uses between nodes: [{"label", "rate_gbps", "rate_text",
// "near_gpu", "slot_gbps"}]; the last is what PCI Express leaves it in its own slot, where that is known.
Json active_rails(const Files& files);

}  // namespace muster::kernels
