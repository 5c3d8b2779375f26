// NCCL: all-reduce, all-gather, reduce-scatter, all-to-all and send/receive, every element of every result
// checked.
//
// How to run:  muster-accept-gpu nccl     this node's GPUs, one rank each, in this process
//              muster-accept-gpu nccl --nodes 2 --node 1 --root 10.20.0.11:7491 --gpus 0,1,2,3
//                                         one process per node, the same number of GPUs on each;
//                                         `muster-mpi-check --load nccl` starts them
// Reference:   rank_value() (kernels/cpu/exact.h): element i of rank r's data is an integer that every
//              rank can compute, so sums are exact in any order and each receiver can check what it gets.
//              Compared bit by bit, after the buffer was filled with NaN.
// Structure:   for each collective and size one verified call, then consecutive timed calls.
// Expected:    bus bandwidth as nccl-tests defines it; 0 with one rank, where nothing crosses a link.
//              controller/report/expected.cc.
// Ran on:      one H200, one H100, as one rank (bench/results); several ranks only on the fakes of tests/gpu.
#include <algorithm>
#include <fmt/format.h>

#include "kernels/gpu/device.h"
#include "kernels/gpu/nccl.h"

namespace muster::kernels::gpu {
namespace {

constexpr uint64_t kSeed = 77, kSmallest = 1024;
constexpr int kCallsAtLeast = 3;  // checked, first, timed

struct Rank {
  Gpu gpu = {};
  int number = 0;
  ncclComm_t comm = nullptr;
  CudaStream stream = {};
  DeviceMemory from = {}, to = {}, wrong = {};
  float* sent() const { return static_cast<float*>(from.get()); }
  float* received() const { return static_cast<float*>(to.get()); }
  Status use() const { return cuda(cudaSetDevice(gpu.device), "cudaSetDevice"); }
};

class Ranks {
 public:
  Ranks(const Nccl& nccl, Communicators comms)
      : nccl_(nccl), comms_(std::move(comms)), all_(comms_.ranks()) {}

  Status open(const std::vector<Gpu>& gpus, int first, size_t bytes);
  // Enqueues one collective of `count` floats in all on every rank of this process.
  Status enqueue(Collective what, size_t count);
  // Fills inputs, sets outputs to NaN, runs once and counts wrong elements; `bad`: GPUs that received them.
  Status verify(Collective what, size_t count, const Flip* flip, std::vector<std::string>& bad,
                unsigned long long& wrong);
  // Returns the time of one call, from at most `repeats` calls (fewer if they would exceed `budget`); all
  // ranks make the same number of calls.
  Result<double> seconds(Collective what, size_t count, int repeats, double budget);
  // Copies the values: a reduction may itself be faulty.
  Result<double> most(double mine);
  Status leave() { return comms_.leave(); }
  int all() const { return all_; }

