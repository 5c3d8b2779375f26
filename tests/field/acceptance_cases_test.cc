// What a healthy machine reaches, by the shipped profile's own expectations.
#include <fmt/format.h>

#include "controller/report/expected.h"
#include "controller/report/verdict.h"
#include "kernels/common/kernels.h"
#include "kernels/cpu/cpu.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

// As in playbooks/acceptance/standard.yaml.
const Json kDgemm = Json::parse(R"({"gflops":{"min":20,"derive":"cpu_peak","ratio":0.4,"unit":"GFLOP/s"}})");
const Json kStream =
    Json::parse(R"({"triad_mbps":{"min":8000,"derive":"dimm_bandwidth","ratio":0.4,"unit":"MB/s"}})");

Verdict judged(const Json& expect, const std::string& name, const std::string& file) {
  MeasuredStep step;
  step.id = "acceptance/x";
  step.node = "n1";
  step.group = "x";
  step.status = "applied";
  step.expect = expect;
  step.result = parse_json(field_input(name, file)).value_or(Json());
  REQUIRE(step.result.is_object());
  Verdict worst = Verdict::pass;
  const auto all = judge_measurements({step});
  REQUIRE(all.count("n1") == 1);
  REQUIRE_FALSE(all.at("n1").empty());
  for (const auto& check : all.at("n1")) {
    INFO(check.reason << "; " << check.derivation);
    if (check.verdict != Verdict::pass) worst = check.verdict;
  }
  return worst;
}

// /sys of a machine with so many cores, one thread each.
class Sysfs {
 public:
  explicit Sysfs(int cores) {
    for (int cpu = 0; cpu < cores; ++cpu) {
      const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
      write(topology + "core_id", std::to_string(cpu));
      write(topology + "physical_package_id", "0");
    }
  }
  Files files() const { return Files(dir_.path("")); }
  void write(const std::string& path, const std::string& text) const {
    REQUIRE(files().write(path, text).ok());
  }
  void processor(const std::string& vendor, int family, int model, const std::string& name) const {
    write("/proc/cpuinfo",
          fmt::format("processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: {}\n",
                      vendor, family, model, name));
  }
  // SMBIOS type 17 with a fixed part of this length, and its texts.
  void memory(int number, const std::string& bank, unsigned char type = 0x1a, unsigned char technology = 3,
              unsigned char size = 0x40, size_t length = 0x54) const {
    std::string table(length, '\0');
    const auto set = [&](size_t at, unsigned value) {
      if (at < length) table[at] = static_cast<char>(value);
    };
    set(0, 17), set(1, static_cast<unsigned>(length)), set(0x0d, size), set(0x10, 1), set(0x11, 2),
        set(0x12, type);
    set(0x15, 0x80), set(0x16, 0x0c), set(0x20, 0x80), set(0x21, 0x0c);  // 3200
    set(0x28, technology);
    table += "DIMM 0";
    table += '\0';
    table += bank;
    table += std::string(2, '\0');
    write(fmt::format("/sys/firmware/dmi/entries/17-{}/raw", number), table);
  }

 private:
  TempDir dir_;
};

FIELD_CASE("stream-cache-resident") {
  CHECK(judged(kStream, "stream-cache-resident", "result.json") == Verdict::skipped);
}

FIELD_CASE("dgemm-isolcpus") {
  CHECK(judged(kDgemm, "dgemm-isolcpus", "result.json") == Verdict::pass);
  // What the kernel measured with is what it says, not what else the machine has.
  const Sysfs sysfs(64);
  const auto cpus = kernels::usable_cpus();
  const auto measured = kernels::run_dgemm({.seconds = 0.001, .n = 5, .threads = 1, .files = sysfs.files()});
  CHECK(measured.detail["physical_cores"] == 1);
  CHECK(measured.detail["machine_cores"] == 64);
  REQUIRE_FALSE(cpus.empty());
}

FIELD_CASE("stream-isolcpus") {
  CHECK(judged(kStream, "stream-isolcpus", "result.json") == Verdict::pass);
  const Sysfs sysfs(64);
  const auto measured =
      kernels::run_stream({.seconds = 0.01, .max_bytes = 1 << 20, .threads = 1, .files = sysfs.files()});
  CHECK(measured.detail["physical_cores"] == 1);
  CHECK(measured.detail["machine_cores"] == 64);
}

