// The training-shaped load: its numbers are those of plain integer loops, and the same ones however it is
// partitioned.
#include "kernels/training/block.h"

#include <algorithm>
#include <barrier>
#include <bit>
#include <thread>

#include "tests/catch.h"

using namespace muster::training;

namespace {

constexpr Shape kShape{24, 4, 7, 2};  // nothing is a multiple of a vector: 6 elements per head, 7 tokens
constexpr size_t kSequences = 3;

// Plain integers, row by column: shares nothing with what is tested.
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<long> at = {};
  Matrix(size_t r, size_t c) : rows(r), columns(c), at(r * c) {}
  long& operator()(size_t i, size_t j) { return at[i * columns + j]; }
  long operator()(size_t i, size_t j) const { return at[i * columns + j]; }
};
Matrix times(const Matrix& a, const Matrix& b) {
  REQUIRE(a.columns == b.rows);
  Matrix out(a.rows, b.columns);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < b.columns; ++j)
      for (size_t k = 0; k < a.columns; ++k) out(i, j) += a(i, k) * b(k, j);
  return out;
}
Matrix turned(const Matrix& a) {
  Matrix out(a.columns, a.rows);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j) out(j, i) = a(i, j);
  return out;
}
Matrix plus(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.at.size(); ++i) a.at[i] += b.at[i];
  return a;
}
Matrix rest(Matrix a) {  // nearest remainder of three
  for (long& v : a.at) v = ((v % 3) + 4) % 3 - 1;
  return a;
}
Matrix block(const Matrix& a, size_t row, size_t rows, size_t column, size_t columns) {
  Matrix out(rows, columns);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) out(i, j) = a(row + i, column + j);
  return out;
}
void put(Matrix& a, size_t row, size_t column, const Matrix& part) {
  for (size_t i = 0; i < part.rows; ++i)
    for (size_t j = 0; j < part.columns; ++j) a(row + i, column + j) = part(i, j);
}
Matrix matrix_of(const Weights& w) {
  Matrix out(w.rows, w.columns);
  for (size_t i = 0; i < out.at.size(); ++i) out.at[i] = static_cast<long>(w.values[i]);
  return out;
}
Matrix matrix_of(const std::vector<float>& v, size_t columns) {
  Matrix out(v.size() / columns, columns);
  for (size_t i = 0; i < v.size(); ++i) out.at[i] = static_cast<long>(v[i]);
  return out;
}

// The same network by the formulas, on integers; returns all gradients in the order of Network::gradients().
std::vector<float> by_formula(const Shape& shape, const std::vector<Layer>& layers,
                              const std::vector<float>& input) {
  const size_t d = shape.model, s = shape.sequence, size = d / shape.heads, tokens = input.size() / d;
  struct Kept {
    Matrix x, qkv, context, y, hidden;
    std::vector<Matrix> scores;
  };
  std::vector<Kept> kept;
  Matrix x = matrix_of(input, d);
  for (const auto& layer : layers) {
    const Matrix qkv = rest(times(x, matrix_of(layer.qkv)));
    Matrix context(tokens, d);
    std::vector<Matrix> all;
    for (size_t t = 0; t < tokens; t += s)
      for (size_t h = 0; h < shape.heads; ++h) {
        const Matrix q = block(qkv, t, s, h * size, size), k = block(qkv, t, s, d + h * size, size),
                     v = block(qkv, t, s, 2 * d + h * size, size);
        all.push_back(rest(times(q, turned(k))));
        put(context, t, h * size, rest(times(all.back(), v)));
      }
    const Matrix y = rest(plus(times(context, matrix_of(layer.out)), x)),
                 hidden = rest(times(y, matrix_of(layer.up)));
    Matrix z = rest(plus(times(hidden, matrix_of(layer.down)), y));
    kept.push_back({std::move(x), qkv, context, y, hidden, all});
    x = std::move(z);
  }
  Activations last;
  last.sequences = tokens / s;
  last.out.assign(x.at.begin(), x.at.end());
  std::vector<float> grad;
  start_backward(shape, 0, last, grad);
  Matrix g = matrix_of(grad, d);
  std::vector<std::vector<Matrix>> gradients(layers.size());
  for (size_t l = layers.size(); l-- > 0;) {
    const Layer& layer = layers[l];
    const Kept& k = kept[l];
    const Matrix dhidden = rest(times(g, turned(matrix_of(layer.down))));
    const Matrix dy = rest(plus(times(dhidden, turned(matrix_of(layer.up))), g));
    const Matrix dcontext = rest(times(dy, turned(matrix_of(layer.out))));
    Matrix dqkv(tokens, 3 * d);
    size_t pair = 0;
    for (size_t t = 0; t < tokens; t += s)
      for (size_t h = 0; h < shape.heads; ++h, ++pair) {
        const Matrix q = block(k.qkv, t, s, h * size, size), key = block(k.qkv, t, s, d + h * size, size),
                     v = block(k.qkv, t, s, 2 * d + h * size, size),
                     dc = block(dcontext, t, s, h * size, size);
        const Matrix dscores = rest(times(dc, turned(v)));
        put(dqkv, t, h * size, rest(times(dscores, key)));
        put(dqkv, t, d + h * size, rest(times(turned(dscores), q)));
        put(dqkv, t, 2 * d + h * size, rest(times(turned(k.scores[pair]), dc)));
      }
    gradients[l] = {times(turned(k.x), dqkv), times(turned(k.context), dy), times(turned(k.y), dhidden),
                    times(turned(k.hidden), g)};
    g = rest(plus(times(dqkv, turned(matrix_of(layer.qkv))), dy));
  }
  std::vector<float> out;
  for (const auto& layer : gradients)
    for (const auto& m : layer) out.insert(out.end(), m.at.begin(), m.at.end());
  return out;
}

