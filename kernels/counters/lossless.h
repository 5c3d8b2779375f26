// Packets lost in a lossless class: a priority of Ethernet at which ports pause each other (PFC), so that
// none is dropped. The counters of priorities are not in /sys, but the driver's own statistics (`ethtool
// -S`). Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "kernels/common/kernels.h"
#include "kernels/counters/moved.h"

namespace muster::kernels {

// By the driver's names.
using PortStatistics = std::map<std::string, uint64_t>;
using QueryStatistics = std::function<Result<PortStatistics>(const std::string& interface)>;
Result<PortStatistics> read_port_statistics(const std::string& interface);

// Saves the counters of priorities of these ports. `interfaces`: by part.
void read_priorities(const std::map<std::string, std::string>& interfaces, const QueryStatistics& query,
                     Counts& out);

// Adds, of the worst port per hour:
//   rdma_lossless_discards   packets dropped at a priority that was paused at any time since the driver was
//                            loaded
//   rdma_pauses              pauses sent and received, of priorities and of the port as a whole (IEEE
//                            802.3x): flow control, no fault
// Both are in `moved.absent` where no port counts them; the pauses also where none has been paused.
void add_priorities(const std::map<std::string, std::string>& interfaces, const QueryStatistics& query,
                    const Counts& before, double hours, Measurement& out, Moved& moved);

}  // namespace muster::kernels
