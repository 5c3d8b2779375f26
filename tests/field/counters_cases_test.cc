// Error counters of ports and the health of GPUs, from what a machine shows to what becomes of its node, by
// the shipped profiles.
#include <fstream>
#include <iterator>

#include "base/split.h"
#include "controller/report/verdict.h"
#include "controller/spec/reader/parse_playbook.h"
#include "kernels/counters/counters.h"
#include "kernels/counters/gpu_counters.h"
#include "kernels/gpu/logic/gpu_logic.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"

namespace muster::tests {

using kernels::Measurement;

namespace {

constexpr const char* kProfiles[] = {"quick", "standard", "burn"};

// A machine whose counters were saved a quarter of an hour ago.
class Machine {
 public:
  Machine() { write("/proc/uptime", "1000.00 1\n"); }
  Files files() const { return Files(dir_.path("")); }
  void write(const std::string& path, const std::string& text) const {
    REQUIRE(files().write(path, text).ok());
  }
  void port(const std::string& device, const std::string& state, const std::string& physical) const {
    write(folder(device) + "state", state);
    write(folder(device) + "phys_state", physical);
    write(folder(device) + "link_layer", "Ethernet");
  }
  void count(const std::string& device, const std::string& counter, uint64_t value) const {
    write(folder(device) + counter, std::to_string(value));
  }
  void rail(const std::string& interface, const std::string& device) const {
    write("/etc/muster/networks.json", R"({"ports":[{"rail":0,"interface":")" + interface + R"("}]})");
    write(folder(device) + "gid_attrs/ndevs/0", interface);
  }
  void save() const {
    REQUIRE(
        kernels::run_counters(files(), {.save = "/run/before.json", .query_statistics = query()}).outcome ==
        kernels::Outcome::measured);
    write("/proc/uptime", "1900.00 1\n");
  }
  Measurement since() const {
    return kernels::run_counters(files(), {.since = "/run/before.json", .query_statistics = query()});
  }
  mutable std::string statistics = {};  // as `ethtool -S` prints them, of every interface

