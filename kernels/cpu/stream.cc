// Memory bandwidth: copy, scale, add, triad over arrays larger than the caches, every element verified.
//
// How to run:  muster-accept stream [--seconds 1] [--max-mib 0] [--threads 0] [--inject-flip 0:INDEX:BIT]
// Reference:   the four operations of one round are chosen so that exact arithmetic restores the first array:
//                copy c = a;  scale b = 2 c;  add c = a + b;  triad a = c - 1 b   =>  b = 2 a, c = 3 a, a
//                             unchanged.
//              a[i] depends on i, so a wrong address shows as well as a wrong bit; an error made in any
//              round survives into the last one (each array feeds the next), where all three arrays are
//              compared bit by bit.
// Counting:    16, 16, 24, 24 bytes per element, as STREAM counts them; write-allocate traffic is not
//              counted.
// Structure:   one pinned thread per core, first touch by the thread that uses the memory. Plain stores.
// Expected:    70-85 % of channels x transfer rate x 8 bytes on hardware. Arrays under four times the last
//              level cache are reported as cache_resident: true, and then the number is not memory bandwidth.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <thread>

#include "kernels/common/kernels.h"
#include "kernels/cpu/cpu.h"

namespace muster::kernels {
namespace {

constexpr size_t kRow = 1021;         // a prime; element i of a, b, c holds i % 1021 + 1, times 1, 2, 3
constexpr size_t kStep = 256 * kRow;  // elements touched between two looks at the clock
constexpr size_t kProbe = 16 * kRow;  // elements
constexpr size_t kSeriesLength = 24;
constexpr size_t kHugePage = 2 << 20;

using Row = std::array<double, kRow>;
Row make_row(int times) {
  Row out;
  for (size_t i = 0; i < kRow; ++i) out[i] = static_cast<double>(i + 1) * times;
  return out;
}

struct FreeDeleter {
  void operator()(double* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<double[], FreeDeleter>;
Buffer make_buffer(size_t doubles) {
  const size_t bytes = (doubles * sizeof(double) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: page faults would dominate the first touch
  return Buffer(static_cast<double*>(memory));
}

struct Arrays {  // `count` is a multiple of kRow
  size_t count = 0;
  Buffer a, b, c;
  explicit Arrays(size_t n) : count(n), a(make_buffer(n)), b(make_buffer(n)), c(make_buffer(n)) {}
  // First touch, until `deadline`; returns how many elements got their values.
  size_t touch(double deadline) {
    const Row row = make_row(1);
    size_t done = 0;
    while (done < count && (done == 0 || seconds_now() < deadline)) {
      const size_t part = std::min(count - done, kStep);
      for (size_t i = done; i < done + part; i += kRow) std::memcpy(&a[i], row.data(), sizeof row);
      std::memset(&b[done], 0, part * sizeof(double));
      std::memset(&c[done], 0, part * sizeof(double));
      done += part;
    }
    return done;
  }
};

void op_copy(Arrays& m) { std::memcpy(m.c.get(), m.a.get(), m.count * sizeof(double)); }
void op_scale(Arrays& m, double by) {
  double* __restrict b = m.b.get();
  const double* __restrict c = m.c.get();
  for (size_t i = 0; i < m.count; ++i) b[i] = by * c[i];
}
void op_add(Arrays& m) {
  double* __restrict c = m.c.get();
  const double* __restrict a = m.a.get(), * __restrict b = m.b.get();
  for (size_t i = 0; i < m.count; ++i) c[i] = a[i] + b[i];
}
void op_triad(Arrays& m, double by) {
  double* __restrict a = m.a.get();
  const double* __restrict b = m.b.get(), * __restrict c = m.c.get();
  for (size_t i = 0; i < m.count; ++i) a[i] = c[i] + by * b[i];
}

void run_operation(size_t which, Arrays& m) {
  // Read at run time, so that the compiler cannot fold the round into a no-op.
  static volatile double two = 2, minus_one = -1;
  switch (which) {
    case 0:
      return op_copy(m);
    case 1:
      return op_scale(m, two);
    case 2:
      return op_add(m);
    default:
      return op_triad(m, minus_one);
  }
}

struct Wrong {
  size_t count = 0;
  std::string first = {};
};
Wrong verify(const Arrays& m, int cpu) {
  Wrong out;
  const double* arrays[] = {m.a.get(), m.b.get(), m.c.get()};
  for (size_t which = 0; which < 3; ++which) {
    const Row row = make_row(static_cast<int>(which) + 1);
    for (size_t base = 0; base < m.count; base += kRow) {
      const double* got = arrays[which] + base;
      if (std::memcmp(got, row.data(), sizeof row) == 0) continue;
      for (size_t i = 0; i < kRow; ++i)
        if (std::memcmp(&got[i], &row[i], sizeof(double)) != 0 && out.count++ == 0)
          out.first = fmt::format("cpu {} array {} element {}: expected {}, got {}", cpu, "abc"[which],
                                  base + i, row[i], got[i]);
    }
  }
  return out;
}

// Returns the most elements per thread (a multiple of kRow) for which a round in cache takes an eighth of the
// budget, and which fit `max_bytes`; 0 if not even one row does. The first touch may reach fewer elements:
// the time of page faults cannot be predicted.
size_t most_elements(double seconds, uint64_t max_bytes, size_t threads) {
  const uint64_t by_memory = max_bytes / 3 / sizeof(double) / threads / kRow * kRow;
  if (by_memory == 0) return 0;
  Arrays probe(std::min<uint64_t>(kProbe, by_memory));
  probe.touch(1e300);
  double best = 1e300;
  for (int round = 0; round < 3; ++round) {
    const double start = seconds_now();
    for (size_t op = 0; op < 4; ++op) run_operation(op, probe);
    best = std::min(best, seconds_now() - start);
  }
  const double per_element = std::max(best / static_cast<double>(probe.count), 1e-13);
  const auto by_time = static_cast<uint64_t>(seconds / 8 / per_element) / kRow * kRow;
  return std::clamp<uint64_t>(by_time, std::min<uint64_t>(kRow, by_memory), by_memory);
}

uint64_t last_level_cache() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<uint64_t>(std::max(0L, std::max(l3, l2)));
}

struct Round {
  double seconds[4];
};

void flip_bit(double& cell, unsigned bit) {
  uint64_t bits;
  std::memcpy(&bits, &cell, sizeof bits);
  bits ^= uint64_t{1} << bit;
  std::memcpy(&cell, &bits, sizeof bits);
}

// Returns all rates, by operation; `out` gets the best of each.
Json add_rates(const std::vector<Round>& rounds, double elements, Measurement& out) {
  static const char* const kNames[] = {"copy", "scale", "add", "triad"};
  static constexpr double kBytes[] = {16, 16, 24, 24};
  Json series = Json::object();
  for (size_t op = 0; op < 4; ++op) {
    double best = 0;
    Json each = Json::array();
    for (const auto& round : rounds) {
      const double rate = kBytes[op] * elements / std::max(round.seconds[op], 1e-9) / 1e6;
      best = std::max(best, rate);
      if (each.size() < kSeriesLength) each.push_back(std::round(rate));
    }
    out.metrics[std::string(kNames[op]) + "_mbps"] = {best, "MB/s"};
    series[kNames[op]] = std::move(each);
  }
  return series;
}

// Returns how many elements are wrong, and names the memory that holds them in `out`. `wrong`: by processor.
size_t add_errors(const std::vector<Wrong>& wrong, const std::vector<int>& cpus, Measurement& out) {
  size_t errors = 0;
  for (size_t i = 0; i < wrong.size(); ++i) {
    errors += wrong[i].count;
    if (wrong[i].count == 0) continue;
    out.outcome = Outcome::corrupt;
    if (out.error.empty()) out.error = wrong[i].first;
    out.faulty_parts.push_back(fmt::format("memory of cpu {}", cpus[i]));
  }
  return errors;
}

}  // namespace

Measurement run_stream(const StreamOptions& options) {
  Measurement out;
  out.check = "stream";
  std::vector<int> cpus = usable_cpus();
  if (options.threads > 0) cpus.resize(std::min(cpus.size(), options.threads));
  const size_t threads = cpus.size();
  const uint64_t max_bytes = options.max_bytes > 0 ? options.max_bytes : available_memory(options.files) / 4;
  const double start = seconds_now();
  const size_t most = most_elements(options.seconds, max_bytes, threads);
  if (most == 0) {
    out.outcome = Outcome::unavailable;
    out.error = fmt::format("{} bytes of memory are not enough for the arrays", max_bytes);
    return out;
  }

  std::vector<Round> rounds;
  std::vector<Wrong> wrong(threads);
  std::barrier barrier(static_cast<std::ptrdiff_t>(threads));
  std::vector<size_t> touched(threads);
  double mark = 0;
  bool more = true;
  auto work = [&](size_t self) {
    pin_to_cpu(cpus[self]);
    Arrays arrays(most);
    touched[self] = arrays.touch(start + options.seconds * 0.35);
    barrier.arrive_and_wait();
    arrays.count = *std::min_element(touched.begin(), touched.end());
    while (more) {
      if (self == 0) rounds.push_back({});
      for (size_t op = 0; op < 4; ++op) {
        barrier.arrive_and_wait();
        if (self == 0) mark = seconds_now();
        run_operation(op, arrays);
        barrier.arrive_and_wait();
        if (self == 0) rounds.back().seconds[op] = seconds_now() - mark;
      }
      if (options.flip && options.flip->part % threads == self && rounds.size() == 1) {
        flip_bit(arrays.a[options.flip->index % arrays.count], options.flip->bit % 64);
      }
      if (self == 0) more = rounds.size() < 2 || seconds_now() < start + options.seconds * 0.8;
      barrier.arrive_and_wait();
    }
    wrong[self] = verify(arrays, cpus[self]);
  };
  std::vector<std::thread> pool;
  for (size_t i = 0; i < threads; ++i) pool.emplace_back(work, i);
  for (auto& t : pool) t.join();

  const size_t count = *std::min_element(touched.begin(), touched.end());
  const double elements = static_cast<double>(count) * static_cast<double>(threads);
  const Json series = add_rates(rounds, elements, out);
  const size_t errors = add_errors(wrong, cpus, out);
  const uint64_t bytes = static_cast<uint64_t>(elements) * sizeof(double);
  const Machine machine = look_at_machine(options.files, {cpus.begin(), cpus.begin() + threads});
  out.detail = {{"array_bytes", bytes},
                {"dimms", machine.dimms},
                {"dimm_mt_s", machine.dimm_mt_s},
                {"channels", machine.channels},
                {"physical_cores", machine.physical_cores},
                {"machine_cores", machine.machine_cores},
                {"last_level_cache_bytes", last_level_cache()},
                {"threads", threads},
                {"cache_resident", bytes < 4 * last_level_cache()},
                {"rounds", rounds.size()},
                {"wrong", errors},
                {"verified", "every element of all three arrays, bit by bit"},
                {"series_mbps", series}};
  if (machine.dimms_denied) out.detail["dimms_denied"] = true;
  return out;
}

}  // namespace muster::kernels
