// NVLink's and the GPUs' counters through a real dlopen() of a made-up driver
// (tests/fakes/nvml/fake_nvml.cc).
#include "controller/spec/reader/parse_playbook.h"
#include "kernels/counters/nvml.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "controller/report/verdict.h"
#include "controller/spec/playbook.h"
#include "kernels/counters/counters.h"
#include "kernels/counters/gpu_counters.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::kernels;

namespace {

const std::string kFake = build_dir() + "/fake-nvml/libnvidia-ml.so.1";
const std::string kOld = build_dir() + "/fake-nvml-old/libnvidia-ml.so.1";

// A machine with a driver: what the driver says is `state`, by key.
class Bench {
 public:
  explicit Bench(std::string library = kFake) : library_(std::move(library)) {
    ::setenv("MUSTER_FAKE_NVML", folder_.path("state").c_str(), 1);
  }
  ~Bench() { ::unsetenv("MUSTER_FAKE_NVML"); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::map<std::string, uint64_t> state = {};
  void gpus(int count, int links) {
    state["gpus"] = static_cast<uint64_t>(count);
    for (int g = 0; g < count; ++g)
      for (int l = 0; l < links; ++l) state["link " + std::to_string(g) + " " + std::to_string(l)] = 1;
  }
  Result<NvmlReading> request() const {
    write();
    TRY(const Nvml nvml, Nvml::open(library_));
    return nvml.read();
  }
  Measurement save() {
    return counters({.save = "/before.json", .query_nvml = [this] { return request(); }});
  }
  Measurement since(bool gpus_only = true) {
    return counters({.since = "/before.json", .query_nvml = [this] { return request(); }, .gpus = gpus_only});
  }
  void write() const {
    std::string text;
    for (const auto& [key, value] : state)
      text += key + (key.starts_with("lost ") ? "" : " " + std::to_string(value)) + "\n";
    folder_.write("state", text);
  }
  std::string state_file() const { return folder_.path("state"); }

 private:
  Measurement counters(const CountersOptions& options) {
    return run_counters(Files(folder_.path("")), options);
  }
  std::string library_;
  TempDir folder_;
};

bool has(const Measurement& m, const std::string& metric) { return m.metrics.count(metric) > 0; }
double value(const Measurement& m, const std::string& metric) {
  CAPTURE(metric);
  REQUIRE(has(m, metric));
  return m.metrics.at(metric).value;
}
std::string absent(const Measurement& m) { return m.detail.value("absent", Json::array()).dump(); }

}  // namespace

TEST_CASE("nvml: NVLink errors are reported by link, as movement between two readings", "[nvml]") {
  Bench bench;
  bench.gpus(2, 4);
  bench.state["errors 0 3 0"] = 70;  // what was before the load is no fault of now
  REQUIRE(bench.save().outcome == Outcome::measured);
  const auto still = bench.since();
  REQUIRE(still.outcome == Outcome::measured);
  for (const char* metric :
       {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit", "nvlink_crc_data", "nvlink_inactive",
        "gpus_lost", "gpu_hw_slowdown", "gpu_hw_thermal", "gpu_power_brake"})
    CHECK(value(still, metric) == 0);
  CHECK(value(still, "nvlink_active") == 4);
  CHECK(still.detail["part"] == "");
  CHECK(still.detail["nvml"]["driver"] == "0.0 (fake, no hardware)");

  bench.state["errors 0 3 0"] = 75;
  bench.state["errors 1 0 1"] = 2;
  bench.state["errors 1 2 2"] = 3;
  bench.state["errors 1 2 3"] = 4;
  const auto moved = bench.since();
  CHECK(value(moved, "nvlink_replay") == 5);
  CHECK(value(moved, "nvlink_recovery") == 2);
  CHECK(value(moved, "nvlink_crc_flit") == 3);
  CHECK(value(moved, "nvlink_crc_data") == 4);
  CHECK(moved.detail["moved"]["GPU GPU-fake-0 link 3"]["nvlink_replay"] == 5);
  CHECK(moved.detail["part"] == "GPU GPU-fake-0 link 3, GPU GPU-fake-1 link 0, GPU GPU-fake-1 link 2");
  for (const std::string metric : kNvmlLinkErrors)
    for (const auto& one : moved.detail["absent"]) {
      const std::string words = one.get<std::string>();
      CHECK_FALSE((words == metric || words.starts_with(metric + ":")));
    }
}

TEST_CASE("nvml: counters that went backwards were set to 0 by a driver that was reloaded", "[nvml]") {
  Bench bench;
  bench.gpus(1, 2);
  bench.state["errors 0 0 1"] = 100;
  bench.state["errors 0 1 1"] = 100;
  bench.state["field 0 252"] = 1000;
  REQUIRE(bench.save().outcome == Outcome::measured);
  bench.state["errors 0 0 1"] = 3;
  bench.state["errors 0 1 1"] = 0;
  bench.state["field 0 252"] = 0;
  const auto moved = bench.since();
  CHECK(value(moved, "nvlink_recovery") == 3);
  CHECK(moved.detail["part"] == "GPU GPU-fake-0 link 0");
  CHECK(value(moved, "gpu_hw_thermal") == 0);
}

TEST_CASE("nvml: a link that went down, and one that is down where its like are up", "[nvml]") {
  Bench bench;
  bench.gpus(4, 3);
  bench.state["link 2 1"] = 0;
  for (const char* bridged : {"link 0 2", "link 1 2"})
    bench.state[bridged] = 0;  // half of the GPUs do without: no fault
  REQUIRE(bench.save().outcome == Outcome::measured);
  const auto from_the_start = bench.since();
  CHECK(value(from_the_start, "nvlink_inactive") == 1);
  CHECK(from_the_start.detail["part"] == "GPU GPU-fake-2 link 1");
  CHECK(value(from_the_start, "nvlink_active") == 2);

  bench.state["link 2 1"] = 1;
  REQUIRE(bench.save().outcome == Outcome::measured);
  CHECK(value(bench.since(), "nvlink_inactive") == 0);
  bench.state["link 3 2"] = 0;
  const auto went_down = bench.since();
  CHECK(value(went_down, "nvlink_inactive") == 1);
  CHECK(went_down.detail["part"] == "GPU GPU-fake-3 link 2");
}

TEST_CASE("nvml: a link that no GPU of a board has is down, where the board uses every link", "[nvml]") {
  const auto inactive = [](const std::string& model, int gpus) {
    NvmlReading now;
    for (int g = 0; g < gpus; ++g) {
      const std::string gpu = "GPU GPU-" + std::to_string(g);
      now.models[gpu] = model;
      now.counts["gpu_present"][gpu] = 1;
      for (int l = 0; l < 18; ++l) now.counts["nvlink_active"][gpu + " link " + std::to_string(l)] = l != 7;
    }
    Measurement out;
    add_gpu_counters(now, now.counts, out);  // so before the load, too
    return value(out, "nvlink_inactive");
  };
  for (const char* model : {"NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA A100-SXM4-80GB", "NVIDIA B200"}) {
    CAPTURE(model);
    CHECK(inactive(model, 8) == 8);
    CHECK(inactive(model, 4) == 4);
    CHECK(inactive(model, 2) == 0);  // of a board that was cut into virtual machines, perhaps
  }
  for (const char* model :
       {"NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA A100 80GB PCIe"}) {
    CAPTURE(model);
    CHECK(inactive(model, 8) == 0);
  }
}

TEST_CASE("nvml: a board whose GPUs tell of no link is not a card without NVLink", "[nvml]") {
  const auto look = [](const std::string& model, int silent, std::vector<std::string> notes = {}) {
    NvmlReading now;
    now.notes = std::move(notes);
    for (int g = 0; g < 8; ++g) {
      const std::string gpu = "GPU GPU-" + std::to_string(g);
      now.models[gpu] = model;
      now.counts["gpu_present"][gpu] = 1;
      if (g >= silent) now.counts["nvlink_active"][gpu + " link 0"] = 1;
    }
    Measurement out;
    add_gpu_counters(now, now.counts, out);
    return out;
  };
  for (const int silent : {1, 8}) {
    const auto board = look("NVIDIA H100 80GB HBM3", silent);
    CHECK_FALSE(has(board, "nvlink_inactive"));
    CHECK(absent(board).find("\"nvlink_inactive\"") == std::string::npos);
    CHECK(absent(board).find("nvlink_inactive: GPU GPU-") != std::string::npos);
  }
  CHECK(absent(look("NVIDIA L40S", 8)).find("\"nvlink_inactive\"") != std::string::npos);
  // The driver runs into an error on each link: nothing is known of them.
  CHECK(absent(look("NVIDIA L40S", 8, {"GPU GPU-0 link 0, nvlink_active: Unknown Error"}))
            .find("\"nvlink_inactive\"") == std::string::npos);
}

TEST_CASE("nvml: of two GPUs with different links it is unknown which is right", "[nvml]") {
  Bench bench;
  bench.gpus(2, 2);
  bench.state["link 0 1"] = 0;
  REQUIRE(bench.save().outcome == Outcome::measured);
  CHECK(value(bench.since(), "nvlink_inactive") == 0);
}

TEST_CASE("nvml: what held the clocks down, seen at either reading or timed between them", "[nvml]") {
  Bench bench;
  bench.gpus(4, 0);
  for (const char* field : {"field 0 252", "field 0 253", "field 1 252"}) bench.state[field] = 5000;
  bench.state["reasons 2"] = 0x80;
  REQUIRE(bench.save().outcome == Outcome::measured);
  bench.state["reasons 2"] = 0x01 | 0x04;  // idle, and the power cap: as configured
  bench.state["reasons 3"] = 0x08 | 0x40;
  bench.state["field 1 252"] = 5001;
  const auto held = bench.since();
  CHECK(value(held, "gpu_hw_slowdown") == 1);
  CHECK(value(held, "gpu_hw_thermal") == 2);
  CHECK(value(held, "gpu_power_brake") == 1);
  CHECK(held.detail["part"] == "GPU GPU-fake-1, GPU GPU-fake-2, GPU GPU-fake-3");
  // GPUs without NVLink: nothing is said about links, and that is said.
  CHECK_FALSE(has(held, "nvlink_replay"));
  CHECK_FALSE(has(held, "nvlink_inactive"));
  CHECK_FALSE(has(held, "nvlink_active"));
  CHECK(absent(held).find("nvlink_replay: no GPU in this node reports this counter") != std::string::npos);
  CHECK(absent(held).find("\"nvlink_inactive\"") != std::string::npos);  // which stops no node
}

TEST_CASE("nvml: the driver's view of a GPU's health, and the counters of NVLink 5", "[nvml]") {
  Bench bench;
  bench.gpus(2, 2);
  bench.state["field 0 1"] = 1;
  bench.state["field 1 1"] = 0;
  bench.state["field 0 230"] = 2;
  bench.state["field 1 230"] = 5;
  bench.state["field 0 251"] = 77;
  bench.state["field 1 251"] = 77;
  bench.state["repair 0"] = 0;
  bench.state["repair 1"] = 2;
  bench.state["sram 0"] = 1;
  for (const char* link : {"0 0", "0 1", "1 0", "1 1"})
    for (const char* field : {"213", "214", "215", "219", "221"})
      bench.state[std::string("linkfield ") + link + " " + field] = 10;
  REQUIRE(bench.save().outcome == Outcome::measured);
  bench.state["field 1 251"] = 78;
  bench.state["linkfield 0 1 214"] = 11;
  bench.state["linkfield 1 0 221"] = 15;
  bench.state["linkfield 1 1 219"] = 17;
  const auto health = bench.since();
  CHECK(value(health, "gpu_ecc_off") == 1);  // the other one of its model has it on
  CHECK(value(health, "gpu_recovery") == 1);
  CHECK(health.detail["nvml"]["notes"].dump().find("GPU GPU-fake-1: recovery action 5, of its IMEX domain") !=
        std::string::npos);
  CHECK(value(health, "gpu_repair") == 1);
  CHECK(value(health, "gpu_sram") == 1);
  CHECK(value(health, "gpu_sw_thermal") == 1);
  CHECK(value(health, "nvlink_recovery_failed") == 1);
  CHECK(value(health, "nvlink_symbol_errors") == 5);
  CHECK(value(health, "nvlink_effective_errors") == 7);
  CHECK(health.detail["moved"]["GPU GPU-fake-0 link 1"]["nvlink_recovery_failed"] == 1);
  // An older driver and an older GPU have none of it, and are not worse for that.
  Bench old(kOld);
  old.gpus(2, 2);
  REQUIRE(old.save().outcome == Outcome::measured);
  const auto less = old.since();
  for (const char* metric :
       {"gpu_ecc_off", "gpu_recovery", "gpu_repair", "gpu_sram", "nvlink_recovery_failed"}) {
    CHECK_FALSE(has(less, metric));
    CHECK(absent(less).find("\"" + std::string(metric) + "\"") != std::string::npos);
  }
}

TEST_CASE("nvml: a GPU that is lost takes its counters along, not the others' movement", "[nvml]") {
  Bench bench;
  bench.gpus(2, 2);
  REQUIRE(bench.save().outcome == Outcome::measured);
  bench.state["lost 1"] = 1;
  bench.state["errors 0 0 1"] = 1;
  const auto m = bench.since();
  REQUIRE(m.outcome == Outcome::measured);
  CHECK(value(m, "gpus_lost") == 1);
  CHECK(value(m, "nvlink_recovery") == 1);
  CHECK_FALSE(
      has(m, "nvlink_replay"));  // nothing moved on those that tell: no proof of the one that does not
  CHECK(absent(m).find("nvlink_replay: GPU GPU-fake-1 link 1 no longer reports this counter") !=
        std::string::npos);
  CHECK(m.detail["nvml"]["notes"].dump().find("GPU number 1 of 2: GPU is lost (15)") != std::string::npos);
  CHECK(m.detail["part"] == "GPU GPU-fake-0 link 0, GPU GPU-fake-1");
}

TEST_CASE("nvml: a function that fails leaves its metrics out and says with which error", "[nvml]") {
  Bench bench;
  bench.gpus(1, 1);
  REQUIRE(bench.save().outcome == Outcome::measured);
  bench.state["fails nvmlDeviceGetNvLinkErrorCounter"] = 999;
  bench.state["fails nvmlDeviceGetCurrentClocksThrottleReasons"] = 4;
  const auto m = bench.since();
  REQUIRE(m.outcome == Outcome::measured);
  for (const char* metric : {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit", "nvlink_crc_data",
                             "gpu_hw_slowdown", "gpu_hw_thermal"})
    CHECK_FALSE(has(m, metric));
  CHECK(value(m, "nvlink_inactive") == 0);
  CHECK(m.detail["nvml"]["notes"].dump().find("GPU GPU-fake-0 link 0, nvlink_replay: Unknown Error (999)") !=
        std::string::npos);
}

TEST_CASE("nvml: an old driver tells less, and nothing of it becomes 0", "[nvml]") {
  Bench bench(kOld);
  bench.gpus(3, 2);
  bench.state["energy 0"] = 1;
  const auto reading = bench.request();
  REQUIRE(reading.ok());
  CHECK_FALSE(reading->counts.count("gpu_energy_mj"));
  CHECK_FALSE(reading->counts.count("nvlink_replay"));
  CHECK(Json(reading->notes).dump().find("this driver does not report NVLink error counters") !=
        std::string::npos);
  REQUIRE(bench.save().outcome == Outcome::measured);
  bench.state["link 0 0"] = 0;
  bench.state["reasons 1"] = 0x40;
  const auto m = bench.since();
  CHECK_FALSE(has(m, "nvlink_recovery"));
  CHECK(value(m, "nvlink_inactive") == 1);
  CHECK(value(m, "gpu_hw_thermal") == 1);  // under the function's older name
  const auto nvml = Nvml::open(kOld);
  REQUIRE(nvml.ok());
  CHECK_FALSE(nvml->energy().ok());
}

TEST_CASE("nvml: without a driver there are no metrics, and the measurement of GPUs is unavailable",
          "[nvml]") {
  const TempDir folder;
  const Files files(folder.path(""));
  const std::string missing = folder.path("libnvidia-ml.so.1");
  const auto request = [&]() -> Result<NvmlReading> {
    TRY(const Nvml nvml, Nvml::open(missing));
    return nvml.read();
  };
  REQUIRE(run_counters(files, {.save = "/before.json", .query_nvml = request}).outcome == Outcome::measured);
  const auto all = run_counters(files, {.since = "/before.json", .query_nvml = request});
  CHECK(all.outcome == Outcome::measured);
  CHECK(absent(all).find("GPU counters: " + missing) != std::string::npos);
  for (const auto& [metric, m] : all.metrics)
    CHECK((metric.find("nvlink") == std::string::npos && metric.find("gpu_hw") == std::string::npos));
  const auto gpus = run_counters(files, {.since = "/before.json", .query_nvml = request, .gpus = true});
  CHECK(gpus.outcome == Outcome::unavailable);
  CHECK(gpus.error.find(missing) == 0);
  CHECK(gpus.metrics.empty());
  CHECK(gpus.detail["missing"] == "driver");
  const auto nowhere = []() -> Result<NvmlReading> { return fail(Code::not_found, "no program"); };
  const auto without = run_counters(files, {.since = "/before.json", .query_nvml = nowhere, .gpus = true});
  CHECK(without.detail["missing"] == kNvmlProgram);

  // The library is there and the driver is not.
  Bench bench;
  bench.state["fails nvmlInit_v2"] = 9;
  REQUIRE(bench.save().outcome == Outcome::measured);
  CHECK(bench.since().error == "cannot initialise NVML: Driver Not Loaded (9)");
  // It came only after the counters were saved: what moved is unknown.
  bench.state.clear();
  bench.gpus(1, 1);
  bench.state["errors 0 0 1"] = 12;
  CHECK(bench.since().outcome == Outcome::unavailable);
  const auto plain = bench.since(false);
  CHECK(plain.outcome == Outcome::measured);
  CHECK_FALSE(has(plain, "nvlink_recovery"));
}

TEST_CASE("nvml: who computes on which GPU, where all of them answer", "[nvml]") {
  Bench bench;
  bench.gpus(2, 0);
  REQUIRE(bench.request().value().holders);
  CHECK(bench.request()->holders->empty());
  bench.state["process 1 4711"] = 3ULL << 30;
  bench.state["process 1 4712"] = ~0ULL;
  const auto reading = nvml_from_json(to_json(bench.request().value()));
  REQUIRE(reading.ok());
  REQUIRE(reading->holders);
  REQUIRE(reading->holders->size() == 2);
  CHECK(reading->holders->at(0).gpu == "GPU GPU-fake-1");
  CHECK(reading->holders->at(0).pid == 4711);
  CHECK(reading->holders->at(0).mib == 3072);
  CHECK_FALSE(reading->holders->at(1).mib);
  bench.state["lost 0"] = 1;
  CHECK_FALSE(bench.request()->holders);
  Bench old(kOld);
  old.gpus(1, 0);
  CHECK_FALSE(nvml_from_json(to_json(old.request().value()))->holders);
}

TEST_CASE("nvml: the program that asks the driver says what the library says", "[nvml]") {
  Bench bench;
  bench.gpus(1, 1);
  bench.state["errors 0 0 2"] = 6;
  bench.state["energy 0"] = 123456;
  bench.write();
  const auto process = make_process();
  const std::string program = build_dir() + "/muster-accept-nvml", folder = build_dir() + "/fake-nvml";
  const auto text = run_ok(
      *process,
      {.argv = {program}, .env = {{"LD_LIBRARY_PATH", folder}, {"MUSTER_FAKE_NVML", bench.state_file()}}});
  REQUIRE(text.ok());
  const auto json = parse_json(*text);
  REQUIRE(json.ok());
  const auto reading = nvml_from_json(*json);
  REQUIRE(reading.ok());
  CHECK(reading->counts.at("nvlink_crc_flit").at("GPU GPU-fake-0 link 0") == 6);
  CHECK(reading->counts.at("gpu_energy_mj").at("GPU GPU-fake-0") == 123456);
  CHECK_FALSE(nvml_from_json({{"driver", 1}}).ok());

  bench.state["fails nvmlDeviceGetCount_v2"] = 15;
  bench.write();
  const auto lost = run_ok(
      *process,
      {.argv = {program}, .env = {{"LD_LIBRARY_PATH", folder}, {"MUSTER_FAKE_NVML", bench.state_file()}}});
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.error().message.find("NVML cannot count the GPUs: GPU is lost (15)") != std::string::npos);
}

