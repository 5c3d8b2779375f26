// muster-accept: runs one acceptance kernel and prints its measurement as JSON on stdout.
// Exit status: 0 measured, 1 wrong data or a failing part, 2 bad usage, 3 refused or could not run.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>

#include "base/perftest_files.h"
#include "kernels/common/kernels.h"
#include "kernels/common/program.h"
#include "kernels/containers/containers.h"
#include "kernels/containers/test_container.h"
#include "kernels/counters/counters.h"
#include "kernels/counters/nvml.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/sdc.h"
#include "kernels/drives/drives.h"
#include "kernels/link/link.h"
#include "kernels/rdma/rdma_link.h"
#include "kernels/together/group_leader.h"
#include "kernels/together/group_server.h"

namespace muster::together {
namespace {

// The subcommands of muster-accept for loads on several nodes: their options, and their execution.
//
//     muster-accept group-serve --bind 10.0.0.2 --peers 10.0.0.1 --seconds 600
//     muster-accept group --members node1=10.0.0.1,node2=10.0.0.2 --self node1 --load allreduce --seconds 30
//     muster-accept group ... --bye                     stops the servers
struct GroupArguments {
  LeadOptions lead = {};
  ServeOptions serve = {};
  std::vector<std::string> members = {};  // NAME=ADDRESS
  uint16_t port = kGroupPort;
  bool bye = false;
};

constexpr double kMostPatience = 60;

void add_here(Verb& app, GpuHere& here) {
  app.add_option("--program", &here.program, "path of muster-accept-gpu on this node, for GPU loads");
  app.add_option("--libs", &here.libs,
                 "folder with NCCL, cuBLASLt and network plug-ins (default: the system's usual folders)");
}

void declare_leader(Verb& app, GroupArguments& a) {
  auto& group = app.add_verb(
      "group", "run one load across several nodes, with this node as leader, and verify the result");
  auto& work = a.lead.work;
  auto& options = work.options;
  group
      .add_option("--members", &a.members,
                  "NAME=ADDRESS of each member, separated by commas, in order of rank")
      .separated_by(',')
      .required();
  group.add_option("--self", &a.lead.self, "name of this node; it need not be a member");
  group.add_option("--bind", &a.lead.bind, "this node's numeric address, if it is not a member");
  group.add_option("--port", &a.port, "TCP port of the members");
  group.add_option("--load", &work.load, "load to run: allreduce, training, nccl or gpu-training");
  group.add_option("--seconds", &options.seconds, "time budget of the load");
  group.add_option("--max-bytes", &options.max_bytes, "allreduce, nccl: largest message in bytes");
  group.add_option("--model", &options.shape.model, "training: width");
  group.add_option("--heads", &options.shape.heads, "training: attention heads");
  group.add_option("--sequence", &options.shape.sequence, "training: tokens per sequence");
  group.add_option("--layers", &options.shape.layers, "training: blocks");
  group.add_option("--threads", &options.threads, "training: threads per member; 0: one per processor");
  group.add_option("--root", &options.root, "training: folder to read instead of /sys");
  group.add_option("--gpus", &options.gpus, "GPU loads: number of GPUs per node");
  group.add_option("--algorithm", &options.algorithm,
                   "GPU loads: value of NCCL_ALGO; use Ring to measure a link");
  group.add_option("--nccl-port", &work.nccl_port,
                   "TCP port on the first member for the rendezvous of the GPU processes");
  group.add_option("--connect-seconds", &a.lead.connect_seconds, "seconds to wait for the members' servers");
  group.add_option("--deadline", &work.deadline_seconds, "end the load after this many seconds");
  group.add_option("--inject-flip", &options.flip_rank,
                   "flip one bit on this RANK, to show that this test detects it");
  group.add_flag("--bye", &a.bye, "stop the members' servers without running a load");
  add_here(group, a.lead.here);
}

void declare_server(Verb& app, GroupArguments& a) {
  auto& serve = app.add_verb("group-serve", "run ranks of a load for a `group` leader; exits by itself");
  serve.add_option("--bind", &a.serve.bind, "numeric address to listen on").required();
  serve.add_option("--port", &a.serve.port, "TCP port");
  serve
      .add_option("--peers", &a.serve.peers,
                  "numeric addresses to accept connections from, separated by commas")
      .separated_by(',')
      .required();
  serve.add_option("--seconds", &a.serve.seconds, "hard time limit in seconds");
  serve.add_option("--wait-seconds", &a.serve.wait_seconds,
                   "exit if no leader connects within this many seconds");
  serve.add_option("--linger-seconds", &a.serve.linger_seconds,
                   "exit this many seconds after a load unless a further load or `group --bye` follows");
  add_here(serve, a.serve.here);
}

kernels::Measurement bad(const std::string& why) {
  kernels::Measurement out;
  out.check = "group";
  out.outcome = kernels::Outcome::refused;
  out.error = why;
  return out;
}

void declare_group(Verb& app, GroupArguments& arguments) {
  declare_leader(app, arguments);
  declare_server(app, arguments);
}

// Returns nothing if `verb` is not one of these.
std::optional<kernels::Measurement> run_group(const std::string& verb, GroupArguments& a) {
  if (verb == "group-serve") return serve_group(a.serve);
  if (verb != "group") return std::nullopt;
  auto& work = a.lead.work;
  for (const auto& text : a.members) {
    const size_t at = text.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == text.size())
      return bad("--members: '" + text + "' is not NAME=ADDRESS");
    work.members.push_back({text.substr(0, at), text.substr(at + 1), a.port});
  }
  if (a.bye) return dismiss_group(a.lead);
  work.options.patience = std::min(kMostPatience, work.deadline_seconds / 2);
  work.meet_seconds = std::min(work.meet_seconds, work.deadline_seconds / 2);
  return lead_group(a.lead);
}

}  // namespace
}  // namespace muster::together

