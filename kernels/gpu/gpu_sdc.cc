// Silent data corruption on a GPU: integer products that must be correct to the last bit, on all GPUs at
// once, and a small product on every multiprocessor separately.
//
// How to run:  muster-accept-gpu sdc [--seconds 5] [--n 4096] [--format bf16] [--kernel auto]
//              [--inject-flip SITE:ELEMENT:BIT [--flip-once]]   (SITE as in muster-accept sdc; 2 and 3 need
//              an own kernel)
// Reference:   golden_product(): integer arithmetic on the host, from the seed; uses neither the unit nor
//              the format under test. The checks are those of kernels/cpu/sdc.h, which is this program's
//              CPU reference.
// Structure:   fill -> product (own kernel: digest in the registers) -> digest of the memory -> the same
//              product again with its tiles on different multiprocessors -> digest; every tenth time
//              Freivalds' test. Before and after: the canary. cuBLASLt has no digest in the registers: there
//              the digest of the memory is compared with the golden one.
// Expected:    no alarm; with an injected bit flip, one (docs/acceptance-gpu.md).
// Ran on:      one H200, one H100 (bench/results).
#include "kernels/cpu/sdc.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "kernels/gpu/tiles.h"
#include "kernels/gpu/product.h"

namespace muster::kernels::gpu {
namespace {

constexpr int kCanaryRounds = 64;
constexpr size_t kFreivaldsEvery = 10;

// Shared by the threads of all GPUs: the first thread that needs one computes it.
class Goldens {
 public:
  sdc::Digest of(size_t n, uint64_t seed, int most, Format format) {
    const std::lock_guard lock(mutex_);
    auto [it, fresh] = known_.try_emplace({seed, most});
    if (fresh) it->second = golden_product(n, seed, most, format, std::thread::hardware_concurrency());
    return it->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<uint64_t, int>, sdc::Digest> known_;
};

struct Alarms {
  std::map<std::string, size_t> seen = {};
  std::string first = {};
  std::vector<std::string> faulty_parts = {};
  void raise(const std::string& check, const std::string& words) {
    ++seen[check];
    if (first.empty()) first = check + ": " + words;
  }
};

// Runs the canary; returns the number of multiprocessors that ran it.
Result<size_t> run_canary(const Gpu& gpu, Alarms& alarms) {
  const uint64_t seed = 20260;
  const CanaryDigest right = canary_digest(seed);
  TRY(const CudaStream stream, CudaStream::open());
  const auto blocks = static_cast<size_t>(gpu.processors);
  TRY(const DeviceMemory memory, device_memory(blocks * sizeof(Canary)));
  TRY_(cuda(canary(static_cast<Canary*>(memory.get()), gpu.processors, kCanaryRounds, seed, right.sum,
                   stream.get()),
            "canary"));
  std::vector<Canary> results(blocks);
  TRY_(cuda(cudaMemcpyAsync(results.data(), memory.get(), blocks * sizeof(Canary), cudaMemcpyDeviceToHost,
                            stream.get()),
            "cudaMemcpyAsync"));
  TRY_(stream.wait());
  std::set<unsigned> reached;
  for (const auto& one : results) {
    reached.insert(one.multiprocessor);
    if (one.wrong_rounds == 0 && one.sum == right.sum && one.mixed == right.mixed) continue;
    const std::string who = fmt::format("multiprocessor {} of GPU {}", one.multiprocessor, gpu.uuid);
    alarms.raise("canary", who + " computes wrong results");
    alarms.faulty_parts.push_back(who);
  }
  return reached.size();
}

struct Session {
  ProductBench bench;
  DigestSlots slots;  // of the registers and the memory: of the first product, then of the second
  int most = 0;
};

ProductFault fault_of(const Flip& flip) {
  const auto site = sdc::kSites[flip.part % sdc::kSites.size()];
  if (site == sdc::Site::accumulator) return {Product::Fault::accumulator, flip.index, flip.bit};
  if (site == sdc::Site::output_register) return {Product::Fault::output_register, flip.index, flip.bit};
  return {};
}

Status one_product(Session& s, uint64_t seed, const Flip* flip, size_t slot, int rotation) {
  const auto site = flip ? sdc::kSites[flip->part % sdc::kSites.size()] : sdc::Site::accumulator;
  TRY_(s.bench.fill_inputs(seed, s.most));
  if (flip && (site == sdc::Site::input_a || site == sdc::Site::input_b))
    TRY_(s.bench.flip_input(site == sdc::Site::input_b, flip->index, flip->bit));
  TRY_(s.bench.multiply(s.slots.at(slot), rotation, flip ? fault_of(*flip) : ProductFault{}));
  if (flip && site == sdc::Site::output_memory) TRY_(s.bench.flip_output(flip->index, flip->bit));
  return s.bench.digest_memory(s.slots.at(slot + 1));
}

Status examine(Session& s, uint64_t seed, const sdc::Digest& right, size_t round, const Flip* flip, bool once,
               Alarms& alarms) {
  const auto rotation = static_cast<int>(round * 7 % 1024);
  TRY_(s.slots.clear(s.bench.stream()));
  TRY_(one_product(s, seed, flip, 0, rotation));
  bool holds = true;
  if (round % kFreivaldsEvery == 0) {
    TRY(holds, s.bench.freivalds(seed + round));
  }
  TRY_(one_product(s, seed, once ? nullptr : flip, 2, rotation + 13));
  TRY(const auto counts, s.slots.read(s.bench.stream()));
  const bool own = s.bench.maker() != Maker::library;
  const auto check = [&](sdc::Check which, bool wrong) {
    if (wrong) alarms.raise(sdc::to_string(which), sdc::explain(which));
  };
  const sdc::Digest first = digest_of(counts[own ? 0 : 1]), stored = digest_of(counts[1]),
                    again = digest_of(counts[3]);
  check(sdc::Check::golden, first != right);
  check(sdc::Check::stored, own && stored != first);
  check(sdc::Check::repeat, again != stored);
  check(sdc::Check::freivalds, !holds);
  check(sdc::Check::finite, counts[1].not_finite + counts[3].not_finite > 0);
  return Ok{};
}

Result<Session> open_session(Maker maker, Format format, size_t n) {
  const int most = exact_most(format, maker, n);
  if (most == 0)
    return fail(Code::invalid, fmt::format("with a matrix edge of {}, sums in this format are not exact", n));
  TRY(ProductBench bench, ProductBench::open(maker, format, n, true));
  TRY(DigestSlots slots, DigestSlots::open(4));
  Session s{std::move(bench), std::move(slots), most};
  TRY_(s.bench.fill_inputs(1, most));
  TRY_(s.bench.tune());
  return s;
}

Result<Measurement> measure(const Gpu& gpu, const FormatInfo& format, const GpuSdcOptions& options,
                            Goldens& goldens) {
  TRY(const Maker maker, choose_maker(options.maker, format.format, gpu));
  if (options.flip && !can_flip(sdc::kSites[options.flip->part % sdc::kSites.size()], maker))
    return fail(Code::invalid,
                "cuBLASLt's registers cannot be reached: flip an input or the output in memory, or use "
                "muster's own kernel");
  TRY(Session s, open_session(maker, format.format, options.n));
  Alarms alarms;
  TRY(const size_t reached, run_canary(gpu, alarms));
  const size_t inputs = std::max<size_t>(options.inputs, 1);
  for (size_t i = 0; i < inputs; ++i) (void)goldens.of(options.n, options.seed + i, s.most, format.format);
  const double start = seconds_now();
  size_t rounds = 0;
  while (rounds < inputs || seconds_now() < start + options.seconds) {
    const uint64_t seed = options.seed + rounds % inputs;
    const bool flipped = options.flip && (!options.flip_once || rounds == 0);
    TRY_(examine(s, seed, goldens.of(options.n, seed, s.most, format.format), rounds,
                 flipped ? &*options.flip : nullptr, options.flip_once, alarms));
    ++rounds;
  }
  TRY_(run_canary(gpu, alarms));  // again, now that the GPU is hot
  Measurement out;
  out.metrics["products"] = {static_cast<double>(2 * rounds), "products"};
  out.metrics["multiprocessors"] = {static_cast<double>(reached), "multiprocessors"};
  out.detail = s.bench.describe(gpu);
  out.detail["format"] = format.name;
  out.detail["integers_up_to"] = s.most;
  out.detail["alarms"] = alarms.seen;
  out.detail["verified"] =
      "every bit of every result, by digest, against integer arithmetic on the host; a repetition; "
      "Freivalds' test; and a canary on each multiprocessor";
  if (alarms.first.empty()) return out;
  out.outcome = Outcome::corrupt;
  out.error = alarms.first;
  out.faulty_parts =
      alarms.faulty_parts.empty() ? std::vector<std::string>{"GPU " + gpu.uuid} : alarms.faulty_parts;
  return out;
}

}  // namespace

Measurement run_gpu_sdc(const GpuSdcOptions& options) {
  const FormatInfo* format = find_format(options.format);
  if (!format)
    return not_measured("gpu-sdc",
                        fail(Code::invalid, fmt::format("there is no format '{}'", options.format)));
  Goldens goldens;
  return measure_gpus("gpu-sdc", options.gpus, Order::at_once,
                      [&](const Gpu& gpu, size_t) { return measure(gpu, *format, options, goldens); });
}

}  // namespace muster::kernels::gpu
