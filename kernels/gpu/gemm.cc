// Speed of matrix products on every GPU at once, as a time series, every product compared with the first.
//
// How to run:  muster-accept-gpu gemm [--seconds 5] [--n 8192] [--format bf16] [--kernel auto] [--compare]
// Reference:   the first product's digest: the inputs stay the same, so every later one must have the same
//              bits. Whether the first one is right is checked by `sdc`; inputs here are uniform random
//              numbers, which toggle all bits of a mantissa.
// Structure:   warm-up of a fifth of the time (clocks and power settle in seconds), then samples of at least
//              50 ms between two events; after each sample the result's digest. A GPU's samples are its time
//              series: throttling shows as `drift` below 1.
// Expected:    the table of controller/report/expected.cc per model, accept from 0.93 of it
//              (docs/acceptance-gpu.md).
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "kernels/gpu/product.h"

namespace muster::kernels::gpu {
namespace {

constexpr double kSample = 0.05;
constexpr size_t kSeries = 60;

struct Run {
  Series series = {};
  size_t products = 0, different = 0;
  unsigned long long not_finite = 0;
};

// Times one product, and returns the number of products per sample that follows from it.
Result<int> sample_size(ProductBench& bench, Timer& timer, Counts* digest) {
  TRY_(bench.multiply(digest, 0));
  TRY_(timer.start(bench.stream()));
  TRY_(bench.multiply(digest, 0));
  TRY(const double once, timer.stop(bench.stream()));
  return static_cast<int>(std::clamp(kSample / once, 1.0, 10000.0)) + 1;
}

Status compare_result(ProductBench& bench, DigestSlots& slots, std::optional<sdc::Digest>& first, Run& run) {
  TRY_(slots.clear(bench.stream()));
  TRY_(bench.digest_memory(slots.at(0)));
  TRY(const auto counts, slots.read(bench.stream()));
  if (!first) first = digest_of(counts[0]);
  run.different += digest_of(counts[0]) != *first;
  run.not_finite += counts[0].not_finite;
  return Ok{};
}

// `digested`: muster's kernel also computes the digest of its result while this is in registers.
Result<Run> run_products(ProductBench& bench, double seconds, bool digested) {
  TRY(Timer timer, Timer::open());
  TRY(DigestSlots slots, DigestSlots::open(2));
  Counts* digest = digested ? slots.at(1) : nullptr;
  TRY(const int count, sample_size(bench, timer, digest));
  Run run;
  std::optional<sdc::Digest> first;
  const double start = seconds_now(), warm = start + seconds / 5;
  std::vector<double> samples;
  while (samples.empty() || seconds_now() < start + seconds) {
    const bool counts = seconds_now() >= warm;
    TRY_(timer.start(bench.stream()));
    for (int i = 0; i < count; ++i) TRY_(bench.multiply(digest, 0));
    TRY(const double took, timer.stop(bench.stream()));
    run.products += static_cast<size_t>(count);
    TRY_(compare_result(bench, slots, first, run));
    if (counts) samples.push_back(bench.flop() * count / took / 1e12);
  }
  run.series = summarise(std::move(samples));
  return run;
}

Result<ProductBench> prepare(Maker maker, Format format, size_t n) {
  TRY(ProductBench bench, ProductBench::open(maker, format, n, false));
  TRY_(bench.fill_inputs(1, 0));
  TRY_(bench.tune());
  return bench;
}

void judge_data(Measurement& out, const Run& run, const Gpu& gpu) {
  if (run.different + run.not_finite == 0) return;
  out.outcome = Outcome::corrupt;
  out.faulty_parts = {"GPU " + gpu.uuid};
  out.error =
      run.not_finite > 0
          ? fmt::format("{} results are not finite numbers", run.not_finite)
          : fmt::format("{} samples of the same product differ bitwise from the first sample", run.different);
}

// Measures the other implementation in the same run, and the own kernel with its digest.
Status compare_makers(Measurement& out, const Gpu& gpu, const FormatInfo& format,
                      const GemmOptions& options) {
  const Maker own = own_kernel(format.format, gpu.major, gpu.minor);
  TRY(ProductBench library, prepare(Maker::library, format.format, options.n));
  TRY(const Run theirs, run_products(library, options.seconds, false));
  out.metrics["cublaslt_tflops"] = {theirs.series.median, format.unit};
  judge_data(out, theirs, gpu);
  if (own == Maker::library) return Ok{};
  TRY(ProductBench bench, prepare(own, format.format, options.n));
  TRY(const Run ours, run_products(bench, options.seconds, false));
  TRY(const Run digested, run_products(bench, options.seconds, true));
  judge_data(out, ours, gpu);
  judge_data(out, digested, gpu);
  out.metrics["own_tflops"] = {ours.series.median, format.unit};
  out.metrics["own_over_cublaslt"] = {ours.series.median / std::max(theirs.series.median, 1e-9), "ratio"};
  out.metrics["digest_percent"] = {100 * (ours.series.median / std::max(digested.series.median, 1e-9) - 1),
                                   "%"};
  out.detail["own"] = bench.describe(gpu);
  return Ok{};
}

Result<Measurement> measure(const Gpu& gpu, const FormatInfo& format, const GemmOptions& options) {
  if (!has_format(format.format, gpu.major, gpu.minor)) return unsupported(gpu, format);
  // cuBLASLt by default, since published speeds are those of cuBLASLt.
  const std::string word = options.maker == "auto" ? "cublaslt" : options.maker;
  TRY(const Maker maker, choose_maker(word, format.format, gpu));
  Measurement out;
  {
    TRY(ProductBench bench, prepare(maker, format.format, options.n));
    TRY(const Run run, run_products(bench, options.seconds, false));
    out.metrics["tflops"] = {run.series.median, format.unit};
    out.metrics["slowest_ratio"] = {run.series.slowest_ratio, "ratio"};
    out.metrics["drift"] = {run.series.drift, "ratio"};
    out.detail = bench.describe(gpu);
    out.detail["format"] = format.name;
    out.detail["products"] = run.products;
    out.detail["series"] = run.series.json(kSeries);
    out.detail["samples"] = run.series.values.size();
    out.detail["verified"] =
        "every sample's last product has the same bits as the first product and contains no NaN; `sdc` "
        "checks exactness";
    judge_data(out, run, gpu);
  }
  if (options.compare) TRY_(compare_makers(out, gpu, format, options));
  return out;
}

}  // namespace

Measurement run_gemm(const GemmOptions& options) {
  const FormatInfo* format = find_format(options.format);
  if (!format)
    return not_measured("gpu-gemm",
                        fail(Code::invalid, fmt::format("there is no format '{}'", options.format)));
  // Reads clocks, power and throttling reasons while the load runs, not afterwards.
  std::vector<SmiGpu> during;
  std::thread sampler([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 2));
    during = query_smi();
  });
  Measurement out = measure_gpus("gpu-gemm", options.gpus, Order::at_once,
                                 [&](const Gpu& gpu, size_t) { return measure(gpu, *format, options); });
  sampler.join();
  for (auto& part : out.parts)
    for (const auto& state : during)
      if (part["subject"] == state.uuid) part["result"]["detail"]["during"] = state.numbers;
  return out;
}

}  // namespace muster::kernels::gpu
