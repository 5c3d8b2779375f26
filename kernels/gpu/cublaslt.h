// cuBLASLt, loaded at run time: the reference for muster's own matrix kernels, and the replacement wherever
// these are not proven(). Operands as in the own kernels: C = A B^T, row-major, K innermost in both.
// Algorithms that vary the order of summation (split K) are not used: the same inputs must give the same
// bits. Thread safety: one object per GPU and thread.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {

constexpr size_t kCublasltWorkspace = 64 << 20;

// C (+)= op(A) op(B), row-major, bf16 operands, fp32 sums: the products in a transformer block.
struct BlockProduct {
  size_t m = 0, n = 0, k = 0;
  bool a_turned = false,
       b_turned = false;                   // A in memory: [m][k], turned: [k][m]; B: [k][n], turned: [n][k]
  size_t a_row = 0, b_row = 0, c_row = 0;  // stride between rows, in elements
  size_t batches = 1;
  size_t a_step = 0, b_step = 0, c_step = 0;  // stride between batches, in elements
  bool add = false;                           // add to the contents of C
};

class Cublaslt {
 public:
  // Opens the library and prepares one product with edge n. `exact`: results have FormatInfo::exact_bytes
  // bytes, else the usual small format. unavailable: no library, or no algorithm for this product.
  static Result<Cublaslt> open(Format format, size_t n, bool exact);
  // Prepares a product of any shape. tune() must not be called with `add` set, as each try would add to C.
  // `workspace`: kCublasltWorkspace bytes, shared by products on one stream.
  static Result<Cublaslt> open(const BlockProduct& product, void* workspace);
  Cublaslt(Cublaslt&&) noexcept;
  ~Cublaslt();
  // Times the algorithms that the library suggests on these operands, and keeps the fastest.
  Status tune(const void* a, const void* b, void* c, cudaStream_t stream);
  Status multiply(const void* a, const void* b, void* c, cudaStream_t stream) const;
  size_t version() const;
  std::string path() const;  // of the library
  // "libcublasLt.so.12": only the major version this was compiled for, whose structures it uses.
  static std::string library_name();

 private:
  struct State;
  static Result<std::unique_ptr<State>> load();
  explicit Cublaslt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// In bytes, of an element of C.
size_t result_bytes(Format format, bool exact);

}  // namespace muster::kernels::gpu