namespace muster::kernels {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Any text can be a seed, such as the name of the writing node.
uint64_t parse_seed(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

struct Arguments {
  DgemmOptions dgemm;
  StreamOptions stream;
  SdcOptions sdc;
  uint64_t stream_mib = 0;
  LinkServerOptions serve;
  LinkOptions link;
  RdmaServerOptions rdma_serve;
  RdmaOptions rdma;
  FioOptions fio;
  uint64_t fio_mib = 16;
  ChecksumOptions checksum;
  uint64_t checksum_mib = 4;
  DrivesOptions drives;
  CountersOptions counters;
  ContainersOptions containers;
  together::GroupArguments group;
  std::string seed = "1";
  std::string nvml;
  std::vector<std::string> perftest;
  bool smart = false;
  bool detach = false;
  int with = 0;
  std::string flip;
};

void add_detach(Verb& app, Arguments& a) {
  app.add_flag("--detach", &a.detach,
               "print the result once the port is open, and keep serving in the background");
  app.add_option("--with", &a.with, "with `--detach`: exit when the process with this PID ends");
}

void add_mount(Verb& app, MountRule& mount) {
  app.add_option("--path", &mount.path, "mount point to test").required();
  app.add_option("--fstype", &mount.fstype, "required file system type, as in /proc/self/mountinfo")
      .required();
  app.add_option("--source", &mount.source, "required mount source, as in /proc/self/mountinfo").required();
}

void declare_compute(Verb& app, Arguments& a) {
  auto& dgemm =
      app.add_verb("dgemm", "run double-precision matrix products on every core, and verify them bit by bit");
  dgemm.add_option("--seconds", &a.dgemm.seconds, "time budget");
  dgemm.add_option("--n", &a.dgemm.n, "matrix edge (at most 1024); 0: chosen by a probe");
  dgemm.add_option("--variant", &a.dgemm.variant,
                   "instruction set: " + fmt::format("{}", fmt::join(dgemm_variants(), ", ")));
  dgemm.add_option("--threads", &a.dgemm.threads, "number of threads; 0: one per processor");
  add_flip(dgemm, a.flip);
  auto& stream = app.add_verb("stream", "measure and verify memory bandwidth: copy, scale, add, triad");
  stream.add_option("--seconds", &a.stream.seconds, "time budget");
  stream.add_option("--max-mib", &a.stream_mib, "memory limit in MiB; 0: a quarter of the available memory");
  stream.add_option("--threads", &a.stream.threads, "number of threads; 0: one per processor");
  add_flip(stream, a.flip);
  auto& sdc =
      app.add_verb("sdc", "detect silent data corruption with products that must be right to the last bit");
  sdc.add_option("--seconds", &a.sdc.seconds, "time budget; at least one product is computed");
  sdc.add_option("--n", &a.sdc.n, "matrix edge (at most 4096); 0: 128");
  sdc.add_option("--seed", &a.sdc.seed, "seed of the first product's inputs");
  sdc.add_option("--threads", &a.sdc.threads, "number of threads; 0: one per processor");
  add_flip(sdc, a.flip);
}

void declare_parts(Verb& app, Arguments& a) {
  auto& drives = app.add_verb("drives", "measure the read speed of each whole disk in turn; writes nothing");
  drives.add_option("--seconds", &a.drives.seconds, "seconds per drive");
  drives.add_option("--streams", &a.drives.streams, "number of reads in flight");
  drives.add_option(
      "--parallel-seconds", &a.drives.parallel_seconds,
      "afterwards read all drives of the same model and size in parallel, for this many seconds");
  app.add_verb("pcie", "compare the width and speed of PCIe links with what both ends support");
  auto& counters =
      app.add_verb("counters", "read error counters of memory, PCIe, network ports, GPUs and NVLink");
  auto& what = counters.add_group("what", 1, 3);
  what.add_option("--save", &a.counters.save, "save the counters to this file").excludes("--since");
  what.add_option("--since", &a.counters.since,
                  "report how much the counters rose since this file was saved");
  what.add_flag("--gpus", &a.counters.gpus,
                "read only the NVIDIA driver's counters for GPUs and NVLink; `unavailable` without a driver")
      .needs("--since");
  what.add_flag("--smart", &a.smart, "also read the SMART logs of NVMe drives, which needs root")
      .needs("--since");
  counters.add_option("--nvml", &a.nvml,
                      fmt::format("path of {}; empty: next to this program", kNvmlProgram));
}

void declare_containers(Verb& app, Arguments& a) {
  app.add_verb("containers",
               "start a container with each engine of this node, and count the GPUs and RDMA devices in it")
      .add_option("--seconds", &a.containers.seconds, "time budget of all engines together");
}

void declare_link(Verb& app, Arguments& a) {
  auto& serve = app.add_verb("link-serve", "run the server side of `link`; exits by itself");
  serve.add_option("--bind", &a.serve.bind, "numeric address to listen on").required();
  serve.add_option("--port", &a.serve.port, "TCP port").required();
  serve.add_option("--seconds", &a.serve.seconds, "hard time limit in seconds");
  serve.add_option("--sessions", &a.serve.sessions,
                   "exit after this many connections; 0: only after --seconds");
  add_detach(serve, a);
  serve.add_option("--from", &a.serve.from, "the only address to accept connections from");
  add_flip(serve, a.flip);
  auto& link = app.add_verb(
      "link",
      "measure TCP bandwidth in both directions and round-trip time to a `link-serve`, and verify the data");
  link.add_option("--to", &a.link.to, "numeric address of the server").required();
  link.add_option("--port", &a.link.port, "TCP port").required();
  link.add_option("--seconds", &a.link.seconds, "time budget for both directions in total");
  link.add_option("--bind", &a.link.bind, "local address");
  link.add_option("--connect-seconds", &a.link.connect_seconds, "seconds to wait for the server");
  link.add_option("--streams", &a.link.streams, "connections at once; 0: as many as the port's speed needs")
      .between(0, kMostStreams);
  const Choice turn = {{{"shared", static_cast<int>(Turn::shared)}, {"alone", static_cast<int>(Turn::alone)}},
                       [&a](int chosen) { a.link.turn.turn = static_cast<Turn>(chosen); }};
  link.add_option(
      "--turn", turn,
      "alone: while no other `link` with a turn measures at either end; shared: not beside one that "
      "is alone");
  link.add_option("--turn-seconds", &a.link.turn.seconds, "seconds to wait for the turn; then measure anyway")
      .between(0, 600);
  add_flip(link, a.flip);
}

void add_perftest(Verb& app, Arguments& a) {
  app.add_option("--perftest", &a.perftest,
                 fmt::format("paths of the perftest that muster carries ({}), separated by commas; empty: "
                             "next to this program",
                             fmt::join(kPerftestFiles, ", ")))
      .separated_by(',');
}

void declare_rdma(Verb& app, Arguments& a) {
  auto& serve = app.add_verb("rdma-serve", "run the server side of `rdma`; exits by itself");
  serve.add_option("--bind", &a.rdma_serve.bind, "numeric address to listen on").required();
  serve.add_option("--port", &a.rdma_serve.port, "TCP port; perftest uses the ports above it, one per rail")
      .required();
  serve.add_option("--seconds", &a.rdma_serve.seconds, "stop accepting connections after this many seconds");
  serve.add_option("--sessions", &a.rdma_serve.sessions,
                   "exit after this many connections; 0: only after --seconds");
  add_detach(serve, a);
  serve.add_option("--from", &a.rdma_serve.from, "the only address to accept connections from");
  add_perftest(serve, a);
  auto& rdma = app.add_verb(
      "rdma",
      "measure RDMA bandwidth in both directions and latency to an `rdma-serve` per rail, with perftest");
  rdma.add_option("--to", &a.rdma.to, "numeric address of the server").required();
  rdma.add_option("--port", &a.rdma.port, "TCP port").required();
  rdma.add_option("--seconds", &a.rdma.seconds, "whole seconds for each direction");
  rdma.add_option("--iterations", &a.rdma.iterations, "iterations of the latency test");
  rdma.add_option("--bind", &a.rdma.bind, "local address");
  rdma.add_option("--connect-seconds", &a.rdma.connect_seconds, "seconds to wait for the server");
  rdma.add_option("--busy-seconds", &a.rdma.busy_seconds,
                  "seconds to wait for a partner that is busy with other nodes");
  rdma.add_option("--total-seconds", &a.rdma.total_seconds,
                  "stop after this many seconds, and report what was measured by then");
  rdma.add_flag("--gpu-memory", &a.rdma.gpu_memory,
                "measure the RDMA bandwidth of GPU memory, and compare it with that of host memory");
  add_perftest(rdma, a);
}

std::string own_folder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
}

void declare_storage(Verb& app, Arguments& a) {
  auto& fio = app.add_verb(
      "fio", "measure and verify storage speed with fio; refuses a path that is not mounted as declared");
  add_mount(fio, a.fio.mount);
  fio.add_option("--size", &a.fio_mib, "file size in MiB");
  fio.add_option("--random-seconds", &a.fio.random_seconds,
                 "also read random 4 KiB blocks for this many seconds");
  fio.add_option("--jobs-per-drive", &a.fio.jobs_per_drive,
                 "number of jobs for each drive under the file system; 0: one job in total");
  fio.add_option("--timeout", &a.fio.timeout, "seconds after which fio is killed");
  fio.add_option("--node", &a.fio.node, "node name to use in the test file's name; empty: this host's name");
  fio.add_option(
      "--order", &a.fio.order,
      "order id in the name of the test file (empty in a manual run); test files left by the node's other "
      "orders are removed");
  auto& write = app.add_verb("checksum-write", "write a seeded file to storage and print its digest");
  add_mount(write, a.checksum.mount);
  write.add_option("--name", &a.checksum.name, "file name").required();
  write.add_option("--size", &a.checksum_mib, "file size in MiB");
  write.add_option("--seed", &a.seed, "seed of the content: a number or any word");
  auto& read =
      app.add_verb("checksum-read", "read a file that `checksum-write` wrote, and compare its digest");
  add_mount(read, a.checksum.mount);
  read.add_option("--name", &a.checksum.name, "file name").required();
  read.add_option("--expect", &a.checksum.expect,
                  "digest that `checksum-write` printed; empty: computed from --size and --seed");
  read.add_option("--size", &a.checksum_mib, "file size in MiB");
  read.add_option("--seed", &a.seed, "seed of the content: a number or any word");
  read.add_flag("--remove", &a.checksum.remove_after, "remove the file if its digest is right");
}

// Continues in a child process: the parent prints its result once the port is open; the child closes
// inherited descriptors, since a reader of the output would wait until they are closed. `with`: PID of the
// process with which the child ends; 0: none.
template <typename Server, typename Options>
Measurement serve_detached(const std::string& check, int with, Server& server, const Options& options,
                           const std::function<Measurement(Server&)>& work) {
  Measurement out;
  out.check = check;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    if (with != 0 && !end_with(with).ok()) ::_exit(exit_status(Outcome::unavailable));
    ::_exit(exit_status(work(server).outcome));
  }
  if (child < 0) out.outcome = Outcome::unavailable, out.error = "fork failed";
  out.detail = {
      {"bind", options.bind}, {"port", server.port()}, {"pid", child}, {"seconds", options.seconds}};
  return out;
}

