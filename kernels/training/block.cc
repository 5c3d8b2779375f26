#include "kernels/training/block.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "kernels/common/multiply.h"

namespace muster::training {
namespace {

constexpr size_t kTall = kernels::kMostTileRows;  // threads divide rows in groups of this size

using View = kernels::View<float>;

auto chosen = kernels::multipliers<float>().front();

void add_product(size_t rows, size_t depth, size_t columns, View a, const float* b, size_t b_row, float* c,
                 size_t c_row) {
  chosen.add_product(rows, depth, columns, a, b, b_row, c, c_row);
}

// Sets c to the folded product.
void fold(float* c, size_t rows, size_t columns, size_t c_row) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) c[i * c_row + j] = folded(c[i * c_row + j]);
}
void product(size_t rows, size_t depth, size_t columns, View a, const float* b, size_t b_row, float* c,
             size_t c_row) {
  for (size_t i = 0; i < rows; ++i) std::fill_n(c + i * c_row, columns, 0.0F);
  add_product(rows, depth, columns, a, b, b_row, c, c_row);
}
void folded_product(size_t rows, size_t depth, size_t columns, View a, const float* b, size_t b_row, float* c,
                    size_t c_row) {
  product(rows, depth, columns, a, b, b_row, c, c_row);
  fold(c, rows, columns, c_row);
}
// to = folded(a + b)
void folded_sum(const float* a, const float* b, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = folded(a[i] + b[i]);
}

void transpose(size_t rows, size_t columns, const float* from, size_t from_row, float* to) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * from_row + j];
}

}  // namespace

std::vector<std::string> product_variants() {
  std::vector<std::string> out;
  for (const auto& v : kernels::multipliers<float>()) out.emplace_back(v.name);
  return out;
}
void choose_product(const std::string& name) {
  for (const auto& v : kernels::multipliers<float>())
    if (v.name == name) chosen = v;
}

const char* unfit(const Shape& s) {
  if (s.model == 0 || s.heads == 0 || s.sequence == 0 || s.layers == 0)
    return "`model`, `heads`, `sequence` and `layers` must be positive";
  if (s.model % s.heads != 0) return "`model` is not a multiple of `heads`";
  if (s.model > 65536 || s.sequence > 65536 || s.layers > 4096)
    return "`model`, `sequence` or `layers` is too large";
  return "";
}

Placement placement(const Shape& s, Kind kind, Part part) {
  const size_t width = s.model / part.count, hidden = s.hidden() / part.count;
  switch (kind) {
    case kQkv:
      return {s.model, 3 * width, 0, part.index * width, width, s.model};
    case kOut:
      return {width, s.model, part.index * width, 0};
    case kUp:
      return {s.model, hidden, 0, part.index * hidden};
    case kDown:
      return {hidden, s.model, part.index * hidden, 0};
    case kInput:
    case kTarget:
      break;
  }
  return {s.sequence, s.model};
}

double operations(const Shape& s) {
  const double d = static_cast<double>(s.model), tokens = static_cast<double>(s.sequence);
  return (72 * d * d + 12 * tokens * d) * tokens * static_cast<double>(s.layers);
}

struct Network::Worker {
  size_t index, count;
  std::barrier<>& barrier;

  void wait() const { barrier.arrive_and_wait(); }
  // Returns this thread's share of `total`, in whole groups of kTall.
  template <typename Body>
  void share(size_t total, const Body& body) const {
    const size_t groups = (total + kTall - 1) / kTall;
    const size_t from = std::min(total, groups * index / count * kTall),
                 to = std::min(total, groups * (index + 1) / count * kTall);
    if (from < to) body(from, to - from);
  }
  // Runs `sum` on one thread, while all others wait at barriers before and after it.
  void sum_over_parts(const Sum& sum, std::vector<float>& values, Part part) const {
    if (part.count == 1) return;
    wait();
    if (index == 0) sum(values.data(), values.size());
    wait();
  }
};

