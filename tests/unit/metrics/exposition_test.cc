#include "controller/metrics/exposition.h"

#include "tests/catch.h"

using namespace muster;

namespace {

constexpr auto kGauge = Exposition::Type::gauge;

std::string with_label(std::string_view value) {
  Exposition out;
  out.family("a", kGauge, "h").sample({{"l", value}}, 1);
  return out.take();
}
std::string labelled(const std::string& written) {
  return "# HELP a h\n# TYPE a gauge\na{l=\"" + written + "\"} 1\n";
}

}  // namespace

TEST_CASE("metrics: HELP and TYPE come once, before a family's samples", "[metrics]") {
  Exposition out;
  out.family("a_total", Exposition::Type::counter, "Of all.").sample({}, 7);
  out.family("b", kGauge, "Some.").sample({{"x", "1"}, {"y", "2"}}, -3).sample({{"x", "2"}, {"y", "2"}}, 0);
  CHECK(out.take() ==
        "# HELP a_total Of all.\n# TYPE a_total counter\na_total 7\n"
        "# HELP b Some.\n# TYPE b gauge\nb{x=\"1\",y=\"2\"} -3\nb{x=\"2\",y=\"2\"} 0\n");
}

TEST_CASE("metrics: a family without a sample leaves nothing", "[metrics]") {
  Exposition out;
  out.family("a", kGauge, "Nothing.");
  out.family("b", kGauge, "One.").sample({}, 1);
  CHECK(out.take() == "# HELP b One.\n# TYPE b gauge\nb 1\n");
}

TEST_CASE("metrics: no value of a label leaves its quotation marks", "[metrics]") {
  CHECK(with_label("n1\"} 1\nforged{x=\"") == labelled("n1\\\"} 1\\nforged{x=\\\""));
  CHECK(with_label("a\\") == labelled("a\\\\"));
  CHECK(with_label("a\\n") == labelled("a\\\\n"));
  CHECK(with_label("") == labelled(""));
  CHECK(with_label("B\xc3\xbcro") == labelled("B\xc3\xbcro"));
}

TEST_CASE("metrics: what is not UTF-8 is replaced, since it would cost the whole scrape", "[metrics]") {
  for (const char* bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}) {
    const std::string text = with_label(std::string("a") + bad + "z");
    CHECK(text.find(bad) == std::string::npos);
    CHECK(text.find("a\xef\xbf\xbd") != std::string::npos);
    CHECK(text.ends_with("z\"} 1\n"));
  }
}

TEST_CASE("metrics: help texts keep to their line", "[metrics]") {
  Exposition out;
  out.family("a", kGauge, "one\ntwo \\ \"three\"").sample({}, 1);
  CHECK(out.take() == "# HELP a one\\ntwo \\\\ \"three\"\n# TYPE a gauge\na 1\n");
}

TEST_CASE("metrics: times are in seconds, to the millisecond", "[metrics]") {
  const auto written = [](int64_t ms) {
    Exposition out;
    out.family("a", kGauge, "h").seconds({}, ms);
    const std::string text = out.take();
    return text.substr(text.rfind(' ') + 1);
  };
  CHECK(written(0) == "0\n");
  CHECK(written(1'764'489'371'000) == "1764489371\n");
  CHECK(written(1'005) == "1.005\n");
  CHECK(written(999) == "0.999\n");
  CHECK(written(-999) == "-0.999\n");
  CHECK(written(-2'500) == "-2.500\n");
}
