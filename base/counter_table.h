// What the error counters of network and RDMA ports mean: a row per file of the kernel's drivers, with its
// unit, how far it counts, and what it proves; and per metric of the report what a healthy port does in an
// hour. The only place that knows it: counters of acceptance, the step module `rdma_ports` and
// docs/acceptance.md follow it. Thread safety: constant tables and stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster {

enum class Proves {
  link,          // damaged on the way: cable, connector, transceiver, or the port at either end
  loss,          // a packet did not arrive and was sent again: congestion without flow control, or a bad link
  broken,        // it was sent again until the limit: a connection ended. The other end may have died
  flow_control,  // a sender was made to wait, so that nothing is lost: no fault
  congestion,    // a switch marked packets so that senders slow down: no fault
  refusal,       // a rule of the fabric (a partition) refused a packet: its configuration, no cable
};
std::string_view to_string(Proves proves);

// At its end a counter of InfiniBand stops until it is reset; others begin again at 0.
enum class AtItsEnd { stops, wraps };

struct PortCounter {
  std::string_view file;    // below the port's folder in /sys, as the driver spells it
  std::string_view driver;  // whose; "InfiniBand": the ports of every driver may have it
  std::string_view unit;
  unsigned bits;
  AtItsEnd end;
  std::string_view metric;  // what it is a part of
  std::string_view meaning;
  // The highest number that it can show.
  uint64_t highest() const { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
  std::string_view name() const { return file.substr(file.rfind('/') + 1); }  // "symbol_error"
};

struct PortMetric {
  std::string_view name;  // in JSON
  Proves proves;
  // Of one port per hour. Shipped profiles have this limit; absent: shown, never judged.
  std::optional<double> most_per_hour;
  std::string_view source;  // of that number
};

std::span<const PortCounter> rdma_port_counters();
std::span<const PortCounter> network_port_counters();  // below /sys/class/net/NAME
// Not files: names among the driver's own statistics (`ethtool -S`), with {} for the priority, 0 to 7; a name
// without it is of the port as a whole.
std::span<const PortCounter> priority_counters();
std::span<const PortMetric> rdma_port_metrics();
// Null if there is no such row.
const PortCounter* find_rdma_counter(std::string_view file);

// What a counter did between two readings.
struct Rise {
  uint64_t by = 0;
  // Why `by` may be too low: it stands at its end, was reset in between, or was not there before. "": it is
  // exact.
  std::string at_least = {};
};
Rise rise_of(const PortCounter& counter, std::optional<uint64_t> before, uint64_t now);
// For counters that end nowhere: of the kernel, or of a driver that starts them at 0 when it is loaded.
inline uint64_t rise_from(uint64_t before, uint64_t now) { return now >= before ? now - before : now; }

}  // namespace muster
