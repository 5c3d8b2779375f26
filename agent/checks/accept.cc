#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/checks/checks.h"
#include "agent/checks/run_programs.h"
#include "agent/checks/slow_links.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

namespace muster::checks {
namespace {

using steps::int_of;
using steps::object_of;
using steps::parameter;
using steps::text_of;

constexpr const char* kKernels[] = {"dgemm", "stream",         "sdc",          "drives", "pcie", "counters",
                                    "fio",   "checksum-write", "checksum-read"};
// Kernels of muster-accept-gpu: its subcommands with the prefix "gpu-".
constexpr const char* kGpuKernels[] = {"gpu-gemm",   "gpu-sdc",  "gpu-memory",
                                       "gpu-copies", "gpu-nccl", "gpu-training"};
constexpr int kDefaultPort = 7490, kRdmaPort = 7495;
constexpr int kRoundsAgain = 2;
constexpr int64_t kEndSeconds = 15, kDeadlineSeconds = 120;

Result<Json> run_kernel(StepContext& context, std::vector<std::string> arguments, DurationMs deadline) {
  Command command;
  const std::string kernel = arguments.front();
  command.argv = {program(context, "muster-accept")};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.deadline = deadline;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept " + kernel);
}

// muster-accept-gpu is a separate package, which not every image contains. If it is missing, the result
// states that (detail.missing), and the controller never counts it as a pass.
Result<Json> run_gpu_kernel(StepContext& context, std::vector<std::string> arguments, const Json& params) {
  Command command;
  const std::string kernel = arguments.front();
  if (const std::string libs = text_of(params, "libs"); !libs.empty()) command.env["LD_LIBRARY_PATH"] = libs;
  command.argv = {program(context, "muster-accept-gpu"), kernel.substr(4)};
  command.argv.insert(command.argv.end(), arguments.begin() + 1, arguments.end());
  command.deadline = int_of(params, "deadline_seconds", kDeadlineSeconds) * kSecond;
  const auto output = context.process.run(command);
  if (output.ok()) return measurement(*output, "muster-accept-gpu " + kernel.substr(4));
  if (output.error().code != Code::not_found) return output.error();
  return Json{{"check", kernel},
              {"version", 1},
              {"outcome", "unavailable"},
              {"blame", Json::array()},
              {"metrics", Json::object()},
              {"detail", {{"missing", "muster-accept-gpu"}}},
              {"error", "muster-accept-gpu is not on this node, so its GPUs cannot be measured"}};
}

template <size_t N>
bool is_one_of(const std::string& word, const char* const (&list)[N]) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// Returns the peers in name order, starting after this node, so that nodes have different partners.
std::vector<Peer> from_next(std::vector<Peer> peers, const std::string& self) {
  std::sort(peers.begin(), peers.end(), [](const Peer& a, const Peer& b) { return a.name < b.name; });
  const auto first = std::find_if(peers.begin(), peers.end(), [&](const Peer& p) { return p.name > self; });
  std::rotate(peers.begin(), first == peers.end() ? peers.begin() : first, peers.end());
  return peers;
}

Result<Json> measure_kernel(StepContext& context, const Json& params) {
  const std::string kernel = text_of(params, "kernel");
  const bool on_gpu = is_one_of(kernel, kGpuKernels);
  if (!on_gpu && !is_one_of(kernel, kKernels))
    return fail(Code::invalid, fmt::format("accept: unknown kernel '{}'", kernel));
  std::string peer;
  if (params.contains("peers")) {
    TRY(const auto peers, peers_of(params, "peers"));
    if (peers.empty()) return Json{{"check", kernel}, {"parts", Json::array()}};
    peer = from_next(peers, context.node).front().name;
  }
  std::vector<std::string> arguments = {kernel};
  for (const auto& [name, value] : object_of(params, "options").items()) {
    if (value == false) continue;
    arguments.push_back("--" + name);
    if (value != true) arguments.push_back(argument_text(context, value, peer));
  }
  // muster-accept searches only the folder of its own file for muster-accept-nvml, which may be elsewhere.
  if (const auto nvml = context.programs.find("muster-accept-nvml");
      kernel == "counters" && nvml != context.programs.end())
    arguments.insert(arguments.end(), {"--nvml", nvml->second});
  // The file that fio uses may be on storage that other nodes are using as well.
  if (kernel == "fio") arguments.insert(arguments.end(), {"--node", context.node, "--order", context.order});
  if (on_gpu) return run_gpu_kernel(context, arguments, params);
  return run_kernel(context, arguments, int_of(params, "deadline_seconds", kDeadlineSeconds) * kSecond);
}

// A test between two nodes: the kernel that serves, the one that measures with one partner, and its options
// in addition to addresses. `part`: the check name of the measurement with one partner.
struct PairTest {
  std::string check, part, serve, kernel;
  int64_t port, serve_seconds, deadline_seconds;
  std::vector<std::string> options;
};

// Adds the measurements with one partner; a kernel with several measurements reports which of them belong
// together. Returns false if this node cannot measure at all, with the reason in `result`.
bool add_parts(const Json& result, const std::string& peer, Json& parts) {
  if (result.contains("parts")) {
    for (Json part : result["parts"]) {
      part["subject"] = peer;
      parts.push_back(std::move(part));
    }
    return true;
  }
  const bool of_a_pair = result.value("check", "") == "link";
  if (of_a_pair) parts.push_back({{"subject", peer}, {"result", result}});
  return of_a_pair;
}

// Returns a replacement for a measurement with `peer`: the kernel was killed or failed, and the other
// partners are still measured.
Json unmeasured_part(const PairTest& test, const Peer& peer, const Error& error) {
  Json detail = {{"to", peer.address}};
  // A link measurement ends by itself in time: if it still hangs, one of its two ends is faulty. RDMA also
  // waits, for perftest and for other nodes.
  if (error.code != Code::timeout)
    detail["at_fault"] = "here";
  else if (test.part != "link")
    detail["inconclusive"] = true;
  return {{"subject", peer.name},
          {"result",
           {{"check", test.part},
            {"version", 1},
            {"outcome", "unavailable"},
            {"error", error.message},
            {"blame", Json::array()},
            {"metrics", Json::object()},
            {"detail", detail}}}};
}

// Serves while it measures: every node runs this step at the same time, so each finds the servers of the
// others. The server ends by itself, and with this agent. Peers are measured one after the other, starting
// with the next node in name order, so that at any moment most nodes are busy with different partners.
Result<Json> measure_with_peers(StepContext& context, const Json& params, const PairTest& test) {
  TRY(std::vector<Peer> peers, peers_of(params, "peers"));
  if (peers.empty()) return Json{{"check", test.check}, {"parts", Json::array()}};
  peers = from_next(std::move(peers), context.node);
  // Keeps the next nodes in name order, so that every node is measured equally often from both sides.
  if (const int64_t partners = int_of(params, "partners", 0);
      partners > 0 && peers.size() > static_cast<size_t>(partners))
    peers.resize(static_cast<size_t>(partners));
  const std::string address = text_of(params, "address"), port = std::to_string(test.port);
  TRY(const Json server,
      run_kernel(context,
                 {test.serve, "--bind", address, "--port", port, "--detach", "--with",
                  std::to_string(::getpid()), "--seconds", std::to_string(test.serve_seconds)},
                 20 * kSecond));
  if (server.value("outcome", "") != "measured")
    return fail(Code::unavailable,
                fmt::format("{} did not start: {}", test.serve, server.value("error", "")));
  const double seconds = std::strtod(text_of(params, "seconds", "1").c_str(), nullptr);
  // Round 0 is shared. The wait for a turn grows with the rounds.
  const auto measure = [&](const Peer& peer, int round = 0) {
    steps::say(context, fmt::format("{} to {}", test.kernel, peer.name));
    std::vector<std::string> arguments = {test.kernel, "--to",   peer.address, "--port",
                                          port,        "--bind", address};
    arguments.insert(arguments.end(), test.options.begin(), test.options.end());
    if (test.part == "link")
      arguments.insert(arguments.end(), {"--turn", round ? "alone" : "shared", "--turn-seconds",
                                         fmt::format("{}", turn_seconds(round, seconds))});
    return run_kernel(context, arguments, test.deadline_seconds * kSecond);
  };
  Json parts = Json::array();
  for (const auto& peer : peers) {
    if (steps::is_cancelled(context)) return fail(Code::cancelled, "cancelled");
    const auto result = measure(peer);
    const bool broke_off =
        !result.ok() && (result.error().code == Code::timeout || result.error().code == Code::failed);
    if (!result.ok() && !broke_off) return result.error();
    if (broke_off)
      parts.push_back(unmeasured_part(test, peer, result.error()));
    else if (!add_parts(*result, peer.name, parts))
      return result;
  }
  if (test.part != "link" || parts.size() != peers.size())
    return Json{{"check", test.check}, {"parts", parts}};
  for (int round = 1; round <= kRoundsAgain; ++round)
    for (const size_t at : slow_links(parts)) {
      if (steps::is_cancelled(context)) return fail(Code::cancelled, "cancelled");
      const auto again = measure(peers[at], round);
      if (again.ok()) parts[at]["result"] = better_link(parts[at]["result"], *again);
    }
  return Json{{"check", test.check}, {"parts", parts}};
}

Result<Json> measure_links(StepContext& context, const Json& params) {
  return measure_with_peers(context, params,
                            {.check = "links",
                             .part = "link",
                             .serve = "link-serve",
                             .kernel = "link",
                             .port = int_of(params, "port", kDefaultPort),
                             .serve_seconds = int_of(params, "serve_seconds", 120),
                             .deadline_seconds = int_of(params, "deadline_seconds", 120),
                             .options = {"--seconds", text_of(params, "seconds", "1"), "--connect-seconds",
                                         std::to_string(int_of(params, "connect_seconds", 45))}});
}

Result<Json> measure_rdma(StepContext& context, const Json& params) {
  const bool gpu_memory = steps::bool_of(params, "gpu_memory", false);
  PairTest test{.check = "rdma",
                .part = gpu_memory ? "rdma-gpu-memory" : "rdma-link",
                .serve = "rdma-serve",
                .kernel = "rdma",
                .port = int_of(params, "port", kRdmaPort),
                .serve_seconds = int_of(params, "serve_seconds", 600),
                .deadline_seconds = int_of(params, "deadline_seconds", 600),
                .options = {}};
  const std::pair<const char*, int64_t> numbers[] = {
      {"seconds", 3}, {"iterations", 1000}, {"connect_seconds", 45}, {"busy_seconds", 300}};
  for (const auto& [name, fallback] : numbers) {
    std::string option = name;
    std::replace(option.begin(), option.end(), '_', '-');
    test.options.insert(test.options.end(), {"--" + option, std::to_string(int_of(params, name, fallback))});
  }
  // The kernel ends by itself before it would be killed, so that its measurements are not lost.
  const int64_t total = std::max(test.deadline_seconds - kEndSeconds, test.deadline_seconds / 2);
  test.options.insert(test.options.end(), {"--total-seconds", std::to_string(total)});
  if (gpu_memory) test.options.push_back("--gpu-memory");
  return measure_with_peers(context, params, test);
}

// Runs one load across all `hosts`, an all-reduce by default, started from this node. A failure or a hang is
// a measurement of all `hosts`, not a result about this node. Only an error that prevents the start of the
// load is returned as an Error.
Result<Json> run_mpi(StepContext& context, const Json& params, const std::vector<Peer>& hosts) {
  const std::string load = text_of(params, "load", "allreduce");
  // Lists this host by name: Open MPI 5 does not recognize its address as local and would find no slot on it.
  std::string self = context.files.read("/proc/sys/kernel/hostname").value_or(context.node);
  while (!self.empty() && self.back() == '\n') self.pop_back();
  std::string list;
  Json members = Json::array();
  for (const auto& host : hosts) {
    list += (list.empty() ? "" : ",") + (host.name == context.node ? self : host.address);
    members.push_back(host.name);
  }
  Command command;
  // A rank has several threads, which would all share one core: mpirun binds a rank to one by default.
  command.argv = {
      "runuser",   "-u",  text_of(params, "user", "mpi"), "--", "mpirun", "--host", list, "--map-by", "node",
      "--bind-to", "none"};
  // The result is compared with the speed of the port on this network, so the load must use that port;
  // nodes with RDMA would otherwise use RDMA, and could not communicate with a node without it.
  if (const std::string network = text_of(params, "network"); !network.empty())
    for (const auto& [layer, value] : {std::pair<const char*, std::string>{"pml", "ob1"},
                                       {"btl", "^openib,uct,ofi,usnic"},
                                       {"btl_tcp_if_include", network},
                                       {"oob_tcp_if_include", network}})
      command.argv.insert(command.argv.end(), {"--mca", layer, value});
  command.argv.insert(command.argv.end(), {program(context, "muster-mpi-check"), "--load", load, "--seconds",
                                           text_of(params, "seconds", "1"), "--max-bytes",
                                           std::to_string(int_of(params, "max_bytes", 262144))});
  if (load == "nccl" || load == "gpu-training") {
    command.argv.insert(command.argv.end(), {"--program", program(context, "muster-accept-gpu")});
    if (const std::string network = text_of(params, "network"); !network.empty())
      command.argv.insert(command.argv.end(), {"--network", network});
    // NCCL's own choice may route around a bad link; between two nodes the link itself is tested.
    if (params.contains("pairs")) command.argv.insert(command.argv.end(), {"--algorithm", "Ring"});
  }
  for (const auto& [name, value] : object_of(params, "options").items())
    command.argv.insert(command.argv.end(), {"--" + name, argument_text(context, value, "")});
  command.deadline = int_of(params, "deadline_seconds", 180) * kSecond;
  command.cwd = "/";
  const auto failed = [&](const std::string& error) {
    return Json{
        {"check", load}, {"version", 1}, {"outcome", "failed"}, {"error", error}, {"members", members}};
  };
  const auto output = context.process.run(command);
  if (!output.ok() && output.error().code == Code::timeout) return failed(output.error().message);
  if (!output.ok()) return output.error();
  auto result = measurement(*output, "mpirun");
  // Unsupported options are an error in the profile, not a fault of a node.
  if (!result.ok() && result.error().code == Code::invalid &&
      result.error().message.find("muster-mpi-check: ") != std::string::npos)
    return result.error();
  if (!result.ok()) return failed(result.error().message);
  (*result)["members"] = members;
  // With fewer ranks than hosts, the result might be good, but it would be that of a smaller cluster.
  const Json ranks = result->value(Json::json_pointer("/metrics/ranks/value"), Json());
  if (!ranks.is_number() || ranks.get<double>() != static_cast<double>(hosts.size()))
    return failed(fmt::format("{} of {} ranks took part", dump_json(ranks), hosts.size()));
  return result;
}

Result<Json> measure_mpi(StepContext& context, const Json& params) {
  TRY(const std::vector<Peer> hosts, peers_of(params, "hosts"));
  if (hosts.empty()) return fail(Code::invalid, "accept_mpi: 'hosts' is empty");
  const auto load = [&](const std::vector<Peer>& members) { return run_mpi(context, params, members); };
  return params.contains("pairs") ? in_pairs(context, params, hosts, load) : load(hosts);
}

}  // namespace

StepModule accept_module() {
  StepModule m;
  m.name = "accept";
  m.help =
      "Runs one acceptance kernel of muster-accept on this node: dgemm, stream, sdc, drives, counters, fio, "
      "checksum-write or checksum-read; or one of muster-accept-gpu: gpu-gemm, gpu-sdc, gpu-memory, "
      "gpu-copies, gpu-nccl or gpu-training.";
  m.parameters = Json::array(
      {parameter("kernel", "string", true, "name of the kernel"),
       parameter(
           "options", "object", false,
           "options of the kernel: {seconds: 1} becomes --seconds 1; {folder} in a value becomes the folder "
           "that the agent's steps share"),
       parameter("peers", "list", false,
                 "other nodes; {peer} in an option becomes the name of the next node"),
       parameter("libs", "string", false,
                 "folder with NCCL, cuBLASLt and their dependencies, for GPU kernels"),
       parameter("deadline_seconds", "int", false, "timeout after which the kernel's program is killed",
                 kDeadlineSeconds)});
  m.check = has_what_it_measures;
  m.measure = measure_kernel;
  return m;
}

StepModule accept_links_module() {
  StepModule m;
  m.name = "accept_links";
  m.help =
      "Measures TCP bandwidth and round-trip time to every peer, in both directions, and verifies every "
      "byte. This step belongs to phase `cluster`: all nodes run it at the same time and serve each other.";
  m.parameters = Json::array(
      {parameter("peers", "list", true, "other nodes: {name, address}"),
       parameter("partners", "int", false,
                 "number of peers to measure, starting with the next one by name; 0 means all", 0),
       parameter("address", "string", true, "address of this node"),
       parameter("port", "int", false, "TCP port of the servers", kDefaultPort),
       parameter("seconds", "string", false, "seconds per peer, for both directions together", "1"),
       parameter("connect_seconds", "int", false, "how long to wait for a peer's server", 45),
       parameter("serve_seconds", "int", false, "time after which this node's server ends", 120),
       parameter("deadline_seconds", "int", false,
                 "timeout after which the measurement of one peer is killed", 120)});
  m.measure = measure_links;
  return m;
}

StepModule accept_rdma_module() {
  StepModule m;
  m.name = "accept_rdma";
  m.help =
      "Measures RDMA bandwidth in both directions and latency to every peer with perftest, one pair of nodes "
      "at a time, rail by rail; all rails of a pair are measured at the same time. This step belongs to "
      "phase `cluster`: all nodes run it at the same time and serve each other. A node without an RDMA "
      "device or without perftest does not pass, and its result gives the reason.";
  m.parameters = Json::array(
      {parameter("peers", "list", true, "other nodes: {name, address}"),
       parameter("partners", "int", false,
                 "number of peers to measure, starting with the next one by name; 0 means all", 0),
       parameter("address", "string", true, "address of this node"),
       parameter("port", "int", false,
                 "TCP port of the servers; perftest uses the ports above it, one per rail", kRdmaPort),
       parameter("seconds", "int", false, "seconds per peer and direction", 3),
       parameter("iterations", "int", false, "iterations of the latency test", 1000),
       parameter("gpu_memory", "bool", false, "measure between host memory and GPU memory (GPUDirect)",
                 false),
       parameter("connect_seconds", "int", false, "how long to wait for a peer's server", 45),
       parameter("busy_seconds", "int", false,
                 "how long to wait for a peer that is measuring with another node", 300),
       parameter("serve_seconds", "int", false, "time after which this node's server accepts no more peers",
                 600),
       parameter("deadline_seconds", "int", false,
                 "timeout after which the measurement of one peer is killed", 600)});
  m.check = has_what_it_measures;
  m.measure = measure_rdma;
  return m;
}

StepModule accept_mpi_module() {
  StepModule m;
  m.name = "accept_mpi";
  m.help =
      "Runs one load across the listed nodes with MPI, started from this node with one rank per node, and "
      "checks every result exactly. The load is an all-reduce, a training-shaped load on 1, 2, 4 ... and all "
      "nodes, NCCL's collectives across all GPUs of the nodes, or the training-shaped load on the GPUs. If "
      "it fails or is too slow, the controller repeats it in pairs of nodes to isolate the faulty node.";
  m.parameters = Json::array(
      {parameter("hosts", "list", true, "nodes: {name, address}"),
       parameter("pairs", "list", false,
                 "pairs of node names: run the load on each of these pairs instead of on all nodes"),
       parameter("user", "string", false, "account that can log in to all nodes", "mpi"),
       parameter("network", "string", false, "CIDR that Open MPI must use"),
       parameter("seconds", "string", false, "time budget in seconds", "1"),
       parameter("load", "string", false, "allreduce, training, nccl or gpu-training", "allreduce"),
       parameter("max_bytes", "int", false, "largest message in bytes, for the loads `allreduce` and `nccl`",
                 262144),
       parameter(
           "options", "object", false,
           "options of the load: {model: 1024} becomes --model 1024; GPU loads require `gpus` (per node)"),
       parameter("deadline_seconds", "int", false, "timeout after which the load is killed", 180),
       parameter("pair_deadline_seconds", "int", false,
                 "timeout after which the load on one pair of nodes is killed", 60)});
  m.check = has_what_it_measures;
  m.measure = measure_mpi;
  return m;
}

}  // namespace muster::checks
