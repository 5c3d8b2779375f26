// The exact transformer blocks of kernels/training/block.h on one GPU: the same numbers, folds and gradients,
// products by cuBLASLt in bf16 with sums in fp32. The gradients must have the bits of training::Network's,
// and of every other GPU's.
//
// One sequence at a time; everything is enqueued on one stream, and the caller waits for it.
// Thread: belongs to the thread of its GPU.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/gpu/cublaslt.h"
#include "kernels/gpu/device.h"
#include "kernels/gpu/host.h"
#include "kernels/training/block.h"

namespace muster::kernels::gpu {

class GpuNetwork {
 public:
  // Adds up these floats over all parts.
  using Sum = std::function<Status(float*, size_t)>;
  // What the forward pass of a sequence leaves for the backward pass, in bf16.
  struct Activations {
    struct OfLayer {
      DeviceMemory x, qkv, scores, context, y, hidden;
    };
    std::vector<OfLayer> layers = {};
    DeviceMemory out = {};  // [S, D]
  };

  static Result<GpuNetwork> open(const training::Shape& shape, size_t first_layer, size_t layers,
                                 training::Part part, cudaStream_t stream);
  GpuNetwork(GpuNetwork&&) noexcept;
  ~GpuNetwork();

  Result<Activations> activations() const;
  // The input of sequence number `index`, into kept.layers.front().x.
  Status fill_input(uint64_t index, Activations& kept) const;
  Status forward(Activations& kept, const Sum& sum);
  // The gradient at the output of that sequence, into grad(): [S, D], bf16.
  Status start_backward(uint64_t index, const Activations& kept);
  // From grad() at the output to grad() at the input; adds to the gradients.
  Status backward(const Activations& kept, const Sum& sum);
  void* grad() const;

  Status clear();
  float* gradients() const;  // of all layers, in the order of training::Network::gradients()
  size_t gradient_count() const;
  // Adds to *wrong how many gradients are not `factor` times those of the whole network, whose gradients()
  // these are.
  Status count_wrong(const float* whole, float factor, unsigned long long* wrong) const;

 private:
  struct State;
  explicit GpuNetwork(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::kernels::gpu
