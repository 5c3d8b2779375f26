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
  refused,      // the host answered, and nothing listens
  filtered,     // no answer, or an ICMP error of the network: a firewall or a dead host
  unreachable,  // nothing was sent: this node has no route there, or blocks it. No statement about the host
};
std::string_view to_string(TcpState state);

struct TcpAnswer {
  TcpState state = TcpState::filtered;
  std::string banner;  // first bytes the server sent, if requested
};
// `invalid` for an address that is not numeric. `banner` waits for the server's first bytes (as of SSH).
Result<TcpAnswer> tcp_probe(const std::string& address, uint16_t port, DurationMs deadline,
                            bool banner = false);

}  // namespace muster::steps
