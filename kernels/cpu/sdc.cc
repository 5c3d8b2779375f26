// Silent data corruption checks on the CPU: the reference for those on a GPU, and a check of the CPU itself.
//
// How to run:  muster-accept sdc [--seconds 1] [--n 128] [--inject-flip SITE:ELEMENT:BIT]
//              (SITE: 0 input A, 1 input B, 2 accumulator, 3 output register, 4 output memory)
// Reference:   golden(): a triple loop in integer arithmetic, which shares neither unit nor format with the
//              product.
// Structure:   product -> digest of the registers -> store -> digest of the memory; a second product;
//              Freivalds' test.
// Expected:    no alarm. `bench/run.sh sdc` plants 1,000 flips and counts which check detected each.
#include "kernels/cpu/sdc.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <thread>

#include "base/words.h"
#include "kernels/cpu/exact.h"

namespace muster::kernels::sdc {
namespace {

constexpr int kMaxInput = 7;

float float_of(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }
uint16_t bf16_of(int small) {  // exact: small integers have at most 8 significant bits
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(small)) >> 16);
}

void flip(float& value, unsigned bit) {
  value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ (1u << bit % 32));
}

struct Integers {
  std::vector<int> a, b;
  Integers(size_t n, uint64_t seed) : a(n * n), b(n * n) {
    SplitMix random(seed);
    for (auto* matrix : {&a, &b})
      for (int& value : *matrix) value = static_cast<int>(random.next() % (2 * kMaxInput + 1)) - kMaxInput;
  }
};

// Computes one sum again, with a bit flipped after `step` additions.
float disturbed_sum(const Inputs& in, size_t row, size_t column, const Fault& fault) {
  float sum = 0;
  const size_t step = fault.step % (in.n + 1);
  for (size_t k = 0; k < in.n; ++k) {
    if (k == step) flip(sum, fault.bit);
    sum += float_of(in.a[row * in.n + k]) * float_of(in.b[k * in.n + column]);
  }
  if (step == in.n) flip(sum, fault.bit);
  return sum;
}

std::optional<int64_t> integer(float value) {
  if (!std::isfinite(value) || std::fabs(value) > 0x1p40f || value != std::trunc(value)) return {};
  return static_cast<int64_t>(value);
}

// out = M x, or nothing when an element of M is not an integer.
template <typename T, typename ToFloat>
std::optional<std::vector<int64_t>> apply(size_t n, const std::vector<T>& m, const std::vector<int64_t>& x,
                                          ToFloat to_float) {
  std::vector<int64_t> out(n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const auto value = integer(to_float(m[i * n + j]));
      if (!value) return {};
      // Wraps like the hardware's integers do: equal sums stay equal, and there is no undefined overflow.
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(out[i]) +
                                    static_cast<uint64_t>(*value) * static_cast<uint64_t>(x[j]));
    }
  return out;
}

}  // namespace

constexpr Words<Site, 5> kSiteNames = {{{Site::input_a, "input A"},
                                        {Site::input_b, "input B"},
                                        {Site::accumulator, "accumulator"},
                                        {Site::output_register, "output register"},
                                        {Site::output_memory, "output memory"}}};
const char* to_string(Site site) { return word_of(kSiteNames, site).data(); }
unsigned bits_of(Site site) { return site == Site::input_a || site == Site::input_b ? 16 : 32; }

constexpr Words<Check, 5> kCheckNames = {{{Check::golden, "golden digest"},
                                          {Check::stored, "read-back digest"},
                                          {Check::repeat, "bit-exact repeat"},
                                          {Check::freivalds, "Freivalds"},
                                          {Check::finite, "NaN or infinity"}}};
const char* to_string(Check check) { return word_of(kCheckNames, check).data(); }
constexpr Words<Check, 5> kCheckMeanings = {
    {{Check::golden, "the digest of the product differs from that of all healthy devices"},
     {Check::stored, "the result in memory differs from that in the registers"},
     {Check::repeat, "repeating the product with the same inputs gave different bits"},
     {Check::freivalds, "C x differs from A (B x)"},
     {Check::finite, "a result is not a finite number"}}};
const char* explain(Check check) { return word_of(kCheckMeanings, check).data(); }

void Digest::add(uint64_t position, uint32_t bits) {
  const uint64_t h = gpu::word_hash(position, bits);  // the GPU's
  sum += h;
  mixed ^= gpu::word_mixed(h);
}

Inputs make_inputs(size_t n, uint64_t seed) {
  const Integers integers(n, seed);
  Inputs out{n, std::vector<uint16_t>(n * n), std::vector<uint16_t>(n * n)};
  std::transform(integers.a.begin(), integers.a.end(), out.a.begin(), bf16_of);
  std::transform(integers.b.begin(), integers.b.end(), out.b.begin(), bf16_of);
  return out;
}

Product multiply(Inputs& in, const Fault* fault) {
  const size_t n = in.n, element = fault ? fault->element % (n * n) : 0;
  const auto at = [&](Site site) { return fault && fault->site == site; };
  if (at(Site::input_a)) in.a[element] = static_cast<uint16_t>(in.a[element] ^ (1u << fault->bit % 16));
  if (at(Site::input_b)) in.b[element] = static_cast<uint16_t>(in.b[element] ^ (1u << fault->bit % 16));
  Product out;
  out.c.resize(n * n);
  std::vector<float> b(n * n);
  std::transform(in.b.begin(), in.b.end(), b.begin(), float_of);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k) {
      const float a = float_of(in.a[i * n + k]);
      for (size_t j = 0; j < n; ++j) out.c[i * n + j] += a * b[k * n + j];
    }
  if (at(Site::accumulator)) out.c[element] = disturbed_sum(in, element / n, element % n, *fault);
  if (at(Site::output_register)) flip(out.c[element], fault->bit);
  for (size_t i = 0; i < n * n; ++i) out.epilogue.add(i, std::bit_cast<uint32_t>(out.c[i]));
  if (at(Site::output_memory)) flip(out.c[element], fault->bit);
  return out;
}

