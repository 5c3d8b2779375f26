// Source of names, numbers and layouts: nvml.h of go-nvml (github.com/NVIDIA/go-nvml, gen/nvml/nvml.h) and of
// the CUDA toolkit. Published numbers, and functions with a version in their name, do not change.
#include "kernels/counters/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "kernels/common/library.h"

namespace muster::kernels {
namespace {

using Device = void*;  // nvmlDevice_t: an opaque pointer
enum Answer : int {    // nvmlReturn_t
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kInsufficientSize = 7,
};
constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS
constexpr unsigned kTextBytes =
    96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE; the driver's version takes 80
// nvmlNvLinkErrorCounter_t, in the order of kNvmlLinkErrors: NVML_NVLINK_ERROR_DL_REPLAY, _RECOVERY,
// _CRC_FLIT, _CRC_DATA.
constexpr int kErrorCounters[] = {0, 1, 2, 3};

// nvmlFieldValue_t.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, answer;
  union {
    double real;
    unsigned narrow;
    unsigned long long wide;
  } value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, type) == 24 &&
              offsetof(FieldValue, value) == 32);
// nvmlProcessInfo_t, as filled by the _v2 and _v3 functions.
struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;  // all ones: not known
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, bytes) == 8);
constexpr unsigned kMostProcesses = 4096;
// nvmlValueType_t: unsigned int, unsigned long, unsigned long long.
enum ValueType : int { kNarrow = 1, kLong = 2, kWide = 3 };
// NVML_FI_DEV_...: numbers of fields. Drivers that lack one report that it is not supported.
struct Field {
  unsigned number;
  const char* name;
};
constexpr Field kGpuFields[] = {
    {252, "gpu_thermal_ns"},       // CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, from driver 570 on
    {253, "gpu_power_brake_ns"},   // CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN
    {251, "gpu_sw_thermal_ns"},    // CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
    {1, "gpu_ecc_on"},             // ECC_CURRENT
    {230, "gpu_recovery_action"},  // GET_GPU_RECOVERY_ACTION
};
// Of one link, which is the scope. Only NVLink 5 has them.
constexpr Field kLinkFields[] = {
    {215, "nvlink_recovery_events"},   // NVLINK_COUNT_LINK_RECOVERY_EVENTS: failed or not
    {214, "nvlink_recovery_failed"},   // NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS
    {221, "nvlink_symbol_errors"},     // NVLINK_COUNT_SYMBOL_ERRORS
    {219, "nvlink_effective_errors"},  // NVLINK_COUNT_EFFECTIVE_ERRORS
};
// nvmlRepairStatus_v1_t and nvmlEccSramErrorStatus_v1_t; a version is the size and, from bit 24 on, a number.
struct RepairStatus {
  unsigned version, channel, tpc;
};
struct SramStatus {
  unsigned version;
  unsigned long long counts[11];
  unsigned exceeded;
};
template <typename Struct>
constexpr unsigned kVersion1 = sizeof(Struct) | 1U << 24;
static_assert(kVersion1<RepairStatus> == 0x100000C && kVersion1<SramStatus> == 0x1000068);

}  // namespace

struct Nvml::Functions {
  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, Device*);
  int (*uuid)(Device, char*, unsigned);
  // Null if the driver does not have it.
  const char* (*words)(int);
  int (*version)(char*, unsigned);
  int (*name)(Device, char*, unsigned);
  int (*link_state)(Device, unsigned, int*);
  int (*link_errors)(Device, unsigned, int, unsigned long long*);
  int (*energy)(Device, unsigned long long*);
  int (*power)(Device, unsigned*);
  int (*reasons)(Device, unsigned long long*);
  int (*fields)(Device, int, FieldValue*);
  int (*repairs)(Device, RepairStatus*);
  int (*sram)(Device, SramStatus*);
  int (*processes)(Device, unsigned*, ProcessInfo*);

  std::string say(int answer) const {
    const char* text = words ? words(answer) : nullptr;
    return text ? fmt::format("{} ({})", text, answer) : fmt::format("error {}", answer);
  }
};

namespace {

// One reading in progress: queries the library and notes what could not be read.
template <typename Functions>
class Query {
 public:
  Query(const Functions& f, NvmlReading& out) : f_(f), out_(out) {}

  // A missing function is noted once.
  template <typename Function>
  bool has(Function* function, const char* what) {
    if (!function) note(fmt::format("this driver does not report {}", what));
    return function != nullptr;
  }
  // A part without the feature is not an error.
  bool answered(int answer, const std::string& part, const char* what) {
    if (answer == kSuccess) return true;
    if (answer != kNotSupported && answer != kInvalidArgument)
      note(fmt::format("{}, {}: {}", part, what, f_.say(answer)));
    return false;
  }
  void note(const std::string& text) {
    for (const auto& old : out_.notes)
      if (old == text) return;
    out_.notes.push_back(text);
  }

