// The files of the perftest that muster carries to hosts without their own (scripts/perftest.sh): both
// programs, and the libraries that they load besides libibverbs and its providers, which are the host's.
// Found in perftest/ beside muster-accept where `muster` or `musterd` runs, and by these names on a host.
#pragma once

namespace muster {

inline constexpr const char* kPerftestBandwidth = "ib_write_bw";
inline constexpr const char* kPerftestLatency = "ib_write_lat";
inline constexpr const char* kPerftestLibraries[] = {"librdmacm", "libpci"};
inline constexpr const char* kPerftestFiles[] = {kPerftestBandwidth, kPerftestLatency, kPerftestLibraries[0],
                                                 kPerftestLibraries[1]};

}  // namespace muster
