// What a storage engine says of its own health, where a node can ask the one that knows: MooseFS' master of
// its chunks, a monitor of Ceph of the cluster. Whom to ask is read off the machine, without the spec. Pure
// but for files that are read.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"

namespace muster {

struct HealthQuestion {
  std::string engine;             // as in the spec: "moosefs", "ceph"
  std::vector<std::string> argv;  // the engine's own program; may take seconds
  // What is wrong, in words, of what it wrote; "" when nothing is. An error where that is no answer.
  Result<std::string> (*wrong)(const std::string& out) = nullptr;
};
// One for each engine whose master or monitor is on this node.
std::vector<HealthQuestion> health_questions(const Files& files);

// Of `mfscli -SIN -n -s '|'`: chunks that are missing, endangered or undergoal.
Result<std::string> moosefs_wrong(const std::string& out);
// Of `ceph health -f json`. `whole`: everything but what says nothing about the data; else only what makes
// data unavailable.
std::string ceph_wrong(const Json& health, bool whole);

}  // namespace muster
