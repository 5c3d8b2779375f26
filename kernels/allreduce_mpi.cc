// MPI all-reduce over every node: each element of each result checked exactly, bus bandwidth per size. JSON
// on rank 0.
//
// How to run:  mpirun -np N --hostfile ... muster-mpi-check [--seconds 1] [--max-bytes 262144]
// [--inject-flip RANK]
//              (kernels/program_mpi.cc)
// Reference:   rank r contributes (i mod 1009)(r + 1) + r to element i, so the sum over P ranks is
//              (i mod 1009) P (P + 1) / 2 + P (P - 1) / 2: small integers, exact in a double whatever the
//              order of reduction, different for every position, and wrong if any rank is missing or counted
//              twice.
// Bus bandwidth: 2 (P - 1) / P x bytes / time, time of the slowest rank, as nccl-tests count it.
#include "kernels/mpi_check.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace muster::mpi {
namespace {

double contribution(size_t i, int rank) { return static_cast<double>(i % 1009) * (rank + 1) + rank; }
double expected_sum(size_t i, int ranks) {
  const double p = ranks;
  return static_cast<double>(i % 1009) * p * (p + 1) / 2 + p * (p - 1) / 2;
}

struct SizeResult {
  size_t bytes = 0;
  int iterations = 0;
  double seconds = 0;        // per operation, slowest rank
  int64_t first_wrong = -1;  // on this rank, over all iterations
  long long wrong = 0;
};

// One all-reduce into `out`, verified. Returns this rank's time.
double reduce_once(const std::vector<double>& in, std::vector<double>& out, int ranks, bool flip,
                   SizeResult& result) {
  std::fill(out.begin(), out.end(), -1.0);
  const double start = MPI_Wtime();
  MPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double took = MPI_Wtime() - start;
  if (flip) {
    uint64_t bits;
    std::memcpy(&bits, &out[out.size() / 2], sizeof bits);
    bits ^= 1;
    std::memcpy(&out[out.size() / 2], &bits, sizeof bits);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const double expected = expected_sum(i, ranks);
    if (std::memcmp(&out[i], &expected, sizeof expected) == 0) continue;
    if (result.wrong++ == 0) result.first_wrong = static_cast<int64_t>(i);
  }
  return took;
}

SizeResult run_size(size_t bytes, double seconds, int rank, int ranks, bool flip) {
  SizeResult result;
  const size_t count = bytes / sizeof(double);
  result.bytes = count * sizeof(double);
  std::vector<double> in(count), out(count);
  for (size_t i = 0; i < count; ++i) in[i] = contribution(i, rank);
  reduce_once(in, out, ranks, flip, result);  // sets up connections
  // In batches that at most double, each sized by what all before it took on rank 0: one quick or slow
  // operation must not decide how long the whole run takes.
  double mine = 0, slowest = 0;
  int iterations = 0, batch = 1;
  const double begun = MPI_Wtime();
  while (batch > 0) {
    for (int i = 0; i < batch; ++i) mine += reduce_once(in, out, ranks, false, result);
    iterations += batch;
    const double spent = std::max(MPI_Wtime() - begun, 1e-6), fit = iterations * (seconds - spent) / spent;
    batch = static_cast<int>(std::clamp(fit, 0.0, std::min(2.0 * batch, 10000.0 - iterations)));
    MPI_Bcast(&batch, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  mine /= iterations;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  result.seconds = slowest;
  result.iterations = iterations;
  return result;
}

std::vector<size_t> sizes_up_to(size_t max_bytes) {
  std::vector<size_t> out;
  for (size_t bytes = 8; bytes < max_bytes; bytes *= 32) out.push_back(bytes);
  out.push_back(max_bytes);
  return out;
}

std::vector<long long> gather_wrong(const std::vector<SizeResult>& results, int ranks) {
  long long mine = 0;
  for (const auto& r : results) mine += r.wrong;
  return gather_counts(mine, ranks);
}

Json report(const std::vector<SizeResult>& results, const std::vector<std::string>& hosts,
            const std::vector<long long>& wrong) {
  const int ranks = static_cast<int>(hosts.size());
  Json sizes = Json::array();
  double best = 0, latency = 0;
  for (const auto& r : results) {
    const double bus =
        r.seconds > 0 ? 2.0 * (ranks - 1) / ranks * static_cast<double>(r.bytes) / r.seconds / 1e6 : 0;
    best = std::max(best, bus);
    if (r.bytes == results.front().bytes) latency = r.seconds * 1000;
    sizes.push_back(
        {{"bytes", r.bytes}, {"iterations", r.iterations}, {"ms", r.seconds * 1000}, {"busbw_mbps", bus}});
  }
  Json out = envelope("allreduce", hosts, wrong, "received {} wrong elements");
  out["metrics"]["busbw_mbps"] = {{"value", best}, {"unit", "MB/s"}};
  out["metrics"]["latency_ms"] = {{"value", latency}, {"unit", "ms"}};
  out["detail"]["sizes"] = sizes;
  out["detail"]["verified"] = "every element of every result on every rank, bit by bit";
  return out;
}

}  // namespace

Json run_allreduce(const Options& options, int rank, int ranks) {
  const auto sizes = sizes_up_to(options.max_bytes);
  std::vector<SizeResult> results;
  for (const size_t bytes : sizes)
    results.push_back(run_size(bytes, options.seconds / static_cast<double>(sizes.size()), rank, ranks,
                               rank == options.flip_rank));
  const auto hosts = gather_hosts(ranks);
  return report(results, hosts, gather_wrong(results, ranks));
}

}  // namespace muster::mpi
