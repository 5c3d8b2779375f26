// The health that a storage engine reports, on the nodes that can read it: MooseFS' master for its chunks, a
// monitor of Ceph for the cluster. Found from the machine, without the spec. Pure, except that it reads
// files.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"

namespace muster {

struct HealthQuestion {
  std::string engine;             // as in the spec: "moosefs", "ceph"
  std::vector<std::string> argv;  // the engine's own program; may take seconds
  // The problem in its output, for messages; "" if there is none. An error if the answer is invalid.
  Result<std::string> (*wrong)(const std::string& out) = nullptr;
};
// One for each engine whose master or monitor is on this node.
std::vector<HealthQuestion> health_questions(const Files& files);

// Of `mfscli -SIN -n -s '|'`: chunks that are missing, endangered or undergoal.
Result<std::string> moosefs_wrong(const std::string& out);
// Of `ceph health -f json`. `whole`: everything about the data; else only what makes data unavailable.
std::string ceph_wrong(const Json& health, bool whole);

}  // namespace muster
