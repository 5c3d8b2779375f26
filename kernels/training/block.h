// Transformer blocks whose arithmetic is exact: a training-shaped load for which every partition must give
// the same bits.
//
// Shape:     per layer the matrix products of a decoder block, forward and backward: QKV, attention per
//            head, output projection, two feed-forward products (4x wide): 72 D^2 + 12 S D operations per
//            token and layer (D model, S sequence), as of Megatron-LM.
// Exact:     inputs and weights are -1, 0 or 1, and every sum is folded back to its remainder of three (-1,
//            0, 1) where a real network has its non-linearity (softmax, GELU, normalisation). So all numbers
//            are small integers: exact in a float, independent of the order of summation, and a wrong bit is
//            not swallowed as it would be by saturation. The gradients are those of the shapes, not of a
//            loss: nothing is learned here.
// Partition: `Part` keeps a share of the heads and of the feed-forward columns (tensor parallel, two sums per
//            pass and layer); `first_layer` a share of the layers (pipeline). Same seed, same numbers,
//            wherever they are.
// Threads:   every pass runs on `threads` threads of this process; `sum` is called by one of them, the
//            others wait.
// Independent of MPI: it is tested alone (tests/unit/kernels/training_test.cc), and driven by
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
// Empty, or why these numbers are invalid (zero, not divisible, sums in a pass above 2^20). Sums over tokens
// are the caller's affair.
const char* unfit(const Shape& shape);
// Floating point operations of one sequence, forward and backward, all layers.
double operations(const Shape& shape);

struct Part {
  size_t index = 0, count = 1;  // count divides heads
};
// Of a layer's matrix, or of the input of one sequence.
Placement placement(const Shape& shape, Kind kind, Part part);

// Row-major, rows x columns of one layer's matrix, as far as the part has it.
struct Weights {
  size_t rows = 0, columns = 0;
  std::vector<float> values = {}, transposed = {}, gradient = {};
};
struct Layer {
  Weights qkv, out, up, down;  // D x 3D/n, D/n x D, D x 4D/n, 4D/n x D
};

// What the forward pass of a few sequences leaves for the backward pass.
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
  // Adds up these floats over all parts; called with the same size on each.
  using Sum = std::function<void(float*, size_t)>;

  Network(const Shape& shape, size_t first_layer, size_t layers, Part part, size_t threads);

  // [sequences x S, D]. `sum` is not called when the part is the whole.
  void forward(const std::vector<float>& x, size_t sequences, Activations& kept, const Sum& sum) const;
  // Adds to the gradients, and leaves in `grad` ([tokens, D], at the output) that at the input.
  void backward(const Activations& kept, std::vector<float>& grad, const Sum& sum);

  // One vector for all gradients, so that one all-reduce adds them up over ranks.
  std::vector<float> gradients() const;
  void set_gradients(const std::vector<float>& all);
  void clear();

  // How many of these gradients are not `factor` times those of the whole network, bit by bit.
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
  // heads_, width_ (of all own heads), hidden_: of this part
  size_t first_layer_, heads_, width_, hidden_, threads_;
  Part part_;
  std::vector<Layer> layers_;
};

// The matrix product for this processor's vector units, best first; the first one is used. choose_product()
// is for tests, while no pass runs.
std::vector<std::string> product_variants();
void choose_product(const std::string& name);

// Input and target of sequence number `index`, [S, D]: the same on every rank.
void fill_input(const Shape& shape, uint64_t index, float* x);
// The gradient at the output: a remainder of output and target, so that a wrong output makes wrong gradients.
void start_backward(const Shape& shape, uint64_t first_sequence, const Activations& kept,
                    std::vector<float>& grad);

}  // namespace muster::training