template <typename Server, typename Options>
Measurement serve(const std::string& check, const Arguments& a, const Options& options,
                  const std::function<Measurement(Server&)>& work) {
  auto server = Server::open(options);
  if (server) return a.detach ? serve_detached<Server>(check, a.with, *server, options, work) : work(*server);
  Measurement out;
  out.check = check;
  out.outcome = Outcome::unavailable;
  out.error = server.error().message;
  return out;
}

// A static program cannot load the driver's library: kNvmlProgram does, and prints the reading.
constexpr DurationMs kNvmlDeadline = 60 * kSecond;
Result<NvmlReading> query_nvml(const std::string& named) {
  std::error_code error;
  const std::string program =
      named.empty() ? std::filesystem::read_symlink("/proc/self/exe", error).replace_filename(kNvmlProgram)
                    : std::filesystem::path(named);
  if (error || ::access(program.c_str(), X_OK) != 0)
    return fail(Code::not_found, named.empty()
                                     ? fmt::format("{} is not installed next to muster-accept", kNvmlProgram)
                                     : fmt::format("{} cannot be executed", named));
  const auto process = make_process();
  TRY(const std::string text, run_ok(*process, {.argv = {program}, .deadline = kNvmlDeadline}));
  TRY(const Json json, parse_json(text));
  return nvml_from_json(json);
}