 private:
  kernels::QueryStatistics query() const {
    return [this](const std::string&) -> Result<kernels::PortStatistics> {
      kernels::PortStatistics out;
      for (const auto& line : split_lines(statistics))
        if (const auto words = split_words(line, " :");
            words.size() == 2 && words[0].find('_') != words[0].npos)
          out[words[0]] = std::stoull(words[1]);
      return out;
    };
  }
  static std::string folder(const std::string& device) {
    return "/sys/class/infiniband/" + device + "/ports/1/";
  }
  TempDir dir_;
};
void healthy_port(const Machine& machine, const std::string& device) {
  machine.port(device, "4: ACTIVE", "5: LinkUp");
  for (const char* file : {"rnr_nak_retry_err", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
                           "roce_adp_retrans", "req_rnr_retries_exceeded", "req_transport_retries_exceeded"})
    machine.count(device, std::string("hw_counters/") + file, 0);
  for (const char* file : {"symbol_error", "link_downed", "port_rcv_errors", "link_error_recovery"})
    machine.count(device, std::string("counters/") + file, 0);
}

struct Judged {
  NodeVerdict node = NodeVerdict::failed;
  std::vector<Check> checks = {};
  const Check& of(const std::string& metric) const {
    for (const auto& check : checks)
      if (check.name.ends_with("/" + metric)) return check;
    FAIL("no check of " << metric);
    return checks.front();
  }
  bool says(const std::string& part) const {
    for (const auto& check : checks)
      if (std::count(check.faulty_parts.begin(), check.faulty_parts.end(), part)) return true;
    return false;
  }
  size_t count(Verdict verdict) const {
    return static_cast<size_t>(
        std::count_if(checks.begin(), checks.end(), [&](const auto& c) { return c.verdict == verdict; }));
  }
};
// A load that ran and passed: a node on which none ran is only looked at.
MeasuredStep passed_load() {
  MeasuredStep out;
  out.node = "node01";
  out.group = "dgemm";
  out.status = "applied";
  out.expect = Json::parse(R"({"gflops":{"min":20}})");
  out.result = Json::parse(
      R"({"check":"dgemm","outcome":"measured","metrics":{"gflops":{"value":900,"unit":"GFLOP/s"}}})");
  return out;
}
// What becomes of a node whose other checks pass.
Judged judged(const std::string& profile, const std::string& step_name, const Measurement& result) {
  std::ifstream in(source_dir() + "/playbooks/acceptance/" + profile + ".yaml");
  const auto steps = parse_playbook(std::string(std::istreambuf_iterator<char>(in), {})).playbook.steps;
  const auto step =
      std::find_if(steps.begin(), steps.end(), [&](const auto& s) { return s.name == step_name; });
  REQUIRE(step != steps.end());
  MeasuredStep measured;
  measured.node = "node01";
  measured.group = step_name;
  measured.status = "applied";
  measured.mandatory = step->mandatory;
  measured.blocks = step->blocks;
  measured.expect = step->expect;
  measured.result = to_json(result);
  Judged out;
  out.checks = judge_measurements({passed_load(), measured})["node01"];
  Report report;
  report.nodes.emplace_back();
  report.nodes[0].name = "node01";
  report.nodes[0].verdict = NodeVerdict::accepted;
  report.nodes[0].checks = out.checks;
  settle(report);
  out.node = report.nodes[0].verdict;
  return out;
}
Judged rdma(const Measurement& result) { return judged("standard", "rdma counters", result); }

kernels::NvmlReading reading(const std::string& name, const std::string& file) {
  const auto json = parse_json(field_input(name, file));
  REQUIRE(json.ok());
  auto out = kernels::nvml_from_json(*json);
  REQUIRE(out.ok());
  return *out;
}
Measurement gpus(const kernels::NvmlReading& before, const kernels::NvmlReading& now) {
  Measurement out;
  out.check = "counters";
  kernels::add_gpu_counters(now, before.counts, out);
  return out;
}
kernels::NvmlReading gpus_with_ecc(const std::string& model, std::vector<int> on) {
  kernels::NvmlReading out;
  for (size_t g = 0; g < on.size(); ++g) {
    const std::string gpu = "GPU GPU-" + std::to_string(g);
    out.counts["gpu_present"][gpu] = 1;
    out.counts["gpu_reasons"][gpu] = 0;
    out.models[gpu] = model;
    if (on[g] >= 0) out.counts["gpu_ecc_on"][gpu] = static_cast<uint64_t>(on[g]);
  }
  return out;
}

}  // namespace

FIELD_CASE("tests-that-skip-themselves") {
  MeasuredStep load = passed_load(), read = passed_load();
  load.mandatory = false;
  load.result["outcome"] = "unavailable";
  read.group = "counters";
  read.expect = Json::parse(R"({"link_down":{"degraded_above":0}})");
  read.result = Json::parse(
      R"({"check":"counters","outcome":"measured","metrics":{"link_down":{"value":0,"unit":""}}})");
  Report report;
  report.kind = "accept";
  report.profile = "standard";
  report.nodes.emplace_back();
  report.nodes[0].name = "node01";
  report.nodes[0].verdict = NodeVerdict::accepted;
  report.nodes[0].checks = judge_measurements({load, read})["node01"];
  settle(report);
  CHECK(report.nodes[0].verdict == NodeVerdict::looked_at);
  CHECK(report.kind == kLook);
}

FIELD_CASE("rnr-nak-fails") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.save();
  machine.count("mlx5_0", "hw_counters/rnr_nak_retry_err", 37);
  const Measurement measured = machine.since();
  CHECK(measured.metrics.at("rdma_rnr_errors").value == 148);
  CHECK(rdma(measured).node == NodeVerdict::accepted);
  CHECK(judged("burn", "rdma counters", measured).node == NodeVerdict::accepted);
}

FIELD_CASE("rnr-nak-fails: after all retries a connection is lost") {
  for (const char* counter :
       {"hw_counters/req_rnr_retries_exceeded", "hw_counters/req_transport_retries_exceeded",
        "hw_counters/max_retry_exceeded"}) {
    CAPTURE(counter);
    const Machine machine;
    healthy_port(machine, "dev0");
    machine.count("dev0", counter, 5);
    machine.save();
    CHECK(rdma(machine.since()).node == NodeVerdict::accepted);
    machine.count("dev0", counter, 6);
    const Judged after = rdma(machine.since());
    CHECK(after.node == NodeVerdict::degraded);
    CHECK(after.of("rdma_retries_exceeded").verdict == Verdict::degraded);
    CHECK(after.says("RDMA port dev0 1"));
  }
  // Soft-RoCE's is no RNR NAK either; a busy processor is enough for it.
  const Machine soft;
  healthy_port(soft, "rxe0");
  soft.count("rxe0", "hw_counters/retry_rnr_exceeded_err", 5);
  soft.save();
  soft.count("rxe0", "hw_counters/retry_rnr_exceeded_err", 6);
  const Measurement measured = soft.since();
  CHECK(measured.metrics.at("rdma_rnr_errors").value == 0);
  CHECK(measured.metrics.at("rdma_software_retries").value == 4);
  CHECK(rdma(measured).node == NodeVerdict::accepted);
}

