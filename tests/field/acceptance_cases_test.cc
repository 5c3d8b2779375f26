// What healthy machines reach: floors derived from what a machine is.
#include <fmt/format.h>

#include "controller/report/expected.h"
#include "kernels/kernels.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/report/sample.h"

namespace muster::tests {

using namespace kernels;
using report_sample::measured;
using report_sample::step;

namespace {

// The verdict on one value with the floor of the profile `standard`.
Verdict judged(const std::string& metric, double value, const Json& detail) {
  const bool memory = metric == "triad_mbps";
  const Json expect = Json::parse(memory ? R"({"triad_mbps":{"derive":"dimm_bandwidth","ratio":0.4}})"
                                         : R"({"gflops":{"derive":"cpu_peak","ratio":0.4}})");
  const std::string check = memory ? "stream" : "dgemm";
  Json result = measured(check, {{metric, {value, memory ? "MB/s" : "GFLOP/s"}}});
  result["detail"] = detail;
  const auto judged = judge_measurements({step("n1", check, "", "", expect, result)}).at("n1");
  for (const auto& one : judged)
    if (one.name == check + "/" + metric) return one.verdict;
  FAIL("no verdict on " << metric);
  return Verdict::fail;
}

struct Processor {
  std::string vendor, name;
  int family = 6, model = 85;
};
Machine machine_with(const Processor& processor) {
  const TempDir root;
  const Files files(root.path(""));
  REQUIRE(files
              .write("/proc/cpuinfo",
                     fmt::format("processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\n"
                                 "model name\t: {}\n",
                                 processor.vendor, processor.family, processor.model, processor.name))
              .ok());
  return look_at_machine(files);
}
// What is judged of a run on this processor, with its own base clock.
Json detail_on(const Processor& processor, int cores, int threads, double mhz) {
  const Pace pace = sustained_pace("avx512f", machine_with(processor));
  return {{"variant", "avx512f"},
          {"physical_cores", cores},
          {"threads", threads},
          {"cpu_mhz", mhz},
          {"flops_per_cycle", pace.flops_per_cycle},
          {"clock_share", pace.clock_share}};
}

void put_module(const Files& files, int number, int mt_s, const std::string& bank, bool persistent = false) {
  std::string table(0x56, '\0');
  table[0] = 17, table[1] = 0x54;
  table.resize(0x54);
  table[0x0c] = '\xff', table[0x0d] = '\x7f';  // the size is in a longer field
  table[0x11] = 1;
  table[0x12] = persistent ? 0x1f : 0x1a;
  table[0x15] = table[0x20] = static_cast<char>(mt_s & 0xff);
  table[0x16] = table[0x21] = static_cast<char>(mt_s >> 8);
  table[0x28] = persistent ? 7 : 3;
  table += bank + '\0' + '\0';
  REQUIRE(files.write("/sys/firmware/dmi/entries/17-" + std::to_string(number) + "/raw", table).ok());
}

}  // namespace

FIELD_CASE("dgemm-isolcpus") {
  const Json detail = {{"variant", "avx2+fma"},
                       {"physical_cores", 64},
                       {"threads", 2},
                       {"cpu_mhz", 2400},
                       {"flops_per_cycle", 16}};
  CHECK(judged("gflops", 60, detail) == Verdict::pass);
  CHECK(judged("gflops", 25, detail) == Verdict::degraded);  // of the two that it had
  // The program counts the cores of the processors it may use, not those of the machine.
  DgemmOptions options;
  options.seconds = 0.01;
  options.threads = 1;
  options.n = 64;
  const Measurement one = run_dgemm(options);
  REQUIRE(one.detail["threads"] == 1);
  CHECK(one.detail["physical_cores"] <= 1);  // 0: this machine does not tell
}

FIELD_CASE("dgemm-avx512-units") {
  const Processor genoa{"AuthenticAMD", "AMD EPYC 9654 96-Core Processor", 0x19, 17};
  const Processor silver{"GenuineIntel", "Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz", 6, 85};
  const Processor platinum{"GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+", 6, 143};
  CHECK(judged("gflops", 7500, detail_on(genoa, 192, 384, 3707)) == Verdict::pass);
  CHECK(judged("gflops", 4000, detail_on(genoa, 192, 384, 3707)) == Verdict::degraded);
  CHECK(judged("gflops", 230, detail_on(silver, 20, 40, 2200)) == Verdict::pass);
  CHECK(judged("gflops", 100, detail_on(silver, 20, 40, 2200)) == Verdict::degraded);
  // Two units, and known for it: no lower than before.
  CHECK(judged("gflops", 2800, detail_on(platinum, 112, 224, 2000)) == Verdict::degraded);
  CHECK(judged("gflops", 2900, detail_on(platinum, 112, 224, 2000)) == Verdict::pass);
  // Results of a program that did not know the difference.
  Json old = {{"variant", "avx512f"}, {"physical_cores", 192}, {"cpu_mhz", 3707}, {"flops_per_cycle", 32}};
  CHECK(judged("gflops", 7500, old) == Verdict::pass);
  old["physical_cores"] = 20, old["cpu_mhz"] = 2200;
  CHECK(judged("gflops", 230, old) == Verdict::pass);
}

FIELD_CASE("dimm-two-per-channel") {
  const auto seen = [](int modules, int mt_s, const std::vector<std::string>& banks, int persistent = 0) {
    const TempDir root;
    const Files files(root.path(""));
    for (int n = 0; n < modules; ++n)
      put_module(files, n, mt_s, banks[static_cast<size_t>(n) % banks.size()]);
    for (int n = 0; n < persistent; ++n) put_module(files, modules + n, mt_s, banks[0], true);
    const Machine machine = look_at_machine(files);
    return Json{{"dimms", machine.dimms}, {"dimm_mt_s", machine.dimm_mt_s}, {"channels", machine.channels}};
  };
  std::vector<std::string> eight, slots{"A1", "A2", "B1", "B2"};
  for (char channel = 'A'; channel <= 'H'; ++channel) eight.push_back(std::string("P0 CHANNEL ") + channel);
  CHECK(judged("triad_mbps", 100000, seen(8, 3200, eight)) == Verdict::pass);
  CHECK(judged("triad_mbps", 100000, seen(16, 3200, eight)) == Verdict::pass);
  CHECK(judged("triad_mbps", 80000, seen(16, 3200, eight)) == Verdict::degraded);
  CHECK(judged("triad_mbps", 100000, seen(16, 3200, slots)) == Verdict::pass);
  CHECK(judged("triad_mbps", 52000, seen(16, 1333, slots)) == Verdict::pass);
  CHECK(seen(6, 2666, slots, 6)["dimms"] == 6);
  // As a program reported it that did not look for channels.
  CHECK(judged("triad_mbps", 100000, {{"dimms", 16}, {"dimm_mt_s", 3200}}) == Verdict::pass);
}

}  // namespace muster::tests
