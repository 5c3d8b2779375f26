// The exact transformer blocks of kernels/training/block.h on one GPU: the same numbers, folds and gradients,
// with products by cuBLASLt in bf16 with fp32 sums. The gradients must be bit for bit those of
// training::Network and of every other GPU.
//
// Processes one sequence at a time; all work is enqueued on one stream, for which the caller waits.
// Used only by the thread of its GPU.
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
  // Sums these floats over all parts, in place.
  using Sum = std::function<Status(float*, size_t)>;
  // Results of a sequence's forward pass that its backward pass needs, in bf16.
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
  // Writes the input of sequence number `index` to kept.layers.front().x.
  Status fill_input(uint64_t index, Activations& kept) const;
  Status forward(Activations& kept, const Sum& sum);
  // Writes the gradient at the output of that sequence to grad(): [S, D], bf16.
  Status start_backward(uint64_t index, const Activations& kept);
  // Turns grad() from the gradient at the output into that at the input; adds to the weights' gradients.
  Status backward(const Activations& kept, const Sum& sum);
  void* grad() const;

  Status clear();
  float* gradients() const;  // of all layers, in the order of training::Network::gradients()
  size_t gradient_count() const;
  // Adds to *wrong the number of gradients that are not `factor` times those in `whole`, the gradients() of
  // the whole network.
  Status count_wrong(const float* whole, float factor, unsigned long long* wrong) const;

 private:
  struct State;
  explicit GpuNetwork(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace muster::kernels::gpu
