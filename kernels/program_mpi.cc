// The program muster-mpi-check: reads its options, runs one load on all ranks, prints its measurement as JSON
// on rank 0.
//
// How to run:  mpirun -np N --bind-to none --host ... muster-mpi-check [--load
// allreduce|training|nccl|gpu-training] [--seconds 1] ... Exit status: 0 measured, 1 wrong data, 2 bad usage.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/json_dump.h"
#include "kernels/group_mpi.h"
#include "kernels/together/loads.h"

namespace muster::mpi {
namespace {

constexpr const char* kUsage =
    "usage: muster-mpi-check [--load allreduce] [--seconds S] [--max-bytes N] [--inject-flip RANK]\n"
    "       muster-mpi-check --load training [--seconds S] [--model D] [--heads H] [--sequence S] [--layers "
    "L] [--threads N]\n"
    "                        [--inject-flip RANK] [--root FOLDER]\n"
    "       muster-mpi-check --load nccl --gpus G [--max-bytes N] [--network CIDR] [--algorithm Ring] "
    "[--program FILE] [--inject-flip RANK]\n"
    "       muster-mpi-check --load gpu-training --gpus G [--model D ... as training] [--network CIDR] "
    "[--program FILE] [--inject-flip RANK]\n";

// The network of the address on the first node at which the GPU ranks rendezvous.
struct Network {
  uint32_t address = 0, mask = 0;  // host order; mask 0: any
};
bool parse_network(const std::string& text, Network& out) {
  if (text.empty()) return true;
  const size_t slash = text.find('/');
  in_addr address = {};
  const int bits = slash == std::string::npos ? 32 : std::atoi(text.c_str() + slash + 1);
  if (::inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1 || bits < 1 || bits > 32)
    return false;
  out.mask = ~uint32_t{0} << (32 - bits);
  out.address = ntohl(address.s_addr) & out.mask;
  return true;
}

// Returns this machine's address in the given network; without a network, its first non-loopback address.
in_addr own_address(const Network& network) {
  in_addr out = {};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* i = list; i && out.s_addr == 0; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
    const in_addr found = reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
    const uint32_t host = ntohl(found.s_addr);
    const bool fits = network.mask != 0 ? (host & network.mask) == network.address : host >> 24 != 127;
    if (fits) out = found;
  }
  ::freeifaddrs(list);
  return out;
}

// Returns "address:port" with a port that was free a moment ago.
Result<std::string> free_root(const std::string& cidr) {
  const Error none =
      fail(Code::unavailable, "the first node has no address in " + (cidr.empty() ? "any network" : cidr));
  Network network;
  if (!parse_network(cidr, network)) return none;
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr = own_address(network);
  if (at.sin_addr.s_addr == 0) return none;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t size = sizeof at;
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  if (fd >= 0) ::close(fd);
  char text[INET_ADDRSTRLEN] = {};
  if (!bound || !::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text)) return none;
  return std::string(text) + ":" + std::to_string(ntohs(at.sin_port));
}

struct Options {
  std::string load = "allreduce";
  together::LoadOptions of_load = {};
  together::GpuHere here = {};
  std::string network = {};  // GPU loads: CIDR of the network in which the first node listens; empty: any
};

bool is_load(const std::string& name) {
  return name == "allreduce" || name == "training" || name == "nccl" || name == "gpu-training";
}

bool parse(int argc, char** argv, Options& out) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const auto count = [&] { return static_cast<size_t>(std::max(0LL, std::atoll(argv[i + 1]))); };
    if (key == "--load")
      out.load = argv[i + 1];
    else if (key == "--seconds")
      out.of_load.seconds = std::atof(argv[i + 1]);
    else if (key == "--max-bytes")
      out.of_load.max_bytes = count();
    else if (key == "--model")
      out.of_load.shape.model = count();
    else if (key == "--heads")
      out.of_load.shape.heads = count();
    else if (key == "--sequence")
      out.of_load.shape.sequence = count();
    else if (key == "--layers")
      out.of_load.shape.layers = count();
    else if (key == "--threads")
      out.of_load.threads = count();
    else if (key == "--gpus")
      out.of_load.gpus = std::atoi(argv[i + 1]);
    else if (key == "--network")
      out.network = argv[i + 1];
    else if (key == "--algorithm")
      out.of_load.algorithm = argv[i + 1];
    else if (key == "--program")
      out.here.program = argv[i + 1];
    else if (key == "--root")
      out.of_load.root = argv[i + 1];
    else if (key == "--inject-flip")
      out.of_load.flip_rank = std::atoi(argv[i + 1]);
    else
      return false;
  }
  return argc % 2 == 1 && out.of_load.seconds > 0 && out.of_load.max_bytes >= sizeof(double) &&
         *training::unfit(out.of_load.shape) == 0 && is_load(out.load) &&
         (out.load == "allreduce" || out.load == "training" || out.of_load.gpus > 0);
}

}  // namespace

// Runs the load and returns the exit status.
int run(int argc, char** argv) {
  const auto group = world();
  Options options;
  if (!parse(argc, argv, options)) {
    // The reason comes last: the agent shows the end of the output.
    const char* why = training::unfit(options.of_load.shape);
    if (group->rank() == 0)
      std::fprintf(stderr, "%smuster-mpi-check: %s\n", kUsage, *why ? why : "bad arguments");
    return 2;
  }
  options.here.root = [&options] { return free_root(options.network); };
  const auto measurement = together::run_load(options.load, *group, options.of_load, options.here);
  double good = measurement.outcome == kernels::Outcome::measured ? 1 : 0;
  if (group->rank() == 0) std::printf("%s\n", dump_json(to_json(measurement)).c_str());
  (void)group->broadcast(together::bytes_of(std::span<double>(&good, 1)), 0);
  return good > 0 ? 0 : 1;
}

}  // namespace muster::mpi

int main(int argc, char** argv) {
  // Threads compute; only the first one calls MPI, so no thread support is requested: with any, Open MPI
  // uses cmpxchg16b, which the lab's machines must not have (lab/qemu_args.cc).
  MPI_Init(&argc, &argv);
  const int status = muster::mpi::run(argc, argv);
  MPI_Finalize();
  return status;
}
