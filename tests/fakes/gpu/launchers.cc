// What the .cu files do, once more and plainly, on the host: the launchers of kernels/gpu/device.h for the
// made-up runtime. The formulas that both share are those of exact.h; loops over threads, tiles and registers
// are not here.
//
// MUSTER_FAKE_BAD_GPU: number of a GPU whose own products come out with one wrong bit.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "kernels/gpu/tiles.h"
#include "kernels/gpu/device.h"
#include "tests/fakes/gpu/fake_gpu.h"

namespace muster::kernels::gpu {
namespace {

bool is_bad() {
  const char* text = std::getenv("MUSTER_FAKE_BAD_GPU");
  return text && std::atoi(text) == fake_gpu::device();
}

float from_fp16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                              : std::ldexp(static_cast<float>(mantissa | 1024), exponent - 25);
  if (exponent == 31) value = float_of_bits(0x7fc00000u);
  return bits & 0x8000 ? -value : value;
}

double read(const void* m, Reading as, size_t at) {
  switch (as) {
    case Reading::bf16:
      return from_bf16(static_cast<const uint16_t*>(m)[at]);
    case Reading::fp16:
      return from_fp16(static_cast<const uint16_t*>(m)[at]);
    case Reading::f32:
      return static_cast<const float*>(m)[at];
    case Reading::fp8:
      return from_e4m3(static_cast<const uint8_t*>(m)[at]);
    case Reading::int8:
      return static_cast<const int8_t*>(m)[at];
    case Reading::int32:
      return static_cast<const int32_t*>(m)[at];
    case Reading::f64:
      return static_cast<const double*>(m)[at];
  }
  return 0;
}
long long whole(double value, unsigned long long& odd) {
  const bool right = value >= -1e12 && value <= 1e12 && value == std::trunc(value);
  odd += !right;
  return right ? static_cast<long long>(value) : 0;
}
long long sign_at(uint64_t seed, size_t index) { return random_at(seed, index) & 1 ? 1 : -1; }

unsigned bad_parts(Words kind, uint32_t bits, bool odd_word) {
  switch (kind) {
    case Words::integer:
      return 0;
    case Words::f32:
      return not_finite_f32(bits);
    case Words::bf16:
      return not_finite_bf16(static_cast<uint16_t>(bits)) +
             not_finite_bf16(static_cast<uint16_t>(bits >> 16));
    case Words::fp16:
      return not_finite_fp16(static_cast<uint16_t>(bits)) +
             not_finite_fp16(static_cast<uint16_t>(bits >> 16));
    case Words::f64:
      return odd_word && not_finite_f64(static_cast<uint64_t>(bits) << 32);
  }
  return 0;
}

void add(Counts* out, uint64_t position, uint32_t bits) {
  const uint64_t h = word_hash(position, bits);
  out->sum += h;
  out->mixed ^= word_mixed(h);
}

// An accumulator that a bit is flipped in half way has the same end as one flipped in the half sum.
float dot(const std::vector<float>& a, const std::vector<float>& b, const Product& p, size_t i, size_t j) {
  const auto k = static_cast<size_t>(p.k);
  const bool hit = p.element == i * static_cast<size_t>(p.n) + j;
  float sum = 0;
  for (size_t d = 0; d < k; ++d) {
    if (hit && p.fault == Product::Fault::accumulator && d == k / 2)
      sum = float_of_bits(bits_of_float(sum) ^ (1u << p.bit % 32));
    sum += a[i * k + d] * b[j * k + d];
  }
  return hit && p.fault == Product::Fault::output_register
             ? float_of_bits(bits_of_float(sum) ^ (1u << p.bit % 32))
             : sum;
}

cudaError_t multiply(const Product& p) {
  if (p.m % 256 || p.n % 256 || p.k % 256 || (p.exact && !p.digest)) return cudaErrorInvalidValue;
  const auto rows = static_cast<size_t>(p.m), columns = static_cast<size_t>(p.n),
             depth = static_cast<size_t>(p.k);
  const Reading as = p.format == Format::fp8 ? Reading::fp8 : Reading::bf16;
  std::vector<float> a(rows * depth), b(columns * depth);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(read(p.a, as, i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(read(p.b, as, i));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      float sum = dot(a, b, p, i, j);
      if (is_bad() && i == 3 && j == 5) sum = float_of_bits(bits_of_float(sum) ^ 0x10000u);
      if (p.exact)
        static_cast<float*>(p.c)[i * columns + j] = sum;
      else
        static_cast<uint16_t*>(p.c)[i * columns + j] = to_bf16(sum);
      if (p.exact) add(p.digest, i * columns + j, bits_of_float(sum));
    }
  if (!p.exact && p.digest)
    for (size_t w = 0; w < rows * columns / 2; ++w) add(p.digest, w, static_cast<const uint32_t*>(p.c)[w]);
  return cudaSuccess;
}

}  // namespace

cudaError_t fill(void* out, const Fill& what, cudaStream_t) {
  for (size_t at = 0; at < what.rows * what.depth; ++at) {
    const size_t row = at / what.depth, d = at % what.depth;
    const uint64_t number = what.first + (what.transposed ? d * what.rows + row : at);
    const float value = what.most > 0
                            ? static_cast<float>(integer_at(what.seed, number, what.most))
                            : uniform_at(what.seed, number) * (what.format == Format::int8 ? 127.0f : 1.0f);
    switch (what.format) {
      case Format::bf16:
        static_cast<uint16_t*>(out)[at] = to_bf16(value);
        break;
      case Format::fp16:
        static_cast<uint16_t*>(out)[at] = to_fp16(value);
        break;
      case Format::tf32:
        static_cast<float*>(out)[at] = value;
        break;
      case Format::fp8:
        static_cast<uint8_t*>(out)[at] = to_e4m3(value);
        break;
      case Format::int8:
        static_cast<int8_t*>(out)[at] = static_cast<int8_t>(value);
        break;
      case Format::fp64:
        static_cast<double*>(out)[at] = value;
        break;
    }
  }
  return cudaSuccess;
}

cudaError_t digest(const void* data, size_t words, Words kind, Counts* out, cudaStream_t) {
  for (size_t i = 0; i < words; ++i) {
    const uint32_t bits = static_cast<const uint32_t*>(data)[i];
    add(out, i, bits);
    out->not_finite += bad_parts(kind, bits, i % 2);
  }
  return cudaSuccess;
}

cudaError_t flip_bit(void* data, size_t byte, unsigned bit, cudaStream_t) {
  static_cast<uint8_t*>(data)[byte] ^= static_cast<uint8_t>(1u << bit % 8);
  return cudaSuccess;
}

cudaError_t times_vector(const void* m, Reading as, size_t rows, size_t columns, const long long* x,
                         uint64_t seed, long long* out, unsigned long long* odd, cudaStream_t) {
  for (size_t i = 0; i < rows; ++i) {
    unsigned long long sum = 0;
    for (size_t j = 0; j < columns; ++j)
      sum += static_cast<unsigned long long>(whole(read(m, as, i * columns + j), *odd) *
                                             (x ? x[j] : sign_at(seed, j)));
    out[i] = static_cast<long long>(sum);
  }
  return cudaSuccess;
}

cudaError_t transposed_times_signs(const void* m, Reading as, size_t rows, size_t columns, uint64_t seed,
                                   long long* out, unsigned long long* odd, cudaStream_t) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      out[j] += whole(read(m, as, i * columns + j), *odd) * sign_at(seed, i);
  return cudaSuccess;
}