FIELD_CASE("dgemm-avx512-units") {
  CHECK(judged(kDgemm, "dgemm-avx512-units", "genoa.json") == Verdict::pass);
  CHECK(judged(kDgemm, "dgemm-avx512-units", "silver.json") == Verdict::pass);
  CHECK(judged(kDgemm, "dgemm-avx512-units", "platinum.json") == Verdict::degraded);
}

FIELD_CASE("dgemm-avx512-units: by the processor's model") {
  struct Row {
    const char* vendor;
    int family, model;
    const char* name;
    int per_cycle;
  };
  for (const auto& row : {Row{"GenuineIntel", 6, 85, "Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz", 16},
                          Row{"GenuineIntel", 6, 85, "Intel(R) Xeon(R) Gold 5120 CPU @ 2.20GHz", 16},
                          Row{"GenuineIntel", 6, 85, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", 32},
                          Row{"GenuineIntel", 6, 85, "Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz", 32},
                          Row{"GenuineIntel", 6, 106, "Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz", 32},
                          Row{"GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8480+", 32},
                          Row{"AuthenticAMD", 25, 17, "AMD EPYC 9654 96-Core Processor", 16},
                          Row{"AuthenticAMD", 26, 2, "AMD EPYC 9755 128-Core Processor", 32},
                          Row{"SomeoneElse", 1, 1, "Another", 16}}) {
    INFO(row.name);
    const Sysfs sysfs(1);
    sysfs.processor(row.vendor, row.family, row.model, row.name);
    const auto machine = kernels::look_at_machine(sysfs.files());
    CHECK(kernels::flops_per_cycle("avx512f", machine) == row.per_cycle);
    CHECK(kernels::flops_per_cycle("avx2+fma", machine) == 16);
  }
}

FIELD_CASE("dimm-two-per-channel") {
  for (const char* file : {"one.json", "two.json", "four.json", "three.json"}) {
    INFO(file);
    CHECK(judged(kStream, "dimm-two-per-channel", file) == Verdict::pass);
  }
  CHECK(judged(kStream, "dimm-two-per-channel", "slow.json") == Verdict::degraded);
}

FIELD_CASE("dimm-two-per-channel: channels as locators name them, and what is no memory of the system") {
  const Sysfs sysfs(1);
  for (int n = 0; n < 8; ++n) {
    sysfs.memory(2 * n, fmt::format("P0 CHANNEL {}", static_cast<char>('A' + n)));
    sysfs.memory(2 * n + 1, fmt::format("P0 CHANNEL {}", static_cast<char>('A' + n)));
  }
  const auto plain = kernels::look_at_machine(sysfs.files());
  CHECK(plain.dimms == 16);
  CHECK(plain.channels == 8);
  sysfs.memory(16, "P0 CHANNEL A", 0x1f, 7);  // persistent
  sysfs.memory(17, "P0 CHANNEL B", 0x1a, 4);  // DRAM kept by a battery
  sysfs.memory(18, "System flash", 0x09, 2);  // of the firmware
  const auto more = kernels::look_at_machine(sysfs.files());
  CHECK(more.dimms == 16);
  CHECK(more.channels == 8);
  sysfs.memory(19, "Not Specified");  // one that does not name its channel
  CHECK(kernels::look_at_machine(sysfs.files()).dimms == 17);
  CHECK(kernels::look_at_machine(sysfs.files()).channels == 0);
  const Sysfs other(1);
  for (int n = 0; n < 4; ++n) other.memory(n, fmt::format("P{}_Node{}_Channel0_Dimm{}", n / 2, n / 2, n % 2));
  CHECK(kernels::look_at_machine(other.files()).channels == 2);
}

FIELD_CASE("dimm-empty-slots") {
  const Sysfs sysfs(1);
  sysfs.memory(0, "P0 CHANNEL A");
  sysfs.memory(1, "P0 CHANNEL B", 2, 2, 0);
  const auto machine = kernels::look_at_machine(sysfs.files());
  CHECK(machine.dimms == 1);
  CHECK(machine.channels == 1);
}

FIELD_CASE("dimm-short-table") {
  const Sysfs sysfs(1);
  sysfs.memory(0, "BANK 0 of a machine of 2010", 0x18, 3, 0x40, 0x1c);
  const auto machine = kernels::look_at_machine(sysfs.files());
  CHECK(machine.dimms == 1);
  CHECK(machine.dimm_mt_s == 3200);  // its maximum: the configured speed came with SMBIOS 2.7
}

}  // namespace
}  // namespace muster::tests
