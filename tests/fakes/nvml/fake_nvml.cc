// A libnvidia-ml.so.1 of made-up GPUs, for tests. No hardware is behind it; its driver's version says so.
//
// Its state is the file that MUSTER_FAKE_NVML names, read again at every call, so that a test moves a counter
// by writing it. One word after the other, separated by blanks; what is not named is 0, and a link that is
// not named is not there:
//   gpus N                     number of GPUs; their UUIDs are GPU-fake-0 ...
//   name G NAME, uuid G UUID   what GPU G is called instead; _ stands for a blank
//   link G L 0|1               GPU G has link L, and it is down or up
//   errors G L C N             error counter C (0 replay, 1 recovery, 2 CRC of flits, 3 CRC of data) of that
//                              link
//   reasons G BITS             why the clocks are low
//   field G F N                field F; fields that are not named are not supported
//   linkfield G L F N          field F of that link
//   repair G BITS, sram G 0|1  1 a channel, 2 a TPC is to be repaired; SRAM has too many errors
//   energy G N, power G N      millijoules, milliwatts
//   process G PID BYTES        process PID computes on GPU G; all ones: how much it holds is unknown
//   lost G                     GPU G answers nothing but its handle's error
//   fails FUNCTION CODE        that function returns CODE
// With OLD_DRIVER it lacks what drivers before 535 lack, and error counters besides.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

enum : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kGpuIsLost = 15
};
constexpr int kMostGpus = 16;
constexpr unsigned kFirstLinkField = 201, kLastLinkField = 222;  // of NVLink 5; the scope is the link
bool started = false;

struct State {
  std::map<std::string, unsigned long long> values = {};  // "link 0 3" -> 1
  std::map<std::string, std::string> texts = {};          // "name 0" -> "NVIDIA H200"
  const unsigned long long* find(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? nullptr : &found->second;
  }
};

State parsed(const std::string& text) {
  static const std::map<std::string, int> kKeys = {
      {"gpus", 0},      {"link", 2},    {"errors", 3}, {"reasons", 1}, {"field", 2},
      {"energy", 1},    {"process", 2}, {"power", 1},  {"lost", 1},    {"fails", 1},
      {"linkfield", 3}, {"repair", 1},  {"sram", 1},   {"name", 1},    {"uuid", 1}};
  State out;
  std::istringstream in(text);
  for (std::string word, part; in >> word;) {
    const auto key = kKeys.find(word);
    if (key == kKeys.end()) std::abort();  // a test that says something else would prove nothing
    for (int i = 0; i < key->second && in >> part; ++i) word += " " + part;
    if (key->first == "name" || key->first == "uuid") {
      in >> part;
      for (char& c : part) c = c == '_' ? ' ' : c;
      out.texts[word] = part;
      continue;
    }
    unsigned long long value = 1;
    if (key->first != "lost") in >> value;
    out.values[word] = value;
  }
  return out;
}

// Parsed again only where the text is another one: a machine of eight GPUs asks a thousand times.
const State& read_state() {
  static std::string text;
  static State state;
  const char* path = std::getenv("MUSTER_FAKE_NVML");
  std::ifstream in(path ? path : "");
  std::string now{std::istreambuf_iterator<char>(in), {}};
  if (now != text) state = parsed(now), text = std::move(now);
  return state;
}

// A handle is the address of one of these.
char gpus[kMostGpus];
std::string number_of(const void* device) { return std::to_string(static_cast<const char*>(device) - gpus); }

// What the test said of `key`, unless the function fails or the GPU is lost.
int answer(const char* function, const void* device, const std::string& key, unsigned long long& value,
           int missing) {
  const State& state = read_state();
  if (!started) return kUninitialized;
  if (const auto* code = state.find(std::string("fails ") + function)) return static_cast<int>(*code);
  if (state.find("lost " + number_of(device))) return kGpuIsLost;
  const auto* found = state.find(key);
  if (!found) return missing;
  value = *found;
  return kSuccess;
}

