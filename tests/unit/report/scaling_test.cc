// The fitted model gives back what made the times, also through noise, and never negative seconds.
#include "controller/report/study.h"

#include "tests/catch.h"

using namespace muster;

namespace {

std::vector<ScalingPoint> made_by(const ScalingFit& truth, const std::vector<double>& noise = {}) {
  std::vector<ScalingPoint> out;
  const std::vector<int> nodes = {1, 2, 4, 8, 16};
  for (size_t i = 0; i < nodes.size(); ++i)
    out.push_back({nodes[i], truth.seconds(nodes[i]) * (noise.empty() ? 1 : 1 + noise[i])});
  return out;
}

ScalingFit truth_of(Scaling kind, double compute, double latency, double transfer) {
  ScalingFit out;
  out.kind = kind;
  out.compute = compute;
  out.latency = latency;
  out.transfer = transfer;
  return out;
}

}  // namespace

TEST_CASE("exact times give back the model that made them") {
  for (const Scaling kind : {Scaling::strong, Scaling::weak}) {
    const auto fit = fit_scaling(kind, made_by(truth_of(kind, 8, 0.02, 0.3)));
    REQUIRE(fit.ok());
    CHECK(fit->compute == Approx(8));
    CHECK(fit->latency == Approx(0.02));
    CHECK(fit->transfer == Approx(0.3));
    CHECK(fit->worst_error < 1e-6);
  }
}

TEST_CASE(
    "three percent of noise neither moves the knee by more than a doubling nor makes seconds negative") {
  const ScalingFit truth = truth_of(Scaling::strong, 10, 0, 0.5);
  const auto fit = fit_scaling(Scaling::strong, made_by(truth, {0.03, -0.03, 0.02, -0.01, 0.03}));
  REQUIRE(fit.ok());
  CHECK(fit->compute >= 0);
  CHECK(fit->latency >= 0);
  CHECK(fit->transfer >= 0);
  CHECK(fit->worst_error < 0.06);
  const int right = knee(truth), found = knee(*fit);
  CHECK(found >= right / 2);
  CHECK(found <= right * 2);
}

TEST_CASE("the knee is where half of each node's work is lost") {
  // E(N) = 10 / (N (10/N + 0.5 (N-1)/N)) = 10 / (10 + 0.5 (N-1)): one half at N = 21.
  CHECK(knee(truth_of(Scaling::strong, 10, 0, 0.5)) == 16);
  CHECK(truth_of(Scaling::strong, 10, 0, 0.5).efficiency(21) == Approx(0.5));
  CHECK(knee(truth_of(Scaling::strong, 10, 0, 0)) == 4096);
  CHECK(knee(truth_of(Scaling::weak, 1, 1, 0)) == 2);  // T(2) = 2: E = 0.5; T(4) = 3: less
  CHECK(knee(truth_of(Scaling::strong, 1, 10, 0)) == 1);
}

TEST_CASE("too few or impossible times are refused") {
  CHECK_FALSE(fit_scaling(Scaling::strong, {}).ok());
  CHECK_FALSE(fit_scaling(Scaling::strong, {{1, 1}, {2, 1}}).ok());
  CHECK_FALSE(fit_scaling(Scaling::strong, {{2, 1}, {4, 1}, {8, 1}}).ok());
  CHECK_FALSE(fit_scaling(Scaling::strong, {{1, 1}, {2, 0}, {4, 1}}).ok());
  CHECK_FALSE(fit_scaling(Scaling::strong, {{1, 1}, {0, 1}, {4, 1}}).ok());
  CHECK(fit_scaling(Scaling::strong, {{1, 1}, {2, 0.6}, {4, 0.4}}).ok());
}
