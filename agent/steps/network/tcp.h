// One TCP connection attempt to a numeric address, for steps that test what other nodes can reach.
// Thread: blocking, at most `deadline`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster::steps {

enum class TcpState {
  open,         // a connection was made
  refused,      // the host answered that nobody listens
  filtered,     // no answer, or the network's "not allowed" / "no way there": a firewall or a dead host
  unreachable,  // nothing was sent: this node has no route there, or forbids it. Says nothing of the host
};
std::string_view to_string(TcpState state);

struct TcpAnswer {
  TcpState state = TcpState::filtered;
  std::string banner;  // first bytes the server sent, when asked for
};
// `invalid` for an address that is not numeric. `banner` waits for the server to speak first (SSH does).
Result<TcpAnswer> tcp_probe(const std::string& address, uint16_t port, DurationMs deadline,
                            bool banner = false);

}  // namespace muster::steps