Measurement run(const std::string& kernel, Arguments& a, const std::optional<Flip>& flip) {
  a.dgemm.flip = a.stream.flip = a.sdc.flip = a.serve.flip = a.link.flip = flip;
  a.stream.max_bytes = a.stream_mib * kMiB;
  a.fio.size_bytes = a.fio_mib * kMiB;
  a.checksum.size_bytes = a.checksum_mib * kMiB;
  a.checksum.seed = parse_seed(a.seed);
  a.counters.query_nvml = [&a] { return query_nvml(a.nvml); };
  a.counters.query_statistics = read_port_statistics;
  if (a.smart) a.counters.query_smart = read_smart_log;
  const Files files;
  if (auto together = together::run_group(kernel, a.group)) return std::move(*together);
  if (kernel == "dgemm") return run_dgemm(a.dgemm);
  if (kernel == "stream") return run_stream(a.stream);
  if (kernel == "sdc") return run_sdc(a.sdc);
  if (kernel == "drives") return run_drives(files, a.drives);
  if (kernel == "pcie") return run_pcie(files);
  if (kernel == "counters") return run_counters(files, a.counters);
  if (kernel == "link") return run_link(files, a.link);
  if (kernel == "checksum-write") return run_checksum_write(files, a.checksum);
  if (kernel == "checksum-read") return run_checksum_read(files, a.checksum);
  if (kernel == "link-serve")
    return serve<LinkServer>(kernel, a, a.serve, [](LinkServer& server) { return server.run(); });
  const auto process = make_process();
  if (kernel == "containers") return run_containers(files, *process, a.containers);
  a.rdma.perftest = a.rdma_serve.perftest = carried_perftest(a.perftest, own_folder());
  if (kernel == "rdma-serve")
    return serve<RdmaServer>(kernel, a, a.rdma_serve,
                             [&](RdmaServer& server) { return server.run(files, *process); });
  if (kernel == "rdma") return run_rdma(files, *process, a.rdma);
  return run_fio(files, *process, a.fio);
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  Verb app("muster-accept: acceptance kernels for one node");
  declare_compute(app, arguments);
  declare_parts(app, arguments);
  declare_containers(app, arguments);
  declare_link(app, arguments);
  declare_rdma(app, arguments);
  declare_storage(app, arguments);
  together::declare_group(app, arguments.group);
  return run_program(app, argc, argv, arguments.flip,
                     [&](const std::string& kernel, const std::optional<Flip>& flip) {
                       Measurement out = run(kernel, arguments, flip);
                       out.detail["cpu_seconds"] = static_cast<double>(clock()) / CLOCKS_PER_SEC;
                       return out;
                     });
}

}  // namespace
}  // namespace muster::kernels

int main(int argc, char** argv) {
  using namespace muster::kernels;
  if (argc == 0 || !is_containers_program(argv[0])) return main_with(argc, argv);
  fmt::print("{}\n", devices_text(open_devices(muster::Files())));
  return 0;
}
