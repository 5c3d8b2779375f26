// Silent data corruption: every flip that changes the output is seen, clean products are not accused, and
// each check sees what it is for and not more.
#include "kernels/cpu/sdc.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/catch.h"

using namespace muster::kernels;
using namespace muster::kernels::sdc;

namespace {

bool saw(const sdc::Outcome& outcome, Check check) { return outcome.alarm[static_cast<size_t>(check)]; }

}  // namespace

TEST_CASE("sdc: of 1,000 flips every one that changes the output is seen", "[sdc]") {
  constexpr size_t n = 24;
  SplitMix random(7);
  size_t changed = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const Site site = kSites[i % kSites.size()];
    const Fault fault{site, random.next() % (n * n), static_cast<unsigned>(random.next() % bits_of(site)),
                      random.next() % (n + 1), i % 2 == 1};
    const auto outcome = examine(n, i, &fault);
    changed += outcome.changed;
    CAPTURE(to_string(site), fault.element, fault.bit, fault.step, fault.repeats);
    if (outcome.changed) CHECK(outcome.any());
    // A flip in a register or in memory always changes the output.
    if (site == Site::output_register || site == Site::output_memory) CHECK(outcome.changed);
  }
  CHECK(changed > 700);
}

TEST_CASE("sdc: of 10,000 clean products none is accused", "[sdc]") {
  size_t accused = 0;
  for (uint64_t seed = 0; seed < 10000; ++seed) accused += examine(12, seed).any();
  CHECK(accused == 0);
}

TEST_CASE("sdc: each check sees its own kind of fault", "[sdc]") {
  constexpr size_t n = 16;
  // Stored wrong: the registers were right, so the golden digest is too.
  Fault fault{Site::output_memory, 5, 20, 0, true};
  auto outcome = examine(n, 1, &fault);
  CHECK_FALSE(saw(outcome, Check::golden));
  CHECK(saw(outcome, Check::stored));
  CHECK(saw(outcome, Check::freivalds));
  // A broken unit does the same wrong thing twice: the repetition agrees with it.
  fault = {Site::output_register, 5, 20, 0, true};
  outcome = examine(n, 1, &fault);
  CHECK_FALSE(saw(outcome, Check::repeat));
  CHECK_FALSE(saw(outcome, Check::stored));
  CHECK(saw(outcome, Check::golden));
  fault.repeats = false;
  CHECK(saw(examine(n, 1, &fault), Check::repeat));
  // A wrong input gives a product that is right for that input: only what knows the inputs sees it.
  fault = {Site::input_a, 3, 15, 0, true};  // the sign
  outcome = examine(n, 2, &fault);
  REQUIRE(outcome.changed);
  CHECK_FALSE(saw(outcome, Check::freivalds));
  CHECK(saw(outcome, Check::golden));
}

TEST_CASE("sdc: NaN and infinity are wrong, not equal to everything", "[sdc]") {
  Inputs inputs = make_inputs(8, 3);
  Product product = multiply(inputs);
  REQUIRE(freivalds(inputs, product.c, 1));
  REQUIRE(not_finite(product.c) == 0);
  const Digest before = read_back(product.c);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 0.5f}) {
    auto c = product.c;
    c[9] = bad;
    CHECK_FALSE(freivalds(inputs, c, 1));
    CHECK(read_back(c) != before);
    CHECK(not_finite(c) == (std::isfinite(bad) ? 0u : 1u));
  }
}

TEST_CASE("sdc: the product is the integer product, whatever the order", "[sdc]") {
  Inputs inputs = make_inputs(40, 11);
  const Product product = multiply(inputs);
  CHECK(product.epilogue == golden(40, 11));
  CHECK(product.epilogue != golden(40, 12));
  Digest backwards;
  for (size_t i = product.c.size(); i-- > 0;) {
    uint32_t bits;
    std::memcpy(&bits, &product.c[i], 4);
    backwards.add(i, bits);
  }
  CHECK(backwards == product.epilogue);
  Digest swapped;  // two elements that changed places
  swapped.add(0, 1), swapped.add(1, 2);
  Digest right;
  right.add(0, 2), right.add(1, 1);
  CHECK(swapped != right);
}

TEST_CASE("sdc: the kernel says what it saw", "[sdc]") {
  const auto cores = static_cast<double>(usable_cpus().size());
  const Measurement clean = run_sdc({.seconds = 0, .n = 16});
  CHECK(clean.outcome == muster::kernels::Outcome::measured);
  CHECK(clean.metrics.at("products").value == cores);  // each core makes its own
  CHECK(clean.detail["cores"] == usable_cpus().size());
  const Measurement bad = run_sdc({.seconds = 0, .n = 16, .threads = 3, .flip = Flip{4, 7, 30}});
  CHECK(bad.outcome == muster::kernels::Outcome::corrupt);
  CHECK(bad.error.find("read-back digest") != std::string::npos);
  CHECK(bad.faulty_parts ==
        std::vector<std::string>{fmt::format("cpu {}", usable_cpus().front())});  // not the other two
  CHECK(bad.metrics.at("products").value == 3);
}
