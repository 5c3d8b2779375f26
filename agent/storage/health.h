// The health that a storage engine reports, on the nodes that can read it: a MooseFS master for its chunks, a
// Ceph monitor for the cluster. These nodes are detected from their own files, without the spec. Thread
// safety: stateless functions that only read files.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "sys/os.h"

namespace muster {

struct HealthQuestion {
  std::string engine;             // as in the spec: "moosefs", "ceph"
  std::vector<std::string> argv;  // the engine's own program; may take seconds
  // Returns the problem in the output, for messages; "" if there is none. An error if the output is invalid.
  Result<std::string> (*wrong)(const std::string& out) = nullptr;
};
// Returns one question for each engine whose master or monitor is on this node.
std::vector<HealthQuestion> health_questions(const Files& files);

// Reads the output of `mfscli -SIN -n -s '|'`: chunks that are missing, endangered or undergoal.
Result<std::string> moosefs_wrong(const std::string& out);
// Which problems of a Ceph cluster count: for an operator, those that are not muted; for a bring-up whose
// nodes are all members, those of data, muted or not; before that, those that make data unavailable.
enum class CephScope { shown, all_members, some_members };
// Reads `ceph health -f json`; the only place that decides which of its checks matter.
std::string ceph_wrong(const Json& health, CephScope scope);

}  // namespace muster
