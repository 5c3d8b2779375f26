// Which CUDA a version of NVIDIA's driver supports, and which of several programs suits a machine. A program
// runs on every driver that supports its major version. Thread safety: stateless functions.
#pragma once

#include <set>
#include <string>

#include "base/facts.h"

namespace muster {

// The newest major version that a driver ("580.159.04") supports: 13; 0 for an unreadable or older version.
int cuda_of_driver(const std::string& version);
// The oldest driver for CUDA of this major version: 13 -> 580; 0: not known.
int oldest_driver_for(int cuda);

// The version of the driver that is loaded on this machine, "580.159.04"; "": none is.
std::string driver_of(const HardwareFacts& facts);
// The name of cuBLASLt of this major version: "libcublasLt.so.12".
std::string cublaslt_of(int cuda);
inline constexpr int kOldestCublaslt = 11, kNewestCublaslt = 16;  // the major versions that are looked for
inline constexpr const char* kNcclLibrary = "libnccl.so.2";
bool has_library(const HardwareFacts& facts, const std::string& name);

// Returns which of these major versions a program should have that runs on this machine: the newest that its
// driver supports and whose cuBLASLt is there, else the newest that its driver supports; 0: none.
int cuda_for(const HardwareFacts& facts, const std::set<int>& offered);

}  // namespace muster
