// The archive with the program that measures GPUs (scripts/build-gpu-package.sh makes one for each CUDA),
// which running hosts receive from the machine where the command runs. Thread safety: stateless functions.
#pragma once

#include <string>

namespace muster {

inline constexpr const char* kGpuProgram = "muster-accept-gpu";
inline constexpr const char* kGpuArchive = "muster-gpu-";  // how the archive and its folder are called

// Returns what makes the program for this major version of CUDA available to running hosts; 0: for that of
// their driver. To be followed by "; then ...", or by nothing.
std::string bring_gpu_program(int cuda);

}  // namespace muster
