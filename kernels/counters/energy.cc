// Reference:   Documentation/power/powercap/powercap.rst and Documentation/hwmon/acpi_power_meter.rst of the
//              kernel.
// Limits:      RAPL is readable by root alone since Linux 5.10 (CVE-2020-8694). A power meter's reading is
//              an average over its own interval: steps must be much longer than that. A power meter is used
//              only if it is the only one: what each of several meters covers is not documented.
#include "kernels/counters/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/words.h"

namespace muster::kernels {
namespace {

constexpr char kHwmon[] = "/sys/class/hwmon", kPowercap[] = "/sys/class/powercap";

constexpr Words<EnergySource, 4> kSources = {{{EnergySource::machine, "whole machine by its power meter"},
                                              {EnergySource::processors, "processor packages"},
                                              {EnergySource::memory, "memory modules"},
                                              {EnergySource::gpus, "GPUs"}}};

std::string_view name_of(EnergySource source) { return word_of(kSources, source); }

Result<uint64_t> whole_number_in(const Files& files, const std::string& path) {
  TRY(std::string text, files.read(path));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos)
    return fail(Code::failed, path + " is not a number");
  return std::strtoull(text.c_str(), nullptr, 10);
}

double seconds_on_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EnergyCounter::EnergyCounter(const Files& files, const std::string& nvml) : files_(files) {
  find_meter();
  find_domains();
  find_gpus(nvml);
}

void EnergyCounter::drop(EnergySource source, const std::string& why) {
  of(source).reset();
  std::erase_if(domains_, [&](const Domain& d) { return d.source == source; });
  absent_.push_back(fmt::format("{}: {}", name_of(source), why));
}

void EnergyCounter::find_meter() {
  std::vector<std::string> meters;
  for (const auto& entry : files_.list(kHwmon))
    // Older kernels have these files in the device's folder.
    for (const char* below : {"", "/device"}) {
      const std::string folder = fmt::format("{}/{}{}", kHwmon, entry, below);
      if (files_.read_line(folder + "/name") != "power_meter" || !files_.exists(folder + "/power1_average"))
        continue;
      meters.push_back(folder);
      break;
    }
  if (meters.size() != 1)
    return drop(EnergySource::machine,
                meters.empty()
                    ? "no power meter"
                    : fmt::format("{} power meters, and what each of them covers is unknown", meters.size()));
  const auto watts = whole_number_in(files_, meters[0] + "/power1_average");
  if (!watts.ok()) return drop(EnergySource::machine, watts.error().message);
  meter_ = meters[0];
  of(EnergySource::machine) = 0;
  // Milliseconds; not every meter reports it.
  const auto interval = whole_number_in(files_, meter_ + "/power1_average_interval");
  meter_seconds_ = interval.ok() ? static_cast<double>(*interval) / 1000 : 0;
}

void EnergyCounter::find_domains() {
  std::map<EnergySource, std::string> broken;
  for (const auto& entry : files_.list(kPowercap)) {
    // intel-rapl:0 is a package, intel-rapl:0:1 a part of it; intel-rapl-mmio:0 is the same package again.
    if (!entry.starts_with("intel-rapl:")) continue;
    const std::string folder = fmt::format("{}/{}", kPowercap, entry),
                      name = files_.read_line(folder + "/name");
    const bool package = name.starts_with("package-");
    if (!package && name != "dram")
      continue;  // packages include their cores; what psys covers differs between machines
    const EnergySource source = package ? EnergySource::processors : EnergySource::memory;
    const auto energy = whole_number_in(files_, folder + "/energy_uj"),
               range = whole_number_in(files_, folder + "/max_energy_range_uj");
    if (!energy.ok() || !range.ok()) {
      broken[source] = energy.ok() ? range.error().message : energy.error().message;
      continue;
    }
    domains_.push_back({folder + "/energy_uj", source, *energy, *range});
    of(source) = 0;
  }
  // If a package is missing, the sum is wrong; without the processors, the energy of memory is meaningless.
  for (const auto& [source, why] : broken) drop(source, why);
  if (of(EnergySource::processors)) return;
  if (!broken.count(EnergySource::processors))
    drop(EnergySource::processors, "the kernel offers no RAPL domain");
  if (of(EnergySource::memory))
    drop(EnergySource::memory, "the energy of the processor packages cannot be read");
}

void EnergyCounter::find_gpus(const std::string& library) {
  if (library.empty()) return;
  auto nvml = Nvml::open(library);
  if (!nvml.ok()) return drop(EnergySource::gpus, nvml.error().message);
  const auto energy = nvml->energy();
  if (!energy.ok()) return drop(EnergySource::gpus, energy.error().message);
  if (energy->empty()) return drop(EnergySource::gpus, "the driver reports no GPU");
  gpus_ = *energy;
  nvml_.emplace(std::move(nvml).value());
  of(EnergySource::gpus) = 0;
}

void EnergyCounter::sample(double now) {
  const double passed = last_sample_ ? std::max(0.0, now - *last_sample_) : 0;
  last_sample_ = now;
  sample_meter(passed);
  sample_domains();
  sample_gpus();
}

void EnergyCounter::sample_meter(double seconds) {
  if (!of(EnergySource::machine)) return;
  const auto microwatts = whole_number_in(files_, meter_ + "/power1_average");
  if (!microwatts.ok()) return drop(EnergySource::machine, microwatts.error().message);
  const double watts = static_cast<double>(*microwatts) / 1e6;
  *of(EnergySource::machine) += seconds * (watts + watts_) / 2;
  watts_ = watts;
}

void EnergyCounter::sample_domains() {
  for (const EnergySource source : {EnergySource::processors, EnergySource::memory}) {
    std::string broken;
    double joules = 0;
    for (auto& domain : domains_) {
      if (domain.source != source) continue;
      const auto energy = whole_number_in(files_, domain.path);
      if (!energy.ok() || (*energy < domain.last && domain.range < domain.last)) {
        broken = energy.ok() ? domain.path + " went backwards" : energy.error().message;
        break;
      }
      const uint64_t moved =
          *energy >= domain.last ? *energy - domain.last : domain.range - domain.last + *energy;
      joules += static_cast<double>(moved) / 1e6;
      domain.last = *energy;
    }
    if (!broken.empty())
      drop(source, broken);
    else if (of(source))
      *of(source) += joules;
  }
}

void EnergyCounter::sample_gpus() {
  if (!of(EnergySource::gpus)) return;
  const auto energy = nvml_->energy();
  if (!energy.ok()) return drop(EnergySource::gpus, energy.error().message);
  double joules = 0;
  for (const auto& [gpu, before] : gpus_) {
    const auto found = energy->find(gpu);
    if (found == energy->end()) return drop(EnergySource::gpus, gpu + " has disappeared");
    if (found->second < before) return drop(EnergySource::gpus, gpu + ": its driver was reloaded");
    joules += static_cast<double>(found->second - before) / 1e3;
  }
  gpus_ = *energy;
  *of(EnergySource::gpus) += joules;
}

double EnergyCounter::least_seconds(EnergySource source) const {
  switch (source) {
    case EnergySource::machine:
      return 5 * std::max(meter_seconds_, kEnergyPeriod);
    case EnergySource::processors:
    case EnergySource::memory:
      return 0.05;  // counted about every millisecond
    case EnergySource::gpus:
      return 1;  // about every tenth of a second
  }
  return 0;
}

EnergyMeter::EnergyMeter(const Files& files, const std::string& nvml) : counter_(files, nvml) {
  counter_.sample(seconds_on_clock());
  thread_ = std::thread([this] { run(); });
}
EnergyMeter::~EnergyMeter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void EnergyMeter::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(kEnergyPeriod), [this] { return stop_; }))
    counter_.sample(seconds_on_clock());
}

