// The messages between two nodes that measure RDMA (kernels/rdma/rdma.cc): the abilities of each node, and
// which test to run on which rails. Messages from the partner are untrusted and strictly parsed. Thread
// safety: value types and stateless functions; a NodeLock belongs to one thread.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "kernels/common/connection.h"
#include "kernels/rdma/rdma.h"
#include "kernels/rdma/which_perftest.h"
#include "sys/os.h"

namespace muster::kernels::rdma {

constexpr size_t kMostRails = 64;
// How long a partner's answer is waited for, in addition to what it answers for.
constexpr double kAnswerSeconds = 20;

// The lock that a process holds while it measures with a partner: one process per node at a time, of any
// user. A name in the kernel, not a file: nothing stays on the node.
class NodeLock {
 public:
  explicit NodeLock(const Files& files);
  ~NodeLock() { release(); }
  NodeLock(const NodeLock&) = delete;
  NodeLock& operator=(const NodeLock&) = delete;
  // False: another process has it. unavailable: the kernel does not allow it.
  Result<bool> take();
  void release();

 private:
  std::string name_;
  int fd_ = -1;
};

// Each side sends its own at the beginning of a session.
struct Ability {
  std::vector<RdmaPort> rails = {};            // active ports
  Json inactive = Json::array();               // "mlx5_3: 1: DOWN"
  std::vector<int> declared = {};              // numbers of the rails that the spec declares for this node
  int traffic_class = -1;                      // of the declared rails; -1: none
  std::map<std::string, PcieShare> pcie = {};  // by PCI address: all rails are measured at once
  std::map<std::string, std::pair<PortAbility, std::string>> ports = {};  // by label; adapter_model()
  Perftest perftest = {};
  GpuDirect gpu = {};
  bool setpriv = false;
  const RdmaPort* rail(const std::string& label) const {
    for (const auto& port : rails)
      if (port.label == label) return &port;
    return nullptr;
  }
};
Ability look(const Files& files, Process& process, const CarriedPerftest& carried = {});
// Why this port cannot be measured; empty if it can.
std::string rail_problem(const RdmaPort& port);
Json to_json(const Ability& ability);

// What each side announces about its ports at the beginning of a session.
struct AnnouncedPort {
  std::string label = {}, problem = {}, place = {};
  bool unmeasurable = false;  // the problem is no fault: perftest's test cannot run on such ports
  int number = -1;            // of the declared rail
  double rate_gbps = 0, pcie_gbps = 0;
  std::vector<Gid> gids = {};
};
std::vector<AnnouncedPort> announced_ports(const Json& hello);
// Pairs the ports of both sides: by declared number, else by place, else by name.
std::vector<Rail> pair_ports(const Ability& own, const std::vector<AnnouncedPort>& others);

// One test on several rails at once.
struct Job {
  PerfTest test = PerfTest::bandwidth;
  int seconds = 1, iterations = 1000;
  bool gpu = false;
  bool carried = false;  // both sides run the perftest that muster carries
  struct Item {
    std::string label = {};  // own port
    size_t rail = 0;
    int gid = -1;  // RoCE: own GID's index; -1: the first
  };
  std::vector<Item> items = {};
};
// In seconds: then a perftest process of this job is killed.
double longest(const Job& job);
Json to_json(const Job& job, const char* op);
Result<Job> job_from_json(const Json& json);

// Frame types: a request, and the reply to it. say() sends one frame, receive_json() receives one.
enum Type : uint32_t { question_type = 1, answer };
Status say(Connection& link, uint32_t type, const Json& json);
Result<Json> receive_json(Connection& link, uint32_t type);
// Sends a request and returns the reply; an error in the reply is returned as an Error.
Result<Json> request(Connection& link, const Json& question);

constexpr double kPoll = 0.02;
void pause(double seconds);

// The perftest processes of one job, one per rail, all at once. Used by one thread; starts one thread per
// rail, which finish() and the destructor join.
class Runs {
 public:
  Runs(const Files& files, Process& process, const Ability& ability, uint16_t port)
      : files_(files), process_(process), ability_(ability), port_(port) {}
  ~Runs() { join(); }

  // Starts perftest on each rail. Empty `partner`: the server side; returns once every process listens or has
  // ended. An Error if none listens.
  Status start(const Job& job, const std::string& partner);
  // The server side's processes that ended before a partner came: {label: error}.
  Json ended_early() const;
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
  std::vector<bool> early_ = {};  // ended before it listened
  std::vector<std::thread> threads_ = {};
};

}  // namespace muster::kernels::rdma