 private:
  Status call(Collective what, const Rank& rank, size_t count);
  Status check(Collective what, const Rank& rank, size_t count) const;
  Status wait() const;
  const Nccl& nccl_;
  std::vector<Rank> ranks_;
  Communicators comms_;  // destroyed first: memory cannot be freed during a call that never ends
  int all_ = 1;
};

Status Ranks::open(const std::vector<Gpu>& gpus, int first, size_t bytes) {
  ranks_.reserve(gpus.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    Rank rank;
    rank.gpu = gpus[i];
    rank.number = first + static_cast<int>(i);
    rank.comm = comms_.at(i);
    TRY_(rank.use());
    TRY(rank.stream, CudaStream::open());
    TRY(rank.from, device_memory(bytes));
    TRY(rank.to, device_memory(bytes));
    TRY(rank.wrong, device_memory(sizeof(unsigned long long)));
    ranks_.push_back(std::move(rank));
  }
  return Ok{};
}

Status Ranks::call(Collective what, const Rank& r, size_t count) {
  const size_t share = count / static_cast<size_t>(all_);
  const cudaStream_t stream = r.stream.get();
  switch (what) {
    case Collective::all_reduce:
      return nccl_.check(nccl_.all_reduce(r.sent(), r.received(), count, ncclFloat, ncclSum, r.comm, stream),
                         "ncclAllReduce");
    case Collective::all_gather:
      return nccl_.check(nccl_.all_gather(r.sent(), r.received(), share, ncclFloat, r.comm, stream),
                         "ncclAllGather");
    case Collective::reduce_scatter:
      return nccl_.check(
          nccl_.reduce_scatter(r.sent(), r.received(), share, ncclFloat, ncclSum, r.comm, stream),
          "ncclReduceScatter");
    case Collective::all_to_all:
      for (int peer = 0; peer < all_; ++peer) {
        const size_t at = static_cast<size_t>(peer) * share;
        TRY_(nccl_.check(nccl_.send(r.sent() + at, share, ncclFloat, peer, r.comm, stream), "ncclSend"));
        TRY_(nccl_.check(nccl_.receive(r.received() + at, share, ncclFloat, peer, r.comm, stream),
                         "ncclRecv"));
      }
      return Ok{};
    case Collective::send_receive:
      TRY_(nccl_.check(nccl_.send(r.sent(), count, ncclFloat, (r.number + 1) % all_, r.comm, stream),
                       "ncclSend"));
      return nccl_.check(
          nccl_.receive(r.received(), count, ncclFloat, (r.number + all_ - 1) % all_, r.comm, stream),
          "ncclRecv");
  }
  return Ok{};
}

Status Ranks::enqueue(Collective what, size_t count) {
  return nccl_.grouped("ncclGroupEnd", [&]() -> Status {
    for (const auto& rank : ranks_) {
      TRY_(rank.use());
      TRY_(call(what, rank, count));
    }
    return Ok{};
  });
}

// Handles all GPUs at once: if one fails, the others' calls never end.
Status Ranks::wait() const {
  std::vector<bool> done(ranks_.size());
  for (size_t left = ranks_.size(); left > 0;)
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (done[i]) continue;
      TRY_(ranks_[i].use());
      const auto state = cudaStreamQuery(ranks_[i].stream.get());
      if (state == cudaErrorNotReady) continue;
      TRY_(cuda(state, ("GPU " + ranks_[i].gpu.uuid).c_str()));
      done[i] = true;
      --left;
    }
  return Ok{};
}

Result<double> Ranks::most(double mine) {
  for (const auto& rank : ranks_) {
    TRY_(rank.use());
    TRY_(cuda(cudaMemcpyAsync(rank.sent(), &mine, sizeof mine, cudaMemcpyHostToDevice, rank.stream.get()),
              "cudaMemcpyAsync"));
  }
  TRY_(nccl_.grouped("ncclGroupEnd", [&]() -> Status {
    for (const auto& rank : ranks_)
      TRY_(nccl_.check(
          nccl_.all_gather(rank.sent(), rank.received(), 1, ncclFloat64, rank.comm, rank.stream.get()),
          "ncclAllGather"));
    return Ok{};
  }));
  TRY_(wait());
  std::vector<double> every(static_cast<size_t>(all_));
  TRY_(ranks_.front().use());
  TRY_(cuda(cudaMemcpy(every.data(), ranks_.front().received(), every.size() * sizeof(double),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy"));
  return *std::max_element(every.begin(), every.end());
}

// Checks the data that this rank must have received: from which ranks, and from which element on.
Status Ranks::check(Collective what, const Rank& r, size_t count) const {
  const size_t share = count / static_cast<size_t>(all_);
  const uint64_t mine = static_cast<uint64_t>(r.number) * share;
  auto* wrong = static_cast<unsigned long long*>(r.wrong.get());
  const auto is = [&](size_t at, size_t elements, int rank, int ranks, uint64_t first) {
    return cuda(check_ranks(r.received() + at, elements, kSeed, rank, ranks, first, wrong, r.stream.get()),
                "check");
  };
  switch (what) {
    case Collective::all_reduce:
      return is(0, count, 0, all_, 0);
    case Collective::reduce_scatter:
      return is(0, share, 0, all_, mine);
    case Collective::send_receive:
      return is(0, count, (r.number + all_ - 1) % all_, 1, 0);
    case Collective::all_gather:
    case Collective::all_to_all:
      for (int peer = 0; peer < all_; ++peer)
        TRY_(
            is(static_cast<size_t>(peer) * share, share, peer, 1, what == Collective::all_gather ? 0 : mine));
      return Ok{};
  }
  return Ok{};
}

Status Ranks::verify(Collective what, size_t count, const Flip* flip, std::vector<std::string>& bad,
                     unsigned long long& wrong) {
  for (const auto& rank : ranks_) {
    TRY_(rank.use());
    TRY_(cuda(write_ranks(rank.sent(), count, kSeed, rank.number, 0, rank.stream.get()), "inputs"));
    TRY_(cuda(cudaMemsetAsync(rank.received(), 0xff, count * sizeof(float), rank.stream.get()),
              "cudaMemsetAsync"));  // NaN
    TRY_(cuda(cudaMemsetAsync(rank.wrong.get(), 0, sizeof(unsigned long long), rank.stream.get()),
              "cudaMemsetAsync"));
  }
  TRY_(enqueue(what, count));
  for (const auto& rank : ranks_) {
    TRY_(rank.use());
    if (flip && &rank == &ranks_.front())
      TRY_(cuda(flip_bit(rank.received(),
                         flip->index % (count / static_cast<size_t>(all_)) * 4 + flip->bit % 32 / 8,
                         flip->bit % 8, rank.stream.get()),
                "flip"));
    TRY_(check(what, rank, count));
    unsigned long long here = 0;
    TRY_(
        cuda(cudaMemcpyAsync(&here, rank.wrong.get(), sizeof here, cudaMemcpyDeviceToHost, rank.stream.get()),
             "cudaMemcpyAsync"));
    TRY_(rank.stream.wait());
    if (here > 0)
      bad.push_back(
          fmt::format("{} as received by rank {}, GPU {}", to_string(what), rank.number, rank.gpu.uuid));
    wrong += here;
  }
  return Ok{};
}

Result<double> Ranks::seconds(Collective what, size_t count, int repeats, double budget) {
  const double first = seconds_now();
  TRY_(enqueue(what, count));
  TRY_(wait());
  TRY(const double once, most(seconds_now() - first));
  repeats = static_cast<int>(std::clamp(budget / std::max(once, 1e-9), 1.0, static_cast<double>(repeats)));
  const double start = seconds_now();
  for (int i = 0; i < repeats; ++i) TRY_(enqueue(what, count));
  TRY_(wait());
  return most(std::max((seconds_now() - start) / repeats, 1e-9));
}

// Verifies, times and records one collective at one size; returns the seconds per call.
Result<double> run_size(Ranks& ranks, Collective what, uint64_t bytes, const CollectiveOptions& options,
                        double budget, Measurement& out) {
  const size_t step = 4 * static_cast<size_t>(ranks.all());  // shares of 16 bytes each
  const size_t count = std::max<size_t>(bytes / sizeof(float) / step, 1) * step;
  std::vector<std::string> bad;
  unsigned long long wrong = 0;
  TRY_(ranks.verify(what, count, options.flip ? &*options.flip : nullptr, bad, wrong));
  TRY(const double seconds, ranks.seconds(what, count, options.repeats, budget));
  const double busbw =
      static_cast<double>(count * sizeof(float)) / seconds / 1e9 * bus_factor(what, ranks.all());
  out.metrics[fmt::format("{}_busbw_gbps", to_string(what))] = {busbw, "GB/s"};  // of the last, largest
  out.detail["sizes"].push_back({{"collective", to_string(what)},
                                 {"bytes", count * sizeof(float)},
                                 {"us", rounded(seconds * 1e6)},
                                 {"busbw_gbps", rounded(busbw)},
                                 {"wrong", wrong}});
  if (bad.empty()) return seconds;
  if (out.outcome == Outcome::measured)
    out.error = fmt::format("{} elements of {} are wrong", wrong, to_string(what));
  out.outcome = Outcome::corrupt;
  for (auto& who : bad)
    if (std::find(out.faulty_parts.begin(), out.faulty_parts.end(), who) == out.faulty_parts.end())
      out.faulty_parts.push_back(std::move(who));
  return seconds;
}

Status run_sizes(Ranks& ranks, const CollectiveOptions& options, Measurement& out) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = kSmallest; bytes < options.bytes; bytes *= 8) sizes.push_back(bytes);
  sizes.push_back(options.bytes);
  for (const auto what : kCollectives) {
    // The next size takes eight times as long: a size for which there is no time left is skipped and listed.
    double left = options.seconds / static_cast<double>(std::size(kCollectives)), once = 0;
    for (const uint64_t bytes : sizes) {
      if (once * 8 * kCallsAtLeast > left) {
        out.detail["left_out"].push_back(fmt::format("{} of {} bytes: no time left", to_string(what), bytes));
        continue;
      }
      const double start = seconds_now();
      TRY(once, run_size(ranks, what, bytes, options, left / 2, out));
      TRY(const double spent, ranks.most(seconds_now() - start));
      left -= spent;
    }
  }
  return Ok{};
}

Result<Measurement> measure(const CollectiveOptions& options) {
  const Meeting& meeting = options.meeting;
  if (const char* why = unfit(meeting, options.gpus)) return fail(Code::invalid, why);
  if (options.repeats < 1 || options.bytes < 64 || !(options.seconds > 0))
    return fail(Code::invalid, "the number of repeats, the size or the time budget is too small");
  set_environment(meeting);
  TRY(const std::vector<Gpu> gpus, find_gpus(options.gpus));
  TRY(const Nccl nccl, Nccl::open());
  int version = 0;
  TRY_(nccl.check(nccl.version(&version), "ncclGetVersion"));
  TRY(Communicators comms, Communicators::join(nccl, meeting, gpus));
  const int here = static_cast<int>(gpus.size()), first = meeting.node * here;
  Ranks ranks(nccl, std::move(comms));
  TRY_(ranks.open(gpus, first, options.bytes + 4096 * static_cast<size_t>(ranks.all())));
  Measurement out;
  out.metrics["ranks"] = {static_cast<double>(ranks.all()), "ranks"};
  out.detail = {
      {"nccl_version", version},
      {"nccl_library", nccl.path},
      {"nodes", meeting.nodes},
      {"node", meeting.node},
      {"gpus_per_node", here},
      {"first_rank", first},
      {"algorithm", meeting.algorithm.empty() ? "NCCL's choice" : meeting.algorithm},
      {"verified",
       "every element of every result of this process's ranks, bit by bit, once per collective and size"}};
  TRY_(run_sizes(ranks, options, out));
  TRY_(ranks.leave());
  return out;
}

}  // namespace

Measurement run_collectives(const CollectiveOptions& options) {
  auto result = measure(options);
  if (!result) return not_measured("gpu-nccl", result.error());
  Measurement out = std::move(result).value();
  out.check = "gpu-nccl";
  return out;
}

}  // namespace muster::kernels::gpu
