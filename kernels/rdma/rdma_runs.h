// Runs perftest on all rails of one job (kernels/rdma/rdma.cc). Threads: used by one thread; starts one
// thread per rail, which finish() and the destructor join.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "kernels/rdma/rdma_job.h"
#include "sys/os.h"

namespace muster::kernels::rdma {

constexpr double kPoll = 0.02;
void pause(double seconds);

// The perftest processes of one job, one per rail, all at once.
class Runs {
 public:
  Runs(const Files& files, Process& process, const Ability& ability, uint16_t port)
      : files_(files), process_(process), ability_(ability), port_(port) {}
  ~Runs() { join(); }

  // Starts perftest on each rail. Empty `partner`: the server side; returns once every process listens.
  Status start(const Job& job, const std::string& partner);
  // Waits for all, and returns [{"label","error","gbps","typical_us","p99_us","mtu"}].
  Json finish();
  // Ends perftest servers to which the partner will not connect.
  void give_up();

 private:
  Status wait_until_free() const;
  Status wait_until_listening();
  bool listens(uint16_t port) const;
  Json result_of(const PerfRun& run);
  void join();

  const Files& files_;
  Process& process_;
  const Ability& ability_;
  uint16_t port_;
  std::vector<PerfRun> runs_ = {};
  std::vector<Json> results_ = {};
  std::vector<std::atomic<bool>> ended_ = {};
  std::vector<std::thread> threads_ = {};
};

}  // namespace muster::kernels::rdma
