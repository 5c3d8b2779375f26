// The files of one machine as a description has them: /proc, /sys, /dev and /etc below a root, in the shape
// that Linux and NVIDIA's driver give them. What moves under load is moved by load().
//
// Thread safety: one thread at a time per root.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "sys/os.h"

namespace muster::machines {

// A description's node (node_of()) laid out below `root`, which need not exist. What is the same on every
// node of the type (processors, modules' content) is below `shared`.
void lay_out(const Json& node, const std::string& root, const std::string& shared);
// Fifteen minutes of work: counters of `during` go up, its lines are in the kernel's log and the driver's.
void load(const Json& node, const std::string& root);

// What identifies a part: of this machine type, node and part, always the same.
std::string digits_of(const Json& node, const std::string& part, size_t count);
std::string uuid_of(const Json& node, const std::string& part);
std::string mac_of(const Json& node, const std::string& part);
std::string gpu_uuid(const Json& node, const Json& gpu);

// The devices of a kind.
std::vector<Json> devices(const Json& node, const std::string& kind);

// Where the made-up driver (tests/fakes/nvml) reads what it says.
std::string nvml_state(const std::string& root);

}  // namespace muster::machines
