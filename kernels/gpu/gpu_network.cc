#include "kernels/gpu/gpu_network.h"

#include <algorithm>

namespace muster::kernels::gpu {
namespace {

using training::Kind;
using training::Part;
using training::Shape;

constexpr Kind kMatrices[] = {Kind::kQkv, Kind::kOut, Kind::kUp, Kind::kDown};
constexpr size_t kCount = std::size(kMatrices);

uint16_t* half(const DeviceMemory& memory) { return static_cast<uint16_t*>(memory.get()); }

}  // namespace

struct GpuNetwork::State {
  Shape shape;
  Part part;
  size_t first_layer = 0, layers = 0;
  cudaStream_t stream = nullptr;
  size_t s = 0, d = 0, width = 0, hidden = 0, heads = 0,
         size = 0;  // tokens, model, own heads' width, own hidden, own heads, one head's width

  struct Layer {
    DeviceMemory weights[kCount];
    float* gradients[kCount] = {};
  };
  std::vector<Layer> weights;
  DeviceMemory gradients, scratch, partial, grad, dhidden, dy, dcontext, dqkv, dscores, workspace;
  size_t gradient_count = 0;

  // Products of the forward pass, of the backward pass (d...), of the gradients (g...).
  enum Which {
    kForQkv,
    kForScores,
    kForContext,
    kForOut,
    kForUp,
    kForDown,
    kDHidden,
    kDUp,
    kDContext,
    kDScores,
    kDValues,
    kDQueries,
    kDKeys,
    kDQkv,
    kGQkv,
    kGOut,
    kGUp,
    kGDown,
    kProducts
  };
  std::vector<Cublaslt> products;

  float* sums() const { return static_cast<float*>(scratch.get()); }
  float* partials() const { return static_cast<float*>(partial.get()); }
  Status multiply(Which which, const void* a, const void* b, void* c) const {
    return products[which].multiply(a, b, c, stream);
  }
  // Computes a product and folds it into `to`, with row stride `to_row`; several heads are adjacent columns.
  Status folded(Which which, const void* a, const void* b, void* to, const Folding& what) const {
    TRY_(multiply(which, a, b, sums()));
    return cuda(fold(to, sums(), what, stream), "fold");
  }
  Folding plain(size_t columns) const { return {1, s, columns, columns, 0}; }
  Folding by_head(size_t row) const { return {heads, s, size, row, size}; }
  Folding square() const { return {heads, s, s, s, s * s}; }
  Status add_sum(void* to, const void* a, const Sum& sum) const {
    if (part.count > 1) TRY_(sum(partials(), s * d));
    return cuda(fold_sum(to, a, partials(), s * d, stream), "fold sum");
  }

