// The alert rules of playbook `monitoring`: each has a test of promtool that fires and one that does not
// (tests/alerts), and those of the controller are about series, and values of labels, that it has.
#include <regex>

#include "base/split.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/source_dir.h"
#include "tests/unit/metrics/series.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

// Name -> expression.
std::map<std::string, std::string> rules() {
  const std::string playbook = text_of(source_dir() + "/playbooks/monitoring.yaml");
  static const std::regex rule(R"(\{ alert: (\w+), expr: '([^']*)')");
  std::map<std::string, std::string> out;
  for (std::sregex_iterator it(playbook.begin(), playbook.end(), rule), end; it != end; ++it)
    CHECK(out.emplace((*it)[1], (*it)[2]).second);
  return out;
}

std::set<std::string> found(const std::regex& pattern, const std::string& text) {
  std::set<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) out.insert((*it)[1]);
  return out;
}

}  // namespace

TEST_CASE("alert rules: each has a test in which it fires and one in which it stays silent",
          "[metrics][playbooks]") {
  std::set<std::string> names;
  for (const auto& [name, expression] : rules()) names.insert(name);
  CHECK(names.size() >= 25);
  const std::string tests = text_of(source_dir() + "/tests/alerts/rules_test.yml");
  CHECK(found(std::regex(R"(alertname: (\w+), exp_alerts: \[ \{)"), tests) == names);
  CHECK(found(std::regex(R"(alertname: (\w+), exp_alerts: \[\])"), tests) == names);
}

TEST_CASE("alert rules: a kind of cause is a page where its notices are urgent", "[metrics][playbooks]") {
  static const std::regex urgent("\"severity\", \"page\", \"kind\", \"([a-z_|]+)\"");
  const auto pages = found(urgent, rules().at("MusterCause"));
  REQUIRE(pages.size() == 1);
  const auto kinds = split(*pages.begin(), '|');
  CHECK(std::set<std::string>(kinds.begin(), kinds.end()) == parse_spec(testing::kSpec).spec.notify.urgent);
}

TEST_CASE("alert rules: those of the controller are about series that it has", "[metrics][playbooks]") {
  static const std::regex series(R"(\b((?:muster|process)_\w+))");
  static const std::regex label(R"re((\w+)(?:=|=~|!=|!~)"([^"]*)")re");
  const std::string text = exposition_of(testing::full_metrics());
  const auto types = testing::Series(text).types;
  size_t about = 0;
  for (const auto& [name, expression] : rules()) {
    CAPTURE(name, expression);
    const auto named = found(series, expression);
    for (const std::string& one : named) CHECK(types.count(one) == 1);
    if (named.empty()) continue;
    ++about;
    for (std::sregex_iterator it(expression.begin(), expression.end(), label), end; it != end; ++it) {
      if ((*it)[1] == "job") continue;  // Prometheus' own
      std::string words = (*it)[2].str() + "|";
      for (size_t at = 0; at < words.size(); at = words.find('|', at) + 1) {
        const std::string word = words.substr(at, words.find('|', at) - at);
        CAPTURE(word);
        CHECK(text.find((*it)[1].str() + "=\"" + word + "\"") != std::string::npos);
      }
    }
  }
  CHECK(about >= 16);
}
