#include "tests/machines/programs.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/json_dump.h"
#include "base/split.h"
#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/containers/containers.h"
#include "kernels/containers/test_container.h"
#include "kernels/counters/counters.h"
#include "kernels/counters/nvml.h"
#include "kernels/cpu/cpu.h"
#include "kernels/drives/drives.h"
#include "kernels/link/link.h"
#include "kernels/rdma/rdma.h"
#include "kernels/rdma/rdma_link.h"
#include "tests/catch.h"
#include "tests/machines/description.h"
#include "tests/machines/layout.h"
#include "tests/source_dir.h"

namespace muster::machines {
namespace {

using kernels::Measurement;
using Options = std::map<std::string, std::string>;

Options options_of(const std::vector<std::string>& argv) {
  Options out;
  for (size_t i = 2; i < argv.size(); ++i)
    if (argv[i].starts_with("--")) {
      const bool has_value = i + 1 < argv.size() && !argv[i + 1].starts_with("--");
      out[argv[i].substr(2)] = has_value ? argv[i + 1] : "";
    }
  return out;
}

Output printed(const Json& measurement) {
  return {measurement.value("outcome", "") == "measured" ? 0 : 1, dump_json(measurement) + "\n", ""};
}
Output printed(const Measurement& measurement) { return printed(to_json(measurement)); }

Measurement only(const std::string& check) {
  Measurement out;
  out.check = check;
  return out;
}

// Equal parts differ a little.
double about(double value, int number) { return value * (1 + 0.002 * (number % 3 - 1)); }

const Json& figure(const FleetNode& node, const std::string& name) {
  const Json& found = at(node.machine, "measured/" + name);
  if (found.is_null()) FAIL(node.name << ": the description has no measured/" << name);
  return found;
}

// ---- processors and memory

Measurement dgemm(const FleetNode& node) {
  Measurement out = only("dgemm");
  const auto machine = kernels::look_at_machine(node.files());
  const std::string variant = text(node.machine, "cpu/variant");
  const int threads = whole(node.machine, "cpu/sockets", 1) * whole(node.machine, "cpu/cores") *
                      whole(node.machine, "cpu/threads", 1);
  out.metrics["gflops"] = {about(figure(node, "gflops").get<double>(), whole(node.machine, "number")),
                           "GFLOP/s"};
  out.metrics["slowest_core_ratio"] = {real(node.machine, "measured/slowest_core", 0.97), "ratio"};
  out.detail = {{"variant", variant},
                {"flops_per_cycle", kernels::flops_per_cycle(variant, machine)},
                {"units_512", machine.units_512},
                {"physical_cores", machine.physical_cores},
                {"machine_cores", machine.machine_cores},
                {"cpu_mhz", machine.cpu_mhz},
                {"clock", machine.base_clock ? "base" : "highest"},
                {"threads", threads},
                {"verified", "recorded"}};
  return out;
}

Measurement stream(const FleetNode& node) {
  Measurement out = only("stream");
  const auto machine = kernels::look_at_machine(node.files());
  const double triad = about(figure(node, "triad_mbps").get<double>(), whole(node.machine, "number"));
  for (const char* name : {"copy_mbps", "scale_mbps", "add_mbps", "triad_mbps"})
    out.metrics[name] = {triad, "MB/s"};
  out.detail = {{"dimms", machine.dimms},
                {"dimm_mt_s", machine.dimm_mt_s},
                {"channels", machine.channels},
                {"physical_cores", machine.physical_cores},
                {"machine_cores", machine.machine_cores},
                {"array_bytes", uint64_t{64} << 30},
                {"last_level_cache_bytes", uint64_t{200} << 20},
                {"cache_resident", false},
                {"verified", "recorded"}};
  return out;
}

Measurement sdc() {
  Measurement out = only("sdc");
  out.metrics["products"] = {5000, "products"};
  out.detail = {{"verified", "recorded"}};
  return out;
}

// ---- counters and drives

// The number of a device among those of its bus; the kernel names them in their order.
std::string usual_name(const Json& drive, int numbers[2]) {
  const bool nvme = text(drive, "bus") == "nvme";
  const int number = numbers[nvme]++;
  return text(drive, "name",
              nvme ? fmt::format("nvme{}n1", number) : fmt::format("sd{}", static_cast<char>('a' + number)));
}

// Log page 02h of a drive that is used up by `worn` percent.
Result<std::string> smart_log(const FleetNode& node, const std::string& device) {
  int numbers[2] = {};
  for (const Json& drive : devices(node.machine, "drive")) {
    if (!usual_name(drive, numbers).starts_with(last_component(device) + "n")) continue;
    std::string log(512, '\0');
    log[0] = static_cast<char>(whole(drive, "warning"));
    log[3] = 100;
    log[4] = 10;
    log[5] = static_cast<char>(whole(drive, "worn", 3));
    return log;
  }
  return fail(Code::not_found, "no drive " + device);
}

Measurement counters(FleetNode& node, const Options& options) {
  kernels::CountersOptions want;
  const auto given = [&](const char* key) {
    const auto found = options.find(key);
    return found == options.end() ? std::string() : found->second;
  };
  want.save = given("save");
  want.since = given("since");
  want.gpus = options.count("gpus") > 0;
  if (options.count("smart"))
    want.query_smart = [&node](const std::string& device) { return smart_log(node, device); };
  const std::string state = nvml_state(node.root);
  if (node.files().exists(nvml_state("")))
    want.query_nvml = [state]() -> Result<kernels::NvmlReading> {
      ::setenv("MUSTER_FAKE_NVML", state.c_str(), 1);
      const auto nvml = kernels::Nvml::open(build_dir() + "/fake-nvml/libnvidia-ml.so.1");
      auto reading = nvml.ok() ? nvml->read() : Result<kernels::NvmlReading>(nvml.error());
      ::unsetenv("MUSTER_FAKE_NVML");
      return reading;
    };
  Measurement out = kernels::run_counters(node.files(), want);
  if (!want.save.empty() && !node.loaded) {
    load(node.machine, node.root);
    node.loaded = true;
  }
  return out;
}

double reads_of(const FleetNode& node, const std::string& name) {
  int numbers[2] = {}, index = 0;
  for (const Json& drive : devices(node.machine, "drive")) {
    ++index;
    if (usual_name(drive, numbers) == name) return about(real(drive, "reads"), index);
  }
  FAIL(node.name << " has no drive " << name);
  return 0;
}

// One block of each drive is read; the figures are the description's.
Json drives(const FleetNode& node) {
  Json out = to_json(kernels::run_drives(node.files(), {.seconds = 0, .streams = 1}));
  std::map<std::string, int> alike;
  for (const Json& part : out["parts"]) ++alike[part["like"].get<std::string>()];
  for (Json& part : out["parts"]) {
    Json& result = part["result"];
    if (result["outcome"] != "measured") continue;
    const double reads = reads_of(node, result["detail"]["kernel_name"].get<std::string>());
    result["metrics"]["read_mbps"]["value"] = reads;
    if (alike[part["like"].get<std::string>()] < 2) continue;
    result["metrics"]["parallel_mbps"] = {{"value", reads}, {"unit", "MB/s"}};
    result["detail"].erase("absent");
  }
  return out;
}

// ---- containers

Output engine(const FleetNode& node, const std::vector<std::string>& argv) {
  const std::string version = text(node.machine, "engines/" + argv[0]);
  if (argv[1] == "info")
    return {0, dump_json({{"ServerVersion", version}, {"CDISpecDirs", Json::array({"/etc/cdi"})}}), ""};
  if (argv[1] == "--version") return {0, version + "\n", ""};
  if (argv[1] != "run") return {0, "", ""};
  kernels::DeviceFiles inside = kernels::open_devices(node.files());
  for (const Json& path : at(node.machine, "hidden")) inside.erase(path.get<std::string>());
  return {0, kernels::devices_text(inside) + "\n", ""};
}

// ---- links

Measurement link(const FleetNode& node, const FleetNode& other, const Options& options) {
  Measurement out = only("link");
  const double rate =
      std::min(figure(node, "link_mbps").get<double>(), figure(other, "link_mbps").get<double>());
  for (const char* name : {"send_mbps", "receive_mbps"})
    out.metrics[name] = {about(rate, whole(node.machine, "number") + whole(other.machine, "number")), "MB/s"};
  out.metrics["rtt_ms"] = {0.04, "ms"};
  const Json port = kernels::port_named(node.files(), text(node.machine, "address_on"));
  out.detail = {
      {"to", options.at("to")}, {"from", node.address}, {"own_port", port}, {"verified", "recorded"}};
  const int streams = kernels::streams_for(real(port, "speed_mbps"), 64);
  if (streams == 1) return out;
  out.detail["streams"] = streams;
  for (const char* name : {"stream_send_mbps", "stream_receive_mbps"})
    out.metrics[name] = {std::min(rate, 4750.0), "MB/s"};  // 38 Gb/s
  return out;
}

// The real kernel on both nodes, which meet on the loopback interface.
Json rdma(Fleet& fleet, size_t own, const Options& options) {
  size_t other = 0;
  while (fleet.nodes[other].address != options.at("to")) ++other;
  auto server = kernels::RdmaServer::open({.bind = "127.0.0.1", .seconds = 60, .sessions = 1});
  REQUIRE(server.ok());
  const Files there = fleet.nodes[other].files();
  std::thread serving([&] { (void)server->run(there, *fleet.programs[other]); });
  kernels::RdmaOptions want{.to = "127.0.0.1", .port = server->port(), .seconds = 1, .connect_seconds = 5};
  want.gpu_memory = options.count("gpu-memory") > 0;
  Json out = to_json(kernels::run_rdma(fleet.nodes[own].files(), *fleet.programs[own], want));
  // A node that cannot measure never connects.
  if (const auto fd = kernels::connect_until({"127.0.0.1", server->port(), "", 0}); fd.ok()) ::close(*fd);
  serving.join();
  if (out.contains("parts"))
    for (Json& part : out["parts"]) part["result"]["detail"]["to"] = options.at("to");
  return out;
}

// Null: the node has no such device.
Json rdma_device(const FleetNode& node, const std::string& device) {
  int number = 0;
  for (const Json& port : devices(node.machine, "port")) {
    const std::string name = text(port, "rdma/name", fmt::format("mlx5_{}", number++));
    if (port.contains("rdma") && name == device) return port;
  }
  return nullptr;
}

std::string word_after(const std::vector<std::string>& argv, const std::string& option) {
  const auto found = std::find(argv.begin(), argv.end(), option);
  return found == argv.end() || found + 1 == argv.end() ? "" : *(found + 1);
}

Output perftest(Fleet& fleet, const FleetNode& node, const std::vector<std::string>& argv) {
  const bool has_cuda = node.machine.contains("perftest_cuda");
  if (argv.back() == "--version") return {1, "Version: 6.06\n", ""};
  if (argv.back() == "--help") return {1, has_cuda ? "  --use_cuda=<id>\n" : "  --report_gbits\n", ""};
  const Json port = rdma_device(node, word_after(argv, "-d"));
  if (port.is_null()) return {1, "", "there is no such device\n"};
  if (text(port, "rdma/layer") == "Unknown") return {1, "", " Unable to create QP.\n"};  // EFA has no RC
  const std::lock_guard hold(fleet.mutex);
  const std::string number = word_after(argv, "-p");
  if (argv.back() != "127.0.0.1") {
    fleet.listening[number] = port;
    const std::string line =
        fmt::format("   0: 00000000:{:04X} 00000000:0000 0A 00000000:00000000\n", std::stoi(number));
    if (!node.files().write_raw("/proc/net/tcp", line).ok()) return {1, "", "cannot listen\n"};
    return {0, "", ""};
  }
  const Json there = fleet.listening.count(number) ? fleet.listening[number] : port;
  const double gbps = std::min(real(port, "gbps"), real(there, "gbps")),
               us = std::max(real(port, "us", 2), real(there, "us", 2));
  const std::string head = fmt::format(" Mtu             : {}[B]\n", whole(port, "rdma/mtu", 4096));
  if (std::any_of(argv.begin(), argv.end(), [](const auto& word) { return has(word, "ib_write_lat"); }))
    return {
        0,
        fmt::format(
            "{} #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
            "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
            " 8       1000          {:.2f}           {:.2f}         {:.2f}               {:.2f}             "
            "0.05            {:.2f}                    {:.2f}\n",
            head, us * 0.95, us * 2, us, us, us * 1.1, us * 1.5),
        ""};
  return {0,
          fmt::format("{} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
                      " 65536      500000           0.00               {:.2f}               0.5\n",
                      head, gbps),
          ""};
}

// ---- GPUs

double gpu_figure(const FleetNode& node, const Json& gpu, const std::string& name) {
  const Json& own = at(gpu, "gives/" + name);
  return own.is_number() ? own.get<double>() : figure(node, "gpu/" + name).get<double>();
}

Measurement on_gpu(const FleetNode& node, const Json& gpu, const std::string& kernel,
                   const Options& options) {
  Measurement out = only("gpu-" + kernel);
  out.detail = {{"verified", "recorded"}};
  const int number = whole(gpu, "index");
  const auto put = [&](const char* metric, const char* name, const char* unit) {
    out.metrics[metric] = {about(gpu_figure(node, gpu, name), number), unit};
  };
  const bool fp8 = options.count("format") > 0;
  if (fp8 && at(node.machine, "measured/gpu/fp8").is_null()) {
    out.outcome = kernels::Outcome::unavailable;
    out.detail["unsupported"] = out.error = "compute capability 8.0 does not support products in format fp8";
  } else if (kernel == "gemm") {
    put("tflops", fp8 ? "fp8" : "bf16", "TFLOP/s");
    out.metrics["drift"] = {0.99, "ratio"};
  } else if (kernel == "sdc") {
    out.metrics["products"] = {900, "products"};
  } else if (kernel == "memory") {
    put("copy_gbps", "copy", "GB/s");
    put("triad_gbps", "triad", "GB/s");
    out.detail["absent"] = Json::array();
    for (const char* name : {"ecc_corrected", "ecc_uncorrected", "remap_pending", "remap_failed"})
      out.metrics[name] = {real(gpu, std::string("gives/") + name, 0), ""};
    if (out.metrics["remap_failed"].value > 0 || out.metrics["ecc_uncorrected"].value > 0) {
      out.outcome = kernels::Outcome::failed;
      out.error = "the GPU's own counters say that it is broken";
      out.faulty_parts = {"memory of GPU " + gpu_uuid(node.machine, gpu)};
    }
  } else if (kernel == "copies") {
    put("h2d_gbps", "h2d", "GB/s");
    put("d2h_gbps", "d2h", "GB/s");
  } else {
    FAIL("no kernel " << kernel);
  }
  return out;
}

Json gpu_program(const FleetNode& node, const std::string& kernel, const Options& options) {
  std::vector<Json> gpus = devices(node.machine, "gpu");
  std::erase_if(gpus, [](const Json& gpu) { return !gpu.contains("model"); });
  Measurement out = only("gpu-" + kernel);
  if (kernel == "nccl" || kernel == "training") {
    out.metrics["ranks"] = {static_cast<double>(gpus.size()), "ranks"};
    if (kernel == "training")
      out.metrics["tflops_per_gpu"] = {figure(node, "gpu/training").get<double>(), "TFLOP/s"};
    out.detail = {{"verified", "recorded"}};
    return to_json(out);
  }
  out.parts = Json::array();
  for (const Json& gpu : gpus) {
    const Measurement part = on_gpu(node, gpu, kernel, options);
    if (part.outcome != kernels::Outcome::measured) out.outcome = part.outcome, out.error = part.error;
    out.faulty_parts.insert(out.faulty_parts.end(), part.faulty_parts.begin(), part.faulty_parts.end());
    out.parts.push_back(
        {{"subject", gpu_uuid(node.machine, gpu)}, {"like", text(gpu, "model")}, {"result", to_json(part)}});
  }
  return to_json(out);
}

// ---- loads of several nodes

Measurement group(const Fleet& fleet, const Options& options) {
  if (options.count("bye")) return only("group");
  std::vector<const FleetNode*> members;
  for (const std::string& member : split(options.at("members"), ','))
    members.push_back(&fleet.by_address(member.substr(member.find('=') + 1)));
  const std::string load = options.at("load");
  Measurement out = only(load);
  const auto least = [&](const std::string& name) {
    double value = 1e300;
    for (const auto* node : members) value = std::min(value, figure(*node, name).get<double>());
    return value;
  };
  out.metrics["ranks"] = {static_cast<double>(members.size()), "ranks"};
  out.detail = {{"verified", "recorded"}};
  if (load == "allreduce") {
    out.metrics["busbw_mbps"] = {least("allreduce_mbps"), "MB/s"};
    out.metrics["latency_ms"] = {0.1, "ms"};
  } else if (load == "nccl") {
    double gpus = 0;
    for (const auto* node : members)
      for (const Json& gpu : devices(node->machine, "gpu")) gpus += gpu.contains("model");
    out.metrics["gpus"] = {gpus, "ranks"};
    out.metrics["all_reduce_busbw_gbps"] = {least("nccl_gbps"), "GB/s"};
    out.detail["algorithm"] = options.count("algorithm") ? options.at("algorithm") : "NCCL's choice";
    double fewest = 1e300;  // as least_rails() of kernels/together/gpu_load.cc
    for (const auto* node : members) {
      const Json rails = kernels::active_rails(node->files());
      double sum = 0;
      for (const Json& rail : rails) sum += real(rail, "rate_gbps");
      if (sum < fewest) out.detail["rails"] = rails, fewest = sum;
    }
  } else if (load == "gpu-training") {
    out.metrics["tflops_per_gpu"] = {least("gpu/training"), "TFLOP/s"};
  }
  return out;
}

}  // namespace

const FleetNode& Fleet::by_address(const std::string& address) const {
  for (const auto& node : nodes)
    if (node.address == address) return node;
  FAIL("no node has the address " << address);
  std::abort();
}

Result<Output> Programs::run(const Command& command) {
  FleetNode& node = fleet_.nodes[own_];
  const std::vector<std::string>& argv = command.argv;
  if (std::any_of(argv.begin(), argv.end(), [](const auto& word) { return word.starts_with("ib_write_"); })) {
    if (at(node.machine, "perftest") == false) return fail(Code::not_found, "ib_write_bw: not found");
    return perftest(fleet_, node, argv);
  }
  if (argv[0] == "tar") return Output{0, "", ""};
  if (argv[0].ends_with(kernels::kContainersProgram))
    return Output{0, kernels::devices_text(kernels::open_devices(node.files())) + "\n", ""};
  if (at(node.machine, "engines").contains(argv[0])) return engine(node, argv);
  const std::string program = last_component(argv[0]), kernel = argv.size() > 1 ? argv[1] : "";
  const Options options = options_of(argv);
  if (program == "muster-accept-gpu") return printed(gpu_program(node, kernel, options));
  if (program != "muster-accept") return fail(Code::not_found, argv[0] + ": not found");
  if (kernel == "dgemm") return printed(dgemm(node));
  if (kernel == "stream") return printed(stream(node));
  if (kernel == "sdc") return printed(sdc());
  if (kernel == "counters") return printed(counters(node, options));
  if (kernel == "pcie") return printed(kernels::run_pcie(node.files()));
  if (kernel == "drives") return printed(drives(node));
  if (kernel == "containers")
    return printed(
        kernels::run_containers(node.files(), *this, {.program = node.files().real("/usr/bin/setpriv")}));
  if (kernel == "link") return printed(link(node, fleet_.by_address(options.at("to")), options));
  if (kernel == "rdma") return printed(rdma(fleet_, own_, options));
  if (kernel == "group") return printed(group(fleet_, options));
  if (kernel.ends_with("-serve")) return printed(only(kernel));
  return fail(Code::not_found, "muster-accept " + kernel + " is not recorded");
}

}  // namespace muster::machines
