// The messages between two nodes that measure RDMA (kernels/rdma.cc): what each can do, and which test to run
// on which rails. Everything from the other side is parsed as strictly as anything from the network. Thread:
// plain functions and values; a lock is held by one thread.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"
#include "kernels/connection.h"
#include "kernels/rdma.h"

namespace muster::kernels::rdma {

constexpr size_t kMostRails = 64;
constexpr const char* kLock = "/run/muster-rdma.lock";

// Held while this node works with a partner; processes of this node exclude one another by it.
class NodeLock {
 public:
  explicit NodeLock(const Files& files);
  ~NodeLock();
  NodeLock(const NodeLock&) = delete;
  NodeLock& operator=(const NodeLock&) = delete;
  bool usable() const { return fd_ >= 0; }
  bool take();
  void release();

 private:
  int fd_;
};

// What this node can do; sent to a partner at the beginning.
struct Ability {
  std::vector<RdmaPort> rails = {};  // active ports
  Json inactive = Json::array();     // "mlx5_3: 1: DOWN"
  std::vector<int> declared = {};    // rails that the spec gives this node
  std::string perftest_problem = {};
  GpuDirect gpu = {};
  bool setpriv = false;
  const RdmaPort* rail(const std::string& label) const {
    for (const auto& port : rails)
      if (port.label == label) return &port;
    return nullptr;
  }
  std::vector<std::string> labels() const {
    std::vector<std::string> out;
    for (const auto& port : rails) out.push_back(port.label);
    return out;
  }
};
Ability look(const Files& files, Process& process);
// Why this port cannot be measured; empty: it can.
std::string rail_problem(const RdmaPort& port);
Json to_json(const Ability& ability);

// One test on several rails at once. What a partner sends of it is read as strictly as anything from the
// network.
struct Job {
  PerfTest test = PerfTest::bandwidth;
  int seconds = 1, iterations = 1000;
  bool gpu = false;
  struct Item {
    std::string label = {};  // own port
    size_t rail = 0;
  };
  std::vector<Item> items = {};
};
// No perftest of it takes longer: it would be killed.
double longest(const Job& job);
Json to_json(const Job& job, const char* op, bool labels_of_partner, const std::vector<Rail>& rails);
Result<Job> job_from_json(const Json& json);

// One frame each way; `type` is `ask` or `answer`.
enum Type : uint32_t { ask = 1, answer };
Status say(Connection& link, uint32_t type, const Json& json);
Result<Json> hear(Connection& link, uint32_t type);
// An answer that holds an error is that error.
Result<Json> request(Connection& link, const Json& question);

}  // namespace muster::kernels::rdma
