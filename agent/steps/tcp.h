// Makes one TCP connection attempt to a numeric address, for steps that test which ports are reachable.
// Thread safety: stateless; blocks for at most `deadline`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace muster::steps {

enum class TcpState {
  open,         // a connection was made
  refused,      // the host answered that nothing listens on the port
  filtered,     // no answer, or an ICMP error from the network: a firewall or a dead host
  unreachable,  // nothing was sent: this node has no route or blocks the packet; the host may be fine
};
std::string_view to_string(TcpState state);

struct TcpAnswer {
  TcpState state = TcpState::filtered;
  std::string banner;  // first bytes that the server sent, if requested
};
// Tries to connect; `invalid` if the address is not numeric. `banner`: waits for the server's first bytes.
Result<TcpAnswer> tcp_probe(const std::string& address, uint16_t port, DurationMs deadline,
                            bool banner = false);

}  // namespace muster::steps
