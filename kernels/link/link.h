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

struct LinkOptions {
  std::string to = {};
  uint16_t port = 0;
  double seconds = 1.0;        // for both directions together
  std::string bind = {};       // local address, to choose the path; empty: the system's choice
  double connect_seconds = 5;  // how long to retry: the peer's server may still be starting
  WantedTurn turn = {};        // needs a link-serve at `bind` and `port` as well
  std::optional<Flip> flip = {};
};
// Metrics: send_mbps, receive_mbps (payload verified on receipt; 1 MB = 10^6 bytes), rtt_ms (median),
// rtt_p99_ms. detail.own_port: own_port() of the local address; detail.turn: the turn that was granted, if
// one was wanted.
Measurement run_link(const Files& files, const LinkOptions& options);

// --- own_port.cc
// Returns the port with this address: {"interface", "mac", "speed_mbps" if known}; null: no port has it.
Json own_port(const Files& files, const std::string& address);
// Returns the rates in Gb/s of the active RDMA ports, which NCCL uses between nodes.
Json active_rails(const Files& files);

}  // namespace muster::kernels