template <typename Body>
void Network::run(const Body& body) const {
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(threads_));
  std::vector<std::thread> threads;
  for (size_t t = 1; t < threads_; ++t) threads.emplace_back([&, t] { body(Worker{t, threads_, barrier}); });
  body(Worker{0, threads_, barrier});
  for (auto& thread : threads) thread.join();
}

Network::Network(const Shape& shape, size_t first_layer, size_t layers, Part part, size_t threads)
    : shape_(shape),
      first_layer_(first_layer),
      heads_(shape.heads / part.count),
      width_(shape.model / part.count),
      hidden_(shape.hidden() / part.count),
      threads_(std::max<size_t>(1, threads)),
      part_(part),
      layers_(layers) {
  const auto make = [&](Weights& w, uint64_t layer, Kind kind) {
    const Placement p = placement(shape_, kind, part_);
    w.rows = p.rows;
    w.columns = p.columns;
    w.values.resize(w.rows * w.columns);
    w.transposed.resize(w.rows * w.columns);
    w.gradient.assign(w.rows * w.columns, 0);
    for (size_t i = 0; i < w.rows; ++i)
      for (size_t j = 0; j < w.columns; ++j) {
        const Place at = place_of(p, i, j);
        w.values[i * w.columns + j] = digit(key(layer, kind, at.row, at.column));
      }
    transpose(w.rows, w.columns, w.values.data(), w.columns, w.transposed.data());
  };
  for (size_t l = 0; l < layers; ++l) {
    make(layers_[l].qkv, first_layer + l, kQkv);
    make(layers_[l].out, first_layer + l, kOut);
    make(layers_[l].up, first_layer + l, kUp);
    make(layers_[l].down, first_layer + l, kDown);
  }
}

// The heads of all sequences are independent of each other: each is computed by one thread.
void Network::attention(const Worker& w, Activations::OfLayer& kept, size_t sequences) const {
  const size_t s = shape_.sequence, size = shape_.model / shape_.heads, row = 3 * width_;
  std::vector<float> turned(size * s);
  for (size_t pair = w.index; pair < sequences * heads_; pair += w.count) {
    const float* q = kept.qkv.data() + pair / heads_ * s * row + pair % heads_ * size;
    float* scores = kept.scores.data() + pair * s * s;
    transpose(s, size, q + width_, row, turned.data());
    folded_product(s, size, s, {q, row, 1}, turned.data(), s, scores, s);
    folded_product(s, s, size, {scores, s, 1}, q + 2 * width_, row,
                   kept.context.data() + pair / heads_ * s * width_ + pair % heads_ * size, width_);
  }
}

void Network::attention_back(const Worker& w, const Activations::OfLayer& kept,
                             const std::vector<float>& dcontext, std::vector<float>& dqkv,
                             size_t sequences) const {
  const size_t s = shape_.sequence, size = shape_.model / shape_.heads, row = 3 * width_;
  std::vector<float> turned(size * s), dscores(s * s);
  for (size_t pair = w.index; pair < sequences * heads_; pair += w.count) {
    const size_t at = pair / heads_ * s * row + pair % heads_ * size;
    const float* q = kept.qkv.data() + at;
    const float* scores = kept.scores.data() + pair * s * s;
    const float* dc = dcontext.data() + pair / heads_ * s * width_ + pair % heads_ * size;
    float* dq = dqkv.data() + at;
    transpose(s, size, q + 2 * width_, row, turned.data());
    folded_product(s, size, s, {dc, width_, 1}, turned.data(), s, dscores.data(), s);
    folded_product(s, s, size, {scores, 1, s}, dc, width_, dq + 2 * width_, row);
    folded_product(s, s, size, {dscores.data(), s, 1}, q + width_, row, dq, row);
    folded_product(s, s, size, {dscores.data(), 1, s}, q, row, dq + width_, row);
  }
}