EnergyMeter::Moment EnergyMeter::now() {
  const std::lock_guard lock(mutex_);
  const double seconds = seconds_on_clock();
  counter_.sample(seconds);
  return {seconds, counter_.joules()};
}

Joules EnergyMeter::since(const Moment& start) {
  const Moment end = now();
  Joules out = {};
  const std::lock_guard lock(mutex_);
  for (const EnergySource source : kEnergySources) {
    const auto i = static_cast<size_t>(source);
    if (start.joules[i] && end.joules[i] && end.seconds - start.seconds >= counter_.least_seconds(source))
      out[i] = *end.joules[i] - *start.joules[i];
  }
  return out;
}

std::vector<std::string> EnergyMeter::absent() {
  const std::lock_guard lock(mutex_);
  return counter_.absent();
}

std::optional<GroupEnergy> energy_of_group(const std::vector<Joules>& nodes) {
  GroupEnergy out;
  for (const EnergySource source : kEnergySources) {
    const auto i = static_cast<size_t>(source);
    // A meter that did not advance has measured nothing.
    const bool all = !nodes.empty() && std::all_of(nodes.begin(), nodes.end(),
                                                   [i](const Joules& j) { return j[i].value_or(0) > 0; });
    if (!all && source == EnergySource::processors)
      return {};  // processors do the work: without them the other parts' energy means little
    if (!all) continue;
    for (const auto& node : nodes) out.joules += *node[i];
    out.covers += (out.covers.empty() ? "" : ", ") + std::string(name_of(source));
    if (source == EnergySource::machine) break;  // the others are in it
  }
  return out;
}

std::optional<GroupEnergy> energy_of_groups(const std::vector<std::optional<GroupEnergy>>& groups) {
  std::map<std::string, std::vector<double>> by_kind;
  for (const auto& group : groups)
    if (group) by_kind[group->covers].push_back(group->joules);
  auto most = by_kind.end();
  for (auto it = by_kind.begin(); it != by_kind.end(); ++it)
    if (most == by_kind.end() || it->second.size() > most->second.size()) most = it;
  if (most == by_kind.end()) return {};
  auto& joules = most->second;
  std::sort(joules.begin(), joules.end());
  return GroupEnergy{joules[joules.size() / 2], most->first};
}

}  // namespace muster::kernels