  void links(Device device, const std::string& gpu) {
    if (!has(f_.link_state, "nvlink_active")) return;
    for (unsigned link = 0; link < kMostLinks; ++link) {
      const std::string part = fmt::format("{} link {}", gpu, link);
      int active = 0;
      if (!answered(f_.link_state(device, link, &active), part, "nvlink_active")) continue;
      out_.counts["nvlink_active"][part] = active != 0;
      if (f_.fields) fields(device, part, link, kLinkFields);
      if (!has(f_.link_errors, "NVLink error counters")) continue;
      for (size_t i = 0; i < std::size(kErrorCounters); ++i) {
        unsigned long long errors = 0;
        if (answered(f_.link_errors(device, link, kErrorCounters[i], &errors), part, kNvmlLinkErrors[i]))
          out_.counts[kNvmlLinkErrors[i]][part] = errors;
      }
    }
  }

  void clocks(Device device, const std::string& gpu) {
    unsigned long long reasons = 0;
    if (has(f_.reasons, "gpu_reasons") && answered(f_.reasons(device, &reasons), gpu, "gpu_reasons"))
      out_.counts["gpu_reasons"][gpu] = reasons;
    if (has(f_.fields, "gpu_thermal_ns, gpu_power_brake_ns")) fields(device, gpu, 0, kGpuFields);
  }

  // Not noted where the driver lacks them: they came with driver 580 and 550.
  void repairs(Device device, const std::string& gpu) {
    RepairStatus repair = {kVersion1<RepairStatus>, 0, 0};
    if (f_.repairs && answered(f_.repairs(device, &repair), gpu, "gpu_repair_pending"))
      out_.counts["gpu_repair_pending"][gpu] = (repair.channel != 0 ? 1U : 0U) | (repair.tpc != 0 ? 2U : 0U);
    SramStatus sram = {kVersion1<SramStatus>, {}, 0};
    if (f_.sram && answered(f_.sram(device, &sram), gpu, "gpu_sram_exceeded"))
      out_.counts["gpu_sram_exceeded"][gpu] = sram.exceeded != 0;
  }

  void holders(Device device, const std::string& gpu) {
    if (!f_.processes) return out_.holders.reset();
    if (!out_.holders) return;
    // Retries with the count returned: more processes may have started between two calls.
    std::vector<ProcessInfo> list;
    int answer = kInsufficientSize;
    unsigned count = 0;
    for (int i = 0; i < 5 && answer == kInsufficientSize && count <= kMostProcesses; ++i) {
      list.resize(count);
      answer = f_.processes(device, &count, list.data());
    }
    if (!answered(answer, gpu, "processes on GPUs")) return out_.holders.reset();
    list.resize(std::min<size_t>(count, list.size()));
    for (const ProcessInfo& one : list) {
      NvmlHolder holder{gpu, one.pid};
      if (one.bytes != ~0ULL) holder.mib = one.bytes >> 20;
      out_.holders->push_back(std::move(holder));
    }
  }

  void power(Device device, const std::string& gpu) {
    unsigned long long energy = 0;
    if (has(f_.energy, "gpu_energy_mj") && answered(f_.energy(device, &energy), gpu, "gpu_energy_mj"))
      out_.counts["gpu_energy_mj"][gpu] = energy;
    unsigned milliwatts = 0;
    if (has(f_.power, "gpu_power_mw") && answered(f_.power(device, &milliwatts), gpu, "gpu_power_mw"))
      out_.counts["gpu_power_mw"][gpu] = milliwatts;
  }

 private:
  // One at a time: a driver that does not know one of several fields may refuse them all.
  void fields(Device device, const std::string& part, unsigned scope, std::span<const Field> table) {
    for (const auto& [number, name] : table) {
      FieldValue value = {};
      value.field = number;
      value.scope = scope;
      if (!answered(f_.fields(device, 1, &value), part, name) || !answered(value.answer, part, name))
        continue;
      if (value.type == kNarrow)
        out_.counts[name][part] = value.value.narrow;
      else if (value.type == kLong || value.type == kWide)
        out_.counts[name][part] = value.value.wide;
      else
        note(fmt::format("{}, {}: unexpected value type {}", part, name, value.type));
    }
  }

