// Energy meters below a folder that plays the machine, under a clock of our own; GPUs through the made-up
// driver.
#include "kernels/counters/energy.h"

#include <stdlib.h>

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::kernels;

namespace {

constexpr char kPackage[] = "/sys/class/powercap/intel-rapl:0", kOther[] = "/sys/class/powercap/intel-rapl:1";
constexpr char kMeter[] = "/sys/class/hwmon/hwmon2";

struct Host {
  TempDir folder = {};
  Files files() const { return Files(folder.path("")); }
  void write(const std::string& path, const std::string& text) const {
    REQUIRE(files().write(path, text + "\n").ok());
  }
  void domain(const std::string& path, const std::string& name, uint64_t microjoules,
              uint64_t range = 262143328850) const {
    write(path + "/name", name);
    write(path + "/max_energy_range_uj", std::to_string(range));
    energy(path, microjoules);
  }
  void energy(const std::string& path, uint64_t microjoules) const {
    write(path + "/energy_uj", std::to_string(microjoules));
  }
  void meter(const std::string& path, double watts) const {
    write(path + "/name", "power_meter");
    write(path + "/power1_average", std::to_string(static_cast<uint64_t>(watts * 1e6)));
  }
};

std::optional<double> of(const EnergyCounter& counter, EnergySource source) {
  return counter.joules()[static_cast<size_t>(source)];
}
std::string why(const EnergyCounter& counter) { return Json(counter.absent()).dump(); }
Joules only(EnergySource source, double joules) {
  Joules out = {};
  out[static_cast<size_t>(source)] = joules;
  return out;
}
Joules both(Joules a, EnergySource source, double joules) {
  a[static_cast<size_t>(source)] = joules;
  return a;
}

}  // namespace

TEST_CASE("energy: processor packages are added up, and a counter that begins again is followed",
          "[energy]") {
  const Host machine;
  machine.domain(kPackage, "package-0", 900, 1000);
  machine.domain(kOther, "package-1", 5'000'000);
  machine.domain(std::string(kPackage) + ":0", "core", 77);
  machine.domain(std::string(kPackage) + ":1", "dram", 100);
  machine.domain("/sys/class/powercap/intel-rapl-mmio:0", "package-0",
                 900);  // the same package by another way
  machine.domain("/sys/class/powercap/intel-rapl:2", "psys", 1);
  EnergyCounter counter(machine.files(), "");
  counter.sample(10);
  CHECK(of(counter, EnergySource::processors) == 0.0);
  machine.energy(kPackage, 950);
  machine.energy(kOther, 9'000'000);
  machine.energy(std::string(kPackage) + ":0", 5'000'000);
  machine.energy(std::string(kPackage) + ":1", 1'000'100);
  machine.energy("/sys/class/powercap/intel-rapl:2", 90'000'000);
  counter.sample(11);
  CHECK(*of(counter, EnergySource::processors) == Approx(4.00005));
  CHECK(*of(counter, EnergySource::memory) == Approx(1));
  machine.energy(kPackage, 200);  // 50 up to its range of 1000, and 200 more
  counter.sample(12);
  CHECK(*of(counter, EnergySource::processors) == Approx(4.0003));
  CHECK_FALSE(of(counter, EnergySource::machine).has_value());
  CHECK(why(counter).find("whole machine by its power meter: no power meter") != std::string::npos);
}

TEST_CASE("energy: a package that cannot be read leaves the processors out, at the start and later",
          "[energy]") {
  const Host machine;
  machine.domain(kPackage, "package-0", 0);
  machine.domain(kOther, "package-1", 0);
  machine.domain(std::string(kOther) + ":0", "dram", 0);
  REQUIRE(machine.files().remove(std::string(kOther) + "/energy_uj").ok());
  const EnergyCounter half(machine.files(), "");
  CHECK_FALSE(of(half, EnergySource::processors).has_value());
  CHECK_FALSE(of(half, EnergySource::memory).has_value());
  CHECK(why(half).find("intel-rapl:1/energy_uj") != std::string::npos);

  machine.energy(kOther, 0);
  machine.domain(std::string(kPackage) + ":0", "dram", 0);
  machine.write(std::string(kPackage) + ":0/max_energy_range_uj", "");
  const EnergyCounter without_memory(machine.files(), "");  // one of two again; the packages are whole
  CHECK(of(without_memory, EnergySource::processors).has_value());
  CHECK_FALSE(of(without_memory, EnergySource::memory).has_value());

  machine.domain(std::string(kPackage) + ":0", "dram", 0);
  EnergyCounter counter(machine.files(), "");
  counter.sample(0);
  REQUIRE(of(counter, EnergySource::processors).has_value());
  machine.write(std::string(kOther) + "/energy_uj", "-5");
  machine.energy(kPackage, 1'000'000);
  machine.energy(std::string(kOther) + ":0", 2'000'000);
  counter.sample(1);
  CHECK_FALSE(of(counter, EnergySource::processors).has_value());
  CHECK(*of(counter, EnergySource::memory) == Approx(2));
  machine.energy(kOther, 3'000'000);  // it is back: what it missed is unknown
  counter.sample(2);
  CHECK_FALSE(of(counter, EnergySource::processors).has_value());
  CHECK(why(counter).find("is not a number") != std::string::npos);
}