FIELD_CASE("rdma-loss-passes") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  healthy_port(machine, "mlx5_1");
  machine.save();
  machine.count("mlx5_0", "hw_counters/out_of_sequence", 51234);
  machine.count("mlx5_0", "hw_counters/packet_seq_err", 25617);
  machine.count("mlx5_0", "hw_counters/local_ack_timeout_err", 1024);
  machine.count("mlx5_0", "hw_counters/roce_adp_retrans", 900);
  const Measurement measured = machine.since();
  CHECK(measured.detail["counted"]["RDMA port mlx5_0 1"]["out_of_sequence"] == 51234);
  for (const char* profile : {"standard", "burn"}) {
    const Judged after = judged(profile, "rdma counters", measured);
    CHECK(after.node == NodeVerdict::degraded);
    CHECK(after.of("rdma_retransmissions").verdict == Verdict::degraded);
    CHECK(after.of("rdma_ack_timeouts").verdict == Verdict::degraded);
    CHECK(after.says("RDMA port mlx5_0 1"));
    CHECK_FALSE(after.says("RDMA port mlx5_1 1"));
  }
  // As a healthy link loses some.
  machine.count("mlx5_0", "hw_counters/out_of_sequence", 80);
  machine.count("mlx5_0", "hw_counters/packet_seq_err", 2);
  machine.count("mlx5_0", "hw_counters/local_ack_timeout_err", 1);
  machine.count("mlx5_0", "hw_counters/roce_adp_retrans", 0);
  CHECK(rdma(machine.since()).node == NodeVerdict::accepted);
}

FIELD_CASE("timeouts-alone") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.save();
  machine.count("mlx5_0", "hw_counters/local_ack_timeout_err", 1024);
  const Judged after = rdma(machine.since());
  CHECK(after.node == NodeVerdict::degraded);
  CHECK(after.of("rdma_ack_timeouts").verdict == Verdict::degraded);
  CHECK(after.of("rdma_retransmissions").verdict == Verdict::pass);
}

FIELD_CASE("ib-counter-saturated") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.count("mlx5_0", "counters/symbol_error", 65535);
  machine.count("mlx5_0", "counters/link_downed", 255);
  machine.count("mlx5_0", "counters/port_rcv_errors", 65535);
  machine.save();
  const Judged after = rdma(machine.since());
  for (const char* metric : {"rdma_symbol_errors", "rdma_link_downs", "rdma_receive_errors"}) {
    CAPTURE(metric);
    CHECK(after.of(metric).verdict == Verdict::not_looked_at);
    CHECK(after.of(metric).reason.find("RDMA port mlx5_0 1") != std::string::npos);
  }
  CHECK(after.of("rdma_link_recoveries").verdict == Verdict::pass);
  CHECK(after.node == NodeVerdict::accepted);  // in whose title the three are counted
}

FIELD_CASE("ib-counter-saturated: what was counted until the end proves a fault") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  healthy_port(machine, "mlx5_1");
  machine.count("mlx5_1", "counters/local_link_integrity_errors", 14);
  machine.count("mlx5_1", "counters/port_xmit_wait", 4294967290);
  machine.save();
  machine.count("mlx5_0", "counters/symbol_error", 65535);
  machine.count("mlx5_1", "counters/local_link_integrity_errors", 15);
  machine.count("mlx5_1", "counters/port_xmit_wait", 4294967295);
  const Judged after = rdma(machine.since());
  CHECK(after.node == NodeVerdict::failed);
  CHECK(after.of("rdma_overruns").verdict == Verdict::fail);
  CHECK(after.of("rdma_symbol_errors").verdict == Verdict::degraded);
  CHECK(after.of("rdma_symbol_errors").measured_text.starts_with("at least "));
  CHECK(after.says("RDMA port mlx5_0 1"));
}

