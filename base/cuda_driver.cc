#include "base/cuda_driver.h"

#include <algorithm>
#include <charconv>

namespace muster {
namespace {

// Source: table "CUDA Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility" of
// NVIDIA's release notes.
struct Support {
  int cuda, driver;
};
constexpr Support kSupport[] = {{13, 580}, {12, 525}, {11, 450}};

}  // namespace

int cuda_of_driver(const std::string& version) {
  int branch = 0;
  std::from_chars(version.data(), version.data() + version.size(), branch);
  for (const auto& [cuda, driver] : kSupport)
    if (branch >= driver) return cuda;
  return 0;
}

int oldest_driver_for(int cuda) {
  for (const auto& one : kSupport)
    if (one.cuda == cuda) return one.driver;
  return 0;
}

std::string driver_of(const HardwareFacts& facts) {
  const auto found = facts.properties.find("GPU driver");
  // "580.159.04 (open)"
  return found == facts.properties.end() ? "" : found->second.substr(0, found->second.find(' '));
}

std::string cublaslt_of(int cuda) { return "libcublasLt.so." + std::to_string(cuda); }

bool has_library(const HardwareFacts& facts, const std::string& name) {
  return std::any_of(facts.gpu_libraries.begin(), facts.gpu_libraries.end(),
                     [&](const LibraryFacts& library) { return library.name == name; });
}

int cuda_for(const HardwareFacts& facts, const std::set<int>& offered) {
  const int supported = cuda_of_driver(driver_of(facts));
  int newest = 0;
  for (auto cuda = offered.rbegin(); cuda != offered.rend(); ++cuda) {
    if (*cuda > supported) continue;
    if (has_library(facts, cublaslt_of(*cuda))) return *cuda;
    if (newest == 0) newest = *cuda;
  }
  return newest;
}

}  // namespace muster
