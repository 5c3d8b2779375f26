// Acceptance kernels: small programs that load one part of a node, verify every byte or number they produce,
// and report what they measured. muster-accept (kernels/main.cc) runs one per process and prints its
// Measurement as JSON.
//
// A kernel measures and does not judge: expected values are in the acceptance profile
// (controller/report/verdict.h). A kernel decides only whether the data was right: wrong data is `corrupt`,
// whatever the speed. Every kernel has a time budget, and meets it even on a slow (emulated) processor by
// sizing its work from a short probe. Thread safety: each function blocks its caller and joins every thread
// that it started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster::kernels {

enum class Outcome {
  measured,     // ran, every result was right
  corrupt,      // ran, and data was wrong: `faulty_parts` names the part, `error` the first mismatch
  failed,       // ran, and the part under test returned an error or hung
  refused,      // a precondition does not hold (wrong mount); nothing was written
  unavailable,  // could not run (no peer, program missing, not enough memory)
};
std::string_view to_string(Outcome outcome);

struct Metric {
  double value = 0;
  std::string unit = {};
};

struct Measurement {
  std::string check = {};  // "dgemm", "stream", "link", "fio", "checksum"
  Outcome outcome = Outcome::measured;
  std::string error = {};                      // for people; empty when measured
  std::vector<std::string> faulty_parts = {};  // "cpu 3", "direction 10.20.0.11 -> 10.20.0.12"
  std::map<std::string, Metric> metrics = {};  // by the names that profiles use
  // Several measurements of the same kind, one per part: [{"subject", "like", "result"}]. Null: a single
  // measurement.
  Json parts = nullptr;
  Json detail = Json::object();  // parameters, time series, per-part figures: evidence for the report
};
// {"check","version","outcome","error","blame","metrics":{name:{"value","unit"}},"detail"}
Json to_json(const Measurement& measurement);
// Process exit status: 0 measured, 1 corrupt or failed, 3 refused or unavailable (2 is bad usage).
int exit_status(Outcome outcome);

// Flips one bit of the data that a kernel is about to verify, to show that the kernel detects it (tests,
// `--inject-flip`).
struct Flip {
  size_t part = 0;   // the core, stream or direction whose data is changed
  size_t index = 0;  // the element or byte, modulo their number
  unsigned bit = 0;
};

// --- tools.cc: shared by the kernels
double seconds_now();                       // monotonic
std::vector<int> usable_cpus();             // this process's affinity mask
void pin_to_cpu(int cpu);                   // best effort
double median(std::vector<double> values);  // 0 for none
double rounded(double value);               // four significant digits: more would be noise
double percentile(std::vector<double> values, double p);
// The smaller of /proc/meminfo's MemAvailable and what this process's cgroups leave free, in bytes.
uint64_t available_memory(const Files& files = Files());
// Pseudo-random test data: the same seed gives the same sequence on every machine.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};
void fill_random(SplitMix& random, char* out, size_t bytes);

}  // namespace muster::kernels