void Network::forward_layer(const Worker& w, const Layer& layer, Activations::OfLayer& kept,
                            std::vector<float>& partial, size_t sequences, std::vector<float>& out,
                            const Sum& sum) const {
  const size_t d = shape_.model, tokens = sequences * shape_.sequence;
  w.share(tokens, [&](size_t i, size_t n) {
    folded_product(n, d, 3 * width_, {&kept.x[i * d], d, 1}, layer.qkv.values.data(), 3 * width_,
                   &kept.qkv[i * 3 * width_], 3 * width_);
  });
  w.wait();
  attention(w, kept, sequences);
  w.wait();
  w.share(tokens, [&](size_t i, size_t n) {
    product(n, width_, d, {&kept.context[i * width_], width_, 1}, layer.out.values.data(), d, &partial[i * d],
            d);
  });
  w.sum_over_parts(sum, partial, part_);
  w.share(tokens, [&](size_t i, size_t n) {
    folded_sum(&kept.x[i * d], &partial[i * d], &kept.y[i * d], n * d);
    folded_product(n, d, hidden_, {&kept.y[i * d], d, 1}, layer.up.values.data(), hidden_,
                   &kept.hidden[i * hidden_], hidden_);
    product(n, hidden_, d, {&kept.hidden[i * hidden_], hidden_, 1}, layer.down.values.data(), d,
            &partial[i * d], d);
  });
  w.sum_over_parts(sum, partial, part_);
  w.share(tokens,
          [&](size_t i, size_t n) { folded_sum(&kept.y[i * d], &partial[i * d], &out[i * d], n * d); });
  w.wait();
}

void Network::forward(const std::vector<float>& x, size_t sequences, Activations& kept,
                      const Sum& sum) const {
  const size_t d = shape_.model, tokens = sequences * shape_.sequence;
  kept.sequences = sequences;
  kept.layers.resize(layers_.size());
  kept.out.resize(tokens * d);
  for (auto& l : kept.layers) {
    l.x.resize(tokens * d);
    l.qkv.resize(tokens * 3 * width_);
    l.scores.resize(sequences * heads_ * shape_.sequence * shape_.sequence);
    l.context.resize(tokens * width_);
    l.y.resize(tokens * d);
    l.hidden.resize(tokens * hidden_);
  }
  std::vector<float> partial(tokens * d);
  kept.layers.front().x = x;
  run([&](const Worker& w) {
    for (size_t l = 0; l < layers_.size(); ++l)
      forward_layer(w, layers_[l], kept.layers[l], partial, sequences,
                    l + 1 < layers_.size() ? kept.layers[l + 1].x : kept.out, sum);
  });
}

void Network::backward(const Activations& kept, std::vector<float>& grad, const Sum& sum) {
  const size_t d = shape_.model, tokens = kept.sequences * shape_.sequence;
  std::vector<float> partial(tokens * d), dhidden(tokens * hidden_), dy(tokens * d),
      dcontext(tokens * width_), dqkv(tokens * 3 * width_);
  // gradient[i][j] += sum over tokens of left[token][i] right[token][j]: rows of the gradient are divided
  // among the threads.
  const auto add_gradient = [&](const Worker& w, Weights& weights, const std::vector<float>& left,
                                const std::vector<float>& right) {
    w.share(weights.rows, [&](size_t i, size_t n) {
      add_product(n, tokens, weights.columns, {left.data() + i, 1, weights.rows}, right.data(),
                  weights.columns, &weights.gradient[i * weights.columns], weights.columns);
    });
  };
  run([&](const Worker& w) {
    for (size_t l = layers_.size(); l-- > 0;) {
      Layer& layer = layers_[l];
      const auto& k = kept.layers[l];
      w.share(tokens, [&](size_t i, size_t n) {
        folded_product(n, d, hidden_, {&grad[i * d], d, 1}, layer.down.transposed.data(), hidden_,
                       &dhidden[i * hidden_], hidden_);
        product(n, hidden_, d, {&dhidden[i * hidden_], hidden_, 1}, layer.up.transposed.data(), d,
                &partial[i * d], d);
      });
      w.wait();
      add_gradient(w, layer.down, k.hidden, grad);
      add_gradient(w, layer.up, k.y, dhidden);
      w.sum_over_parts(sum, partial, part_);
      w.share(tokens, [&](size_t i, size_t n) {
        folded_sum(&grad[i * d], &partial[i * d], &dy[i * d], n * d);
        folded_product(n, d, width_, {&dy[i * d], d, 1}, layer.out.transposed.data(), width_,
                       &dcontext[i * width_], width_);
      });
      w.wait();
      add_gradient(w, layer.out, k.context, dy);
      attention_back(w, k, dcontext, dqkv, kept.sequences);
      w.wait();
      w.share(tokens, [&](size_t i, size_t n) {
        product(n, 3 * width_, d, {&dqkv[i * 3 * width_], 3 * width_, 1}, layer.qkv.transposed.data(), d,
                &partial[i * d], d);
      });
      w.wait();
      add_gradient(w, layer.qkv, k.x, dqkv);
      w.sum_over_parts(sum, partial, part_);
      w.share(tokens,
              [&](size_t i, size_t n) { folded_sum(&dy[i * d], &partial[i * d], &grad[i * d], n * d); });
      w.wait();
    }
  });
}

