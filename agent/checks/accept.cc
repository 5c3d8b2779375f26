#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/checks/checks.h"
#include "agent/checks/run_programs.h"
#include "agent/checks/slow_links.h"
#include "agent/steps/step_modules.h"
#include "base/perftest_files.h"
#include "base/ports.h"

namespace muster::checks {
namespace {

constexpr const char* kKernels[] = {"dgemm",    "stream",     "sdc", "drives",         "pcie",
                                    "counters", "containers", "fio", "checksum-write", "checksum-read"};
// Kernels of muster-accept-gpu: its subcommands with the prefix "gpu-".
constexpr const char* kGpuKernels[] = {"gpu-gemm",   "gpu-sdc",  "gpu-memory",
                                       "gpu-copies", "gpu-nccl", "gpu-training"};
constexpr int kRoundsAgain = 2;
constexpr int64_t kEndSeconds = 15;

struct WantedKernel {
  std::string kernel;
  std::map<std::string, Json> options;
  std::optional<std::vector<Peer>> peers;
  std::string libs;
  int64_t deadline_seconds = 120;
};
MUSTER_PARAMETERS(
    WantedKernel, required(kernel, "name of the kernel"),
    optional(
        options,
        "options of the kernel: {seconds: 1} becomes --seconds 1; {folder} in a value becomes the folder "
        "that the agent's steps share"),
    optional(peers, "other nodes; {peer} in an option becomes the name of the next node"),
    optional(libs, "folder with NCCL, cuBLASLt and their dependencies, for GPU kernels"),
    optional(deadline_seconds, "timeout after which the kernel's program is killed"))

struct Partners {
  std::vector<Peer> peers;
  int64_t partners = 0;
  std::string address;
};
MUSTER_PARAMETERS(Partners, required(peers, "other nodes: {name, address}"),
                  optional(partners,
                           "number of peers to measure, starting with the next one by name; 0 means all"),
                  required(address, "address of this node"))

struct WantedLinks {
  Partners with;
  int64_t port = kLinkPort;
  std::string seconds = "1";
  int64_t connect_seconds = 45, serve_seconds = 120, deadline_seconds = 120;
};
MUSTER_PARAMETERS(WantedLinks, flat(with), optional(port, "TCP port of the servers"),
                  optional(seconds, "seconds per peer, for both directions together"),
                  optional(connect_seconds, "how long to wait for a peer's server"),
                  optional(serve_seconds, "time after which this node's server ends"),
                  optional(deadline_seconds, "timeout after which the measurement of one peer is killed"))

struct WantedRdma {
  Partners with;
  int64_t port = kRdmaPort, seconds = 3, iterations = 1000;
  bool gpu_memory = false;
  int64_t connect_seconds = 45, busy_seconds = 300, serve_seconds = 600, deadline_seconds = 600;
};
MUSTER_PARAMETERS(WantedRdma, flat(with),
                  optional(port, "TCP port of the servers; perftest uses the ports above it, one per rail"),
                  optional(seconds, "seconds per peer and direction"),
                  optional(iterations, "iterations of the latency test"),
                  optional(gpu_memory, "measure between host memory and GPU memory (GPUDirect)"),
                  optional(connect_seconds, "how long to wait for a peer's server"),
                  optional(busy_seconds, "how long to wait for a peer that is measuring with another node"),
                  optional(serve_seconds, "time after which this node's server accepts no more peers"),
                  optional(deadline_seconds, "timeout after which the measurement of one peer is killed"))

struct WantedMpi {
  SharedLoad shared;
  std::string user = "mpi", network;
  int64_t deadline_seconds = 180, pair_deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedMpi, flat(shared), optional(user, "account that can log in to all nodes"),
                  optional(network, "CIDR that Open MPI must use"),
                  optional(deadline_seconds, "timeout after which the load is killed"),
                  optional(pair_deadline_seconds,
                           "timeout after which the load on one pair of nodes is killed"))

Result<Json> run_kernel(StepContext& context, std::vector<std::string> arguments, DurationMs deadline) {
  Command command;
  const std::string kernel = arguments.front();
  command.argv = {program(context, "muster-accept")};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.deadline = deadline;
  TRY(const Output output, context.process.run(command));
  return measurement(output, "muster-accept " + kernel);
}

// muster-accept-gpu is a separate package. If the image lacks it, the result states that (detail.missing),
// and the controller never counts it as a pass.
Result<Json> run_gpu_kernel(StepContext& context, const std::vector<std::string>& arguments,
                            const WantedKernel& want) {
  Command command;
  if (!want.libs.empty()) command.env["LD_LIBRARY_PATH"] = want.libs;
  command.argv = {program(context, "muster-accept-gpu"), want.kernel.substr(4)};
  command.argv.insert(command.argv.end(), arguments.begin() + 1, arguments.end());
  command.deadline = want.deadline_seconds * kSecond;
  const auto output = context.process.run(command);
  if (output.ok()) return measurement(*output, "muster-accept-gpu " + want.kernel.substr(4));
  if (output.error().code != Code::not_found) return output.error();
  return Json{{"check", want.kernel},
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

// In name order, starting after this node, so that nodes have different partners.
std::vector<Peer> from_next(std::vector<Peer> peers, const std::string& self) {
  std::sort(peers.begin(), peers.end(), [](const Peer& a, const Peer& b) { return a.name < b.name; });
  const auto first = std::find_if(peers.begin(), peers.end(), [&](const Peer& p) { return p.name > self; });
  std::rotate(peers.begin(), first == peers.end() ? peers.begin() : first, peers.end());
  return peers;
}

Result<Json> measure_kernel(StepContext& context, const WantedKernel& want) {
  const std::string& kernel = want.kernel;
  const bool on_gpu = is_one_of(kernel, kGpuKernels);
  if (!on_gpu && !is_one_of(kernel, kKernels))
    return fail(Code::invalid, fmt::format("accept: unknown kernel '{}'", kernel));
  if (want.peers && want.peers->empty()) return Json{{"check", kernel}, {"parts", Json::array()}};
  const std::string peer = want.peers ? from_next(*want.peers, context.node).front().name : "";
  std::vector<std::string> arguments = {kernel};
  for (const auto& [name, value] : want.options) {
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
  if (on_gpu) return run_gpu_kernel(context, arguments, want);
  return run_kernel(context, arguments, want.deadline_seconds * kSecond);
}

// A test between two nodes: the kernel that serves, the one that measures with one partner, and its options
// in addition to addresses. `part`: the check name of the measurement with one partner.
struct PairTest {
  std::string check, part, serve, kernel;
  int64_t port, serve_seconds, deadline_seconds;
  std::vector<std::string> options;
  std::vector<std::string> both = {};  // options of both kernels
  double seconds = 1;                  // of a link
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

// Stands for a measurement whose kernel was killed or failed; the other partners are still measured.
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
Result<Json> measure_with_peers(StepContext& context, const Partners& with, const PairTest& test) {
  if (with.peers.empty()) return Json{{"check", test.check}, {"parts", Json::array()}};
  std::vector<Peer> peers = from_next(with.peers, context.node);
  // Keeps the next nodes in name order, so that every node is measured equally often from both sides.
  if (with.partners > 0 && peers.size() > static_cast<size_t>(with.partners))
    peers.resize(static_cast<size_t>(with.partners));
  const std::string port = std::to_string(test.port);
  std::vector<std::string> serve = {test.serve,   "--bind",
                                    with.address, "--port",
                                    port,         "--detach",
                                    "--with",     std::to_string(::getpid()),
                                    "--seconds",  std::to_string(test.serve_seconds)};
  serve.insert(serve.end(), test.both.begin(), test.both.end());
  TRY(const Json server, run_kernel(context, std::move(serve), 20 * kSecond));
  if (server.value("outcome", "") != "measured")
    return fail(Code::unavailable,
                fmt::format("{} did not start: {}", test.serve, server.value("error", "")));
  // Round 0 is shared. The wait for a turn grows with the rounds.
  const auto measure = [&](const Peer& peer, int round = 0) {
    steps::say(context, fmt::format("{} to {}", test.kernel, peer.name));
    std::vector<std::string> arguments = {test.kernel, "--to",   peer.address, "--port",
                                          port,        "--bind", with.address};
    arguments.insert(arguments.end(), test.options.begin(), test.options.end());
    arguments.insert(arguments.end(), test.both.begin(), test.both.end());
    if (test.part == "link")
      arguments.insert(arguments.end(), {"--turn", round ? "alone" : "shared", "--turn-seconds",
                                         fmt::format("{}", turn_seconds(round, test.seconds))});
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

Result<Json> measure_links(StepContext& context, const WantedLinks& want) {
  return measure_with_peers(
      context, want.with,
      {.check = "links",
       .part = "link",
       .serve = "link-serve",
       .kernel = "link",
       .port = want.port,
       .serve_seconds = want.serve_seconds,
       .deadline_seconds = want.deadline_seconds,
       .options = {"--seconds", want.seconds, "--connect-seconds", std::to_string(want.connect_seconds)},
       .seconds = std::strtod(want.seconds.c_str(), nullptr)});
}

// The files of perftest that came with the order; none if one is missing. muster-accept searches only the
// folder of its own file.
std::vector<std::string> perftest_options(const StepContext& context) {
  std::string paths;
  for (const char* name : kPerftestFiles) {
    const auto file = context.programs.find(name);
    if (file == context.programs.end()) return {};
    paths += (paths.empty() ? "" : ",") + file->second;
  }
  return {"--perftest", paths};
}

Result<Json> measure_rdma(StepContext& context, const WantedRdma& want) {
  PairTest test{
      .check = "rdma",
      .part = want.gpu_memory ? "rdma-gpu-memory" : "rdma-link",
      .serve = "rdma-serve",
      .kernel = "rdma",
      .port = want.port,
      .serve_seconds = want.serve_seconds,
      .deadline_seconds = want.deadline_seconds,
      .options = {"--seconds", std::to_string(want.seconds), "--iterations", std::to_string(want.iterations),
                  "--connect-seconds", std::to_string(want.connect_seconds), "--busy-seconds",
                  std::to_string(want.busy_seconds)}};
  // The kernel ends by itself before it would be killed, so that its measurements are not lost.
  const int64_t total = std::max(test.deadline_seconds - kEndSeconds, test.deadline_seconds / 2);
  test.options.insert(test.options.end(), {"--total-seconds", std::to_string(total)});
  if (want.gpu_memory) test.options.push_back("--gpu-memory");
  test.both = perftest_options(context);
  return measure_with_peers(context, want.with, test);
}

Result<Json> run_mpi(StepContext& context, const WantedMpi& want, const std::vector<Peer>& hosts) {
  // Lists this host by name: Open MPI 5 does not recognize its address as local and would find no slot on it.
  std::string self = context.files.read("/proc/sys/kernel/hostname").value_or(context.node);
  while (!self.empty() && self.back() == '\n') self.pop_back();
  std::string list;
  for (const auto& host : hosts)
    list += (list.empty() ? "" : ",") + (host.name == context.node ? self : host.address);
  Command command;
  // A rank has several threads, which would all share one core: mpirun binds a rank to one by default.
  command.argv = {"runuser", "-u",       want.user, "--",        "mpirun", "--host",
                  list,      "--map-by", "node",    "--bind-to", "none"};
  const auto add = [&](const std::vector<std::string>& words) {
    command.argv.insert(command.argv.end(), words.begin(), words.end());
  };
  // The result is compared with the speed of the port on this network, so the load must use that port;
  // nodes with RDMA would otherwise use RDMA, and could not communicate with a node without it.
  if (!want.network.empty())
    for (const auto& [layer, value] : {std::pair<const char*, std::string>{"pml", "ob1"},
                                       {"btl", "^openib,uct,ofi,usnic"},
                                       {"btl_tcp_if_include", want.network},
                                       {"oob_tcp_if_include", want.network}})
      add({"--mca", layer, value});
  const SharedLoad& shared = want.shared;
  add({program(context, "muster-mpi-check"), "--load", shared.load, "--seconds", shared.seconds,
       "--max-bytes", std::to_string(shared.max_bytes)});
  if (runs_on_gpus(shared.load)) add({"--program", program(context, "muster-accept-gpu")});
  if (runs_on_gpus(shared.load) && !want.network.empty()) add({"--network", want.network});
  add(load_words(context, shared));
  command.deadline = want.deadline_seconds * kSecond;
  command.cwd = "/";
  return load_result(context.process.run(command), Starter::mpirun, shared.load, hosts);
}

Result<Json> measure_mpi(StepContext& context, const WantedMpi& want) {
  if (want.shared.hosts.empty()) return fail(Code::invalid, "accept_mpi: 'hosts' is empty");
  return on_all_or_pairs(context, want.shared,
                         [&](const std::vector<Peer>& members) { return run_mpi(context, want, members); });
}

}  // namespace

StepModule accept_module() {
  return without_standins(step_module<WantedKernel>({
      .name = "accept",
      .help =
          "Runs one acceptance kernel of muster-accept on this node: dgemm, stream, sdc, drives, counters, "
          "containers, fio, checksum-write or checksum-read; or one of muster-accept-gpu: gpu-gemm, gpu-sdc, "
          "gpu-memory, gpu-copies, gpu-nccl or gpu-training.",
      .measure = measure_kernel,
  }));
}

StepModule accept_links_module() {
  return step_module<WantedLinks>({
      .name = "accept_links",
      .help =
          "Measures TCP bandwidth and round-trip time to every peer, in both directions, and verifies every "
          "byte. This step belongs to phase `cluster`: all nodes run it at the same time and serve each "
          "other.",
      .measure = measure_links,
  });
}

StepModule accept_rdma_module() {
  return without_standins(step_module<WantedRdma>({
      .name = "accept_rdma",
      .help =
          "Measures RDMA bandwidth in both directions and latency to every peer with perftest, one pair of "
          "nodes at a time, rail by rail; all rails of a pair are measured at the same time. This step "
          "belongs to phase `cluster`: all nodes run it at the same time and serve each other. A node "
          "without an RDMA device or without perftest does not pass, and its result gives the reason.",
      .measure = measure_rdma,
  }));
}

StepModule accept_mpi_module() {
  return without_standins(step_module<WantedMpi>({
      .name = "accept_mpi",
      .help =
          "Runs one load across the listed nodes with MPI, started from this node with one rank per node, "
          "and checks every result exactly. The load is an all-reduce, a training-shaped load on 1, 2, 4 ... "
          "and all nodes, NCCL's collectives across all GPUs of the nodes, or the training-shaped load on "
          "the GPUs. If it fails or is too slow, the controller repeats it in pairs of nodes to isolate the "
          "faulty node.",
      .measure = measure_mpi,
  }));
}

}  // namespace muster::checks