FIELD_CASE("ib-counter-saturated: counters that were reset, wrap, or were not there before") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.count("mlx5_0", "counters/symbol_error", 900);
  machine.count("mlx5_0", "hw_counters/out_of_sequence", 4294967290);
  machine.count("mlx5_0", "hw_counters/local_ack_timeout_err", 900);
  machine.save();
  machine.count("mlx5_0", "counters/symbol_error", 3);
  machine.count("mlx5_0", "hw_counters/out_of_sequence", 4);
  machine.count("mlx5_0", "hw_counters/local_ack_timeout_err", 0);
  machine.count("mlx5_0", "counters/excessive_buffer_overrun_errors", 7);
  const Measurement measured = machine.since();
  CHECK(measured.metrics.at("rdma_symbol_errors").value == 12);
  CHECK(measured.metrics.at("rdma_retransmissions").value == 40);
  const Judged after = rdma(measured);
  CHECK(after.of("rdma_symbol_errors").verdict == Verdict::not_looked_at);
  CHECK(after.of("rdma_retransmissions").verdict == Verdict::pass);
  CHECK(after.of("rdma_ack_timeouts").verdict == Verdict::not_looked_at);
  CHECK(after.of("rdma_overruns").verdict == Verdict::not_looked_at);  // 7 of when?
  CHECK(after.node == NodeVerdict::accepted);
}

FIELD_CASE("management-port-down-count") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  healthy_port(machine, "mlx5_8");
  machine.port("mlx5_9", "1: DOWN", "3: Disabled");
  machine.count("mlx5_9", "counters/link_downed", 3);
  machine.rail("ens1f0", "mlx5_0");
  machine.save();
  machine.count("mlx5_9", "counters/link_downed", 4);
  machine.count("mlx5_8", "counters/link_downed", 1);  // has a link, and is no rail
  CHECK(rdma(machine.since()).node == NodeVerdict::accepted);
  machine.count("mlx5_0", "counters/link_downed", 1);
  const Judged after = rdma(machine.since());
  CHECK(after.node == NodeVerdict::degraded);
  CHECK(after.says("RDMA port mlx5_0 1"));
  CHECK_FALSE(after.says("RDMA port mlx5_9 1"));
}

FIELD_CASE("management-port-down-count: without declared rails a port counts that has a link, or had one") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.port("mlx5_9", "1: DOWN", "3: Disabled");
  machine.count("mlx5_9", "counters/link_downed", 3);
  machine.save();
  machine.count("mlx5_9", "counters/link_downed", 4);
  CHECK(rdma(machine.since()).node == NodeVerdict::accepted);
  machine.port("mlx5_0", "1: DOWN", "2: Polling");
  machine.count("mlx5_0", "counters/link_downed", 1);
  CHECK(rdma(machine.since()).says("RDMA port mlx5_0 1"));
}

FIELD_CASE("management-port-down-count: without declared rails the port of the default route is none") {
  const auto roce = [](const Machine& machine, const std::string& device, const std::string& interface) {
    const std::string port = "/sys/class/infiniband/" + device + "/ports/1/";
    healthy_port(machine, device);
    machine.write("/sys/class/net/" + interface + "/device/vendor", "0x15b3");
    machine.write(port + "gid_attrs/ndevs/0", interface);
    machine.write(port + "gid_attrs/types/0", "RoCE v2");
    machine.write(port + "gids/0", "0000:0000:0000:0000:0000:ffff:0a64:000b");
    machine.write("/proc/net/route", "Iface\tDestination\tGateway\neth0\t00000000\t0100000A\n");
  };
  const Machine single;  // the only port of a machine is its rail
  roce(single, "mlx5_0", "eth0");
  single.save();
  single.count("mlx5_0", "counters/link_downed", 1);
  CHECK(rdma(single.since()).says("RDMA port mlx5_0 1"));
  const Machine machine;
  roce(machine, "mlx5_0", "eth0");
  roce(machine, "mlx5_1", "rdma1");
  machine.save();
  machine.count("mlx5_0", "counters/link_downed", 1);
  CHECK(rdma(machine.since()).node == NodeVerdict::accepted);
  machine.count("mlx5_1", "counters/link_downed", 1);
  const Judged after = rdma(machine.since());
  CHECK(after.says("RDMA port mlx5_1 1"));
  CHECK_FALSE(after.says("RDMA port mlx5_0 1"));
}

