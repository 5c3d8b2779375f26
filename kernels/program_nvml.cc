// The program muster-accept-nvml: prints the NVIDIA driver's data on this node's GPUs as one line of JSON
// (kernels/counters/nvml.h).
//
// A separate program for two reasons: muster-accept is static and cannot load the driver's library; and a
// driver may hang if a GPU is lost, which must not affect the other counters: muster-accept waits for this
// program for a limited time only. Exit status: 0, or 3 with the reason on standard error, such as no driver.
#include <cstdio>

#include "base/json_dump.h"
#include "kernels/counters/nvml.h"

int main() {
  using namespace muster;
  const auto nvml = kernels::Nvml::open();
  const auto reading = nvml.ok() ? nvml->read() : Result<kernels::NvmlReading>(nvml.error());
  if (!reading.ok()) {
    std::fprintf(stderr, "%s\n", reading.error().message.c_str());
    return 3;
  }
  std::printf("%s\n", dump_json(kernels::to_json(*reading)).c_str());
  return 0;
}
