// The energy that a node consumed between two points in time, from the meters that it has.
//
//   machine      its own power meter as firmware reports it in band (ACPI power meter: hwmon "power_meter"),
//                integrated over samples
//   processors   processor packages (RAPL, /sys/class/powercap/intel-rapl:*, AMD's too)
//   memory       memory modules, where RAPL counts them apart from the package ("dram")
//   gpus         GPUs (NVML's total energy, kernels/counters/nvml.h)
// Each value is the sum over all parts of its kind; a source that cannot be read is absent, with the reason,
// never 0. `machine` includes the other sources; those do not include each other.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/counters/nvml.h"
#include "sys/os.h"

namespace muster::kernels {

enum class EnergySource { machine, processors, memory, gpus };
constexpr EnergySource kEnergySources[] = {EnergySource::machine, EnergySource::processors,
                                           EnergySource::memory, EnergySource::gpus};
constexpr size_t kEnergySourceCount = std::size(kEnergySources);
constexpr double kEnergyPeriod = 1;  // seconds between two samples

// Joules by source: since counting began, or between two points in time.
using Joules = std::array<std::optional<double>, kEnergySourceCount>;

// Adds up energy each time the caller takes a sample. Used by one thread.
class EnergyCounter {
 public:
  // `nvml`: as Nvml::open() takes it; empty: GPUs are not read.
  explicit EnergyCounter(const Files& files, const std::string& nvml = kNvmlLibrary);
  // Adds what was consumed since the previous sample; `now` in seconds, on a monotonic clock. A source that
  // can no longer be read is dropped for good: what it consumed in the meantime would be unknown.
  void sample(double now);
  const Joules& joules() const { return joules_; }
  // The shortest interval over which the source's value is meaningful, given how rarely it is updated.
  double least_seconds(EnergySource source) const;
  const std::vector<std::string>& absent() const { return absent_; }  // "machine: no power meter"

 private:
  struct Domain {
    std::string path = {};
    EnergySource source = EnergySource::processors;
    uint64_t last = 0, range = 0;  // microjoules; counts from 0 again after `range`
  };
  void find_meter();
  void find_domains();
  void find_gpus(const std::string& library);
  void sample_meter(double seconds);
  void sample_domains();
  void sample_gpus();
  void drop(EnergySource source, const std::string& why);
  std::optional<double>& of(EnergySource source) { return joules_[static_cast<size_t>(source)]; }

  Files files_;
  Joules joules_ = {};
  std::vector<std::string> absent_ = {};
  std::optional<double> last_sample_ = {};
  std::string meter_ = {};  // folder
  double watts_ = 0, meter_seconds_ = 0;
  std::vector<Domain> domains_ = {};
  std::optional<Nvml> nvml_ = {};
  std::map<std::string, uint64_t> gpus_ = {};
};

// Takes a sample every kEnergyPeriod in a background thread, until destruction. Methods: any thread.
class EnergyMeter {
 public:
  explicit EnergyMeter(const Files& files, const std::string& nvml = kNvmlLibrary);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  struct Moment {
    double seconds = 0;
    Joules joules = {};
  };
  Moment now();
  // The energy consumed since `start`; sources that need a longer interval are left out.
  Joules since(const Moment& start);
  std::vector<std::string> absent();

 private:
  void run();
  std::mutex mutex_ = {};
  std::condition_variable wake_ = {};
  bool stop_ = false;
  EnergyCounter counter_;
  std::thread thread_ = {};
};

// The energy of several nodes; `covers` names the sources that are counted on each of them.
struct GroupEnergy {
  double joules = 0;
  std::string covers = {};
};
// Returns the sum over all nodes, from sources that every node can read: `machine`, else `processors` and any
// further parts that all nodes can read. Nothing if some node can read neither.
std::optional<GroupEnergy> energy_of_group(const std::vector<Joules>& nodes);
// Returns the median energy of groups that ran at the same time. Only groups with the same `covers` are
// comparable: the most common one is used (on a tie the first).
std::optional<GroupEnergy> energy_of_groups(const std::vector<std::optional<GroupEnergy>>& groups);

}  // namespace muster::kernels