TEST_CASE("energy: a power meter is integrated between samples", "[energy]") {
  const Host machine;
  machine.write("/sys/class/hwmon/hwmon0/name", "coretemp");
  machine.meter(kMeter, 400);
  EnergyCounter counter(machine.files(), "");
  counter.sample(100);
  counter.sample(102);
  CHECK(*of(counter, EnergySource::machine) == Approx(800));
  machine.meter(kMeter, 600);
  counter.sample(103);  // between 400 and 600 on a straight line
  CHECK(*of(counter, EnergySource::machine) == Approx(1300));
  CHECK(counter.least_seconds(EnergySource::machine) == Approx(5));
  machine.write(std::string(kMeter) + "/power1_average_interval", "4000");
  CHECK(EnergyCounter(machine.files(), "").least_seconds(EnergySource::machine) == Approx(20));
  REQUIRE(machine.files().remove(std::string(kMeter) + "/power1_average").ok());
  counter.sample(104);
  CHECK_FALSE(of(counter, EnergySource::machine).has_value());
}

TEST_CASE("energy: a power meter of an older kernel is found, one of two is not believed", "[energy]") {
  const Host machine;
  machine.meter(std::string(kMeter) + "/device", 250);
  CHECK(of(EnergyCounter(machine.files(), ""), EnergySource::machine).has_value());
  machine.meter("/sys/class/hwmon/hwmon3", 250);
  const EnergyCounter two(machine.files(), "");
  CHECK_FALSE(of(two, EnergySource::machine).has_value());
  CHECK(why(two).find("2 power meters") != std::string::npos);
}

TEST_CASE("energy: GPUs are counted by their driver, all of them or none", "[energy]") {
  const Host machine;
  const std::string state = machine.folder.path("state"),
                    library = build_dir() + "/fake-nvml/libnvidia-ml.so.1";
  ::setenv("MUSTER_FAKE_NVML", state.c_str(), 1);
  machine.folder.write("state", "gpus 2 energy 0 1000 energy 1 500");
  EnergyCounter counter(machine.files(), library);
  counter.sample(0);
  machine.folder.write("state", "gpus 2 energy 0 4000 energy 1 1000");
  counter.sample(1);
  CHECK(*of(counter, EnergySource::gpus) == Approx(3.5));
  machine.folder.write("state", "gpus 2 energy 0 5000 energy 1 0");
  counter.sample(2);
  CHECK_FALSE(of(counter, EnergySource::gpus).has_value());
  CHECK(why(counter).find("GPU GPU-fake-1: its driver was reloaded") != std::string::npos);

  machine.folder.write("state", "gpus 2 energy 0 5000");  // the second one does not tell
  CHECK_FALSE(of(EnergyCounter(machine.files(), library), EnergySource::gpus).has_value());
  machine.folder.write("state", "gpus 2 energy 0 5000 energy 1 0 lost 1");
  CHECK_FALSE(of(EnergyCounter(machine.files(), library), EnergySource::gpus).has_value());
  ::unsetenv("MUSTER_FAKE_NVML");
  CHECK(why(EnergyCounter(machine.files(), machine.folder.path("none.so"))).find("none.so") !=
        std::string::npos);
}

TEST_CASE("energy: between two moments, and nothing of a meter that is too slow for them", "[energy]") {
  const Host machine;
  machine.domain(kPackage, "package-0", 0);
  machine.meter(kMeter, 300);
  EnergyMeter meter(machine.files(), "");
  auto start = meter.now();
  machine.energy(kPackage, 7'000'000);
  start.seconds -= 2;  // as if it had begun two seconds earlier: long for RAPL, short for the power meter
  const Joules joules = meter.since(start);
  CHECK(*joules[static_cast<size_t>(EnergySource::processors)] == Approx(7));
  CHECK_FALSE(joules[static_cast<size_t>(EnergySource::machine)].has_value());
  start.seconds -= 3;
  CHECK(meter.since(start)[static_cast<size_t>(EnergySource::machine)].has_value());
}

TEST_CASE("energy: a group counts by what all of its nodes can read", "[energy]") {
  const Joules machine = only(EnergySource::machine, 100), processors = only(EnergySource::processors, 40),
               none = {};
  const Joules all = both(both(machine, EnergySource::processors, 30), EnergySource::gpus, 50);
  const auto whole = energy_of_group({all, machine});
  REQUIRE(whole);
  CHECK(whole->joules == Approx(200));
  CHECK(whole->covers == "whole machine by its power meter");
  const auto parts = energy_of_group({all, processors});  // one cannot read its machine, nor GPUs
  REQUIRE(parts);
  CHECK(parts->joules == Approx(70));
  CHECK(parts->covers == "processor packages");
  const auto with_gpus =
      energy_of_group({both(processors, EnergySource::gpus, 5), both(processors, EnergySource::gpus, 6)});
  REQUIRE(with_gpus);
  CHECK(with_gpus->joules == Approx(91));
  CHECK(with_gpus->covers == "processor packages, GPUs");
  CHECK_FALSE(energy_of_group({all, none}));
  CHECK_FALSE(energy_of_group({machine, processors}));
  CHECK_FALSE(energy_of_group({only(EnergySource::gpus, 5)}));
  CHECK_FALSE(energy_of_group({processors, only(EnergySource::processors, 0)}));  // it stood still
  CHECK_FALSE(energy_of_group({}));
}

TEST_CASE("energy: groups side by side are compared by what most of them count", "[energy]") {
  const auto group = [](double joules, const char* covers) {
    return std::optional<GroupEnergy>({joules, covers});
  };
  const auto median = energy_of_groups(
      {group(10, "a"), group(30, "a"), group(20, "a"), group(1, "b"), group(2, "b"), std::nullopt});
  REQUIRE(median);
  CHECK(median->joules == Approx(20));
  CHECK(median->covers == "a");
  CHECK_FALSE(energy_of_groups({std::nullopt, std::nullopt}));
  CHECK_FALSE(energy_of_groups({}));
}
