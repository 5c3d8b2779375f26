// The scaling study: read from a check's evidence without trusting it, fitted, described and drawn.
#include "controller/report/study.h"

#include <fmt/format.h>

#include "tests/catch.h"

using namespace muster;

namespace {

Json point(const char* kind, double nodes, double seconds, double efficiency) {
  return {{"kind", kind}, {"nodes", nodes}, {"seconds", seconds}, {"efficiency", efficiency}};
}
Report report_with(Json scaling) {
  Report out;
  out.nodes.resize(1);
  out.nodes[0].name = "node01";
  Check check;
  check.name = "training load/data";
  check.title = "training load";
  check.evidence = {{"detail", {{"scaling", std::move(scaling)}}}};
  out.nodes[0].checks = {check};
  return out;
}
// T(n) = 8/n + 0.5 (n-1)/n and 1 + 0.1 log2 n.
Json made_up() {
  Json out = Json::array();
  for (const int n : {1, 2, 4, 8})
    out.push_back(point("strong", n, 8.0 / n + 0.5 * (n - 1) / n, 8 / (8 + 0.5 * (n - 1))));
  for (const auto& [n, t] : {std::pair{1, 1.0}, {2, 1.1}, {4, 1.2}, {8, 1.3}})
    out.push_back(point("weak", n, t, 1 / t));
  out.push_back(point("tensor", 4, 2, 0.5));
  return out;
}

}  // namespace

TEST_CASE("a training load's points become curves, with the model that made them", "[study]") {
  const auto studies = scaling_studies(report_with(made_up()));
  REQUIRE(studies.size() == 1);
  CHECK(studies[0].node == "node01");
  REQUIRE(studies[0].curves.size() == 3);
  const auto& strong = studies[0].curves[0];
  REQUIRE(strong.fitted);
  CHECK(strong.fit.compute == Approx(8));
  CHECK(strong.fit.transfer == Approx(0.5));
  CHECK(describe(strong).find("strong: 8 nodes do 5.57 times one node's work, an efficiency of 70 %; not "
                              "worthwhile beyond 16 nodes") == 0);
  CHECK(describe(studies[0].curves[1]).find("worthwhile up to at least 128 nodes") != std::string::npos);
  CHECK_FALSE(studies[0].curves[2].fitted);
  CHECK(describe(studies[0].curves[2]) ==
        "tensor: 4 nodes do 2.00 times one node's work, an efficiency of 50 %");
}

TEST_CASE("two numbers of nodes make a curve without a model; nonsense makes none", "[study]") {
  const auto two = scaling_studies(report_with({point("weak", 1, 1, 1), point("weak", 2, 1.25, 0.8)}));
  REQUIRE(two.size() == 1);
  CHECK_FALSE(two[0].curves[0].fitted);
  CHECK_FALSE(two[0].curves[0].note.empty());
  CHECK(describe(two[0].curves[0]) ==
        "weak: 2 nodes do 1.60 times one node's work, an efficiency of 80 %; no model: a fit needs times for "
        "one node and for two other node counts");

  for (const Json& bad :
       {Json("text"), Json::array(), Json::array({1, nullptr, "x"}), Json::array({point("magic", 1, 1, 1)}),
        Json::array({point("weak", 0, 1, 1), point("weak", 1, -1, 1), point("weak", 1e12, 1, 1),
                     point("weak", 1, 1, -0.1)}),
        Json::array({point("weak", 0.5, 1, 1), point("weak", 3.7, 1, 1), point("weak", 1, 1e-200, 1),
                     point("weak", 1, 1e300, 1), point("weak", 1, 1, 1e300)}),
        Json::array({Json{{"kind", "weak"}, {"nodes", "2"}, {"seconds", 1}, {"efficiency", 1}}})})
    CHECK(scaling_studies(report_with(bad)).empty());
}

TEST_CASE("the study is drawn and written, and a report without one says nothing of it", "[study]") {
  Report report = report_with(made_up());
  const std::string page = render_html(report), text = render_text(report);
  CHECK(page.find("<h2>Scaling</h2>") != std::string::npos);
  size_t circles = 0;
  for (size_t at = page.find("<circle"); at != std::string::npos; at = page.find("<circle", at + 1))
    ++circles;
  CHECK(circles == 9);
  CHECK(page.find("nan") == std::string::npos);
  CHECK(text.find("scaling, strong: 8 nodes do 5.57 times one node's work") != std::string::npos);
  CHECK(text.find("scaling, tensor") == std::string::npos);  // one point: only when asked for everything
  CHECK(render_text(report, true).find("scaling, tensor") != std::string::npos);
  report.nodes[0].checks.clear();
  CHECK(render_html(report).find("<h2>Scaling</h2>") == std::string::npos);
  CHECK(render_text(report).find("scaling") == std::string::npos);
}

TEST_CASE("energy per step is shown where it was read, with what it covers, and nowhere else", "[study]") {
  Json points = made_up();
  CHECK(render_html(report_with(points)).find("GFLOP/J") == std::string::npos);
  CHECK(render_text(report_with(points)).find("GFLOP/J") == std::string::npos);
  const auto give = [](Json& point, Json joules, Json rate, Json covers) {
    point["joules"] = joules, point["gflop_per_joule"] = rate, point["energy"] = covers;
  };
  give(points[0], 50, 2, "processor packages");
  give(points[3], 61.25, 1.633, "processor packages");
  give(points[7], 90, 1.1, "whole machine by its power meter <b>");
  for (const auto& [i, joules, rate, covers] : {std::tuple{1, Json(-1), Json(2), Json("x")},
                                                {2, Json(5), Json("2"), Json("x")},
                                                {4, Json(5), Json(1e300), Json("x")},
                                                {5, Json(5), Json(2), Json(7)},
                                                {6, Json(5), Json(2), Json(std::string(500, 'x'))}})
    give(points[static_cast<size_t>(i)], joules, rate, covers);
  const auto studies = scaling_studies(report_with(points));
  REQUIRE(studies.size() == 1);
  const auto& strong = studies[0].curves[0];
  REQUIRE(strong.energy.size() == 4);
  CHECK(strong.energy[0].joules == Approx(50));
  CHECK(strong.energy[1].covers.empty());
  CHECK(describe(strong).find(
            "an efficiency of 70 %, 61.2 J a step, 1.63 GFLOP/J (processor packages); not worthwhile") !=
        std::string::npos);
  CHECK(energy_covers(studies[0]) == "processor packages; whole machine by its power meter <b>");
  const std::string page = render_html(report_with(points));
  CHECK(page.find("<td class=\"num\">50 J</td><td class=\"num\">2 GFLOP/J</td><td>processor packages</td>") !=
        std::string::npos);
  CHECK(page.find("<td class=\"num\"></td><td class=\"num\"></td><td></td>") != std::string::npos);
  CHECK(page.find("meter <b>") == std::string::npos);
  CHECK(render_text(report_with(points)).find("1.1 GFLOP/J (whole machine") != std::string::npos);
}