std::vector<Weights*> Network::all() {
  std::vector<Weights*> out;
  for (auto& l : layers_) out.insert(out.end(), {&l.qkv, &l.out, &l.up, &l.down});
  return out;
}
std::vector<const Weights*> Network::all() const {
  std::vector<const Weights*> out;
  for (const auto& l : layers_) out.insert(out.end(), {&l.qkv, &l.out, &l.up, &l.down});
  return out;
}

std::vector<float> Network::gradients() const {
  std::vector<float> out;
  for (const Weights* w : all()) out.insert(out.end(), w->gradient.begin(), w->gradient.end());
  return out;
}
void Network::set_gradients(const std::vector<float>& values) {
  auto from = values.begin();
  for (Weights* w : all()) {
    std::copy_n(from, w->gradient.size(), w->gradient.begin());
    from += static_cast<std::ptrdiff_t>(w->gradient.size());
  }
}
void Network::clear() {
  for (Weights* w : all()) std::fill(w->gradient.begin(), w->gradient.end(), 0.0F);
}

size_t Network::wrong(const Network& whole, float factor) const {
  size_t out = 0;
  const auto compare = [&](const Weights& mine, const Weights& theirs, Kind kind) {
    const Placement p = placement(shape_, kind, part_);
    for (size_t i = 0; i < mine.rows; ++i)
      for (size_t j = 0; j < mine.columns; ++j) {
        const Place at = place_of(p, i, j);
        const float expected = factor * theirs.gradient[at.row * theirs.columns + at.column],
                    got = mine.gradient[i * mine.columns + j];
        if (std::bit_cast<uint32_t>(got) != std::bit_cast<uint32_t>(expected)) ++out;
      }
  };
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer &mine = layers_[l], &theirs = whole.layers_[first_layer_ + l];
    compare(mine.qkv, theirs.qkv, kQkv);
    compare(mine.out, theirs.out, kOut);
    compare(mine.up, theirs.up, kUp);
    compare(mine.down, theirs.down, kDown);
  }
  return out;
}

void fill_input(const Shape& shape, uint64_t index, float* x) {
  for (size_t i = 0; i < shape.sequence; ++i)
    for (size_t j = 0; j < shape.model; ++j) x[i * shape.model + j] = digit(key(index, kInput, i, j));
}

void start_backward(const Shape& shape, uint64_t first_sequence, const Activations& kept,
                    std::vector<float>& grad) {
  grad.resize(kept.out.size());
  for (size_t s = 0; s < kept.sequences; ++s)
    for (size_t i = 0; i < shape.sequence; ++i)
      for (size_t j = 0; j < shape.model; ++j) {
        const size_t at = (s * shape.sequence + i) * shape.model + j;
        grad[at] = folded(kept.out[at] + digit(key(first_sequence + s, kTarget, i, j)));
      }
}

}  // namespace muster::training