std::vector<float> input_of(size_t first, size_t count) {
  std::vector<float> out(count * kShape.sequence * kShape.model);
  for (size_t s = 0; s < count; ++s) fill_input(kShape, first + s, &out[s * kShape.sequence * kShape.model]);
  return out;
}
void pass(Network& network, size_t first, size_t count, const Network::Sum& sum = nullptr) {
  Activations kept;
  std::vector<float> grad;
  network.forward(input_of(first, count), count, kept, sum);
  start_backward(kShape, first, kept, grad);
  network.backward(kept, grad, sum);
}
Network whole(size_t threads = 1) {
  Network out(kShape, 0, kShape.layers, Part{}, threads);
  pass(out, 0, kSequences);
  return out;
}

}  // namespace

TEST_CASE("training load: gradients are those of plain integer arithmetic, element by element",
          "[training]") {
  const Network network = whole();
  const auto expected = by_formula(kShape, network.layers(), input_of(0, kSequences)),
             got = network.gradients();
  REQUIRE(got.size() == kShape.layers * 12 * kShape.model * kShape.model);
  REQUIRE(got.size() == expected.size());
  CHECK(got == expected);
  // Not a network of zeros, where everything would agree.
  CHECK(std::count(got.begin(), got.end(), 0.0F) < static_cast<long>(got.size() / 2));
  const auto& digits = network.layers()[0].up.values;
  for (const float digit : {-1.0F, 0.0F, 1.0F})
    CHECK(std::count(digits.begin(), digits.end(), digit) > static_cast<long>(digits.size() / 5));
}

TEST_CASE(
    "training load: every processor's product gives the same bits, also where nothing is a multiple of a "
    "vector",
    "[training]") {
  const Network reference = whole();
  const auto variants = product_variants();
  REQUIRE(variants.back() == "baseline");
  for (const auto& variant : variants) {
    CAPTURE(variant);
    choose_product(variant);
    CHECK(whole(2).wrong(reference, 1) == 0);
  }
  choose_product(variants.front());
}

TEST_CASE("training load: however many threads, the same bits", "[training]") {
  const Network one = whole(1);
  for (const size_t threads : {2, 3, 9}) CHECK(whole(threads).wrong(one, 1) == 0);
}

