// Matrix product on one core, c += a b: one source for every element type and vector unit.
//
// Structure:    columns of b packed contiguously (rows a power of two apart would evict each other from the
//               cache), then tiles of MR rows by NV vectors, with all sums in registers.
// Vector units: one function per unit with its own `target`, into which everything is inlined; chosen at run
//               time. With target_clones instead, GCC splits generic vectors before it makes the clones:
//               3 GFLOP/s instead of 146.
// Included by files compiled with -O3 (cmake/extra.cmake). Thread safety: stateless functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace muster::kernels {

// A matrix in memory with strides in elements: row-major (column = 1) or transposed (row = 1).
template <typename Element>
struct View {
  const Element* at;
  size_t row, column;
};

constexpr size_t kMostTileRows = 8;  // a multiple of every tile's row count
constexpr size_t kPanelDepth = 256;

#define MUSTER_INLINE inline __attribute__((always_inline))

// Adds one tile of MR rows by NV vectors of `Bytes` to c. `panel`: [depth][kWide].
template <typename Element, size_t Bytes, size_t MR, size_t NV>
MUSTER_INLINE void add_tile(size_t tall, size_t depth, View<Element> a, const Element* panel, Element* c,
                            size_t c_row, size_t wide) {
  typedef Element Vector __attribute__((vector_size(Bytes), may_alias));
  constexpr size_t kWide = NV * Bytes / sizeof(Element);
  Vector sum[MR][NV] = {};
  const Element* from[MR];
  for (size_t r = 0; r < MR; ++r) from[r] = a.at + std::min(r, tall - 1) * a.row;
  for (size_t k = 0; k < depth; ++k, panel += kWide) {
    // Read in place: GCC would make a copy in pieces of 16 bytes, and the stalls on these would cost more
    // than the multiplications.
    const auto* row = reinterpret_cast<const Vector*>(panel);
#pragma GCC unroll 8
    for (size_t r = 0; r < MR; ++r)
#pragma GCC unroll 4
      for (size_t v = 0; v < NV; ++v) sum[r][v] += from[r][k * a.column] * row[v];
  }
  Element out[MR][kWide];
  std::memcpy(out, sum, sizeof out);
  for (size_t r = 0; r < tall; ++r)
    for (size_t e = 0; e < wide; ++e) c[r * c_row + e] += out[r][e];
}

// c[i][j] += sum over k of a(i, k) b[k][j], for i in [0, rows), j in [0, columns).
template <typename Element, size_t Bytes, size_t MR, size_t NV>
MUSTER_INLINE void add_product(size_t rows, size_t depth, size_t columns, View<Element> a, const Element* b,
                               size_t b_row, Element* c, size_t c_row) {
  static_assert(kMostTileRows % MR == 0);
  constexpr size_t kWide = NV * Bytes / sizeof(Element);
  alignas(64) Element panel[kPanelDepth * kWide];
  for (size_t k0 = 0; k0 < depth; k0 += kPanelDepth) {
    const size_t deep = std::min(depth - k0, kPanelDepth);
    for (size_t j = 0; j < columns; j += kWide) {
      const size_t wide = std::min(columns - j, kWide);
      for (size_t k = 0; k < deep; ++k) {
        std::memcpy(panel + k * kWide, b + (k0 + k) * b_row + j, wide * sizeof(Element));
        std::memset(panel + k * kWide + wide, 0, (kWide - wide) * sizeof(Element));
      }
      for (size_t i = 0; i < rows; i += MR)
        add_tile<Element, Bytes, MR, NV>(std::min(rows - i, MR), deep,
                                         {a.at + i * a.row + k0 * a.column, a.row, a.column}, panel,
                                         c + i * c_row + j, c_row, wide);
    }
  }
}

#undef MUSTER_INLINE

template <typename Element>
struct Multiplier {
  const char* name;
  void (*add_product)(size_t rows, size_t depth, size_t columns, View<Element> a, const Element* b,
                      size_t b_row, Element* c, size_t c_row);
};

template <typename Element>
void add_product_baseline(size_t m, size_t k, size_t n, View<Element> a, const Element* b, size_t b_row,
                          Element* c, size_t c_row) {
  add_product<Element, 16, 4, 2>(m, k, n, a, b, b_row, c, c_row);
}
#if defined(__x86_64__)
template <typename Element>
__attribute__((target("avx2,fma"))) void add_product_avx2(size_t m, size_t k, size_t n, View<Element> a,
                                                          const Element* b, size_t b_row, Element* c,
                                                          size_t c_row) {
  add_product<Element, 32, 4, 3>(m, k, n, a, b, b_row, c, c_row);
}
template <typename Element>
__attribute__((target("avx512f,fma"))) void add_product_avx512(size_t m, size_t k, size_t n, View<Element> a,
                                                               const Element* b, size_t b_row, Element* c,
                                                               size_t c_row) {
  add_product<Element, 64, 8, 2>(m, k, n, a, b, b_row, c, c_row);
}
#endif

// The variants that this processor supports, best first. flops_per_cycle() (kernels.h) uses their names.
template <typename Element>
std::vector<Multiplier<Element>> multipliers() {
  std::vector<Multiplier<Element>> out;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) out.push_back({"avx512f", add_product_avx512<Element>});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    out.push_back({"avx2+fma", add_product_avx2<Element>});
#endif
  out.push_back({"baseline", add_product_baseline<Element>});
  return out;
}

}  // namespace muster::kernels
