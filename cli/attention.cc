#include "cli/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/command_line.h"
#include "base/json_at.h"
#include "base/split.h"
#include "cli/cli_context.h"
#include "cli/shown_nodes.h"
#include "controller/nodes/states.h"

namespace muster::cli {
namespace {

struct Concern {
  std::string word;
  int exit;
  bool needs_operator;
};

// The most serious first. A node that is not in service, but that nothing is wrong with, needs no operator.
std::vector<Concern> concerns_of_status() {
  std::vector<Concern> out = {{"problem", kFailed, true},      {"rollout", kPartial, true},
                              {"quarantined", kPartial, true}, {"returned", kPartial, true},
                              {"silent", kPartial, true},      {"by-hand", kPartial, true}};
  const auto listed = [&out](const std::string& word) {
    return std::any_of(out.begin(), out.end(), [&](const Concern& one) { return one.word == word; });
  };
  for (const std::string& word : node_words())
    if (word != "accepted" && word != "degraded" && !listed(word)) out.push_back({word, kPartial, false});
  out.push_back({"degraded", kDegraded, true});
  return out;
}

std::vector<Concern> concerns(Shown what) {
  switch (what) {
    case Shown::status:
      return concerns_of_status();
    case Shown::runs:
      return {{"failed", kFailed, true}, {"cancelled", kFailed, true}, {"partial", kPartial, true}};
    case Shown::rollout:
      return {{"stopped", kRefused, true},
              {"paused", kRefused, true},
              {"partial", kPartial, true},
              {"nothing", kPartial, true}};
  }
  return {};
}

}  // namespace

void add_fail_on(Verb& verb, Shown what, FailOn& flags) {
  std::string needs, others;
  for (const Concern& one : concerns(what)) {
    std::string& list = one.needs_operator ? needs : others;
    list += (list.empty() ? "" : ",") + one.word;
  }
  verb.add_flag("--exit-code", &flags.exit_code,
                "end with an exit code other than 0 if an operator is needed");
  verb.add_option("--fail-on", &flags.states,
                  fmt::format("the same for these states; default: {}{}", needs,
                              others.empty() ? "" : ". Others: " + others));
}

Result<std::set<std::string>> fail_words(Shown what, const FailOn& flags) {
  std::set<std::string> all, out;
  for (const Concern& one : concerns(what)) {
    all.insert(one.word);
    if (flags.exit_code && flags.states.empty() && one.needs_operator) out.insert(one.word);
  }
  for (const std::string& word : split(flags.states, ',')) {
    if (!all.count(word))
      return fail(Code::invalid, fmt::format("--fail-on: '{}' is none of {}", word, fmt::join(all, ", ")));
    out.insert(word);
  }
  return out;
}

std::set<std::string> words_of_status(const Json& status) {
  std::set<std::string> out;
  const Json problems = status.value("problems", Json::object());
  for (const auto& [topic, text] : problems.items()) out.insert(topic == "rollout" ? topic : "problem");
  for (const Json& node : list_at(status, "nodes"))
    for (const std::string& word : words_of_node(node)) out.insert(word);
  return out;
}

std::set<std::string> words_of_runs(const Json& runs) {
  const Json& list = list_at(runs, "runs");
  if (list.empty()) return {};
  return {text_at(list[0], "state")};
}

std::set<std::string> words_of_rollout(const Json& rollout) {
  const std::string state = text_at(rollout, "state");
  const Json last = rollout.value("last_window", Json());
  // With the approval of other images, what came of the last ones is over.
  const int64_t approved = integer_at(rollout.value("approval", Json()), "time");
  if (state == "approved" && integer_at(last, "ended") <= approved) return {};
  return {state, text_at(last, "outcome")};
}

int exit_for_words(Shown what, const std::set<std::string>& words, const std::set<std::string>& fails_on) {
  for (const Concern& one : concerns(what))
    if (words.count(one.word) && fails_on.count(one.word)) return one.exit;
  return kAccepted;
}

int exit_for_outcome(const std::string& outcome) {
  if (outcome == "done" || outcome == "progress") return kAccepted;
  const int known = exit_for_words(Shown::rollout, {outcome}, {outcome});
  return known == kAccepted ? kRefused : known;  // of a later version
}

}  // namespace muster::cli
