// cuBLASLt, loaded at run time: the peer of the own products, and their stand-in wherever these are not proven.
//
// The same operands as the own kernels: C = A B^T, row-major, K innermost in both. Algorithms that add parts of a sum in an order
// of their own (split K) are not used, so the same inputs must give the same bits.
// Thread: one object per GPU and thread.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {

class Cublaslt {
 public:
  // Opens the library and prepares one product of edge n; `exact`: results of FormatInfo::exact_bytes, else in the usual small
  // format. unavailable: no library, or it has no algorithm for it.
  static Result<Cublaslt> open(Format format, size_t n, bool exact);
  Cublaslt(Cublaslt&&) noexcept;
  ~Cublaslt();
  // Tries its best guesses on these operands and keeps the fastest.
  Status tune(const void* a, const void* b, void* c, cudaStream_t stream);
  Status multiply(const void* a, const void* b, void* c, cudaStream_t stream) const;
  size_t version() const;

 private:
  struct State;
  explicit Cublaslt(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Bytes of an element of C, and what its words are.
size_t result_bytes(Format format, bool exact);

}  // namespace muster::kernels::gpu
