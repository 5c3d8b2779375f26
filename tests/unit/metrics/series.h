// The controller's metrics with every series, and their text taken apart as Prometheus does.
#pragma once

#include <map>
#include <regex>
#include <set>
#include <string>

#include "controller/metrics/controller_metrics.h"
#include "tests/catch.h"

namespace muster::testing {

// Series with their labels -> value, as written; types: family -> type. Fails the test where the text is not
// of the format.
struct Series {
  std::map<std::string, std::string> values, types;

  explicit Series(const std::string& text) {
    static const std::regex comment(R"(# (HELP|TYPE) ([a-z_]+) (.+))");
    static const std::regex sample(
        R"re(([a-z_]+)(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? (-?[0-9.]+))re");
    CHECK((text.empty() || text.back() == '\n'));
    std::string helped, family;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      CAPTURE(line);
      std::smatch found;
      if (std::regex_match(line, found, comment)) {
        if (found[1] == "HELP") {
          helped = found[2];
        } else {
          family = found[2];
          CHECK(family == helped);
          CHECK(types.emplace(family, found[3]).second);
        }
        continue;
      }
      REQUIRE(std::regex_match(line, found, sample));
      CHECK(found[1] == family);
      CHECK(values.emplace(found[1].str() + found[2].str(), found[6]).second);
    }
  }
  std::string of(const std::string& series) const {
    const auto found = values.find(series);
    return found == values.end() ? "absent" : found->second;
  }
  // How many there are of a family.
  size_t count(const std::string& family) const {
    size_t found = 0;
    for (const auto& [series, value] : values) found += series == family || series.starts_with(family + "{");
    return found;
  }
};

inline const rollout::Record& full_record() {
  static const rollout::Record record = [] {
    rollout::Record made;
    made.row = rollout::begun(1, "target");
    made.row->stage = rollout::Stage::batches;
    made.row->done = {{"n1", 7}, {"n2", 7}};
    made.row->failed["n3"] = {};
    made.row->held["sha256:x"] = {};
    made.left = {{"n4", "busy"}, {"n5", "busy"}, {"n6", "busy"}};
    made.window_until = 5'000;
    rollout::WindowResult last;
    last.outcome = rollout::WindowOutcome::nothing;
    last.ended = 4'000;
    last.idle_before = 1;
    made.last_window = last;
    return made;
  }();
  return record;
}

inline ControllerMetrics full_metrics() {
  ControllerMetrics made;
  made.version = "1.2.3";
  made.process = {1'000, 2'500, 4096, 10, 1024};
  made.nodes = {{NodeName("n1"), NodeState::accepted, 0, 9'000},
                {NodeName("n2"), NodeState::quarantined, 90'000, 0},
                {NodeName("n3"), NodeState::unknown, 0, 0}};
  made.undeclared = 2;
  made.run_active = false;
  made.last_run = RunRow{7, "sha256:plan", RunState::partial, 2'000, 3'000, "anna"};
  made.at_work = {{NodeName("n1"), ActionKind::image, 60'000, 30'000, false},
                  {NodeName("n2"), ActionKind::netboot, 5'000, std::nullopt, true}};
  made.rollout = &full_record();
  made.images = {{"gpu", 6'000, false}, {"head", 0, true}};
  made.certificates = {{"ca", 20'000}, {"server", 10'000}};
  made.problems = {{"dhcp", "dnsmasq ended"}};
  made.causes = {{CauseKind::node_silent, 2}, {CauseKind::node_degraded, 1}};
  made.notices = NoticeMetrics{3, 1, {{"mail", false}, {"chat", true}}};
  return made;
}

}  // namespace muster::testing
