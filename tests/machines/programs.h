// The programs of recorded machines: what muster-accept, muster-accept-gpu and perftest print there. Kernels
// that read the machine (counters, PCIe links, drives, RDMA between two nodes) are the real ones, over the
// node's root; loads print the figures of the description, and the details that the real ones read beside.
//
// Thread safety: perftest runs on several threads; all else on one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "sys/os.h"

namespace muster::machines {

struct Fleet;

class Programs : public Process {
 public:
  Programs(Fleet& fleet, size_t node) : fleet_(fleet), own_(node) {}
  Result<Output> run(const Command& command) override;

 private:
  Fleet& fleet_;
  const size_t own_;
};

struct FleetNode {
  std::string name = {}, address = {}, root = {};
  Json machine = {};  // node_of()
  bool loaded = false;
  Files files() const { return Files(root); }
};

// The nodes of one play.
struct Fleet {
  std::vector<FleetNode> nodes = {};
  std::vector<std::unique_ptr<Programs>> programs = {};
  std::map<std::string, Json> listening = {};  // TCP port -> the port that perftest serves there
  std::mutex mutex = {};                       // guards `listening`
  const FleetNode& by_address(const std::string& address) const;
};

}  // namespace muster::machines
