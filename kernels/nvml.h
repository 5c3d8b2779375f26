// What NVIDIA's management library (NVML) reports about this machine's GPUs, without CUDA and without a
// header of NVIDIA's.
//
// libnvidia-ml.so.1 comes with the driver and is looked for at run time. A function that an old driver does
// not have, a GPU that has no NVLink, an error: what cannot be read is absent, never 0, and `notes` says why.
// Thread: an Nvml is used by one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::kernels {

// Installed next to muster-accept (kernels/program_nvml.cc).
inline constexpr const char* kNvmlProgram = "muster-accept-nvml";

constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// Counters by name and part. Parts are "GPU <uuid>" and "GPU <uuid> link 3".
//   nvlink_replay, nvlink_recovery, nvlink_crc_flit, nvlink_crc_data   of a link, since the driver was loaded
//   nvlink_active      0 or 1, of each link the GPU has
//   gpu_reasons        bits: why the clocks are lower than requested at this moment
//   gpu_thermal_ns, gpu_power_brake_ns   how long the hardware held the clocks down, since the driver was
//                                        loaded
//   gpu_energy_mj      since the driver was loaded
//   gpu_power_mw       now
//   gpu_present        1, of each GPU that answers
using NvmlCounts = std::map<std::string, std::map<std::string, uint64_t>>;
constexpr const char* kNvmlLinkErrors[] = {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit",
                                           "nvlink_crc_data"};

// A process that computes on a GPU, and so holds some of its memory.
struct NvmlHolder {
  std::string gpu;  // "GPU <uuid>"
  int64_t pid = 0;
  std::optional<uint64_t> mib = {};  // absent: the driver does not report it
};

struct NvmlReading {
  std::string driver = {};
  NvmlCounts counts = {};
  std::map<std::string, std::string> models = {};       // by "GPU <uuid>"
  std::vector<std::string> notes = {};                  // what could not be read, and why
  std::optional<std::vector<NvmlHolder>> holders = {};  // absent: some GPU did not answer
};
Json to_json(const NvmlReading& reading);
Result<NvmlReading> nvml_from_json(const Json& json);

class Nvml {
 public:
  // unavailable: no library, no driver, or one without the functions that name the GPUs.
  static Result<Nvml> open(const std::string& library = kNvmlLibrary);
  Nvml(Nvml&& other) noexcept;
  ~Nvml();
  Result<NvmlReading> read() const;
  // Only gpu_energy_mj, by "GPU <uuid>". An error unless every GPU reports it: a sum without one of them
  // would be wrong.
  Result<std::map<std::string, uint64_t>> energy() const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<const Functions> functions);
  std::unique_ptr<const Functions> functions_;
};

}  // namespace muster::kernels
