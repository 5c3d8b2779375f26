// Measurements of RDMA ports between two nodes, with perftest. Contract: kernels/common/kernels.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/rdma/which_perftest.h"

namespace muster::kernels {

// --- rdma.cc
struct RdmaServerOptions {
  std::string bind = {};  // numeric address
  uint16_t port = 0;      // perftest uses the ports above it, one per rail; 0: any free port (tests)
  double seconds = 600;   // accepts no connection after this deadline; exits when the last one ends
  int sessions = 0;       // exits after this many connections; 0 = only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
  // A partner that sends no request for this long between tests loses its reservation of this node.
  double idle_seconds = 60;
  CarriedPerftest perftest = {};
};
class RdmaServer {
 public:
  static Result<RdmaServer> open(RdmaServerOptions options);
  uint16_t port() const { return listener_.port(); }
  Measurement run(const Files& files, Process& process);

 private:
  RdmaServer(RdmaServerOptions options, Listener listener)
      : options_(std::move(options)), listener_(std::move(listener)) {}
  RdmaServerOptions options_;
  Listener listener_;
};

struct RdmaOptions {
  std::string to = {};
  uint16_t port = 0;
  std::string bind = {};
  double seconds = 3;          // whole seconds, each direction
  int iterations = 1000;       // of the latency test
  double connect_seconds = 5;  // how long to retry: the partner's server may still be starting
  double busy_seconds = 300;   // how long to wait for a partner that is busy with other nodes
  double total_seconds = 585;  // overall limit; tests that have not begun by then are skipped
  CarriedPerftest perftest = {};
  bool gpu_memory =
      false;  // instead compares GPU memory with host memory; `unavailable` where that is impossible
};
// One part per rail: {"subject": "", "like": "rail 0", "result": of check "rdma-link" (or
// "rdma-gpu-memory")}. Their metrics: send_gbps, receive_gbps, latency_us, latency_p99_us; with gpu_memory:
// send_gbps, gdr_gbps, gdr_ratio. detail.at_fault: the side ("here", "peer") that prevents the measurement of
// a rail, if known; detail.inconclusive: true if the failure is not evidence against the link (other traffic
// on it, connection to the partner lost, no figure from perftest). detail.perftest: which one measured. No
// parts: this node itself cannot measure
// (no RDMA device, no perftest).
Measurement run_rdma(const Files& files, Process& process, const RdmaOptions& options);

}  // namespace muster::kernels
