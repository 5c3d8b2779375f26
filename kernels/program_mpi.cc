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
#include <memory>
#include <utility>

#include "base/json_dump.h"
#include "kernels/together/group.h"
#include "kernels/together/loads.h"

namespace muster::mpi {
namespace {

constexpr int kTag = 1;
constexpr size_t kAtOnce = size_t{1} << 28;  // MPI counts in int

// Calls `part` for pieces of the values, each small enough for one MPI call.
template <typename T, typename Part>
void in_pieces(std::span<T> values, Part part) {
  for (size_t at = 0; at < values.size(); at += kAtOnce) {
    const auto piece = values.subspan(at, std::min(kAtOnce, values.size() - at));
    part(piece.data(), static_cast<int>(piece.size()));
  }
}

// A group over MPI, for the playbooks that test MPI itself: it runs the same loads as the TCP group
// (kernels/together/loads.h). Uses only MPI's C interface, provided by libmpi.so.40 in Debian 12 and 13. An
// MPI error ends all ranks, so lost() is always empty and within() has no effect.
class MpiGroup : public together::Group {
 public:
  // `owned`: the communicator is freed by the destructor.
  MpiGroup(MPI_Comm comm, bool owned) : comm_(comm), owned_(owned) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiGroup() override {
    if (owned_) MPI_Comm_free(&comm_);
  }
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;
  void call_by(std::vector<std::string> names) { names_ = std::move(names); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name(int rank) const override { return names_.at(static_cast<size_t>(rank)); }
  void within(double) override {}
  const std::vector<together::Lost>& lost() const override { return none_; }

  Status sum(std::span<double> values) override { return reduce(values, MPI_DOUBLE, MPI_SUM); }
  Status sum(std::span<float> values) override { return reduce(values, MPI_FLOAT, MPI_SUM); }
  Status min(std::span<uint64_t> values) override { return reduce(values, MPI_UINT64_T, MPI_MIN); }
  Status max(std::span<double> values) override { return reduce(values, MPI_DOUBLE, MPI_MAX); }

  Status broadcast(std::span<char> bytes, int from) override {
    in_pieces(bytes, [&](char* data, int count) { MPI_Bcast(data, count, MPI_CHAR, from, comm_); });
    return Ok{};
  }

  Result<std::vector<std::string>> gather(const std::string& mine, int to) override {
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(static_cast<size_t>(size_)), starts(static_cast<size_t>(size_));
    MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, to, comm_);
    int all = 0;
    for (size_t r = 0; r < lengths.size(); ++r) starts[r] = all, all += lengths[r];
    std::string texts(static_cast<size_t>(all), '\0');
    MPI_Gatherv(mine.data(), length, MPI_CHAR, texts.data(), lengths.data(), starts.data(), MPI_CHAR, to,
                comm_);
    std::vector<std::string> out;
    for (size_t r = 0; rank_ == to && r < lengths.size(); ++r)
      out.push_back(texts.substr(static_cast<size_t>(starts[r]), static_cast<size_t>(lengths[r])));
    return out;
  }

  Result<std::vector<std::string>> allgather(const std::string& mine) override {
    std::vector<std::string> out(static_cast<size_t>(size_));
    for (int r = 0; r < size_; ++r) {
      std::string& text = out[static_cast<size_t>(r)];
      int length = static_cast<int>(mine.size());
      MPI_Bcast(&length, 1, MPI_INT, r, comm_);
      text = r == rank_ ? mine : std::string(static_cast<size_t>(length), '\0');
      MPI_Bcast(text.data(), length, MPI_CHAR, r, comm_);
    }
    return out;
  }

  Status send(std::span<const char> bytes, int to) override {
    in_pieces(bytes, [&](const char* data, int count) { MPI_Send(data, count, MPI_CHAR, to, kTag, comm_); });
    return Ok{};
  }
  Status receive(std::span<char> bytes, int from) override {
    in_pieces(bytes, [&](char* data, int count) {
      MPI_Recv(data, count, MPI_CHAR, from, kTag, comm_, MPI_STATUS_IGNORE);
    });
    return Ok{};
  }
  Status barrier() override {
    MPI_Barrier(comm_);
    return Ok{};
  }

  Result<std::unique_ptr<together::Group>> split(int colour) override {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(comm_, colour < 0 ? MPI_UNDEFINED : colour, rank_, &part);
    if (part == MPI_COMM_NULL) return std::unique_ptr<together::Group>{};
    auto out = std::make_unique<MpiGroup>(part, true);
    // Called on the new group: members with a negative colour are in none, and do not take part.
    auto names = out->allgather(name(rank_));
    out->call_by(std::move(*names));
    return std::unique_ptr<together::Group>(std::move(out));
  }

 private:
  template <typename T>
  Status reduce(std::span<T> values, MPI_Datatype type, MPI_Op op) {
    in_pieces(values, [&](T* data, int count) { MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, comm_); });
    return Ok{};
  }

  MPI_Comm comm_;
  const bool owned_;
  int rank_ = 0, size_ = 1;
  std::vector<std::string> names_ = {};
  std::vector<together::Lost> none_ = {};
};

// All ranks, each named after its host. Collective: every rank must call it.
std::unique_ptr<together::Group> world() {
  auto out = std::make_unique<MpiGroup>(MPI_COMM_WORLD, false);
  char name[65] = {};
  ::gethostname(name, sizeof name - 1);
  auto names = out->allgather(name);
  out->call_by(std::move(*names));
  return out;
}

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
