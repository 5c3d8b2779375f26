// The ports on which muster's programs listen, each once. tests/tidy_limits_test.cc refuses these numbers
// elsewhere. Ports of other programs (Slurm, a storage engine, an exporter, a BMC) are in what starts or
// queries them. Plain constants and pure functions.
#pragma once

#include <string>

namespace muster {

// musterd, on the provisioning network, TCP: the API over TLS, for agents and for operators elsewhere.
inline constexpr int kTlsPort = 7443;
// musterd, on the provisioning network, TCP: boot scripts, kernels, RAM systems, images, agents and programs
// over plain HTTP, read only.
inline constexpr int kBootPort = 7480;
// musterd, on the address of `--metrics`, TCP: what Prometheus scrapes, over plain HTTP, read only.
inline constexpr int kMetricsPort = 7481;
// dnsmasq beside musterd, on the provisioning network, UDP: addresses and iPXE for machines that boot. The
// clients accept no other ports.
inline constexpr int kDhcpPort = 67, kTftpPort = 69;
// muster-accept on each measured node, TCP: links, and RDMA, for which perftest uses the ports above, too.
inline constexpr int kLinkPort = 7490, kRdmaPort = 7495;
// All ports of measurements between nodes lie between these: what firewalls have to let in.
inline constexpr int kFirstMeasuringPort = 7490, kLastMeasuringPort = 7560;
// muster-accept on each measured node, during a load of several nodes, TCP: `group-serve` and its leader.
inline constexpr int kGroupPort = 7540;
// muster-accept-gpu on the first of these nodes, TCP: where NCCL's ranks meet.
inline constexpr int kNcclPort = 7541;

inline std::string tls_url(const std::string& address) {
  return "https://" + address + ":" + std::to_string(kTlsPort);
}
inline std::string boot_url(const std::string& address) {
  return "http://" + address + ":" + std::to_string(kBootPort);
}

}  // namespace muster