FIELD_CASE("lossless-class-drops") {
  const auto looked = [](const std::string& before, const std::string& after) {
    const Machine machine;
    healthy_port(machine, "mlx5_0");
    machine.rail("ens1f0", "mlx5_0");
    machine.statistics = field_input("lossless-class-drops", before);
    machine.save();
    machine.statistics = field_input("lossless-class-drops", after);
    return machine.since();
  };
  const Measurement dropped = looked("before.txt", "dropped.txt");
  CHECK(dropped.metrics.at("rdma_lossless_discards").value == 1200);
  CHECK(rdma(dropped).node == NodeVerdict::degraded);
  CHECK(rdma(dropped).says("RDMA port mlx5_0 1"));
  // Pauses are what a lossless class is for; drops of a class without them are not its loss.
  const Measurement paused = looked("before.txt", "paused.txt");
  CHECK(paused.metrics.at("rdma_lossless_discards").value == 0);
  CHECK(paused.metrics.at("rdma_pauses").value == 40000);
  CHECK(rdma(paused).node == NodeVerdict::accepted);
  const Judged without = rdma(looked("no-priorities.txt", "no-priorities.txt"));
  CHECK(without.of("rdma_lossless_discards").verdict == Verdict::not_applicable);
  CHECK(without.node == NodeVerdict::accepted);
}

FIELD_CASE("lossless-class-drops: pauses of the whole port are counted, and show no class without loss") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.rail("ens1f0", "mlx5_0");
  machine.statistics = "rx_prio0_discards: 9000\nrx_global_pause: 5\ntx_global_pause: 1\n";
  machine.save();
  machine.statistics = "rx_prio0_discards: 9900\nrx_global_pause: 45\ntx_global_pause: 11\n";
  const Measurement measured = machine.since();
  CHECK(measured.metrics.at("rdma_pauses").value == 200);
  CHECK(measured.metrics.count("rdma_lossless_discards") == 0);
  CHECK(rdma(measured).node == NodeVerdict::accepted);
}

FIELD_CASE(
    "rdma-loss-passes: a wrong checksum of RoCE is a fault, a packet refused by its partition is none") {
  const Machine machine;
  healthy_port(machine, "mlx5_0");
  machine.count("mlx5_0", "counters/port_rcv_constraint_errors", 3);
  machine.count("mlx5_0", "hw_counters/rx_icrc_encapsulated", 0);
  machine.save();
  machine.count("mlx5_0", "counters/port_rcv_constraint_errors", 9);
  Measurement measured = machine.since();
  CHECK(measured.metrics.at("rdma_constraint_errors").value == 24);
  CHECK(rdma(measured).node == NodeVerdict::accepted);
  machine.count("mlx5_0", "hw_counters/rx_icrc_encapsulated", 1);
  measured = machine.since();
  CHECK(rdma(measured).of("rdma_checksum_errors").verdict == Verdict::degraded);
  CHECK(rdma(measured).says("RDMA port mlx5_0 1"));
}

FIELD_CASE("netdev-without-use") {
  const Machine machine;
  const auto nic = [&](const std::string& name, const std::string& mac, const char* carrier, uint64_t errors,
                       uint64_t downs) {
    const std::string folder = "/sys/class/net/" + name;
    machine.write(folder + "/device/vendor", "0x15b3");
    machine.write(folder + "/address", mac);
    machine.write(folder + "/carrier", carrier);
    machine.write(folder + "/statistics/rx_errors", std::to_string(errors));
    machine.write(folder + "/carrier_down_count", std::to_string(downs));
  };
  nic("eth0", "02:00:00:00:00:01", "1", 0, 1);
  nic("eth1", "02:00:00:00:00:02", "0", 0, 1);
  nic("usb0", "02:00:00:00:00:03", "1", 0, 1);
  REQUIRE(machine.files().symlink("../../../../bus/usb", "/sys/class/net/usb0/device/subsystem").ok());
  machine.save();
  nic("eth1", "02:00:00:00:00:02", "0", 5, 2);
  nic("usb0", "02:00:00:00:00:03", "1", 5, 2);
  Measurement measured = machine.since();
  CHECK(measured.metrics.at("network_errors").value == 0);
  CHECK(measured.metrics.at("link_down").value == 0);
  nic("eth0", "02:00:00:00:00:01", "0", 2, 2);  // its cable is out now
  measured = machine.since();
  CHECK(measured.metrics.at("network_errors").value == 2);
  CHECK(measured.metrics.at("link_down").value == 1);
  CHECK(measured.detail["part"] == "NIC 02:00:00:00:00:01");
}

