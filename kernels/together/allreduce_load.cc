// All-reduce over every member: each element of each result checked exactly, bus bandwidth per size.
//
// Reference:   rank r contributes (i mod 1009)(r + 1) + r to element i, so the sum over P members is
//              (i mod 1009) P (P + 1) / 2 + P (P - 1) / 2: small integers, exact in a double whatever the
//              order of reduction, different for every position, and wrong if any member is missing or
//              counted twice.
// Bus bandwidth: 2 (P - 1) / P x bytes / time, time of the slowest member, as nccl-tests count it.
// Expected:    over TCP, for large messages the speed of one `muster-accept link` stream, less the additions.
#include <algorithm>
#include <cstring>

#include "kernels/together/loads.h"

namespace muster::together {
namespace {

using kernels::seconds_now;

double contribution(size_t i, int rank) { return static_cast<double>(i % 1009) * (rank + 1) + rank; }
double expected_sum(size_t i, int ranks) {
  const double p = ranks;
  return static_cast<double>(i % 1009) * p * (p + 1) / 2 + p * (p - 1) / 2;
}

struct SizeResult {
  size_t bytes = 0;
  uint64_t iterations = 0;
  double seconds = 0;  // per operation, slowest member
  uint64_t wrong = 0;  // elements on this member, over all iterations
};

// Runs and verifies one all-reduce of `in`; returns this member's time.
Result<double> reduce_once(Group& group, const std::vector<double>& in, bool flip, SizeResult& result) {
  std::vector<double> out = in;
  const double start = seconds_now();
  TRY_(group.sum(std::span<double>(out)));
  const double took = seconds_now() - start;
  if (flip) {
    uint64_t bits;
    std::memcpy(&bits, &out[out.size() / 2], sizeof bits);
    bits ^= 1;
    std::memcpy(&out[out.size() / 2], &bits, sizeof bits);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const double expected = expected_sum(i, group.size());
    result.wrong += std::memcmp(&out[i], &expected, sizeof expected) != 0;
  }
  return took;
}

Result<SizeResult> run_size(Group& group, size_t bytes, double seconds, bool flip) {
  SizeResult result;
  const size_t count = bytes / sizeof(double);
  result.bytes = count * sizeof(double);
  std::vector<double> in(count);
  for (size_t i = 0; i < count; ++i) in[i] = contribution(i, group.rank());
  TRY_(reduce_once(group, in, flip, result));  // not timed: opens the connections' TCP windows
  // Runs in batches that at most double in size, each sized by the time of all previous ones on rank 0, so
  // that a single quick or slow operation does not determine the duration of the whole run.
  double mine = 0;
  uint64_t batch = 1;
  const double begun = seconds_now();
  while (batch > 0) {
    for (uint64_t i = 0; i < batch; ++i) {
      TRY(const double took, reduce_once(group, in, false, result));
      mine += took;
    }
    result.iterations += batch;
    const double done = static_cast<double>(result.iterations), spent = std::max(seconds_now() - begun, 1e-6);
    const double most = std::min(2.0 * static_cast<double>(batch), 10000.0 - done);
    batch = static_cast<uint64_t>(std::clamp(done * (seconds - spent) / spent, 0.0, most));
    TRY_(group.broadcast(bytes_of(std::span<uint64_t>(&batch, 1)), 0));
  }
  mine /= static_cast<double>(result.iterations);
  TRY_(group.max({&mine, 1}));
  result.seconds = mine;
  return result;
}

std::vector<size_t> sizes_up_to(size_t max_bytes) {
  std::vector<size_t> out;
  for (size_t bytes = 8; bytes < max_bytes; bytes *= 32) out.push_back(bytes);
  out.push_back(max_bytes);
  return out;
}

void report(kernels::Measurement& out, const std::vector<SizeResult>& results, int ranks) {
  Json sizes = Json::array();
  double best = 0;
  for (const auto& r : results) {
    const double bus =
        r.seconds > 0 ? 2.0 * (ranks - 1) / ranks * static_cast<double>(r.bytes) / r.seconds / 1e6 : 0;
    best = std::max(best, bus);
    sizes.push_back(
        {{"bytes", r.bytes}, {"iterations", r.iterations}, {"ms", r.seconds * 1000}, {"busbw_mbps", bus}});
  }
  out.metrics["busbw_mbps"] = {best, "MB/s"};
  out.metrics["latency_ms"] = {results.front().seconds * 1000, "ms"};
  out.detail["sizes"] = sizes;
  out.detail["verified"] = "every element of every result on every rank, bit by bit";
}

Result<kernels::Measurement> measure(Group& group, const LoadOptions& options) {
  const auto sizes = sizes_up_to(options.max_bytes);
  std::vector<SizeResult> results;
  uint64_t wrong = 0;
  for (const size_t bytes : sizes) {
    TRY(const SizeResult one, run_size(group, bytes, options.seconds / static_cast<double>(sizes.size()),
                                       group.rank() == options.flip_rank));
    wrong += one.wrong;
    results.push_back(one);
  }
  TRY(kernels::Measurement out, envelope(group, "allreduce", wrong, "received {} wrong elements"));
  if (group.rank() == 0) report(out, results, group.size());
  return out;
}

}  // namespace

kernels::Measurement run_allreduce(Group& group, const LoadOptions& options) {
  if (options.max_bytes < sizeof(double)) {
    kernels::Measurement out;
    out.check = "allreduce";
    out.outcome = kernels::Outcome::refused;
    out.error = "an all-reduce needs at least 8 bytes";
    return out;
  }
  group.within(options.patience);
  const auto result = measure(group, options);
  return result.ok() ? *result : lost_measurement("allreduce", group.lost(), result.error());
}

}  // namespace muster::together
