// Reads this machine's GPUs through NVIDIA's management library (NVML), without CUDA and NVIDIA's headers:
// libnvidia-ml.so.1 comes with the driver and is loaded at run time. A value that cannot be read (old driver,
// GPU without NVLink, error) is absent, never 0, and `notes` has the reason. Thread safety: one thread at a
// time per Nvml.
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
//   nvlink_replay, nvlink_recovery, nvlink_crc_flit, nvlink_crc_data   per link, since the driver was loaded
//   nvlink_recovery_events, nvlink_recovery_failed, nvlink_symbol_errors, nvlink_effective_errors   per link,
//                      of NVLink 5: how often it was trained again, and in vain; symbols damaged before and
//                      after error correction
//   nvlink_active      0 or 1, per link of the GPU
//   gpu_reasons        bits: why the clocks are currently lower than requested
//   gpu_thermal_ns, gpu_power_brake_ns, gpu_sw_thermal_ns   time for which the hardware, or
//                      because of the temperature the driver, reduced the clocks, since the driver was loaded
//   gpu_ecc_on         0 or 1
//   gpu_recovery_action  nvmlDeviceGpuRecoveryAction_t: 0 none, 1 to 4 of the GPU, 5 of its IMEX domain
//   gpu_repair_pending   bits: 1 a memory channel, 2 a TPC waits for a reset to be repaired
//   gpu_sram_exceeded    1: more uncorrectable errors of SRAM than NVIDIA tolerates
//   gpu_energy_mj      since the driver was loaded
//   gpu_power_mw       now
//   gpu_present        1 for each GPU that responds
using NvmlCounts = std::map<std::string, std::map<std::string, uint64_t>>;
constexpr const char* kNvmlLinkErrors[] = {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit",
                                           "nvlink_crc_data"};
// Of NVLink 5 only.
constexpr const char* kNvmlLink5Errors[] = {"nvlink_recovery_events", "nvlink_recovery_failed",
                                            "nvlink_symbol_errors", "nvlink_effective_errors"};

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
  // unavailable: no library, no driver, or a driver without the functions that enumerate GPUs.
  static Result<Nvml> open(const std::string& library = kNvmlLibrary);
  Nvml(Nvml&& other) noexcept;
  ~Nvml();
  Result<NvmlReading> read() const;
  // gpu_energy_mj by "GPU <uuid>". An error unless every GPU reports it: else the sum is wrong.
  Result<std::map<std::string, uint64_t>> energy() const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<const Functions> functions);
  std::unique_ptr<const Functions> functions_;
};

}  // namespace muster::kernels