  Status prepare();
  Status make_weights();
  Status make_products();
  Status attention(Activations::OfLayer& kept);
  Status attention_back(const Activations::OfLayer& kept);
};

Status GpuNetwork::State::prepare() {
  s = shape.sequence, d = shape.model;
  heads = shape.heads / part.count, width = d / part.count, hidden = shape.hidden() / part.count,
  size = d / shape.heads;
  const size_t widest = std::max({3 * width, hidden, d, heads * s});
  TRY(scratch, device_memory(s * widest * sizeof(float)));
  TRY(partial, device_memory(s * d * sizeof(float)));
  TRY(grad, device_memory(s * d * 2));
  TRY(dy, device_memory(s * d * 2));
  TRY(dhidden, device_memory(s * hidden * 2));
  TRY(dcontext, device_memory(s * width * 2));
  TRY(dqkv, device_memory(s * 3 * width * 2));
  TRY(dscores, device_memory(heads * s * s * 2));
  TRY(workspace, device_memory(kCublasltWorkspace));
  TRY_(make_weights());
  return make_products();
}

Status GpuNetwork::State::make_weights() {
  for (const Kind kind : kMatrices) {
    const auto at = training::placement(shape, kind, part);
    gradient_count += layers * at.rows * at.columns;
  }
  TRY(gradients, device_memory(gradient_count * sizeof(float)));
  auto* next = static_cast<float*>(gradients.get());
  weights.resize(layers);
  for (size_t l = 0; l < layers; ++l)
    for (size_t i = 0; i < kCount; ++i) {
      const auto at = training::placement(shape, kMatrices[i], part);
      TRY(weights[l].weights[i], device_memory(at.rows * at.columns * 2));
      TRY_(cuda(write_digits(weights[l].weights[i].get(), nullptr, at, first_layer + l, kMatrices[i], stream),
                "weights"));
      weights[l].gradients[i] = next;
      next += at.rows * at.columns;
    }
  return Ok{};
}

Status GpuNetwork::State::make_products() {
  const size_t row = 3 * width, ss = s * s, each = s * size;
  const auto whole = [](size_t m, size_t n, size_t k) {
    return BlockProduct{m, n, k, false, false, k, n, n};
  };
  const auto turned = [](size_t m, size_t n, size_t k) {
    return BlockProduct{m, n, k, false, true, k, k, n};
  };
  // sum over tokens of a[token][m] b[token][n], added to C
  const auto gradient = [&](size_t m, size_t n) {
    return BlockProduct{m, n, s, true, false, m, n, n, 1, 0, 0, 0, true};
  };
  BlockProduct all[kProducts] = {};
  all[kForQkv] = whole(s, row, d);
  all[kForScores] = {s, s, size, false, true, row, row, s, heads, size, size, ss};
  all[kForContext] = {s, size, s, false, false, s, row, size, heads, ss, size, each};
  all[kForOut] = whole(s, d, width);
  all[kForUp] = whole(s, hidden, d);
  all[kForDown] = whole(s, d, hidden);
  all[kDHidden] = turned(s, hidden, d);
  all[kDUp] = turned(s, d, hidden);
  all[kDContext] = turned(s, width, d);
  all[kDScores] = {s, s, size, false, true, width, row, s, heads, size, size, ss};
  all[kDValues] = {s, size, s, true, false, s, width, size, heads, ss, size, each};
  all[kDQueries] = {s, size, s, false, false, s, row, size, heads, ss, size, each};
  all[kDKeys] = {s, size, s, true, false, s, row, size, heads, ss, size, each};
  all[kDQkv] = turned(s, d, row);
  all[kGQkv] = gradient(d, row);
  all[kGOut] = gradient(width, d);
  all[kGUp] = gradient(d, hidden);
  all[kGDown] = gradient(hidden, d);
  for (const auto& product : all) {
    TRY(Cublaslt made, Cublaslt::open(product, workspace.get()));
    products.push_back(std::move(made));
  }
  return Ok{};
}

Status GpuNetwork::State::attention(Activations::OfLayer& kept) {
  uint16_t* q = half(kept.qkv);
  TRY_(folded(kForScores, q, q + width, kept.scores.get(), square()));
  return folded(kForContext, kept.scores.get(), q + 2 * width, kept.context.get(), by_head(width));
}

Status GpuNetwork::State::attention_back(const Activations::OfLayer& kept) {
  uint16_t *q = half(kept.qkv), *dq = half(dqkv);
  const size_t row = 3 * width;
  TRY_(folded(kDScores, dcontext.get(), q + 2 * width, dscores.get(), square()));
  TRY_(folded(kDValues, kept.scores.get(), dcontext.get(), dq + 2 * width, by_head(row)));
  TRY_(folded(kDQueries, dscores.get(), q + width, dq, by_head(row)));
  return folded(kDKeys, dscores.get(), q, dq + width, by_head(row));
}

GpuNetwork::GpuNetwork(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuNetwork::GpuNetwork(GpuNetwork&&) noexcept = default;
GpuNetwork::~GpuNetwork() = default;

Result<GpuNetwork> GpuNetwork::open(const Shape& shape, size_t first_layer, size_t layers, Part part,
                                    cudaStream_t stream) {
  auto state = std::make_unique<State>();
  state->shape = shape;
  state->part = part;
  state->first_layer = first_layer;
  state->layers = layers;
  state->stream = stream;
  TRY_(state->prepare());
  return GpuNetwork(std::move(state));
}

Result<GpuNetwork::Activations> GpuNetwork::activations() const {
  const State& n = *state_;
  Activations out;
  out.layers.resize(n.layers);
  for (auto& layer : out.layers) {
    TRY(layer.x, device_memory(n.s * n.d * 2));
    TRY(layer.qkv, device_memory(n.s * 3 * n.width * 2));
    TRY(layer.scores, device_memory(n.heads * n.s * n.s * 2));
    TRY(layer.context, device_memory(n.s * n.width * 2));
    TRY(layer.y, device_memory(n.s * n.d * 2));
    TRY(layer.hidden, device_memory(n.s * n.hidden * 2));
  }
  TRY(out.out, device_memory(n.s * n.d * 2));
  return out;
}

Status GpuNetwork::fill_input(uint64_t index, Activations& kept) const {
  const auto at = training::placement(state_->shape, Kind::kInput, {});
  return cuda(write_digits(kept.layers.front().x.get(), nullptr, at, index, Kind::kInput, state_->stream),
              "input");
}

Status GpuNetwork::forward(Activations& kept, const Sum& sum) {
  State& n = *state_;
  for (size_t l = 0; l < n.layers; ++l) {
    auto& k = kept.layers[l];
    const auto& w = n.weights[l].weights;
    TRY_(n.folded(State::kForQkv, k.x.get(), w[0].get(), k.qkv.get(), n.plain(3 * n.width)));
    TRY_(n.attention(k));
    TRY_(n.multiply(State::kForOut, k.context.get(), w[1].get(), n.partials()));
    TRY_(n.add_sum(k.y.get(), k.x.get(), sum));
    TRY_(n.folded(State::kForUp, k.y.get(), w[2].get(), k.hidden.get(), n.plain(n.hidden)));
    TRY_(n.multiply(State::kForDown, k.hidden.get(), w[3].get(), n.partials()));
    TRY_(n.add_sum(l + 1 < n.layers ? kept.layers[l + 1].x.get() : kept.out.get(), k.y.get(), sum));
  }
  return Ok{};
}

Status GpuNetwork::start_backward(uint64_t index, const Activations& kept) {
  const auto at = training::placement(state_->shape, Kind::kTarget, {});
  return cuda(write_digits(grad(), kept.out.get(), at, index, Kind::kTarget, state_->stream), "target");
}

Status GpuNetwork::backward(const Activations& kept, const Sum& sum) {
  State& n = *state_;
  void *grad = n.grad.get(), *dy = n.dy.get(), *dhidden = n.dhidden.get(), *dqkv = n.dqkv.get();
  for (size_t l = n.layers; l-- > 0;) {
    const auto& k = kept.layers[l];
    const auto& w = n.weights[l].weights;
    const auto& g = n.weights[l].gradients;
    TRY_(n.folded(State::kDHidden, grad, w[3].get(), dhidden, n.plain(n.hidden)));
    TRY_(n.multiply(State::kGDown, k.hidden.get(), grad, g[3]));
    TRY_(n.multiply(State::kGUp, k.y.get(), dhidden, g[2]));
    TRY_(n.multiply(State::kDUp, dhidden, w[2].get(), n.partials()));
    TRY_(n.add_sum(dy, grad, sum));
    TRY_(n.folded(State::kDContext, dy, w[1].get(), n.dcontext.get(), n.plain(n.width)));
    TRY_(n.multiply(State::kGOut, k.context.get(), dy, g[1]));
    TRY_(n.attention_back(k));
    TRY_(n.multiply(State::kGQkv, k.x.get(), dqkv, g[0]));
    TRY_(n.multiply(State::kDQkv, dqkv, w[0].get(), n.partials()));
    TRY_(n.add_sum(grad, dy, sum));
  }
  return Ok{};
}

void* GpuNetwork::grad() const { return state_->grad.get(); }
float* GpuNetwork::gradients() const { return static_cast<float*>(state_->gradients.get()); }
size_t GpuNetwork::gradient_count() const { return state_->gradient_count; }
Status GpuNetwork::clear() {
  return cuda(cudaMemsetAsync(gradients(), 0, gradient_count() * sizeof(float), state_->stream),
              "cudaMemsetAsync");
}

Status GpuNetwork::count_wrong(const float* whole, float factor, unsigned long long* wrong) const {
  const State& n = *state_;
  for (size_t i = 0, before = 0; i < kCount; ++i) {
    const auto at = training::placement(n.shape, kMatrices[i], n.part),
               all = training::placement(n.shape, kMatrices[i], {});
    size_t of_layer = 0;
    for (const Kind kind : kMatrices) {
      const auto one = training::placement(n.shape, kind, {});
      of_layer += one.rows * one.columns;
    }
    for (size_t l = 0; l < n.layers; ++l)
      TRY_(cuda(
          gpu::count_wrong(n.weights[l].gradients[i], at, whole + (n.first_layer + l) * of_layer + before,
                           all.columns, factor, wrong, n.stream),
          "compare"));
    before += all.rows * all.columns;
  }
  return Ok{};
}

}  // namespace muster::kernels::gpu
