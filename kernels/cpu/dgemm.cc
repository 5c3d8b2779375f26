// DGEMM on every core at once, each result compared bit by bit with an exact integer reference.
//
// How to run:  muster-accept dgemm [--seconds 1] [--n 0] [--threads 0] [--variant NAME] [--inject-flip
// CORE:INDEX:BIT]
// Reference:   integer_product(): a plain triple loop in integer arithmetic, so it does not share the unit
//              under test. Inputs are small integers; every partial sum is exact in a double, so order of
//              summation cannot matter and one wrong bit anywhere is a fault, not rounding.
// Structure:   one independent matrix product per core, pinned, sized for the core's own caches. A shared
//              product would hide a slow core behind the others and could not say whose result was wrong;
//              this names the core. Since v2 with kernels/common/multiply.h: SSE2, AVX2+FMA or AVX-512.
// Expected:    70-90 % of peak (cores x clock x 16 flop for AVX2 and for AVX-512 with one unit or two of half
//              the width, x 32 for AVX-512 with two, x 4 for SSE2) on metal;
//              about 0.3 GFLOP/s per core under emulation, where the speed is meaningless but the
//              verification is not.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <thread>

#include "kernels/common/kernels.h"
#include "kernels/common/multiply.h"
#include "kernels/cpu/cpu.h"