int say(char* text, unsigned length, const std::string& what) {
  if (what.size() >= length) return kInvalidArgument;
  std::memcpy(text, what.c_str(), what.size() + 1);
  return kSuccess;
}

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, answer;
  unsigned long long value;
};

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API int nvmlInit_v2() {
  const State& state = read_state();
  if (const auto* code = state.find("fails nvmlInit_v2")) return static_cast<int>(*code);
  started = true;
  return kSuccess;
}
API int nvmlShutdown() {
  started = false;
  return kSuccess;
}
API const char* nvmlErrorString(int code) {
  return code == kDriverNotLoaded ? "Driver Not Loaded"
         : code == kGpuIsLost     ? "GPU is lost"
                                  : "Unknown Error";
}
API int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return say(text, length, "0.0 (fake, no hardware)");
}
API int nvmlDeviceGetCount_v2(unsigned* count) {
  const State& state = read_state();
  if (const auto* code = state.find("fails nvmlDeviceGetCount_v2")) return static_cast<int>(*code);
  const auto* n = state.find("gpus");
  *count = n ? static_cast<unsigned>(*n) : 0;
  return started ? kSuccess : kUninitialized;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= kMostGpus) return kInvalidArgument;
  *device = &gpus[index];
  unsigned long long ignored = 0;
  return answer("nvmlDeviceGetHandleByIndex_v2", *device, "", ignored, kSuccess);
}
// What the test calls it.
static std::string text_of(const char* key, void* device, const std::string& otherwise) {
  const auto& texts = read_state().texts;
  const auto found = texts.find(key + (" " + number_of(device)));
  return found == texts.end() ? otherwise : found->second;
}
API int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  return say(text, length, text_of("uuid", device, "GPU-fake-" + number_of(device)));
}
API int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  return say(text, length, text_of("name", device, "Fake GPU"));
}
API int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  unsigned long long value = 0;
  const int code = answer("nvmlDeviceGetNvLinkState", device,
                          "link " + number_of(device) + " " + std::to_string(link), value, kInvalidArgument);
  *active = static_cast<int>(value);
  return code;
}
API int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  unsigned long long value = 0;
  const int code =
      answer("nvmlDeviceGetPowerUsage", device, "power " + number_of(device), value, kNotSupported);
  *milliwatts = static_cast<unsigned>(value);
  return code;
}
#ifndef OLD_DRIVER
struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
API int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* list) {
  unsigned long long none = 0;
  const int code = answer("nvmlDeviceGetComputeRunningProcesses_v3", device, "process", none, kSuccess);
  if (code != kSuccess) return code;
  const std::string mine = "process " + number_of(device) + " ";
  std::vector<Process> all;
  for (const auto& [key, value] : read_state().values)
    if (key.starts_with(mine))
      all.push_back({static_cast<unsigned>(std::stoul(key.substr(mine.size()))), value, ~0u, ~0u});
  const bool fits = all.size() <= *count;
  for (unsigned i = 0; fits && i < all.size(); ++i) list[i] = all[i];
  *count = static_cast<unsigned>(all.size());
  return fits ? kSuccess : kInsufficientSize;
}
#endif
API int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = 0;
  return answer("nvmlDeviceGetCurrentClocksThrottleReasons", device, "reasons " + number_of(device), *reasons,
                kSuccess);
}
#ifndef OLD_DRIVER
API int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}
API int nvmlDeviceGetNvLinkErrorCounter(void* device, unsigned link, int counter,
                                        unsigned long long* errors) {
  *errors = 0;
  const std::string key =
      "errors " + number_of(device) + " " + std::to_string(link) + " " + std::to_string(counter);
  return answer("nvmlDeviceGetNvLinkErrorCounter", device, key, *errors, kSuccess);
}
API int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  return answer("nvmlDeviceGetTotalEnergyConsumption", device, "energy " + number_of(device), *millijoules,
                kNotSupported);
}
API int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(values[i].field);
    const bool of_link = values[i].field >= kFirstLinkField && values[i].field <= kLastLinkField;
    const std::string key =
        of_link ? "linkfield " + number_of(device) + " " + std::to_string(values[i].scope) + " " + number
                : "field " + number_of(device) + " " + number;
    values[i].type = 3;
    values[i].answer = answer("nvmlDeviceGetFieldValues", device, key, values[i].value, kNotSupported);
  }
  return kSuccess;
}
struct RepairStatus {
  unsigned version, channel, tpc;
};
API int nvmlDeviceGetRepairStatus(void* device, RepairStatus* status) {
  unsigned long long bits = 0;
  if (status->version != (1U << 24 | sizeof(*status))) return kInvalidArgument;
  const int code =
      answer("nvmlDeviceGetRepairStatus", device, "repair " + number_of(device), bits, kNotSupported);
  status->channel = bits & 1, status->tpc = (bits & 2) != 0;
  return code;
}
struct SramStatus {
  unsigned version;
  unsigned long long counts[11];
  unsigned exceeded;
};
API int nvmlDeviceGetSramEccErrorStatus(void* device, SramStatus* status) {
  unsigned long long exceeded = 0;
  if (status->version != (1U << 24 | sizeof(*status))) return kInvalidArgument;
  const int code =
      answer("nvmlDeviceGetSramEccErrorStatus", device, "sram " + number_of(device), exceeded, kNotSupported);
  status->exceeded = exceeded != 0;
  return code;
}
#endif