TEST_CASE("training load: data, tensor and pipeline parallel give the gradients of one node", "[training]") {
  const Network reference = whole();

  // Data: sums over sequences.
  Network first(kShape, 0, kShape.layers, Part{}, 1), second(kShape, 0, kShape.layers, Part{}, 1);
  pass(first, 0, 1);
  pass(second, 1, kSequences - 1);
  auto sum = first.gradients();
  const auto other = second.gradients();
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  first.set_gradients(sum);
  CHECK(first.wrong(reference, 1) == 0);
  CHECK(first.wrong(reference, 2) > 0);
  first.clear();
  pass(first, 0, kSequences);
  pass(first, 0, kSequences);
  CHECK(first.wrong(reference, 2) == 0);

  // Pipeline: a stage each.
  Network front(kShape, 0, 1, Part{}, 1), back(kShape, 1, 1, Part{}, 1);
  Activations of_front, of_back;
  std::vector<float> grad;
  front.forward(input_of(0, kSequences), kSequences, of_front, nullptr);
  back.forward(of_front.out, kSequences, of_back, nullptr);
  start_backward(kShape, 0, of_back, grad);
  back.backward(of_back, grad, nullptr);
  front.backward(of_front, grad, nullptr);
  CHECK(front.wrong(reference, 1) == 0);
  CHECK(back.wrong(reference, 1) == 0);

  // Tensor: both or four parts at the same time, each adding its share where the other ones wait.
  for (const size_t parts : {2, 4}) {
    std::vector<float> shared;
    std::barrier<> barrier(static_cast<std::ptrdiff_t>(parts));
    std::vector<size_t> wrong(parts, 1);
    std::vector<std::thread> threads;
    for (size_t p = 0; p < parts; ++p)
      threads.emplace_back([&, p] {
        Network mine(kShape, 0, kShape.layers, Part{p, parts}, 2);
        pass(mine, 0, kSequences, [&](float* values, size_t count) {
          for (size_t turn = 0; turn < parts; ++turn) {
            if (p == turn) {
              if (turn == 0) shared.assign(count, 0);
              for (size_t i = 0; i < count; ++i) shared[i] += values[i];
            }
            barrier.arrive_and_wait();
          }
          std::copy_n(shared.begin(), count, values);
          barrier.arrive_and_wait();
        });
        wrong[p] = mine.wrong(reference, 1);
      });
    for (auto& thread : threads) thread.join();
    for (size_t p = 0; p < parts; ++p) CHECK(wrong[p] == 0);
  }
}

TEST_CASE("training load: one wrong bit anywhere in input or gradients is seen", "[training]") {
  const Network reference = whole();
  Network network(kShape, 0, kShape.layers, Part{}, 1);
  size_t seen = 0;
  constexpr size_t kTries = 40;
  for (size_t i = 0; i < kTries; ++i) {
    auto x = input_of(0, kSequences);
    float& hit = x[i * 37 % x.size()];
    hit = hit == 1.0F ? 0.0F : 1.0F;
    Activations kept;
    std::vector<float> grad;
    network.clear();
    network.forward(x, kSequences, kept, nullptr);
    start_backward(kShape, 0, kept, grad);
    network.backward(kept, grad, nullptr);
    seen += network.wrong(reference, 1) > 0;
  }
  CHECK(seen == kTries);
  for (unsigned bit = 0; bit < 32; ++bit) {
    auto gradients = reference.gradients();
    float& hit = gradients[bit * 101 % gradients.size()];
    hit = std::bit_cast<float>(std::bit_cast<uint32_t>(hit) ^ (1U << bit));
    network.set_gradients(gradients);
    CHECK(network.wrong(reference, 1) == 1);
  }
}

TEST_CASE("training load: shapes that make no network say so", "[training]") {
  CHECK(std::string(unfit(kShape)).empty());
  CHECK_FALSE(std::string(unfit({0, 4, 8, 1})).empty());
  CHECK_FALSE(std::string(unfit({24, 5, 8, 1})).empty());
  CHECK_FALSE(std::string(unfit({24, 4, 0, 1})).empty());
  CHECK_FALSE(std::string(unfit({24, 4, 8, 0})).empty());
  CHECK_FALSE(std::string(unfit({1 << 20, 4, 8, 1})).empty());
  CHECK(operations({2, 1, 3, 5}) == (72.0 * 4 + 12 * 3 * 2) * 3 * 5);
}
