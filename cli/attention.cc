#include "cli/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/command_line.h"
#include "base/json_at.h"
#include "base/split.h"
#include "cli/cli_context.h"
#include "cli/shown_nodes.h"
#include "controller/causes/cause.h"

namespace muster::cli {
namespace {

struct Concern {
  std::string word;
  int exit;
};

// The most serious first.
std::vector<Concern> concerns_of_status() {
  std::vector<Concern> out = {{"problem", kFailed}, {"rollout", kPartial}};
  for (const std::string& word : node_words())
    if (word != "accepted" && word != "degraded") out.push_back({word, kPartial});
  out.push_back({"degraded", kDegraded});
  return out;
}

std::vector<Concern> concerns(Shown what) {
  switch (what) {
    case Shown::status:
      return concerns_of_status();
    case Shown::runs:
      return {{"failed", kFailed}, {"cancelled", kFailed}, {"partial", kPartial}};
    case Shown::rollout:
      return {{"stopped", kRefused}, {"paused", kRefused}, {"partial", kPartial}, {"nothing", kPartial}};
  }
  return {};
}

int exit_for_kind(CauseKind kind) {
  switch (kind) {
    case CauseKind::controller:
    case CauseKind::image_build:
    case CauseKind::receiver:
      return kFailed;
    case CauseKind::node_failed:
    case CauseKind::node_silent:
    case CauseKind::node_waits:
    case CauseKind::rollout_stopped:
    case CauseKind::window_bad:
      return kPartial;
    case CauseKind::node_degraded:
      return kDegraded;
  }
  return kPartial;
}

// The most serious cause's, which is the lowest code. A kind of a later version counts as nodes do.
int exit_for_causes(const Json& status) {
  int out = kAccepted;
  for (const Json& cause : list_at(status, "causes")) {
    const auto kind = value_of(kCauseKinds, text_at(cause, "kind"));
    const int code = kind ? exit_for_kind(*kind) : kPartial;
    out = out == kAccepted ? code : std::min(out, code);
  }
  return out;
}

// States of the nodes, what is shown beside them, and "problem" where the controller has one, "rollout" where
// the rollout has.
std::set<std::string> words_of_status(const Json& status) {
  std::set<std::string> out;
  const Json problems = status.value("problems", Json::object());
  for (const auto& [topic, text] : problems.items()) out.insert(topic == "rollout" ? topic : "problem");
  for (const Json& node : list_at(status, "nodes"))
    for (const std::string& word : words_of_node(node)) out.insert(word);
  return out;
}

}  // namespace

void add_fail_on(Verb& verb, Shown what, FailOn& flags) {
  std::string words;
  for (const Concern& one : concerns(what)) words += (words.empty() ? "" : ", ") + one.word;
  verb.add_flag("--exit-code", &flags.exit_code,
                "end with an exit code other than 0 if an operator is needed");
  verb.add_option("--fail-on", &flags.states,
                  what == Shown::status ? "the same for these states, in place of the causes: " + words
                                        : "the same for these states; default: " + words);
}

Result<std::set<std::string>> fail_words(Shown what, const FailOn& flags) {
  std::set<std::string> all, out;
  for (const Concern& one : concerns(what)) all.insert(one.word);
  if (flags.exit_code && flags.states.empty() && what != Shown::status) return all;
  for (const std::string& word : split(flags.states, ',')) {
    if (!all.count(word))
      return fail(Code::invalid, fmt::format("--fail-on: '{}' is none of {}", word, fmt::join(all, ", ")));
    out.insert(word);
  }
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
  std::set<std::string> out = {state};
  // A window that ended stopped or paused says nothing of now: an operator may have resumed the rollout.
  const std::string outcome = text_at(last, "outcome");
  if (outcome == "partial" || outcome == "nothing") out.insert(outcome);
  return out;
}

int exit_for_words(Shown what, const std::set<std::string>& words, const std::set<std::string>& fails_on) {
  for (const Concern& one : concerns(what))
    if (words.count(one.word) && fails_on.count(one.word)) return one.exit;
  return kAccepted;
}

int exit_for_status(const Json& status, const FailOn& flags, const std::set<std::string>& fails_on) {
  if (flags.exit_code && flags.states.empty()) return exit_for_causes(status);
  return exit_for_words(Shown::status, words_of_status(status), fails_on);
}

int exit_for_outcome(const std::string& outcome) {
  if (outcome == "done" || outcome == "progress") return kAccepted;
  const int known = exit_for_words(Shown::rollout, {outcome}, {outcome});
  return known == kAccepted ? kRefused : known;  // of a later version
}

}  // namespace muster::cli
