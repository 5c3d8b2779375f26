// Silent data corruption: a matrix product that must be correct to the last bit, and checks that detect
// errors.
// This is the CPU reference for the checks of the GPU products (kernels/gpu/): bf16 inputs, fp32 accumulators
// and output, every accumulator a plain sum over k in order. Inputs are integers in -7 ... 7 and n is at most
// 4096, so each partial sum is an integer below 2^24: the result does not depend on the order of summation,
// and no tolerance is needed. Bits are compared, never |a - b| > eps, which is false for a NaN.
// Thread safety: value types and stateless functions; run_sdc() blocks its caller.
#pragma once

#include <array>

#include "kernels/common/kernels.h"

namespace muster::kernels::sdc {

// Where a bit is flipped. `output_register`: the finished sum, before its digest is taken; `output_memory`:
// the sum after it was stored.
enum class Site { input_a, input_b, accumulator, output_register, output_memory };
inline constexpr std::array kSites = {Site::input_a, Site::input_b, Site::accumulator, Site::output_register,
                                      Site::output_memory};
const char* to_string(Site site);
unsigned bits_of(Site site);  // 16 for a bf16 input, 32 for an fp32 value

struct Fault {
  Site site = Site::accumulator;
  size_t element = 0;    // modulo n x n
  unsigned bit = 0;      // modulo bits_of(site)
  size_t step = 0;       // accumulator: after this many additions; modulo n + 1
  bool repeats = false;  // also in the repeated product: a broken unit, not a transient fault
};

// A digest of a matrix. Independent of the order in which elements are added, so several threads can compute
// parts of it. A single wrong element always changes the sum: per position the hash is one to one.
struct Digest {
  uint64_t sum = 0, mixed = 0;
  void add(uint64_t position, uint32_t bits);
  bool operator==(const Digest&) const = default;
};

struct Inputs {
  size_t n = 0;
  std::vector<uint16_t> a = {}, b = {};  // bf16, row-major, n x n
};
Inputs make_inputs(size_t n, uint64_t seed);

struct Product {
  std::vector<float> c = {};
  Digest epilogue = {};  // digest of the sums while they are in registers
};
// Computes C = A B, with one bit flipped if `fault` is given. A bit flipped in an input remains in `inputs`.
Product multiply(Inputs& inputs, const Fault* fault = nullptr);
Digest read_back(const std::vector<float>& c);  // digest of C as read from memory
// Returns the digest of the correct result, computed with integers from the seed: equal on healthy devices.
Digest golden(size_t n, uint64_t seed);
// Freivalds' test: true if C x = A (B x) for a random x of +1 and -1, in integer arithmetic. False if C
// contains anything but integers (NaN, infinity, a fraction).
bool freivalds(const Inputs& inputs, const std::vector<float>& c, uint64_t seed);
size_t not_finite(const std::vector<float>& c);

// The checks, in the order of kChecks and of Outcome::alarm.
enum class Check { golden, stored, repeat, freivalds, finite };
constexpr std::array kChecks = {Check::golden, Check::stored, Check::repeat, Check::freivalds, Check::finite};
const char* to_string(Check check);
const char* explain(Check check);

struct Outcome {
  std::array<bool, kChecks.size()> alarm = {};  // by check; true: it detected an error
  bool changed = false;  // the output in memory differs from the correct one, which only a fault can cause
  bool any() const;
};
Outcome examine(size_t n, uint64_t seed, const Fault* fault = nullptr);

}  // namespace muster::kernels::sdc

namespace muster::kernels {

struct SdcOptions {
  double seconds = 1.0;
  size_t n = 0;                   // edge, at most 4096; 0: 128
  uint64_t seed = 1;              // of the first product; incremented for each further product
  size_t threads = 0;             // 0: one per CPU that this process may use, each pinned to its CPU
  std::optional<Flip> flip = {};  // part: number of sdc::Site; flipped in both runs, on the first thread
};
// Metrics: products, gflops (all cores together; this is a check, not a benchmark). Blame: the core that
// computed wrong results ("cpu 3").
Measurement run_sdc(const SdcOptions& options);

}  // namespace muster::kernels
