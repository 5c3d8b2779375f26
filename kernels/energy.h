// What a node consumed between two moments, by the meters it has.
//
//   machine      its own power meter as firmware reports it in band (ACPI power meter: hwmon "power_meter"),
//                integrated over samples
//   processors   processor packages (RAPL, /sys/class/powercap/intel-rapl:*, AMD's too)
//   memory       memory modules, where RAPL counts them apart from the package ("dram")
//   gpus         GPUs (NVML's total energy, kernels/nvml.h)
// Each is a sum over all parts of its kind, or is not there at all: what cannot be read is absent with its
// reason, never 0. machine contains the others; the others do not contain each other.
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

#include "base/os.h"
#include "kernels/nvml.h"

namespace muster::kernels {

enum class EnergySource { machine, processors, memory, gpus };
constexpr EnergySource kEnergySources[] = {EnergySource::machine, EnergySource::processors,
                                           EnergySource::memory, EnergySource::gpus};
constexpr size_t kEnergySourceCount = std::size(kEnergySources);
constexpr double kEnergyPeriod = 1;  // seconds between two samples

// Joules by source: since counting began, or between two moments.
using Joules = std::array<std::optional<double>, kEnergySourceCount>;

// Counts whenever the caller samples. Thread: one.
class EnergyCounter {
 public:
  // `nvml`: as Nvml::open() takes it; empty: GPUs are not read.
  explicit EnergyCounter(const Files& files, const std::string& nvml = kNvmlLibrary);
  // Adds what was consumed since the sample before; `now` in seconds, on a clock that does not go backwards.
  // A source that cannot be read any more is gone for good: what it missed is unknown.
  void sample(double now);
  const Joules& joules() const { return joules_; }
  // Shortest time over which a source is meaningful, given how rarely it is updated.
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

// Counts in a thread of its own from construction to destruction, every kEnergyPeriod. Thread: any.
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
  // What was consumed since then; sources that need a longer time are left out.
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

// Of several nodes: `covers` names what is counted on each of them.
struct GroupEnergy {
  double joules = 0;
  std::string covers = {};
};
// The sum over all of them, by what every one of them can read: the whole machine, else its processors and
// what other parts there are. Nothing when one of them reads neither.
std::optional<GroupEnergy> energy_of_group(const std::vector<Joules>& nodes);
// Groups side by side: the median of those that count the same; of different kinds, what most groups count
// (the first of equals).
std::optional<GroupEnergy> energy_of_groups(const std::vector<std::optional<GroupEnergy>>& groups);

}  // namespace muster::kernels
