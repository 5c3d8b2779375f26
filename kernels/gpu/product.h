// One matrix product on one GPU, by any implementation: a common interface to muster's own kernels and
// cuBLASLt, with operands, and digests copied to the host. Used only by the thread of its GPU.
#pragma once

#include <optional>

#include "kernels/gpu/cublaslt.h"
#include "kernels/gpu/device.h"
#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {

// Chooses by `word`: auto, own or cublaslt. invalid: any other word; unavailable: no own kernel for this GPU.
Result<Maker> choose_maker(const std::string& word, Format format, const Gpu& gpu);

struct ProductFault {
  Product::Fault where = Product::Fault::none;
  size_t element = 0;
  unsigned bit = 0;
};

class ProductBench {
 public:
  static Result<ProductBench> open(Maker maker, Format format, size_t n, bool exact);

  // Fills A and B with integers in -most ... most from `seed`; most 0: uniform values.
  Status fill_inputs(uint64_t seed, int most);
  // No effect for the own kernels.
  Status tune();
  // Enqueues C = A B^T. `fault` applies only to exact products of own kernels. The digest of the registers is
  // added to `digest`, unless null.
  Status multiply(Counts* digest, int rotation, const ProductFault& fault = {});
  // Of C in memory.
  Status digest_memory(Counts* digest);
  Status flip_input(bool second, size_t element, unsigned bit);  // a bit of A or B, modulo their sizes
  Status flip_output(size_t element, unsigned bit);
  // Checks C against A and B with Freivalds' test, and waits for the result.
  Result<bool> freivalds(uint64_t seed);

  cudaStream_t stream() const { return stream_.get(); }
  Status wait() const { return stream_.wait(); }
  Maker maker() const { return maker_; }
  size_t n() const { return n_; }
  double flop() const {
    return 2.0 * static_cast<double>(n_) * static_cast<double>(n_) * static_cast<double>(n_);
  }
  Json describe(const Gpu& gpu) const;

 private:
  explicit ProductBench(CudaStream stream) : stream_(std::move(stream)) {}
  CudaStream stream_;
  Maker maker_ = Maker::library;
  Format format_ = Format::bf16;
  size_t n_ = 0;
  bool exact_ = false;
  DeviceMemory a_, b_, c_;
  std::optional<Cublaslt> library_;
};

// In device memory; the host clears and reads them.
class DigestSlots {
 public:
  static Result<DigestSlots> open(size_t count);
  Counts* at(size_t i) const { return static_cast<Counts*>(memory_.get()) + i; }
  Status clear(cudaStream_t stream);
  Result<std::vector<Counts>> read(cudaStream_t stream);  // waits

 private:
  DeviceMemory memory_;
  size_t count_ = 0;
};
inline sdc::Digest digest_of(const Counts& counts) { return {counts.sum, counts.mixed}; }

}  // namespace muster::kernels::gpu