cudaError_t compare(const void* a, const void* b, size_t words, unsigned long long* count,
                    unsigned long long* first, cudaStream_t) {
  for (size_t i = 0; i < words; ++i) {
    if (static_cast<const uint64_t*>(a)[i] == static_cast<const uint64_t*>(b)[i]) continue;
    ++*count;
    *first = std::min<unsigned long long>(*first, i);
  }
  return cudaSuccess;
}

cudaError_t canary(Canary* out, int blocks, int, uint64_t seed, unsigned long long right_sum, cudaStream_t) {
  const CanaryDigest made = canary_digest(seed);
  for (int i = 0; i < blocks; ++i)
    out[i] = {static_cast<unsigned>(i), made.sum != right_sum, made.sum, made.mixed};
  return cudaSuccess;
}

cudaError_t multiply_mma(const Product& product, cudaStream_t) { return multiply(product); }
cudaError_t multiply_hopper(const Product& product, cudaStream_t) { return multiply(product); }

cudaError_t run_stream(Stream what, void* c, const void* a, const void* b, size_t words,
                       unsigned long long* sink, cudaStream_t) {
  auto* to = static_cast<float*>(c);
  const auto *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  for (size_t i = 0; i < 4 * words; i += 4) {
    uint32_t folded = 0;
    for (size_t j = i; j < i + 4; ++j) {
      if (what == Stream::read)
        folded ^= bits_of_float(x[j]);
      else
        to[j] = what == Stream::write ? 1.0f : what == Stream::copy ? x[j] : x[j] + 3.0f * y[j];
    }
    *sink += folded != 0;
  }
  return cudaSuccess;
}