namespace muster::kernels {
namespace {

constexpr size_t kMaxEdge = 1024;
constexpr int kMaxInput = 7;

struct FreeDeleter {
  void operator()(double* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<double[], FreeDeleter>;
Buffer make_buffer(size_t doubles) {
  const size_t bytes = (doubles * sizeof(double) + 4095) / 4096 * 4096;
  auto* memory = static_cast<double*>(std::aligned_alloc(4096, bytes));
  if (memory) std::memset(memory, 0, bytes);
  return Buffer(memory);
}

using Variant = Multiplier<double>;

// C = A B for n x n row-major matrices.
void multiply(const Variant& variant, size_t n, const double* a, const double* b, double* c) {
  std::memset(c, 0, n * n * sizeof(double));
  variant.add_product(n, n, n, {a, n, 1}, b, n, c, n);
}

// The same small integers for every core, so that cores also verify each other.
std::vector<int> integer_matrix(size_t n, uint64_t seed) {
  SplitMix random(seed);
  std::vector<int> out(n * n);
  for (auto& v : out) v = static_cast<int>(random.next() % (2 * kMaxInput + 1)) - kMaxInput;
  return out;
}

std::vector<double> integer_product(size_t n, const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<double> out(n * n);
  std::vector<int> row(n);
  for (size_t i = 0; i < n; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (size_t k = 0; k < n; ++k)
      for (size_t j = 0; j < n; ++j) row[j] += a[i * n + k] * b[k * n + j];
    for (size_t j = 0; j < n; ++j) out[i * n + j] = row[j];
  }
  return out;
}

struct Problem {
  size_t n;
  std::vector<double> a, b, expected;
};
Problem make_problem(size_t n) {
  const auto a = integer_matrix(n, 1), b = integer_matrix(n, 2);
  return {n, {a.begin(), a.end()}, {b.begin(), b.end()}, integer_product(n, a, b)};
}

// Returns the edge for which one product takes a sixteenth of the budget on this core, from a small probe.
size_t probe_edge(const Variant& variant, double seconds) {
  constexpr size_t kProbe = 48;
  const Problem problem = make_problem(kProbe);
  std::vector<double> c(kProbe * kProbe);
  const double start = seconds_now();
  int products = 0;
  do multiply(variant, kProbe, problem.a.data(), problem.b.data(), c.data());
  while (++products < 50 && seconds_now() - start < 0.005);
  const double per_flop = (seconds_now() - start) / (products * 2.0 * std::pow(kProbe, 3));
  const double edge = std::cbrt(seconds / 16 / std::max(per_flop, 1e-13) / 2);
  return std::clamp<size_t>(static_cast<size_t>(edge) / 48 * 48, 48, 480);  // whole tiles of every variant
}

struct Sample {
  double start, end;
};
struct Core {
  int cpu = 0;
  std::vector<Sample> samples = {};
  size_t wrong = 0;        // products with at least one wrong element
  std::string first = {};  // first mismatch, for people
};

uint64_t bits_of(double v) {
  uint64_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}

// Compares bits, not values: accumulators start at +0, sums are exact; a wrong sign of zero is a fault.
void verify(const Problem& problem, const double* c, Core& core) {
  if (std::memcmp(c, problem.expected.data(), problem.n * problem.n * sizeof(double)) == 0) return;
  size_t i = 0;
  while (bits_of(c[i]) == bits_of(problem.expected[i])) ++i;
  if (core.wrong++ > 0) return;
  core.first = fmt::format("cpu {} product {} element ({},{}): expected {} (0x{:016x}), got {} (0x{:016x})",
                           core.cpu, core.samples.size(), i / problem.n, i % problem.n, problem.expected[i],
                           bits_of(problem.expected[i]), c[i], bits_of(c[i]));
}

void run_core(const Variant& variant, const Problem& problem, double until, const Flip* flip, Core& core) {
  pin_to_cpu(core.cpu);
  const size_t cells = problem.n * problem.n;
  Buffer c = make_buffer(cells);
  do {
    const double start = seconds_now();
    multiply(variant, problem.n, problem.a.data(), problem.b.data(), c.get());
    core.samples.push_back({start, seconds_now()});
    if (flip && core.samples.size() == 1) {
      uint64_t bits = bits_of(c[flip->index % cells]) ^ (uint64_t{1} << (flip->bit % 64));
      std::memcpy(&c[flip->index % cells], &bits, sizeof bits);
    }
    verify(problem, c.get(), core);
  } while (seconds_now() < until);
}

double core_rate(const Core& core, double flop) {
  double busy = 0;
  for (const auto& s : core.samples) busy += s.end - s.start;
  return busy > 0 ? flop * static_cast<double>(core.samples.size()) / busy / 1e9 : 0;
}

// Returns the GFLOP/s of all cores together in equal time slots of the run. A product that overlaps several
// slots counts for each of them in proportion.
std::vector<double> time_series(const std::vector<Core>& cores, double flop, size_t slots) {
  double begin = 1e300, end = 0;
  for (const auto& core : cores)
    for (const auto& s : core.samples) begin = std::min(begin, s.start), end = std::max(end, s.end);
  const double width = std::max(1e-9, (end - begin) / static_cast<double>(slots));
  std::vector<double> out(slots, 0.0);
  for (const auto& core : cores)
    for (const auto& s : core.samples)
      for (size_t slot = 0; slot < slots; ++slot) {
        const double low = begin + static_cast<double>(slot) * width;
        const double overlap = std::min(s.end, low + width) - std::max(s.start, low);
        if (overlap > 0) out[slot] += flop * overlap / (s.end - s.start) / width / 1e9;
      }
  for (auto& v : out) v = rounded(v);
  return out;
}

void summarise(const std::vector<Core>& cores, size_t n, const Variant& variant, const Files& files,
               Measurement& out) {
  const double flop = 2.0 * std::pow(static_cast<double>(n), 3);
  std::vector<int> cpus;  // only those measured: isolcpus, a cpuset or taskset may exclude others
  for (const auto& core : cores) cpus.push_back(core.cpu);
  const Machine machine = look_at_machine(files, cpus);
  std::vector<double> rates;
  Json per_core = Json::array();
  size_t products = 0, wrong = 0;
  double total = 0;
  for (const auto& core : cores) {
    rates.push_back(core_rate(core, flop));
    total += rates.back();
    products += core.samples.size();
    wrong += core.wrong;
    per_core.push_back({{"cpu", core.cpu},
                        {"gflops", rounded(rates.back())},
                        {"products", core.samples.size()},
                        {"wrong", core.wrong}});
    if (core.wrong == 0) continue;
    if (out.error.empty()) out.error = core.first;
    out.outcome = Outcome::corrupt;
    out.faulty_parts.push_back(fmt::format("cpu {}", core.cpu));
  }
  out.metrics["gflops"] = {total, "GFLOP/s"};
  const double middle = median(rates);
  out.metrics["slowest_core_ratio"] = {
      middle > 0 ? *std::min_element(rates.begin(), rates.end()) / middle : 0, "ratio"};
  out.detail = {{"n", n},
                {"variant", variant.name},
                {"flops_per_cycle", flops_per_cycle(variant.name, machine)},
                {"units_512", machine.units_512},
                {"physical_cores", machine.physical_cores},
                {"machine_cores", machine.machine_cores},
                {"cpu_mhz", machine.cpu_mhz},
                {"clock", machine.base_clock ? "base" : "highest"},
                {"threads", cores.size()},
                {"products", products},
                {"wrong", wrong},
                {"verified", "every element of every product, bit by bit, against an integer reference"},
                {"cores", per_core},
                {"series_gflops", time_series(cores, flop, 16)}};
}

}  // namespace

std::vector<std::string> dgemm_variants() {
  std::vector<std::string> out;
  for (const auto& variant : multipliers<double>()) out.push_back(variant.name);
  return out;
}

Measurement run_dgemm(const DgemmOptions& options) {
  Measurement out;
  out.check = "dgemm";
  const auto possible = multipliers<double>();
  auto chosen = possible.begin();
  if (!options.variant.empty())
    chosen =
        std::find_if(chosen, possible.end(), [&](const Variant& v) { return v.name == options.variant; });
  if (chosen == possible.end()) {
    out.outcome = Outcome::unavailable;
    out.error = fmt::format("this processor cannot run variant '{}'", options.variant);
    return out;
  }
  const Variant variant = *chosen;
  std::vector<int> cpus = usable_cpus();
  if (options.threads > 0) cpus.resize(std::min(cpus.size(), options.threads));
  const size_t n = options.n > 0 ? std::min(options.n, kMaxEdge) : probe_edge(variant, options.seconds);
  const Problem problem = make_problem(n);
  std::vector<Core> cores(cpus.size());
  const double until = seconds_now() + options.seconds;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i) {
    cores[i].cpu = cpus[i];
    const Flip* flip = options.flip && options.flip->part % cores.size() == i ? &*options.flip : nullptr;
    threads.emplace_back([&, i, flip] { run_core(variant, problem, until, flip, cores[i]); });
  }
  for (auto& t : threads) t.join();

  summarise(cores, n, variant, options.files, out);
  return out;
}

}  // namespace muster::kernels
