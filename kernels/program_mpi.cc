// The program muster-mpi-check: reads its options, runs one load on all ranks, prints its measurement as JSON
// on rank 0.
//
// How to run:  mpirun -np N --bind-to none --host ... muster-mpi-check [--load
// allreduce|training|nccl|gpu-training] [--seconds 1] ... Exit status: 0 measured, 1 wrong data, 2 bad usage.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/json_dump.h"
#include "kernels/mpi_check.h"

namespace muster::mpi {
namespace {

constexpr size_t kHostLength = 64;
constexpr const char* kUsage =
    "usage: muster-mpi-check [--load allreduce] [--seconds S] [--max-bytes N] [--inject-flip RANK]\n"
    "       muster-mpi-check --load training [--seconds S] [--model D] [--heads H] [--sequence S] [--layers "
    "L] [--threads N]\n"
    "                        [--inject-flip RANK] [--root FOLDER]\n"
    "       muster-mpi-check --load nccl --gpus G [--max-bytes N] [--network CIDR] [--algorithm Ring] "
    "[--program FILE] [--inject-flip RANK]\n"
    "       muster-mpi-check --load gpu-training --gpus G [--model D ... as training] [--network CIDR] "
    "[--program FILE] [--inject-flip RANK]\n";

using Load = Json (*)(const Options&, int, int);
Load load_of(const std::string& name) {
  if (name == "allreduce") return run_allreduce;
  if (name == "training") return run_training;
  if (name == "nccl") return run_nccl;
  return name == "gpu-training" ? run_gpu_training : nullptr;
}

bool parse(int argc, char** argv, Options& out) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const auto count = [&] { return static_cast<size_t>(std::max(0LL, std::atoll(argv[i + 1]))); };
    if (key == "--load")
      out.load = argv[i + 1];
    else if (key == "--seconds")
      out.seconds = std::atof(argv[i + 1]);
    else if (key == "--max-bytes")
      out.max_bytes = count();
    else if (key == "--model")
      out.shape.model = count();
    else if (key == "--heads")
      out.shape.heads = count();
    else if (key == "--sequence")
      out.shape.sequence = count();
    else if (key == "--layers")
      out.shape.layers = count();
    else if (key == "--threads")
      out.threads = count();
    else if (key == "--gpus")
      out.gpus = std::atoi(argv[i + 1]);
    else if (key == "--network")
      out.network = argv[i + 1];
    else if (key == "--algorithm")
      out.algorithm = argv[i + 1];
    else if (key == "--program")
      out.program = argv[i + 1];
    else if (key == "--root")
      out.root = argv[i + 1];
    else if (key == "--inject-flip")
      out.flip_rank = std::atoi(argv[i + 1]);
    else
      return false;
  }
  return argc % 2 == 1 && out.seconds > 0 && out.max_bytes >= sizeof(double) &&
         *training::unfit(out.shape) == 0 && load_of(out.load) &&
         (out.load == "allreduce" || out.load == "training" || out.gpus > 0);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<int> node_counts(int most) {
  std::vector<int> out;
  for (int n = 1; n < most; n *= 2) out.push_back(n);
  out.push_back(most);
  return out;
}

std::vector<std::string> gather_texts(const std::string& mine, size_t length, int ranks) {
  std::vector<char> text(length + 1), all(static_cast<size_t>(ranks) * (length + 1));
  mine.copy(text.data(), length);
  const int bytes = static_cast<int>(length + 1);
  MPI_Gather(text.data(), bytes, MPI_CHAR, all.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  std::vector<std::string> out;
  for (size_t r = 0; r < static_cast<size_t>(ranks); ++r) out.emplace_back(&all[r * (length + 1)]);
  return out;
}

std::vector<std::string> gather_hosts(int ranks) {
  char mine[kHostLength + 1] = {};
  ::gethostname(mine, kHostLength);
  return gather_texts(mine, kHostLength, ranks);
}

std::vector<long long> gather_counts(long long mine, int ranks) {
  std::vector<long long> out(static_cast<size_t>(ranks));
  MPI_Gather(&mine, 1, MPI_LONG_LONG, out.data(), 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  return out;
}

Json envelope(const char* check, const std::vector<std::string>& hosts, const std::vector<long long>& wrong,
              const std::string& words) {
  Json blame = Json::array();
  std::string error;
  for (size_t r = 0; r < hosts.size(); ++r) {
    if (wrong[r] == 0) continue;
    const std::string who = "rank " + std::to_string(r) + " on " + hosts[r];
    blame.push_back(who);
    std::string what = words;
    if (const size_t at = what.find("{}"); at != std::string::npos)
      what.replace(at, 2, std::to_string(wrong[r]));
    if (error.empty()) error = who + " " + what;
  }
  return {{"check", check},
          {"version", 1},
          {"outcome", blame.empty() ? "measured" : "corrupt"},
          {"error", error},
          {"blame", blame},
          {"metrics", {{"ranks", {{"value", hosts.size()}, {"unit", "ranks"}}}}},
          {"detail", {{"hosts", hosts}}}};
}

}  // namespace muster::mpi

int main(int argc, char** argv) {
  using namespace muster::mpi;
  // Threads compute; only the first one talks to MPI, so no thread support is asked for: asked for any, Open
  // MPI uses cmpxchg16b, which the lab's machines must not have (lab/qemu_args.cc).
  int rank = 0, ranks = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options;
  if (!parse(argc, argv, options)) {
    // The reason last: it is what the agent shows of it.
    const char* why = muster::training::unfit(options.shape);
    if (rank == 0) std::fprintf(stderr, "%smuster-mpi-check: %s\n", kUsage, *why ? why : "bad arguments");
    MPI_Finalize();
    return 2;
  }
  const Json json = load_of(options.load)(options, rank, ranks);
  int status = json.is_object() && json.value("outcome", "") == "measured" ? 0 : 1;
  if (rank == 0) std::printf("%s\n", muster::dump_json(json).c_str());
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
