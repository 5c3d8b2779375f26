// Arithmetic that must give the same results on the CPU and the GPU: the generator of inputs, the number
// formats, and the digest of a result. One source for both compilers, so that tests on the host cover the
// code that runs on the device.
//
// The generator is counter-based: element i is a function of (seed, i) alone, the i-th number of the sequence
// SplitMix(seed), so any thread can generate any element (kernels/cpu/sdc.cc uses the same sequence).
// Thread safety: stateless functions. No allocation.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define MUSTER_BOTH __host__ __device__ __forceinline__
#else
#define MUSTER_BOTH inline
#endif

namespace muster::kernels::gpu {

// --- generator
constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;

MUSTER_BOTH uint64_t mix(uint64_t value) {  // splitmix64's finalizer: one to one
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}
MUSTER_BOTH uint64_t random_at(uint64_t seed, uint64_t index) { return mix(seed + (index + 1) * kGamma); }
// An integer in -most ... most.
MUSTER_BOTH int integer_at(uint64_t seed, uint64_t index, int most) {
  const uint64_t range = static_cast<uint64_t>(2 * most + 1);
  return static_cast<int>(random_at(seed, index) % range) - most;
}
// Uniform in [-1, 1): all bits of the mantissa toggle, as in real work. 24 bits: exact in a float.
MUSTER_BOTH float uniform_at(uint64_t seed, uint64_t index) {
  const int32_t bits = static_cast<int32_t>(random_at(seed, index) >> 40);  // 0 ... 2^24 - 1
  return static_cast<float>(bits - (1 << 23)) / static_cast<float>(1 << 23);
}

// --- number formats
enum class Format { bf16, fp16, tf32, fp8, int8, fp64 };

MUSTER_BOTH uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
MUSTER_BOTH float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
// Round to nearest, ties to even. NaN stays NaN.
MUSTER_BOTH uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of_float(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
MUSTER_BOTH float from_bf16(uint16_t bits) { return float_of_bits(static_cast<uint32_t>(bits) << 16); }

// A magnitude in a small format with `mantissa` fraction bits and exponent bias `bias`: round to nearest
// even, with subnormals, in exact integer arithmetic on the float's bits. The caller excludes overflow.
MUSTER_BOTH uint32_t to_small(float magnitude, int mantissa, int bias) {
  const uint32_t bits = bits_of_float(magnitude);
  const int exponent = static_cast<int>(bits >> 23) - 127 + bias;
  if (exponent < -mantissa - 1) return 0;  // below half of the smallest subnormal
  uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
  const int shift = 23 - mantissa + (exponent < 1 ? 1 - exponent : 0);
  const uint32_t half = 1u << (shift - 1), rest = significand & ((1u << shift) - 1);
  significand >>= shift;
  if (rest > half || (rest == half && (significand & 1u))) ++significand;
  // The leading one of a normal number carries into the exponent field, also after rounding up.
  const uint32_t field = exponent < 1 ? 0u : static_cast<uint32_t>(exponent - 1);
  return (field << mantissa) + significand;
}
// OCP e4m3: bias 7, no infinity, 0x7f is NaN; larger values saturate at 448, the largest number.
MUSTER_BOTH uint8_t to_e4m3(float value) {
  const uint8_t sign = static_cast<uint8_t>((bits_of_float(value) >> 24) & 0x80u);
  const float magnitude = float_of_bits(bits_of_float(value) & 0x7fffffffu);  // also of -0
  if (!(magnitude <= 448.0f)) return static_cast<uint8_t>(sign | (magnitude > 448.0f ? 0x7eu : 0x7fu));
  return static_cast<uint8_t>(sign | to_small(magnitude, 3, 7));
}
MUSTER_BOTH float from_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return float_of_bits(0x7fc00000u);
  float value = static_cast<float>(exponent == 0 ? mantissa : mantissa + 8) / 512.0f;  // in units of 2^-9
  for (int i = 1; i < exponent; ++i) value *= 2.0f;
  return bits & 0x80 ? -value : value;
}
// IEEE half: bias 15; inputs here are at most 65504.
MUSTER_BOTH uint16_t to_fp16(float value) {
  const uint32_t sign = (bits_of_float(value) >> 16) & 0x8000u;
  const float magnitude = float_of_bits(bits_of_float(value) & 0x7fffffffu);  // also of -0
  if (!(magnitude < 65520.0f))
    return static_cast<uint16_t>(sign | (magnitude >= 65520.0f ? 0x7c00u : 0x7e00u));
  return static_cast<uint16_t>(sign | to_small(magnitude, 10, 15));
}

// --- digest
// Covers the 32-bit words of a result and their positions. Sum and xor do not depend on the order, so threads
// compute parts. Per position the hash is one to one: a single wrong word always changes the sum.
MUSTER_BOTH uint64_t word_hash(uint64_t position, uint32_t bits) {
  return mix(mix(position + kGamma) + bits);
}
MUSTER_BOTH uint64_t word_mixed(uint64_t hash) { return ((hash << 23) | (hash >> 41)) * kGamma; }

MUSTER_BOTH bool not_finite_f32(uint32_t bits) { return (bits & 0x7f800000u) == 0x7f800000u; }
MUSTER_BOTH bool not_finite_bf16(uint16_t bits) { return (bits & 0x7f80u) == 0x7f80u; }
MUSTER_BOTH bool not_finite_fp16(uint16_t bits) { return (bits & 0x7c00u) == 0x7c00u; }
MUSTER_BOTH bool not_finite_f64(uint64_t bits) { return ((bits >> 52) & 0x7ffu) == 0x7ffu; }

// --- memory patterns
// Content of 64-bit word `index` of the tested memory in a round. Over the rounds each cell holds 0 and 1
// with adjacent cells that differ, shorted address lines collide, and a random round and its inverse toggle
// every data line.
constexpr int kPatterns = 10;
MUSTER_BOTH uint64_t pattern_at(int round, uint64_t index, uint64_t seed) {
  const uint64_t walking = 1ull << (index % 64);
  switch (round % kPatterns) {
    case 0:
      return 0;
    case 1:
      return ~0ull;
    case 2:
      return index % 2 ? 0xaaaaaaaaaaaaaaaaull : 0x5555555555555555ull;
    case 3:
      return index % 2 ? 0x5555555555555555ull : 0xaaaaaaaaaaaaaaaaull;
    case 4:
      return index;  // each word holds its own address
    case 5:
      return ~index;
    case 6:
      return walking;
    case 7:
      return ~walking;
    case 8:
      return random_at(seed, index);
    default:
      return ~random_at(seed, index);
  }
}

// --- collectives
// Element `index` of a rank's input: small integers, so that a sum over up to 2^13 ranks is exact in a float.
MUSTER_BOTH float rank_value(uint64_t seed, int rank, uint64_t index) {
  return static_cast<float>(integer_at(seed + static_cast<uint64_t>(rank) * 0x100000001b3ull, index, 1000));
}

}  // namespace muster::kernels::gpu
