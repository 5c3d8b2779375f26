// Transformer blocks with exact arithmetic: a load with the shape of training, in which every partitioning
// must produce the same bits.
//
// Shape:     per layer the matrix products of a decoder block, forward and backward: QKV, attention per
//            head, output projection, two feed-forward products (4x wide): 72 D^2 + 12 S D operations per
//            token and layer (D model, S sequence), as in Megatron-LM.
// Exact:     inputs and weights are -1, 0 or 1, and every sum is reduced modulo 3 (to -1, 0 or 1) where a
//            real network has a non-linearity (softmax, GELU, normalisation). So all numbers are small
//            integers: exact in a float, independent of the order of summation, and a wrong bit is not
//            masked as it would be by saturation. The gradients have the right shapes but belong to no loss
//            function: nothing is learned.
// Partition: a `Part` is a share of the heads and of the feed-forward columns (tensor parallel, two sums per
//            pass and layer); `first_layer` begins a share of the layers (pipeline). Numbers depend only on
//            the seed and on their place in the whole network.
// Threads:   every pass runs on `threads` threads of this process; one of them calls `sum` while the others
//            wait.
// Independent of any group or MPI: tested by itself (tests/unit/kernels/training_test.cc), and driven by
// kernels/together/training_load.cc.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/training/digits.h"

namespace muster::training {

struct Shape {
  size_t model = 256;  // D: a multiple of heads
  size_t heads = 4;
  size_t sequence = 64;  // S: tokens
  size_t layers = 4;     // of the whole network
  size_t hidden() const { return 4 * model; }
};
// Returns why the shape is invalid (zero, not divisible, sums in a pass above 2^20), or null. The caller must
// bound the sums over tokens.
const char* unfit(const Shape& shape);
// Returns the floating point operations for one sequence, forward and backward, all layers.
double operations(const Shape& shape);

struct Part {
  size_t index = 0, count = 1;  // `count` must divide the number of heads
};
// Returns where the part's matrix lies within a layer's matrix, or within the input of one sequence.
Placement placement(const Shape& shape, Kind kind, Part part);

// The part's share of one matrix of a layer: row-major, rows x columns.
struct Weights {
  size_t rows = 0, columns = 0;
  std::vector<float> values = {}, transposed = {}, gradient = {};
};
struct Layer {
  Weights qkv, out, up, down;  // D x 3D/n, D/n x D, D x 4D/n, 4D/n x D
};

// What the backward pass needs of the forward pass over some sequences.
struct Activations {
  struct OfLayer {
    std::vector<float> x, qkv, scores, context, y, hidden;
  };
  std::vector<OfLayer> layers = {};
  std::vector<float> out = {};  // [tokens, D]
  size_t sequences = 0;
};

class Network {
 public:
  // Sums these floats over all parts, in place; every part calls it with the same size.
  using Sum = std::function<void(float*, size_t)>;

  Network(const Shape& shape, size_t first_layer, size_t layers, Part part, size_t threads);

  // Forward pass over x, [sequences x S, D]. `sum` is not called if there is only one part.
  void forward(const std::vector<float>& x, size_t sequences, Activations& kept, const Sum& sum) const;
  // Adds to the weights' gradients, and turns `grad` ([tokens, D]) from that at the output to the input's.
  void backward(const Activations& kept, std::vector<float>& grad, const Sum& sum);

  // Returns all gradients in one vector, so that a single all-reduce can sum them over the ranks.
  std::vector<float> gradients() const;
  void set_gradients(const std::vector<float>& all);
  void clear();

  // Returns the number of gradients that are not bit for bit `factor` times those of the whole network.
  size_t wrong(const Network& whole, float factor) const;
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  struct Worker;
  template <typename Body>
  void run(const Body& body) const;
  void forward_layer(const Worker& w, const Layer& layer, Activations::OfLayer& kept,
                     std::vector<float>& partial, size_t sequences, std::vector<float>& out,
                     const Sum& sum) const;
  void attention(const Worker& w, Activations::OfLayer& kept, size_t sequences) const;
  void attention_back(const Worker& w, const Activations::OfLayer& kept, const std::vector<float>& dcontext,
                      std::vector<float>& dqkv, size_t sequences) const;
  std::vector<Weights*> all();
  std::vector<const Weights*> all() const;

  Shape shape_;
  // heads_, width_ (of all heads together), hidden_: of this part
  size_t first_layer_, heads_, width_, hidden_, threads_;
  Part part_;
  std::vector<Layer> layers_;
};

// Matrix product variants that this processor supports, best first; the first is used by default.
// choose_product() is for tests, and must not be called while a pass runs.
std::vector<std::string> product_variants();
void choose_product(const std::string& name);

// Fills `x` with the input of sequence number `index`, [S, D]: the same on every rank.
void fill_input(const Shape& shape, uint64_t index, float* x);
// Sets `grad` at the output from output and target modulo 3, so that a wrong output gives wrong gradients.
void start_backward(const Shape& shape, uint64_t first_sequence, const Activations& kept,
                    std::vector<float>& grad);

}  // namespace muster::training
