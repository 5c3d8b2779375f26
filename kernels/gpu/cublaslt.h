// cuBLASLt, loaded at run time: what the own products are compared with, and what replaces them wherever they
// are not proven.
//
// The same operands as the own kernels: C = A B^T, row-major, K innermost in both. Algorithms that add parts
// of a sum in an order of their own (split K) are not used, so the same inputs must give the same bits.
// Thread: one object per GPU and thread.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {

constexpr size_t kCublasltWorkspace = 64 << 20;

// C (+)= op(A) op(B), row-major, bf16 operands and sums in fp32: what a transformer block is made of.
struct BlockProduct {
  size_t m = 0, n = 0, k = 0;
  bool a_turned = false,
       b_turned = false;                   // in memory A is [m][k], turned [k][m]; B is [k][n], turned [n][k]
  size_t a_row = 0, b_row = 0, c_row = 0;  // elements from one row in memory to the next
  size_t batches = 1;
  size_t a_step = 0, b_step = 0, c_step = 0;  // elements from one of a batch to the next
  bool add = false;                           // to what C holds
};

class Cublaslt {
 public:
  // Opens the library and prepares one product of edge n; `exact`: results of FormatInfo::exact_bytes, else
  // in the usual small format. unavailable: no library, or it has no algorithm for it.
  static Result<Cublaslt> open(Format format, size_t n, bool exact);
  // Must not be tuned where it adds: each try would add again. `workspace`: of kCublasltWorkspace bytes,
  // shared by products of one stream.
  static Result<Cublaslt> open(const BlockProduct& product, void* workspace);
  Cublaslt(Cublaslt&&) noexcept;
  ~Cublaslt();
  // Tries its best guesses on these operands and keeps the fastest.
  Status tune(const void* a, const void* b, void* c, cudaStream_t stream);
  Status multiply(const void* a, const void* b, void* c, cudaStream_t stream) const;
  size_t version() const;
  // "libcublasLt.so.12": only the major version this was compiled for, since its structures are that one's.
  static std::string library_name();

 private:
  struct State;
  static Result<std::unique_ptr<State>> load();
  explicit Cublaslt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Bytes of an element of C, and what its words are.
size_t result_bytes(Format format, bool exact);

}  // namespace muster::kernels::gpu