  const Functions& f_;
  NvmlReading& out_;
};

// Returns "GPU <uuid>" for each GPU; calls `lost` for GPUs that do not respond.
template <typename Functions, typename Lost>
Result<std::vector<std::pair<Device, std::string>>> gpus_of(const Functions& f, const Lost& lost) {
  unsigned count = 0;
  if (const int answer = f.count(&count); answer != kSuccess)
    return fail(Code::unavailable, "NVML cannot count the GPUs: " + f.say(answer));
  std::vector<std::pair<Device, std::string>> out;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    std::array<char, kTextBytes> uuid = {};
    int answer = f.handle(i, &device);
    if (answer == kSuccess) answer = f.uuid(device, uuid.data(), static_cast<unsigned>(uuid.size() - 1));
    if (answer == kSuccess)
      out.emplace_back(device, "GPU " + std::string(uuid.data()));
    else
      lost(fmt::format("GPU number {} of {}: {}", i, count, f.say(answer)));
  }
  return out;
}

}  // namespace

Nvml::Nvml(std::unique_ptr<const Functions> functions) : functions_(std::move(functions)) {}
Nvml::Nvml(Nvml&& other) noexcept = default;
Nvml::~Nvml() {
  if (functions_ && functions_->shutdown) functions_->shutdown();
}

Result<Nvml> Nvml::open(const std::string& library) {
  TRY(const Library nvml, Library::open(library));
  auto f = std::make_unique<Functions>();
  TRY_(nvml.find("nvmlInit_v2", f->init));
  TRY_(nvml.find("nvmlShutdown", f->shutdown));
  TRY_(nvml.find("nvmlDeviceGetCount_v2", f->count));
  TRY_(nvml.find("nvmlDeviceGetHandleByIndex_v2", f->handle));
  TRY_(nvml.find("nvmlDeviceGetUUID", f->uuid));
  (void)nvml.find("nvmlErrorString", f->words);
  (void)nvml.find("nvmlSystemGetDriverVersion", f->version);
  (void)nvml.find("nvmlDeviceGetName", f->name);
  (void)nvml.find("nvmlDeviceGetNvLinkState", f->link_state);
  (void)nvml.find("nvmlDeviceGetNvLinkErrorCounter", f->link_errors);
  (void)nvml.find("nvmlDeviceGetTotalEnergyConsumption", f->energy);
  (void)nvml.find("nvmlDeviceGetPowerUsage", f->power);
  (void)nvml.find("nvmlDeviceGetFieldValues", f->fields);
  (void)nvml.find("nvmlDeviceGetRepairStatus", f->repairs);
  (void)nvml.find("nvmlDeviceGetSramEccErrorStatus", f->sram);
  // Version 3 was added in driver 510, with the same result structure.
  if (!nvml.find("nvmlDeviceGetComputeRunningProcesses_v3", f->processes).ok())
    (void)nvml.find("nvmlDeviceGetComputeRunningProcesses_v2", f->processes);
  // Renamed with driver 535.
  if (!nvml.find("nvmlDeviceGetCurrentClocksEventReasons", f->reasons).ok())
    (void)nvml.find("nvmlDeviceGetCurrentClocksThrottleReasons", f->reasons);
  if (const int answer = f->init(); answer != kSuccess)
    return fail(Code::unavailable, "cannot initialise NVML: " + f->say(answer));
  return Nvml(std::move(f));
}

Result<NvmlReading> Nvml::read() const {
  const Functions& f = *functions_;
  NvmlReading out;
  Query<Functions> query(f, out);
  std::array<char, kTextBytes> text = {};
  if (f.version && f.version(text.data(), static_cast<unsigned>(text.size() - 1)) == kSuccess)
    out.driver = text.data();
  bool all = true;
  TRY(const auto gpus, gpus_of(f, [&](const std::string& why) {
        query.note(why);
        all = false;
      }));
  if (all) out.holders.emplace();
  for (const auto& [device, gpu] : gpus) {
    out.counts["gpu_present"][gpu] = 1;
    text = {};
    if (f.name && f.name(device, text.data(), static_cast<unsigned>(text.size() - 1)) == kSuccess)
      out.models[gpu] = text.data();
    query.links(device, gpu);
    query.clocks(device, gpu);
    query.repairs(device, gpu);
    query.power(device, gpu);
    query.holders(device, gpu);
  }
  return out;
}

Result<std::map<std::string, uint64_t>> Nvml::energy() const {
  const Functions& f = *functions_;
  if (!f.energy) return fail(Code::unavailable, "this driver does not report the energy that GPUs consume");
  std::string missing;
  TRY(const auto gpus, gpus_of(f, [&](const std::string& why) { missing = why; }));
  if (!missing.empty()) return fail(Code::unavailable, missing);
  std::map<std::string, uint64_t> out;
  for (const auto& [device, gpu] : gpus) {
    unsigned long long energy = 0;
    if (const int answer = f.energy(device, &energy); answer != kSuccess)
      return fail(Code::unavailable, gpu + ", energy: " + f.say(answer));
    out[gpu] = energy;
  }
  return out;
}

}  // namespace muster::kernels
