// docs/stops.md has every rule by which the planner refuses or leaves out a node, and no other: an operator
// looks up a refusal there.
#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/source_dir.h"
#include "tests/tidy_source.h"

namespace {

using namespace muster::tidy;
using muster::text_of;

using Rules = std::set<std::string>;

Rules found(const std::regex& pattern, const std::string& text) {
  Rules out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    for (size_t group = 1; group < it->size(); ++group)
      if ((*it)[group].matched) out.insert((*it)[group]);
  return out;
}

// The rule is the second argument of `refuse`, the first where the node is known, or one of two literals.
const std::regex& calls() {
  static const std::regex pattern(R"re(refuse\(\s*(?:[^",()]*,\s*)?(?:[^",?()]*\?\s*)?)re"
                                  R"re("([a-z]+(?:-[a-z]+)*)"(?:\s*:\s*"([a-z-]+)")?\s*,)re");
  return pattern;
}
// Other ways into a plan's refusals and the nodes that it leaves out.
const std::regex& entries() {
  static const std::regex pattern(
      R"re(left_out_rules\[\w+\]\s*=\s*"([a-z-]+)"|\{[\w.*>-]+,\s*"([a-z]+(?:-[a-z]+)+)",)re");
  return pattern;
}

// Calls that are not declarations: each must show its rule to the pattern above.
size_t number_of_calls(const std::string& text) {
  static const std::regex pattern(R"(refuse\((?!const))");
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()));
}
size_t number_of_rules(const std::string& text) {
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), calls()), std::sregex_iterator()));
}

Rules rules_of_page(const std::string& page) {
  const size_t begin = page.find("\n## Rules\n");
  if (begin == std::string::npos) return {};
  static const std::regex row(R"(\n\| `([a-z-]+)` \|)");
  return found(row, page.substr(begin, page.find("\n## ", begin + 1) - begin));
}

}  // namespace

TEST_CASE("documents: every rule of a plan has a row on the page of what stops it", "[tidy]") {
  Rules rules;
  for (const auto& source : tree()) {
    if (!source.path.starts_with("controller/plan/") || !is_cpp(source.path)) continue;
    CAPTURE(source.path);
    const std::string text = without_comments(source.text);
    CHECK(number_of_rules(text) == number_of_calls(text));
    rules.merge(found(calls(), text));
    rules.merge(found(entries(), text));
  }
  CHECK(rules.size() > 20);
  CHECK(rules == rules_of_page(text_of(std::string(muster::source_dir()) + "/docs/stops.md")));
}

TEST_CASE("documents: rules are found in each form in which the planner has them", "[tidy]") {
  CHECK(found(calls(), R"(p.refuse(d.spec->name, "disk-os", "none");)") == Rules{"disk-os"});
  CHECK(found(calls(), "return refuse(\n    \"array-mixed\",\n    what);") == Rules{"array-mixed"});
  CHECK(found(calls(), R"(p.refuse(name, out ? "not-accepted" : "not-drained", why);)") ==
        Rules{"not-accepted", "not-drained"});
  CHECK(
      found(
          entries(),
          R"(p.plan.left_out_rules[name] = "on-trial"; out.push_back({*here.node, "disk-shared", "x"});)") ==
      Rules{"on-trial", "disk-shared"});
  CHECK(number_of_calls(R"(void refuse(const std::string& rule); refuse(rule, "x");)") == 1);
  CHECK(number_of_rules(R"(void refuse(const std::string& rule); refuse(rule, "x");)") == 0);
  CHECK(rules_of_page("# P\n\n## Rules\n| rule | meaning |\n|---|---|\n| `a-b` | c |\n| `d` | e |\n\n## "
                      "Next\n| `f` | g |\n") == Rules{"a-b", "d"});
}