FIELD_CASE("nvlink5-no-counters") {
  const auto before = reading("nvlink5-no-counters", "before.json"),
             after = reading("nvlink5-no-counters", "after.json");
  for (const char* profile : kProfiles) {
    CAPTURE(profile);
    const Judged b200 = judged(profile, "gpu counters", gpus(before, after));
    for (const char* metric : {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit", "nvlink_crc_data"})
      CHECK(b200.of(metric).verdict == Verdict::not_applicable);
    CHECK(b200.count(Verdict::skipped) == 0);
    CHECK(b200.node == NodeVerdict::accepted);
  }
}

FIELD_CASE("nvlink5-no-counters: NVLink 5's own counters, and what an older generation should have") {
  const std::string link = "GPU GPU-00000003-0000-0000-0000-000000000000 link 1";
  auto before = reading("nvlink5-no-counters", "before.json"),
       after = reading("nvlink5-no-counters", "after.json");
  for (const char* metric : {"nvlink_recovery_events", "nvlink_recovery_failed", "nvlink_symbol_errors"})
    for (auto* one : {&before, &after})
      for (const auto& [part, up] : one->counts["nvlink_active"]) one->counts[metric][part] = 0;
  after.counts["nvlink_symbol_errors"][link] = 9000;  // corrected; shown
  CHECK(judged("standard", "gpu counters", gpus(before, after)).node == NodeVerdict::accepted);
  after.counts["nvlink_recovery_failed"][link] = 1;
  const Judged failed = judged("standard", "gpu counters", gpus(before, after));
  CHECK(failed.node == NodeVerdict::degraded);
  CHECK(failed.says(link));
  // On Hopper only the checksum of data is not counted; the others were to be read.
  auto hopper = reading("nvlink5-no-counters", "after.json");
  for (auto& [gpu, model] : hopper.models) model = "NVIDIA H100 80GB HBM3";
  const Judged silent = judged("standard", "gpu counters", gpus(hopper, hopper));
  CHECK(silent.of("nvlink_crc_data").verdict == Verdict::not_applicable);
  CHECK(silent.of("nvlink_replay").verdict == Verdict::skipped);
  // Of a model that nothing is known of: what its driver does not support is not applicable, an error is not.
  for (auto& [gpu, model] : hopper.models) model = "NVIDIA R999";
  CHECK(judged("standard", "gpu counters", gpus(hopper, hopper)).of("nvlink_replay").verdict ==
        Verdict::not_applicable);
  hopper.notes = {link + ", nvlink_active: Unknown Error (999)",
                  link + ", nvlink_replay: Unknown Error (999)"};
  CHECK(judged("standard", "gpu counters", gpus(hopper, hopper)).of("nvlink_replay").verdict ==
        Verdict::skipped);
}

FIELD_CASE("sw-thermal-slowdown") {
  const auto before = reading("sw-thermal-slowdown", "before.json"),
             after = reading("sw-thermal-slowdown", "after.json");
  for (const char* profile : kProfiles) {
    CAPTURE(profile);
    const Judged hot = judged(profile, "gpu counters", gpus(before, after));
    CHECK(hot.of("gpu_sw_thermal").verdict == Verdict::degraded);
    CHECK(hot.says("GPU GPU-00000005-0000-0000-0000-000000000000"));
    CHECK(hot.node == NodeVerdict::degraded);
    CHECK(judged(profile, "gpu counters", gpus(before, before)).node == NodeVerdict::accepted);
  }
  // In between, by the driver's clock.
  auto between = before, earlier = before;
  const std::string gpu = "GPU GPU-00000002-0000-0000-0000-000000000000";
  earlier.counts["gpu_sw_thermal_ns"][gpu] = 5;
  between.counts["gpu_sw_thermal_ns"][gpu] = 7000005;
  CHECK(judged("quick", "gpu counters", gpus(earlier, between)).says(gpu));
  CHECK(judged("quick", "gpu counters", gpus(between, between)).node == NodeVerdict::accepted);
}

FIELD_CASE("sw-thermal-slowdown: what else the driver reports of a GPU's health") {
  const auto before = reading("sw-thermal-slowdown", "before.json");
  const std::string gpu = "GPU GPU-00000004-0000-0000-0000-000000000000";
  struct Row {
    const char* count;
    uint64_t value;
    NodeVerdict node;
  };
  for (const auto& row : {Row{"gpu_recovery_action", 0, NodeVerdict::accepted},
                          Row{"gpu_recovery_action", 1, NodeVerdict::failed},
                          Row{"gpu_recovery_action", 4, NodeVerdict::failed},
                          Row{"gpu_recovery_action", 5, NodeVerdict::accepted},
                          Row{"gpu_recovery_action", 9, NodeVerdict::accepted},
                          Row{"gpu_repair_pending", 1, NodeVerdict::degraded},
                          Row{"gpu_repair_pending", 2, NodeVerdict::degraded},
                          Row{"gpu_sram_exceeded", 1, NodeVerdict::failed}}) {
    CAPTURE(row.count, row.value);
    auto after = before;
    after.counts[row.count][gpu] = row.value;
    const Measurement measured = gpus(before, after);
    const Judged found = judged("quick", "gpu counters", measured);
    CHECK(found.node == row.node);
    CHECK(found.says(gpu) == (row.node != NodeVerdict::accepted));
    after.counts.erase(row.count);
    after.notes = {gpu + ", " + row.count + ": Unknown Error (999)"};
    const Judged unread = judged("quick", "gpu counters", gpus(before, after));
    CHECK(unread.count(Verdict::skipped) == 1);
    // What is not the GPU's is named.
    CHECK((measured.detail["nvml"]["notes"].dump().find("recovery action") != std::string::npos) ==
          (row.value >= 5));
  }
}

FIELD_CASE("sw-thermal-slowdown: all links down on a board that uses every link") {
  for (const char* model : {"NVIDIA H20", "NVIDIA B300 SXM6 AC", "NVIDIA GB200", "NVIDIA H100 80GB HBM3"}) {
    CAPTURE(model);
    auto dead = reading("sw-thermal-slowdown", "before.json");
    for (auto& [gpu, name] : dead.models) name = model;
    for (auto& [link, up] : dead.counts["nvlink_active"]) up = 0;
    const Judged found = judged("quick", "gpu counters", gpus(dead, dead));
    CHECK(found.of("nvlink_inactive").verdict == Verdict::fail);
    for (auto& [gpu, name] : dead.models) name = "NVIDIA H200 NVL";  // without bridges
    CHECK(judged("quick", "gpu counters", gpus(dead, dead)).of("nvlink_inactive").verdict == Verdict::pass);
  }
}

FIELD_CASE("ecc-off-passes") {
  using namespace kernels::gpu;
  auto off = parse_smi(field_input("ecc-off-passes", "ecc_off.csv"));
  merge_smi(off, parse_smi(field_input("ecc-off-passes", "remap_ok.csv")));
  REQUIRE(off.size() == 1);
  CHECK(judge_smi(off[0], off[0]).worn == std::vector<std::string>{"ECC is off"});
  CHECK(judge_smi(off[0], off[0]).bad.empty());
  off[0].name = "NVIDIA L4";
  CHECK(judge_smi(off[0], off[0]).worn.empty());
}

FIELD_CASE("ecc-off-passes: where the model has HBM, or another GPU of the model has it on") {
  const auto looked = [](const std::string& model, std::vector<int> on) {
    const auto reading = gpus_with_ecc(model, std::move(on));
    return judged("quick", "gpu counters", gpus(reading, reading));
  };
  for (const char* model : {"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA H20", "NVIDIA A30"}) {
    CAPTURE(model);
    CHECK(looked(model, {0, 0}).of("gpu_ecc_off").verdict == Verdict::degraded);
    CHECK(looked(model, {0, 0}).node == NodeVerdict::degraded);
    CHECK(looked(model, {1, 0}).says("GPU GPU-1"));
    CHECK_FALSE(looked(model, {1, 0}).says("GPU GPU-0"));
    CHECK(looked(model, {1, 1}).of("gpu_ecc_off").verdict == Verdict::pass);
  }
  CHECK(looked("NVIDIA L40S", {1, 1, 0}).says("GPU GPU-2"));
  // Off in the factory, and where the GPU has none.
  CHECK(looked("NVIDIA GeForce RTX 4090", {0, 0}).of("gpu_ecc_off").verdict == Verdict::pass);
  CHECK(looked("NVIDIA GeForce RTX 3080", {-1, -1}).of("gpu_ecc_off").verdict == Verdict::not_applicable);
}

}  // namespace muster::tests
