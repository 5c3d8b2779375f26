// Silent data corruption: a matrix product whose result must be right to the last bit, and the checks that
// detect when it is not.
//
// This is the CPU reference of the checks around the GPU products (kernels/gpu/): bf16 inputs, fp32
// accumulators and output, every accumulator a plain sum over k in order. Inputs are integers in -7 ... 7 and
// n is at most 4096, so each partial sum is an integer below 2^24: the result does not depend on the order of
// summation, and there is no tolerance. Bits are compared, never |a - b| > eps: that is false for a NaN.
// Thread: values and pure functions; run_sdc() blocks its caller.
#pragma once

#include <array>

#include "kernels/kernels.h"

namespace muster::kernels::sdc {

// Where a bit is flipped. `output_register` is the finished sum before its digest is taken, `output_memory`
// after it was stored.
enum class Site { input_a, input_b, accumulator, output_register, output_memory };
inline constexpr std::array kSites = {Site::input_a, Site::input_b, Site::accumulator, Site::output_register,
                                      Site::output_memory};
const char* to_string(Site site);
unsigned bits_of(Site site);  // 16 of a bf16 input, 32 of an fp32 value

struct Fault {
  Site site = Site::accumulator;
  size_t element = 0;    // modulo n x n
  unsigned bit = 0;      // modulo bits_of(site)
  size_t step = 0;       // accumulator: after this many of its additions; modulo n + 1
  bool repeats = false;  // also in the repetition: a broken unit rather than a transient disturbance
};

// Independent of the order in which elements are added, so any number of threads may make parts of it. One
// element with other bits always gives another sum: for one position the hash is one to one.
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
  Digest epilogue = {};  // of the sums while they are in registers
};
// C = A B, with one bit flipped when `fault` says so. A fault in an input stays in `inputs`.
Product multiply(Inputs& inputs, const Fault* fault = nullptr);
Digest read_back(const std::vector<float>& c);  // of what is in memory
// Of the right result, by integer arithmetic from the seed: what all healthy devices share.
Digest golden(size_t n, uint64_t seed);
// C x = A (B x) for a random x of +1 and -1, in integers. Anything but an integer (NaN, infinity, a fraction)
// is wrong.
bool freivalds(const Inputs& inputs, const std::vector<float>& c, uint64_t seed);
size_t not_finite(const std::vector<float>& c);

// The checks, in the order of the table; true: it detected an error.
enum class Check { golden, stored, repeat, freivalds, finite };
constexpr std::array kChecks = {Check::golden, Check::stored, Check::repeat, Check::freivalds, Check::finite};
const char* to_string(Check check);
const char* explain(Check check);

struct Outcome {
  std::array<bool, kChecks.size()> alarm = {};
  bool changed = false;  // the output in memory differs from the right one; only a fault can do that
  bool any() const;
};
// One product of these inputs, its repetition, and all checks.
Outcome examine(size_t n, uint64_t seed, const Fault* fault = nullptr);

}  // namespace muster::kernels::sdc

namespace muster::kernels {

struct SdcOptions {
  double seconds = 1.0;
  size_t n = 0;                   // edge, at most 4096; 0: 128
  uint64_t seed = 1;              // of the first product; the next one has the next seed
  size_t threads = 0;             // 0: one per processor this process may use, each kept on its own
  std::optional<Flip> flip = {};  // part: number of sdc::Site; always repeats, on the first of the threads
};
// Metrics: products, gflops (over all cores; this is a check, not a benchmark). Blame: "cpu 3", the core that
// was wrong.
Measurement run_sdc(const SdcOptions& options);

}  // namespace muster::kernels
