#include "agent/checks/slow_links.h"

#include "tests/catch.h"

using namespace muster;
using namespace muster::checks;

namespace {

Json measured(double send, double receive, const std::string& outcome = "measured") {
  return {{"check", "link"},
          {"outcome", outcome},
          {"metrics", {{"send_mbps", {{"value", send}}}, {"receive_mbps", {{"value", receive}}}}},
          {"detail", Json::object()}};
}

Json parts_of(const std::vector<Json>& results) {
  Json out = Json::array();
  for (const Json& result : results) out.push_back({{"subject", "n"}, {"result", result}});
  return out;
}

using Places = std::vector<size_t>;

}  // namespace

TEST_CASE("links that are slow beside this node's others are measured once more, the slowest first") {
  const Json fast = measured(100, 90);
  CHECK(slow_links(parts_of({fast, fast, fast})).empty());
  CHECK(slow_links(parts_of({fast, measured(79, 90), fast, measured(100, 40), fast})) == Places{3, 1});
  CHECK(slow_links(parts_of({fast, measured(81, 90), fast})).empty());
  // All alike slow: that is this node's own link.
  CHECK(slow_links(parts_of({measured(10, 9), measured(10, 9), measured(10, 9)})).empty());
  // At most four.
  std::vector<Json> many(11, fast);
  for (size_t i = 0; i < 5; ++i) many.push_back(measured(10 + static_cast<double>(i), 90));
  CHECK(slow_links(parts_of(many)) == Places{11, 12, 13, 14});
}

TEST_CASE("what was not measured is not slow, and with two there is no median") {
  const Json fast = measured(100, 90), none = {{"check", "link"}, {"outcome", "unavailable"}};
  CHECK(slow_links(parts_of({fast, measured(10, 9), none})).empty());
  CHECK(slow_links(parts_of({fast, fast, measured(10, 9, "corrupt"), none})).empty());
  CHECK(slow_links(parts_of({fast, fast, measured(10, 9), none})) == Places{2});
  CHECK(slow_links(Json::array()).empty());
}

TEST_CASE("a repetition waits for its turn longer each time, within limits") {
  CHECK(turn_seconds(0, 4) == 8);
  CHECK(turn_seconds(1, 4) == 8);
  CHECK(turn_seconds(2, 4) == 16);
  CHECK(turn_seconds(2, 1e300) == 240);
  CHECK(turn_seconds(1, -1) == 0);
}

TEST_CASE("the first of three measurements of a link is kept") {
  const Json third = better_link(better_link(measured(50, 90), measured(60, 80)), measured(95, 85));
  CHECK(third["metrics"]["send_mbps"]["value"] == 95);
  CHECK(third["metrics"]["receive_mbps"]["value"] == 90);
  CHECK(third["detail"]["first_try"] == Json{{"send_mbps", 50.0}, {"receive_mbps", 90.0}});
}

TEST_CASE("of two measurements of a link each direction's better one counts, and the first is kept") {
  const Json both = better_link(measured(50, 90), measured(95, 80));
  CHECK(both["metrics"]["send_mbps"]["value"] == 95);
  CHECK(both["metrics"]["receive_mbps"]["value"] == 90);
  CHECK(both["detail"]["first_try"] == Json{{"send_mbps", 50.0}, {"receive_mbps", 90.0}});
  CHECK(better_link(measured(50, 90), measured(1, 1, "corrupt"))["outcome"] == "corrupt");
  CHECK(better_link(measured(1, 1, "corrupt"), measured(50, 90))["outcome"] == "corrupt");
  CHECK(better_link(measured(50, 90), {{"outcome", "unavailable"}}) == measured(50, 90));
}