TEST_CASE(
    "nvml: the profiles' limits are about metrics that a healthy node has, and pass it; a recovery degrades "
    "it and names the link",
    "[nvml]") {
  Bench bench;
  bench.gpus(8, 18);
  for (const char* gpu : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    bench.state[std::string("field ") + gpu + " 1"] = 1;  // ECC
    for (const char* none : {"field ", "repair ", "sram "})
      bench.state[none + std::string(gpu) + (none[0] == 'f' ? " 230" : "")] = 0;
    for (int link = 0; link < 18; ++link)
      bench.state[std::string("linkfield ") + gpu + " " + std::to_string(link) + " 214"] = 0;
  }
  REQUIRE(bench.save().outcome == Outcome::measured);
  for (const char* profile : {"quick", "standard", "burn"}) {
    CAPTURE(profile);
    bench.state.erase("errors 5 3 1");
    std::ifstream in(source_dir() + "/playbooks/acceptance/" + profile + ".yaml");
    const auto steps = parse_playbook(std::string(std::istreambuf_iterator<char>(in), {})).playbook.steps;
    const auto step =
        std::find_if(steps.begin(), steps.end(), [](const auto& s) { return s.name == "gpu counters"; });
    REQUIRE(step != steps.end());
    CHECK_FALSE(step->mandatory);
    const auto judge = [&] {
      MeasuredStep measured;
      measured.node = "node01";
      measured.group = "gpu-counters";
      measured.status = "applied";
      measured.mandatory = false;
      measured.expect = step->expect;
      measured.result = to_json(bench.since());
      return judge_measurements({measured}, {})["node01"];
    };
    const auto healthy = judge();
    CHECK(healthy.size() == step->expect.size() + 1);
    for (const auto& check : healthy) CHECK(check.verdict == Verdict::pass);
    bench.state["errors 5 3 1"] = 1;
    for (const auto& check : judge()) {
      CAPTURE(check.name);
      CHECK((check.verdict == Verdict::pass) == (check.name != "gpu-counters/nvlink_recovery"));
      if (check.verdict == Verdict::degraded)
        CHECK(check.faulty_parts == std::vector<std::string>{"GPU GPU-fake-5 link 3"});
    }
  }
}