Digest read_back(const std::vector<float>& c) {
  Digest out;
  for (size_t i = 0; i < c.size(); ++i) out.add(i, std::bit_cast<uint32_t>(c[i]));
  return out;
}

Digest golden(size_t n, uint64_t seed) {
  const Integers in(n, seed);
  std::vector<int> c(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      for (size_t j = 0; j < n; ++j) c[i * n + j] += in.a[i * n + k] * in.b[k * n + j];
  Digest out;
  for (size_t i = 0; i < c.size(); ++i) out.add(i, std::bit_cast<uint32_t>(static_cast<float>(c[i])));
  return out;
}

bool freivalds(const Inputs& in, const std::vector<float>& c, uint64_t seed) {
  SplitMix random(seed);
  std::vector<int64_t> x(in.n);
  for (auto& value : x) value = random.next() % 2 ? 1 : -1;
  const auto bx = apply(in.n, in.b, x, float_of);
  const auto cx = apply(in.n, c, x, [](float value) { return value; });
  const auto abx = bx ? apply(in.n, in.a, *bx, float_of) : bx;
  return abx && cx && *abx == *cx;
}

size_t not_finite(const std::vector<float>& c) {
  return static_cast<size_t>(
      std::count_if(c.begin(), c.end(), [](float value) { return !std::isfinite(value); }));
}

bool Outcome::any() const { return std::find(alarm.begin(), alarm.end(), true) != alarm.end(); }

Outcome examine(size_t n, uint64_t seed, const Fault* fault) {
  Inputs inputs = make_inputs(n, seed);
  const Product first = multiply(inputs, fault);
  // A transient fault of the first product is gone in the second; inputs come from their source again.
  Inputs again = make_inputs(n, seed);
  const Product second = multiply(again, fault && fault->repeats ? fault : nullptr);
  const Digest right = golden(n, seed), stored = read_back(first.c);
  Outcome out;
  const auto set = [&](Check check, bool wrong) { out.alarm[static_cast<size_t>(check)] = wrong; };
  set(Check::golden, first.epilogue != right);
  set(Check::stored, stored != first.epilogue);
  set(Check::repeat, read_back(second.c) != stored);
  set(Check::freivalds, !freivalds(inputs, first.c, seed + 1));
  set(Check::finite, not_finite(first.c) > 0);
  out.changed = stored != right;
  return out;
}

}  // namespace muster::kernels::sdc

namespace muster::kernels {
namespace {

struct Core {
  int cpu = 0;
  size_t products = 0;
  std::string error = {};  // of its first wrong product
  std::map<std::string, size_t> alarms = {};
};

void work(Core& core, size_t n, uint64_t seed, const sdc::Fault* fault, double until) {
  pin_to_cpu(core.cpu);
  do {
    const auto outcome = sdc::examine(n, seed + core.products++, fault);
    for (const auto check : sdc::kChecks) {
      if (!outcome.alarm[static_cast<size_t>(check)]) continue;
      ++core.alarms[sdc::to_string(check)];
      if (core.error.empty())
        core.error = fmt::format("cpu {}, product {}: {}: {}", core.cpu, core.products, sdc::to_string(check),
                                 sdc::explain(check));
    }
  } while (seconds_now() < until);
}

}  // namespace

Measurement run_sdc(const SdcOptions& options) {
  Measurement out;
  out.check = "sdc";
  const size_t n = std::min<size_t>(options.n ? options.n : 128, 4096);
  std::optional<sdc::Fault> fault;
  if (options.flip)
    fault = sdc::Fault{sdc::kSites[options.flip->part % sdc::kSites.size()], options.flip->index,
                       options.flip->bit, n / 2, true};
  const auto cpus = usable_cpus();
  std::vector<Core> cores(options.threads ? options.threads : std::max<size_t>(cpus.size(), 1));
  const double start = seconds_now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i) {
    cores[i].cpu = cpus.empty() ? 0 : cpus[i % cpus.size()];
    threads.emplace_back([&, i] {  // different inputs on every core
      work(cores[i], n, options.seed + (uint64_t{i} << 40), i == 0 && fault ? &*fault : nullptr,
           start + options.seconds);
    });
  }
  for (auto& thread : threads) thread.join();
  const double took = std::max(seconds_now() - start, 1e-9);
  size_t products = 0;
  Json seen = Json::object();
  for (const auto& core : cores) {
    products += core.products;
    for (const auto& [check, count] : core.alarms) seen[check] = seen.value(check, size_t{0}) + count;
    if (core.error.empty()) continue;
    out.outcome = Outcome::corrupt;
    out.faulty_parts.push_back(fmt::format("cpu {}", core.cpu));
    if (out.error.empty()) out.error = core.error;
  }
  const double flops = 2.0 * 2.0 * static_cast<double>(n * n) * static_cast<double>(n * products);
  out.metrics["products"] = {static_cast<double>(products), "products"};
  out.metrics["gflops"] = {rounded(flops / took / 1e9), "GFLOP/s"};
  out.detail = {
      {"n", n},
      {"seed", options.seed},
      {"cores", cores.size()},
      {"alarms", seen},
      {"verified",
       "digests of registers and memory compared with an integer reference; every product repeated; "
       "Freivalds' check"}};
  return out;
}

}  // namespace muster::kernels
