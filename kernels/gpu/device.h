// Launchers of the CUDA kernels: each enqueues its kernel on `stream` and returns the error of the launch.
// Called from the .cc files in this folder, which the host compiler compiles; not included elsewhere.
// Pointers are to device memory unless noted otherwise, with the alignment of cudaMalloc. Callers must check
// sizes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/exact.h"
#include "kernels/training/digits.h"

namespace muster::kernels::gpu {

// --- exact.cu: inputs, digests, checks
struct Fill {
  Format format = Format::bf16;
  size_t rows = 0, depth = 0;  // the matrix in memory, row-major [rows][depth]
  bool transposed = false;  // true: (row, d) is number d * rows + row of the sequence, else row * depth + d
  uint64_t seed = 0, first = 0;
  int most = 0;  // integers in -most ... most; 0: uniform in [-1, 1), rounded to the format
};
cudaError_t fill(void* out, const Fill& what, cudaStream_t stream);

struct Counts {  // kernels add to it: the caller must set it to zero
  unsigned long long sum = 0, mixed = 0, not_finite = 0;
};
enum class Words {
  integer,
  f32,
  bf16,
  fp16,
  f64
};  // format of the data, for counting values that are not finite
cudaError_t digest(const void* data, size_t words, Words kind, Counts* out, cudaStream_t stream);

cudaError_t flip_bit(void* data, size_t byte, unsigned bit, cudaStream_t stream);

// Freivalds' test, in integers: out[row] = sum over columns of m[row][column] * x[column]; the second
// function adds the sums along the other axis to `out`. `x` null: signs from `seed`. `*odd` counts values
// that are not integers.
enum class Reading { bf16, fp16, f32, fp8, int8, int32, f64 };
cudaError_t times_vector(const void* m, Reading as, size_t rows, size_t columns, const long long* x,
                         uint64_t seed, long long* out, unsigned long long* odd, cudaStream_t stream);
cudaError_t transposed_times_signs(const void* m, Reading as, size_t rows, size_t columns, uint64_t seed,
                                   long long* out, unsigned long long* odd, cudaStream_t stream);

// Counts the 64-bit words that differ, and finds the first of them (the caller sets `*first` to ~0).
cudaError_t compare(const void* a, const void* b, size_t words, unsigned long long* count,
                    unsigned long long* first, cudaStream_t stream);

// Result of the same small product on every multiprocessor: one block each, kept on separate ones by the size
// of their shared memory; out[block] has where it ran and its digest. Correct digest: canary_digest().
struct Canary {
  unsigned multiprocessor = 0, wrong_rounds = 0;
  unsigned long long sum = 0, mixed = 0;  // digest of the last round
};
cudaError_t canary(Canary* out, int blocks, int rounds, uint64_t seed, unsigned long long right_sum,
                   cudaStream_t stream);

// --- gemm_mma.cu, gemm_wgmma.cu: C = A B^T, both with K innermost
struct Product {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  int m = 0, n = 0, k = 0;       // multiples of 256
  Format format = Format::bf16;  // or fp8
  bool exact = false;            // C in fp32 (else bf16), always a digest, fp8 sums promoted to fp32
  Counts* digest = nullptr;      // digest of C while it is in registers; null: none
  int rotation = 0;              // shifts which block computes which tile
  // Flips a bit of one element on purpose; exact products only.
  enum class Fault { none, accumulator, output_register } fault = Fault::none;
  unsigned long long element = 0;  // row * n + column
  unsigned bit = 0;
};
cudaError_t multiply_mma(const Product& product,
                         cudaStream_t stream);  // sm_80 and later; fp8: sm_89 and later
cudaError_t multiply_hopper(const Product& product, cudaStream_t stream);  // compute capability 9.0 only

// --- memory.cu
enum class Stream { read, write, copy, triad };
// Streams over arrays of `words` 16-byte words. read: reads `a` and counts non-zero xors in *sink (arrays of
// equal floats give 0); write: fills c; copy: c = a; triad: c = a + 3 b, in floats.
cudaError_t run_stream(Stream what, void* c, const void* a, const void* b, size_t words,
                       unsigned long long* sink, cudaStream_t stream);
// write_pattern() fills memory with pattern_at(round, first + i, seed); check_pattern() counts the words that
// differ from it. Wrong: their count, the index of the first, and the value found there.
struct Wrong {
  unsigned long long count = 0, first = ~0ull, found = 0;
};
cudaError_t write_pattern(void* data, size_t words64, int round, uint64_t first, uint64_t seed,
                          cudaStream_t stream);
cudaError_t check_pattern(const void* data, size_t words64, int round, uint64_t first, uint64_t seed,
                          Wrong* wrong, cudaStream_t stream);

// Writes and checks data of collectives: rank_value() of one rank, or its sum over ranks 0 ... ranks - 1,
// starting at element `first`.
cudaError_t write_ranks(float* data, size_t count, uint64_t seed, int rank, uint64_t first,
                        cudaStream_t stream);
cudaError_t check_ranks(const float* data, size_t count, uint64_t seed, int rank, int ranks, uint64_t first,
                        unsigned long long* wrong, cudaStream_t stream);

// --- training.cu: bf16 numbers of kernels/training/digits.h
// Sets to[i][j] to the digit of its place in the whole matrix, or with `of` to folded(of[i][j] + that digit).
cudaError_t write_digits(void* to, const void* of, const training::Placement& at, uint64_t layer,
                         uint64_t kind, cudaStream_t stream);
// Folds fp32 sums, [batches][rows][columns] without gaps, into bf16 at `to`, whose strides between rows and
// batches are to_row and to_step elements.
struct Folding {
  size_t batches = 1, rows = 0, columns = 0, to_row = 0, to_step = 0;
};
cudaError_t fold(void* to, const float* from, const Folding& what, cudaStream_t stream);
// to = folded(a + b); a and to in bf16, `to` may be `a`.
cudaError_t fold_sum(void* to, const void* a, const float* b, size_t count, cudaStream_t stream);
// Adds to *wrong the number of a part's values that are not bit for bit `factor` times the values at their
// places in the whole matrix.
cudaError_t count_wrong(const float* got, const training::Placement& at, const float* whole,
                        size_t whole_columns, float factor, unsigned long long* wrong, cudaStream_t stream);

}  // namespace muster::kernels::gpu
