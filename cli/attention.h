// What of a status, the runs or a rollout needs an operator, and the exit code for it (docs/operations.md):
// `status`, `runs` and `rollout status` take both from here. Of a status these are its causes, which the
// controller decides. Input is the JSON of the API. Pure functions.
#pragma once

#include <set>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace muster {
class Verb;
}

namespace muster::cli {

enum class Shown { status, runs, rollout };

// Options of a verb.
struct FailOn {
  bool exit_code = false;
  std::string states;  // comma-separated; empty: those that need an operator
};
void add_fail_on(Verb& verb, Shown what, FailOn& flags);

// The words that end the verb with their exit code; empty: none does. Of a status: those of `states` only.
// invalid: a word that `what` does not have.
Result<std::set<std::string>> fail_words(Shown what, const FailOn& flags);

// The words that apply to GET /v1/runs: the state of the newest run.
std::set<std::string> words_of_runs(const Json& runs);
// To GET /v1/rollout: its state, and what came of its last window, unless that is a state.
std::set<std::string> words_of_rollout(const Json& rollout);

// Of the words that apply and that `fails_on` has, the exit code of the most serious; 0: none.
int exit_for_words(Shown what, const std::set<std::string>& words, const std::set<std::string>& fails_on);
// Of GET /v1/status: with --exit-code alone, that of its most serious cause; else that of its states, and of
// "problem" and "rollout", where the controller or the rollout has one. `fails_on`: fail_words().
int exit_for_status(const Json& status, const FailOn& flags, const std::set<std::string>& fails_on);
// Of one outcome of a rollout's window.
int exit_for_outcome(const std::string& outcome);

}  // namespace muster::cli
