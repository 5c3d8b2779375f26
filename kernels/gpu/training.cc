// Training load on GPUs: transformer blocks on each GPU by itself, then data, tensor and pipeline
// parallel over NCCL; compares every gradient with that of a single GPU.
//
// How to run:  muster-accept-gpu training [--model 4096 --heads 32 --sequence 2048 --layers 4] [--nodes N
// --node I --root A:P --gpus 0,1]
// Partitions:  weak      data parallel, the same sequences per GPU: gradients all-reduced
//              strong    data parallel, a fixed number of sequences in all, where there is one for each GPU
//              tensor    each layer across the GPUs of one node, if their number divides the heads:
//                        activations all-reduced four times per layer
//              pipeline  layers across all GPUs, if their number divides the layers: activations sent on, all
//                        forward and then all backward
// Reference:   a small network is compared with training::Network on the host, bit by bit
//              (kernels/training/block.h says why bits may be compared). For the large one every GPU computes
//              the same gradients by itself; those of the majority are right, and each partition must give
//              the same ones.
// Structure:   a thread per GPU; all ranks agree over NCCL on the number of steps, or some rank would wait
//              forever. Network: gpu_network.cc. If a GPU fails, the process names it and ends, since the
//              others' calls into NCCL would never return. Memory is allocated and freed only while no NCCL
//              call runs in this process: the two can deadlock.
// Time:        of the slowest rank, median of the steps; of a GPU alone, its own. MFU = operations / time /
//              (multiprocessors x operations per cycle x highest clock).
// Ran on:      one H200, one H100, as one rank (bench/results); several ranks only on the fakes of tests/gpu.
#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <thread>

#include "kernels/common/program.h"
#include "kernels/gpu/gpu_network.h"
#include "kernels/gpu/nccl.h"
#include "kernels/gpu/product.h"

