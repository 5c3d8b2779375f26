#include "controller/report/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/locate/search.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/measured.h"

namespace muster {
namespace {

struct PairTest {
  std::string a, b;
  int round = 0;
  bool passed = false, corrupt = false;
  std::string why = {};
};

// Returns the first reason why a test of these nodes did not pass; "" if it passed.
std::string shortcoming(const MeasuredStep& step, const FactsByNode& facts) {
  Comparison with;
  with.facts = facts;
  const auto judged = judge_measurements({step}, with);
  for (const auto& [node, checks] : judged)
    for (const auto& check : checks)
      if (is_finding(check.verdict)) return check.reason.empty() ? check.name : check.reason;
  return "";
}

// The names come from a node's report and are not trusted: a pair that names a non-member is ignored.
std::vector<PairTest> tests_of(const MeasuredStep& step, const FactsByNode& facts) {
  const std::set<std::string> members(step.members.begin(), step.members.end());
  std::vector<PairTest> out;
  int round = 0;
  for (const Json& parts : step.rounds.is_array() ? step.rounds : Json::array()) {
    for (const Json& part : parts.is_array() ? parts : Json::array()) {
      const Json& pair = field(part, "pair");
      if (!pair.is_array() || pair.size() != 2) continue;
      PairTest test{text_of(pair[0]), text_of(pair[1]), round};
      if (test.a == test.b || !members.count(test.a) || !members.count(test.b)) continue;
      MeasuredStep both = step;
      both.members = {test.a, test.b};
      both.rounds = nullptr;
      both.status = "measured";
      both.message.clear();
      both.result = field(part, "result");
      test.why = shortcoming(both, facts);
      test.passed = test.why.empty();
      test.corrupt = text_of(field(both.result, "outcome")) == "corrupt";
      out.push_back(std::move(test));
    }
    ++round;
  }
  return out;
}

locate::Progress search(const MeasuredStep& step, const std::vector<PairTest>& tests) {
  const auto end = [&](const std::string& name) {
    return static_cast<int>(std::find(step.members.begin(), step.members.end(), name) - step.members.begin());
  };
  std::vector<locate::Tested> tested;
  for (const auto& t : tests) tested.push_back({end(t.a), end(t.b), t.round, t.passed ? 1.0 : 0.0});
  locate::SearchOptions options;
  options.ends = static_cast<int>(step.members.size());
  options.floor = 0.5;  // 0 for failed, 1 for passed
  return options.ends < 2 ? locate::Progress{} : locate::proceed(options, tested);
}

// Returns the worst verdict of this step's checks, with its text. Mandatory if any of the checks is. If only
// wrong data is mandatory in this step, metrics that are missing because of wrong data are not mandatory.
struct Outcome {
  Verdict verdict = Verdict::pass;
  std::string reason = {}, title = {};
  bool mandatory = false, wrong_data = false;
};
Outcome outcome_of(const std::vector<Check>& checks, const MeasuredStep& step) {
  Outcome out;
  for (const auto& check : checks) {
    if (!check.name.starts_with(step.group + "/") || !is_finding(check.verdict)) continue;
    const bool fails = check.verdict == Verdict::fail || check.verdict == Verdict::skipped;
    if (out.verdict == Verdict::pass || (fails && out.verdict == Verdict::degraded)) {
      out.verdict = fails ? Verdict::fail : Verdict::degraded;
      out.reason = check.reason;
    }
    out.title = check.title;
    out.mandatory = out.mandatory || check.mandatory;
    out.wrong_data = out.wrong_data || !check.measured;
  }
  return out;
}

void take_off(std::vector<Check>& checks, const MeasuredStep& step, const std::string& why) {
  for (auto& check : checks) {
    if (!check.name.starts_with(step.group + "/") || !is_finding(check.verdict)) continue;
    if (check.verdict != Verdict::degraded) check.verdict = Verdict::degraded;
    check.mandatory = false;
    check.faulty_parts.clear();  // the node that received wrong data is not the one that corrupted it
    check.reason += (check.reason.empty() ? "" : "; ") + why;
  }
}

Check located(const MeasuredStep& step, const Outcome& outcome) {
  Check out;
  out.name = step.group + "/located";
  out.title = outcome.title;
  out.mandatory = outcome.mandatory;
  out.expected_text = "to pass in pairs";
  out.evidence = {{"members", step.members}, {"rounds", step.rounds}};
  return out;
}

Check faulty_check(const MeasuredStep& step, const Outcome& outcome, const std::string& name,
                   const std::vector<PairTest>& tests, const locate::LocatedFault& fault) {
  Check out = located(step, outcome);
  out.verdict = outcome.verdict;
  out.faulty_parts = {name};
  out.derivation = "failed with partners that passed when paired with other nodes";
  size_t failed = 0, all = 0;
  for (const auto& t : tests)
    if (t.a == name || t.b == name) ++all, failed += !t.passed;
  std::string with, why;
  for (const size_t i : fault.against) {
    const PairTest& t = tests[i];
    with += (with.empty() ? "" : ", ") + (t.a == name ? t.b : t.a);
    if (why.empty()) why = t.why;
  }
  out.measured_text = fmt::format("failed in {} of {} pairs", failed, all);
  out.reason =
      fmt::format("{} failed in {} of {} pairs with this node (partners {}, which pass with other nodes): {}",
                  step.group, failed, all, with, why);
  return out;
}

// For a test that isolated no node: returns which nodes may be faulty, and why the faulty one is unknown.
struct Open {
  std::set<std::string> nodes = {};
  std::string words = {};
};
Open open_of(const MeasuredStep& step, const std::vector<PairTest>& tests, const locate::Progress& progress) {
  Open out;
  std::string pairs;
  for (const auto* list : {&progress.undecided, &progress.paths})
    for (const auto& [a, b] : *list) {
      const auto& first = step.members[static_cast<size_t>(a)];
      const auto& second = step.members[static_cast<size_t>(b)];
      out.nodes.insert({first, second});
      pairs += fmt::format("{}{} with {}", pairs.empty() ? "" : ", ", first, second);
    }
  const auto passed = std::count_if(tests.begin(), tests.end(), [](const PairTest& t) { return t.passed; });
  if (tests.empty())
    out.words = "the test was not repeated in pairs";
  else if (passed == 0)
    out.words = fmt::format("no pair passes, and {} started every pair's test", step.node);
  else if (!pairs.empty())
    out.words = "these pairs fail, for an unknown reason: " + pairs;
  else
    out.words = fmt::format("all {} pairs pass", tests.size());
  if (out.nodes.empty() || passed == 0) out.nodes = {step.members.begin(), step.members.end()};
  return out;
}

// True if the load was not started, and each pair that failed has a node that others cannot reach.
bool is_cut_off(const MeasuredStep& step, const std::vector<PairTest>& tests,
                const std::set<std::string>& cut_off) {
  if (text_of(field(step.result, "outcome")) != "failed" || tests.empty()) return false;
  return std::all_of(tests.begin(), tests.end(), [&](const PairTest& t) {
    return t.passed || (!t.corrupt && (cut_off.count(t.a) || cut_off.count(t.b)));
  });
}

// True if the wrong data of the whole is due to these nodes: all others had right data in pairs, and each
// pair that failed contains one of them.
bool is_corrupted_by(const MeasuredStep& step, const std::vector<PairTest>& tests,
                     const std::set<std::string>& corrupting) {
  std::set<std::string> right;
  for (const auto& t : tests) {
    if (t.passed)
      right.insert({t.a, t.b});
    else if (!corrupting.count(t.a) && !corrupting.count(t.b))
      return false;
  }
  const auto is_corrupting = [&](const std::string& name) { return corrupting.count(name) > 0; };
  return text_of(field(step.result, "outcome")) == "corrupt" &&
         std::any_of(step.members.begin(), step.members.end(), is_corrupting) &&
         std::all_of(step.members.begin(), step.members.end(),
                     [&](const std::string& name) { return is_corrupting(name) || right.count(name); });
}

// A collective that did not pass, and what its pairs show.
struct Failed {
  const MeasuredStep* step = nullptr;
  Outcome outcome = {};
  std::vector<PairTest> tests = {};
  locate::Progress progress = {};
};

// Each node that the pairs isolated gets the check; those that damaged data are added to `corrupting`.
void name_faulty(std::map<std::string, std::vector<Check>>& checks, const Failed& failed,
                 std::set<std::string>& corrupting) {
  const MeasuredStep& step = *failed.step;
  std::string names;
  std::vector<std::pair<std::string, Check>> found;
  for (const auto& fault : failed.progress.faulty) {
    const std::string& name = step.members[static_cast<size_t>(fault.part)];
    found.emplace_back(name, faulty_check(step, failed.outcome, name, failed.tests, fault));
    names += (names.empty() ? "" : ", ") + name;
    if (std::any_of(fault.against.begin(), fault.against.end(),
                    [&](size_t i) { return failed.tests[i].corrupt; }))
      corrupting.insert(name);
  }
  take_off(checks[step.node], step, "located: " + names);
  for (auto& [name, check] : found)
    checks[name].push_back(std::move(check));  // after take_off(): it may be the same node
}

void explain_or_leave_open(std::map<std::string, std::vector<Check>>& checks, const Failed& failed,
                           const FaultyLinks& links, const std::set<std::string>& corrupting) {
  const MeasuredStep& step = *failed.step;
  if (!links.names.empty() && (!failed.outcome.wrong_data || is_cut_off(step, failed.tests, links.cut_off)))
    return take_off(checks[step.node], step, "explained by: " + links.names);
  if (is_corrupted_by(step, failed.tests, corrupting)) {
    std::string names;
    for (const auto& name : step.members)
      if (corrupting.count(name)) names += (names.empty() ? "" : ", ") + name;
    return take_off(checks[step.node], step, "explained by: wrong data through " + names);
  }
  const Open open = open_of(step, failed.tests, failed.progress);
  take_off(checks[step.node], step, "not located: " + open.words);
  for (const auto& name : open.nodes.empty() ? std::set<std::string>{step.node} : open.nodes) {
    Check check = located(step, failed.outcome);
    check.verdict = Verdict::degraded;
    check.derivation = "a test across several nodes does not show which node is at fault";
    check.reason = fmt::format("not located: {} across {} nodes: {}; {}", step.group, step.members.size(),
                               failed.outcome.reason, open.words);
    checks[name].push_back(std::move(check));
  }
}

}  // namespace

bool collective_passed(const MeasuredStep& step, const FactsByNode& facts) {
  return shortcoming(step, facts).empty();
}

bool could_not_run(const MeasuredStep& step) {
  return text_of(field(step.result, "outcome")) == "unavailable";
}

std::vector<std::pair<std::string, std::string>> next_pairs(const MeasuredStep& step,
                                                            const FactsByNode& facts) {
  std::vector<std::pair<std::string, std::string>> out;
  if (step.members.size() < 2 || could_not_run(step)) return out;
  const auto tests = tests_of(step, facts);
  // If the last round has no results, ends the search: otherwise the round would be requested again.
  const size_t rounds = step.rounds.is_array() ? step.rounds.size() : 0;
  if (rounds > 0 && (tests.empty() || static_cast<size_t>(tests.back().round) + 1 != rounds)) return out;
  for (const auto& [a, b] : search(step, tests).next)
    out.emplace_back(step.members[static_cast<size_t>(a)], step.members[static_cast<size_t>(b)]);
  return out;
}

void find_collective_faults(std::map<std::string, std::vector<Check>>& checks,
                            const std::vector<MeasuredStep>& steps, const FaultyLinks& links,
                            const FactsByNode& facts) {
  std::vector<Failed> open;
  std::set<std::string> corrupting = links.corrupting;
  for (const auto& step : steps) {
    if (ran_alone(step) || hold_unrun(checks, step, facts)) continue;
    // A test that did not start counts only for the node that had to start it; a program that is missing on
    // all nodes is no node's fault, and is reported as not run.
    if (!is_collective(step) || step.result.is_null() || could_not_run(step)) continue;
    Failed failed{&step, outcome_of(checks[step.node], step)};
    if (failed.outcome.verdict == Verdict::pass) continue;
    failed.tests = tests_of(step, facts);
    failed.progress = search(step, failed.tests);
    if (failed.progress.faulty.empty())
      open.push_back(std::move(failed));
    else
      name_faulty(checks, failed, corrupting);
  }
  for (const auto& failed : open) explain_or_leave_open(checks, failed, links, corrupting);
}

}  // namespace muster