cudaError_t write_pattern(void* data, size_t words64, int round, uint64_t first, uint64_t seed,
                          cudaStream_t) {
  for (size_t i = 0; i < words64; ++i) static_cast<uint64_t*>(data)[i] = pattern_at(round, first + i, seed);
  return cudaSuccess;
}

cudaError_t check_pattern(const void* data, size_t words64, int round, uint64_t first, uint64_t seed,
                          Wrong* wrong, cudaStream_t) {
  for (size_t i = 0; i < words64; ++i) {
    const uint64_t found = static_cast<const uint64_t*>(data)[i];
    if (found == pattern_at(round, first + i, seed)) continue;
    ++wrong->count;
    if (first + i < wrong->first) wrong->first = first + i, wrong->found = found;
  }
  return cudaSuccess;
}

cudaError_t write_ranks(float* data, size_t count, uint64_t seed, int rank, uint64_t first, cudaStream_t) {
  for (size_t i = 0; i < count; ++i) data[i] = rank_value(seed, rank, first + i);
  return cudaSuccess;
}

cudaError_t check_ranks(const float* data, size_t count, uint64_t seed, int rank, int ranks, uint64_t first,
                        unsigned long long* wrong, cudaStream_t) {
  for (size_t i = 0; i < count; ++i) {
    float right = 0;
    for (int r = rank; r < rank + ranks; ++r) right += rank_value(seed, r, first + i);
    *wrong += bits_of_float(right) != bits_of_float(data[i]);
  }
  return cudaSuccess;
}

cudaError_t write_digits(void* to, const void* of, const training::Placement& at, uint64_t layer,
                         uint64_t kind, cudaStream_t) {
  for (size_t i = 0; i < at.rows; ++i)
    for (size_t j = 0; j < at.columns; ++j) {
      const auto place = training::place_of(at, i, j);
      float value = training::digit(training::key(layer, kind, place.row, place.column));
      if (of)
        value = training::folded(value + from_bf16(static_cast<const uint16_t*>(of)[i * at.columns + j]));
      static_cast<uint16_t*>(to)[i * at.columns + j] = to_bf16(value);
    }
  return cudaSuccess;
}

cudaError_t fold(void* to, const float* from, const Folding& what, cudaStream_t) {
  for (size_t b = 0; b < what.batches; ++b)
    for (size_t i = 0; i < what.rows; ++i)
      for (size_t j = 0; j < what.columns; ++j)
        static_cast<uint16_t*>(to)[b * what.to_step + i * what.to_row + j] =
            to_bf16(training::folded(from[(b * what.rows + i) * what.columns + j]));
  return cudaSuccess;
}

cudaError_t fold_sum(void* to, const void* a, const float* b, size_t count, cudaStream_t) {
  for (size_t i = 0; i < count; ++i)
    static_cast<uint16_t*>(to)[i] =
        to_bf16(training::folded(from_bf16(static_cast<const uint16_t*>(a)[i]) + b[i]));
  return cudaSuccess;
}

cudaError_t count_wrong(const float* got, const training::Placement& at, const float* whole,
                        size_t whole_columns, float factor, unsigned long long* wrong, cudaStream_t) {
  for (size_t i = 0; i < at.rows; ++i)
    for (size_t j = 0; j < at.columns; ++j) {
      const auto place = training::place_of(at, i, j);
      *wrong += bits_of_float(got[i * at.columns + j]) !=
                bits_of_float(factor * whole[place.row * whole_columns + place.column]);
    }
  return cudaSuccess;
}

}  // namespace muster::kernels::gpu