namespace muster::kernels::gpu {
namespace {

using training::Part;
using training::Shape;

constexpr const char* kCheck = "gpu-training";
constexpr int kLeastSteps = 3, kMostSteps = 1000;
constexpr double kMostTokens =
    8388608;  // 2^23 values per sum: each is at most 1 in magnitude, and floats count exactly up to 2^24
constexpr Shape kSmall = {64, 4, 32, 2};

struct Found {
  std::map<std::string, double> seconds = {};  // of one step, by partition; "alone"
  std::map<std::string, unsigned long long> wrong = {};
  bool explained = false;  // a GPU is wrong even by itself, and what it sends makes all partitions wrong
};
bool by_itself(const std::string& partition) { return partition == "small" || partition == "alone"; }

// Small values that all ranks agree on, exchanged on this rank's stream.
class Agreement {
 public:
  Agreement(const Nccl& nccl, ncclComm_t comm, int ranks, cudaStream_t stream)
      : nccl_(nccl), comm_(comm), ranks_(ranks), stream_(stream) {}
  Status open() {
    TRY(memory_, device_memory(sizeof(uint64_t) * (1 + static_cast<size_t>(ranks_))));
    return Ok{};
  }
  // Returns the largest value of all ranks (none negative); also a barrier. Not an all-reduce, whose wrong
  // result on one rank would give that rank a different number of steps.
  Result<double> most(double mine) {
    TRY(const auto every, all(std::bit_cast<uint64_t>(mine)));
    double out = 0;
    for (const uint64_t one : every) out = std::max(out, std::bit_cast<double>(one));
    return out;
  }
  Result<std::vector<uint64_t>> all(uint64_t mine) {
    auto* at = static_cast<uint64_t*>(memory_.get());
    TRY_(copy(at, &mine, sizeof mine, cudaMemcpyHostToDevice));
    TRY_(nccl_.check(nccl_.all_gather(at, at + 1, 1, ncclUint64, comm_, stream_), "ncclAllGather"));
    std::vector<uint64_t> out(static_cast<size_t>(ranks_));
    TRY_(copy(out.data(), at + 1, out.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  Status copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    TRY_(cuda(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync"));
    return cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  const Nccl& nccl_;
  ncclComm_t comm_;
  int ranks_;
  cudaStream_t stream_;
  DeviceMemory memory_;
};

class Trainer {
 public:
  Trainer(const GpuTrainingOptions& options, const Nccl& nccl, ncclComm_t comm, int rank, int ranks,
          CudaStream stream, std::barrier<>& here)
      : options_(options),
        nccl_(nccl),
        comm_(comm),
        rank_(rank),
        ranks_(ranks),
        stream_(std::move(stream)),
        agree_(nccl, comm, ranks, stream_.get()),
        here_(here) {}

  Result<Found> run() {
    TRY_(agree_.open());
    TRY(wrong_, device_memory(sizeof(unsigned long long)));
    TRY(digests_, DigestSlots::open(1));
    TRY_(check_small());
    TRY(GpuNetwork whole, open(0, options_.shape.layers, {}, 1, kept_of_whole_));
    TRY_(alone(whole, "alone", options_.sequences));
    TRY(const double located,
        agree_.most(static_cast<double>(found_.wrong["small"] + found_.wrong["alone"])));
    found_.explained = located > 0;
    if (ranks_ == 1) found_.seconds["weak"] = found_.seconds["alone"];
    if (ranks_ > 1) TRY_(data_parallel(whole, "weak", 0, options_.sequences, static_cast<float>(ranks_)));
    if (ranks_ > 1 && options_.meeting.nodes == 1 && options_.shape.heads % static_cast<size_t>(ranks_) == 0)
      TRY_(tensor_parallel());
    if (ranks_ > 1 && options_.shape.layers % static_cast<size_t>(ranks_) == 0) TRY_(pipeline());
    here_.arrive_and_wait();  // all GPUs have freed the partitions' memory
    const auto rank = static_cast<size_t>(rank_), ranks = static_cast<size_t>(ranks_);
    if (const size_t all = options_.strong_sequences; all >= ranks) {
      TRY_(alone(whole, "", all));
      const size_t first = all * rank / ranks;
      TRY_(data_parallel(whole, "strong", first, all * (rank + 1) / ranks - first, 1));
    }
    return found_;
  }

 private:
  using Kept = std::vector<GpuNetwork::Activations>;
  Status wait() const { return stream_.wait(); }

  // Opens a network with memory for the activations of `sequences`. If memory is short on one GPU, no rank
  // continues: the others would wait for it inside NCCL.
  Result<GpuNetwork> open(size_t first_layer, size_t layers, Part part, size_t sequences, Kept& kept) {
    auto network = GpuNetwork::open(options_.shape, first_layer, layers, part, stream_.get());
    Status status = network ? Status(Ok{}) : Status(network.error());
    for (size_t i = 0; status && i < sequences; ++i) {
      auto one = network->activations();
      if (one)
        kept.push_back(std::move(one).value());
      else
        status = one.error();
    }
    if (status && !reference_) {
      auto memory = device_memory(network->gradient_count() * sizeof(float));
      if (memory)
        reference_ = std::move(memory).value();
      else
        status = memory.error();
    }
    here_.arrive_and_wait();
    TRY(const double short_of_it, agree_.most(status ? 0 : 1));
    TRY_(std::move(status));
    if (short_of_it > 0) return fail(Code::cancelled, "another GPU could not continue");
    return network;
  }

  // Runs sequences [first, first + count) and sums their gradients.
  Status pass(GpuNetwork& network, GpuNetwork::Activations& kept, size_t first, size_t count,
              const GpuNetwork::Sum& sum) {
    for (size_t i = first; i < first + count; ++i) {
      TRY_(network.fill_input(i, kept));
      TRY_(network.forward(kept, sum));
      TRY_(network.start_backward(i, kept));
      TRY_(network.backward(kept, sum));
    }
    return Ok{};
  }
  Status add_up(float* values, size_t count) const {
    return nccl_.check(nccl_.all_reduce(values, values, count, ncclFloat, ncclSum, comm_, stream_.get()),
                       "ncclAllReduce");
  }

  // Runs steps until the time is up, the same number on every rank; the slowest rank's time counts.
  Status timed(const std::string& name, const std::function<Status()>& step) {
    TRY_(step());  // fills caches, and connects
    TRY_(wait());
    std::vector<double> all, own;
    size_t steps = 1;
    for (size_t i = 0; i < steps; ++i) {
      TRY(const double together, agree_.most(0));
      const double start = seconds_now() + together;
      TRY_(step());
      TRY_(wait());
      own.push_back(seconds_now() - start);
      TRY(const double slowest, agree_.most(own.back()));
      all.push_back(slowest);
      if (i == 0)
        steps = static_cast<size_t>(
            std::clamp(options_.seconds / std::max(slowest, 1e-6), double{kLeastSteps}, double{kMostSteps}));
    }
    found_.seconds[name] = median(by_itself(name) ? std::move(own) : std::move(all));
    return Ok{};
  }

  Result<unsigned long long> count_wrong(const GpuNetwork& network, const float* reference, float factor) {
    auto* count = static_cast<unsigned long long*>(wrong_.get());
    TRY_(cuda(cudaMemsetAsync(count, 0, sizeof *count, stream_.get()), "cudaMemsetAsync"));
    TRY_(network.count_wrong(reference, factor, count));
    unsigned long long out = 0;
    TRY_(cuda(cudaMemcpyAsync(&out, count, sizeof out, cudaMemcpyDeviceToHost, stream_.get()),
              "cudaMemcpyAsync"));
    TRY_(wait());
    return out;
  }
  Result<uint64_t> digest_of_gradients(const GpuNetwork& network) {
    TRY_(digests_.clear(stream_.get()));
    TRY_(
        cuda(digest(network.gradients(), network.gradient_count(), Words::f32, digests_.at(0), stream_.get()),
             "digest"));
    TRY(const auto counts, digests_.read(stream_.get()));
    return counts[0].sum ^ counts[0].mixed ^ (counts[0].not_finite ? 1 : 0);
  }
  Status flip(const GpuNetwork& network) {
    const size_t at = options_.flip->index % network.gradient_count();
    return cuda(flip_bit(network.gradients(), at * sizeof(float) + options_.flip->bit % 32 / 8,
                         options_.flip->bit % 8, stream_.get()),
                "flip");
  }

  // Tests a network that is small enough for the host to compute the correct gradients.
  Status check_small() {
    TRY(GpuNetwork network, GpuNetwork::open(kSmall, 0, kSmall.layers, {}, stream_.get()));
    TRY(auto kept, network.activations());
    TRY_(network.clear());
    TRY_(pass(network, kept, 0, 2, nullptr));
    std::vector<float> got(network.gradient_count());
    TRY_(cuda(cudaMemcpyAsync(got.data(), network.gradients(), got.size() * sizeof(float),
                              cudaMemcpyDeviceToHost, stream_.get()),
              "cudaMemcpyAsync"));
    TRY_(wait());
    training::Network host(kSmall, 0, kSmall.layers, {}, 1);
    training::Activations activations;
    std::vector<float> x(2 * kSmall.sequence * kSmall.model), grad;
    for (size_t i = 0; i < 2; ++i) training::fill_input(kSmall, i, &x[i * kSmall.sequence * kSmall.model]);
    host.forward(x, 2, activations, nullptr);
    training::start_backward(kSmall, 0, activations, grad);
    host.backward(activations, grad, nullptr);
    const std::vector<float> right = host.gradients();
    unsigned long long wrong = got.size() == right.size() ? 0 : 1;
    for (size_t i = 0; i < got.size() && i < right.size(); ++i)
      wrong += std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(right[i]);
    found_.wrong["small"] = wrong;
    return Ok{};
  }

  // Computes the gradients on every GPU by itself, as the reference for the partitions. With a name, also
  // times this, and compares the gradients with those of the other GPUs.
  Status alone(GpuNetwork& whole, const std::string& name, size_t sequences) {
    const auto step = [&]() -> Status {
      TRY_(whole.clear());
      return pass(whole, kept_of_whole_.front(), 0, sequences, nullptr);
    };
    TRY_(step());
    TRY(const uint64_t first, digest_of_gradients(whole));
    if (!name.empty()) TRY_(timed(name, step));
    if (options_.flip && name == "alone") TRY_(flip(whole));
    TRY(const uint64_t last, digest_of_gradients(whole));
    TRY(const auto all, agree_.all(last));
    std::map<uint64_t, int> votes;
    for (const uint64_t one : all) ++votes[one];
    const auto most = std::max_element(votes.begin(), votes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    // Without a majority it is unknown which result is right: all ranks that disagree are named.
    const bool decided = 2 * most->second > ranks_;
    const std::string key = name.empty() ? "alone" : name;
    found_.wrong[key] += (first != last) + (decided ? last != most->first : votes.size() > 1);
    const size_t bytes = whole.gradient_count() * sizeof(float);
    TRY_(cuda(
        cudaMemcpyAsync(reference_.get(), whole.gradients(), bytes, cudaMemcpyDeviceToDevice, stream_.get()),
        "cudaMemcpyAsync"));
    return wait();
  }

  const float* reference() const { return static_cast<const float*>(reference_.get()); }
  Status compare(const std::string& name, const GpuNetwork& network, float factor) {
    TRY(found_.wrong[name], count_wrong(network, reference(), factor));
    return Ok{};
  }

  Status data_parallel(GpuNetwork& whole, const std::string& name, size_t first, size_t count, float factor) {
    TRY_(timed(name, [&]() -> Status {
      TRY_(whole.clear());
      TRY_(pass(whole, kept_of_whole_.front(), first, count, nullptr));
      return add_up(whole.gradients(), whole.gradient_count());
    }));
    return compare(name, whole, factor);
  }

  Status tensor_parallel() {
    const Part part{static_cast<size_t>(rank_), static_cast<size_t>(ranks_)};
    Kept kept;
    TRY(GpuNetwork mine, open(0, options_.shape.layers, part, 1, kept));
    TRY_(timed("tensor", [&]() -> Status {
      TRY_(mine.clear());
      return pass(mine, kept.front(), 0, options_.sequences,
                  [&](float* values, size_t count) { return add_up(values, count); });
    }));
    return compare("tensor", mine, 1);
  }

  Status pipeline() {
    const size_t layers = options_.shape.layers / static_cast<size_t>(ranks_);
    Kept kept;
    TRY(GpuNetwork mine, open(layers * static_cast<size_t>(rank_), layers, {}, options_.sequences, kept));
    TRY_(timed("pipeline", [&] { return pipeline_step(mine, kept); }));
    return compare("pipeline", mine, 1);
  }

  Status pipeline_step(GpuNetwork& mine, Kept& kept) {
    const bool first = rank_ == 0, last = rank_ + 1 == ranks_;
    const size_t count = options_.shape.sequence * options_.shape.model;
    const auto send = [&](const void* from, int to) {
      return nccl_.check(nccl_.send(from, count, ncclBfloat16, to, comm_, stream_.get()), "ncclSend");
    };
    const auto receive = [&](void* to, int from) {
      return nccl_.check(nccl_.receive(to, count, ncclBfloat16, from, comm_, stream_.get()), "ncclRecv");
    };
    TRY_(mine.clear());
    for (size_t i = 0; i < kept.size(); ++i) {
      TRY_(first ? mine.fill_input(i, kept[i]) : receive(kept[i].layers.front().x.get(), rank_ - 1));
      TRY_(mine.forward(kept[i], nullptr));
      if (!last) TRY_(send(kept[i].out.get(), rank_ + 1));
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      TRY_(last ? mine.start_backward(i, kept[i]) : receive(mine.grad(), rank_ + 1));
      TRY_(mine.backward(kept[i], nullptr));
      if (!first) TRY_(send(mine.grad(), rank_ - 1));
    }
    return Ok{};
  }

  const GpuTrainingOptions& options_;
  const Nccl& nccl_;
  const ncclComm_t comm_;
  const int rank_, ranks_;
  CudaStream stream_;
  Agreement agree_;
  std::barrier<>& here_;  // of this process's GPUs: passed once all have allocated or freed memory
  Kept kept_of_whole_;
  DeviceMemory reference_, wrong_;
  DigestSlots digests_;
  Found found_;
};

// Returns why these options are invalid, or null.
const char* unfit_load(const GpuTrainingOptions& o, size_t ranks) {
  if (*training::unfit(o.shape) != 0) return training::unfit(o.shape);
  if (o.sequences == 0) return "`sequences` must be at least 1";
  if (o.shape.model / o.shape.heads % 8 != 0)
    return "the width of a head, `model` / `heads`, is not a multiple of 8";
  const auto most = static_cast<double>(std::max(o.sequences * ranks, o.strong_sequences)) *
                    static_cast<double>(o.shape.sequence);
  return most > kMostTokens ? "sequences x tokens exceeds 2^23, so sums would not be exact" : nullptr;
}

// Returns one GPU's operations per second at its highest clock; 0: not known.
double peak_of(const Gpu& gpu) {
  int khz = 0;
  if (cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, gpu.device) != cudaSuccess) return 0;
  return static_cast<double>(gpu.processors) * bf16_operations_per_cycle(gpu.major, gpu.minor) * khz * 1e3;
}

void add_metrics(const GpuTrainingOptions& options, const std::vector<Found>& found,
                 const std::vector<Gpu>& gpus, int ranks, Measurement& out) {
  const double per_sequence = training::operations(options.shape);
  const auto add = [&](const std::string& name, double seconds, double sequences) {
    const double rate = per_sequence * sequences / seconds / ranks;
    out.metrics[name + "_seconds"] = {seconds, "s"};
    out.metrics[name + "_tflops"] = {rate / 1e12, "TFLOP/s"};
  };
  const auto sequences = static_cast<double>(options.sequences);
  for (const auto& [name, seconds] : found.front().seconds) {
    if (name == "alone") continue;
    add(name, seconds,
        name == "strong" ? static_cast<double>(options.strong_sequences)
        : name == "weak" ? sequences * ranks
                         : sequences);
  }
  std::vector<double> rates;
  for (const auto& one : found) rates.push_back(per_sequence * sequences / one.seconds.at("alone"));
  const auto slowest = std::min_element(rates.begin(), rates.end());
  out.metrics["tflops_per_gpu"] = {*slowest / 1e12, "TFLOP/s"};
  out.metrics["slowest_gpu_ratio"] = {*slowest / median(rates), "ratio"};
  if (const double peak = peak_of(gpus.front()); peak > 0) out.metrics["mfu"] = {*slowest / peak, "ratio"};
  for (size_t i = 0; i < gpus.size(); ++i)
    out.detail["gpus"].push_back({{"uuid", gpus[i].uuid}, {"tflops", rounded(rates[i] / 1e12)}});
  out.detail["slowest"] = gpus[static_cast<size_t>(slowest - rates.begin())].uuid;
}

Result<std::vector<Found>> run_all(const GpuTrainingOptions& options, const Nccl& nccl,
                                   const Communicators& comms, const std::vector<Gpu>& gpus) {
  const int first = options.meeting.node * static_cast<int>(gpus.size());
  std::vector<Result<Found>> results(gpus.size(), Result<Found>(fail(Code::failed, "did not run")));
  std::barrier<> here(static_cast<std::ptrdiff_t>(gpus.size()));
  const auto run = [&](size_t i) -> Result<Found> {
    TRY_(cuda(cudaSetDevice(gpus[i].device), "cudaSetDevice"));
    TRY(CudaStream stream, CudaStream::open());
    GpuTrainingOptions own = options;
    if (i > 0) own.flip.reset();
    return Trainer(own, nccl, comms.at(i), first + static_cast<int>(i), comms.ranks(), std::move(stream),
                   here)
        .run();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < gpus.size(); ++i)
    threads.emplace_back([&, i] {
      results[i] = run(i);
      if (results[i] || results[i].error().code == Code::cancelled) return;
      Measurement broken = not_measured(
          kCheck,
          fail(results[i].error().code, fmt::format("GPU {}: {}", gpus[i].uuid, results[i].error().message)));
      if (broken.outcome == Outcome::failed) broken.faulty_parts = {"GPU " + gpus[i].uuid};
      end_program(broken);
    });
  for (auto& thread : threads) thread.join();
  std::vector<Found> found;
  for (auto& result : results) {
    TRY(Found one, std::move(result));
    found.push_back(std::move(one));
  }
  return found;
}

// Reports which gradients were wrong on which of this process's GPUs.
Json judge(const std::vector<Found>& found, const std::vector<Gpu>& gpus, int first, Measurement& out) {
  Json wrong = Json::object();
  for (size_t i = 0; i < gpus.size(); ++i)
    for (const auto& [name, count] : found[i].wrong) {
      if (count == 0) continue;
      const std::string who = fmt::format("GPU {}, rank {}", gpus[i].uuid, first + static_cast<int>(i));
      wrong[who][name] = count;
      if (found[i].explained && !by_itself(name)) continue;
      if (out.outcome == Outcome::measured) out.error = fmt::format("{}: wrong gradients, {}", who, name);
      out.outcome = Outcome::corrupt;
      if (std::find(out.faulty_parts.begin(), out.faulty_parts.end(), who) == out.faulty_parts.end())
        out.faulty_parts.push_back(who);
    }
  return wrong;
}

Result<Measurement> measure(const GpuTrainingOptions& options) {
  const Meeting& meeting = options.meeting;
  if (const char* why = unfit(meeting, options.gpus)) return fail(Code::invalid, why);
  set_environment(meeting);
  TRY(const std::vector<Gpu> gpus, find_gpus(options.gpus));
  const auto here = gpus.size();
  if (const char* why = unfit_load(options, here * static_cast<size_t>(meeting.nodes)))
    return fail(Code::invalid, why);
  TRY(const Nccl nccl, Nccl::open());
  TRY(Communicators comms, Communicators::join(nccl, meeting, gpus));
  TRY(const std::vector<Found> found, run_all(options, nccl, comms, gpus));
  TRY_(comms.leave());
  const int first = meeting.node * static_cast<int>(here);
  Measurement out;
  out.metrics["ranks"] = {static_cast<double>(comms.ranks()), "ranks"};
  const Json wrong = judge(found, gpus, first, out);
  const Shape& s = options.shape;
  out.detail = {
      {"model", {{"width", s.model}, {"heads", s.heads}, {"sequence", s.sequence}, {"layers", s.layers}}},
      {"sequences", {{"weak_per_gpu", options.sequences}, {"strong", options.strong_sequences}}},
      {"nodes", meeting.nodes},
      {"node", meeting.node},
      {"gpus_per_node", here},
      {"first_rank", first},
      {"wrong", wrong},
      {"gpu", gpus.front().name},
      {"verified",
       "bit by bit: a small network against the host's result, and every gradient of every partition against "
       "that of one GPU"}};
  if (comms.ranks() > 1)
    out.detail["unproven"] = "this load was not tested on several GPUs before its release";
  add_metrics(options, found, gpus, comms.ranks(), out);
  return out;
}

}  // namespace

Measurement run_gpu_training(const GpuTrainingOptions& options) {
  auto result = measure(options);
  if (!result) {
    Measurement out = not_measured(kCheck, result.error());
    if (result.error().code != Code::cancelled) return out;
    out.outcome = Outcome::unavailable;
    out.detail["stopped"] = true;  // by another node
    return out;
  }
  Measurement out = std::move(result).value();
  out.check = kCheck;
  return out;
}

}  // namespace muster::kernels::gpu
