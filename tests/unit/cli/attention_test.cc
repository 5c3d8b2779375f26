// Exit codes of what is shown: the same notion for a status, the runs and a rollout.
#include "cli/attention.h"

#include <map>

#include "cli/cli_context.h"
#include "cli/shown_nodes.h"
#include "controller/causes/cause.h"
#include "controller/nodes/states.h"
#include "controller/rollout/window_result.h"
#include "tests/catch.h"
#include "tests/fakes/api_answers.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::ApiAnswers;

namespace {

std::set<std::string> chosen(Shown what, const std::string& states) {
  const auto words = fail_words(what, {true, states});
  REQUIRE(words.ok());
  return *words;
}

// `states` empty: with --exit-code alone.
int of_status(const Json& status, const std::string& states = "") {
  return exit_for_status(status, {true, states}, chosen(Shown::status, states));
}
int of_nodes(const Json& nodes, const std::string& states) { return of_status({{"nodes", nodes}}, states); }
int of_causes(const std::vector<std::string>& kinds) {
  Json causes = Json::array();
  for (const std::string& kind : kinds) causes.push_back(Json{{"kind", kind}});
  return of_status({{"causes", causes}});
}

Json node(const std::string& state) { return {{"name", "n1"}, {"state", state}}; }

}  // namespace

TEST_CASE("without the option nothing that is shown is a failure", "[cli]") {
  CHECK(fail_words(Shown::status, {})->empty());
  const Json status = {{"nodes", Json::array({node("quarantined")})},
                       {"causes", Json::array({{{"kind", "node_failed"}}})}};
  CHECK(exit_for_status(status, {}, {}) == kAccepted);
}

TEST_CASE("each kind of cause has an exit code, and the most serious decides", "[cli]") {
  const std::map<CauseKind, int> codes = {
      {CauseKind::controller, kFailed},     {CauseKind::image_build, kFailed},
      {CauseKind::receiver, kFailed},       {CauseKind::rollout_stopped, kPartial},
      {CauseKind::window_bad, kPartial},    {CauseKind::node_failed, kPartial},
      {CauseKind::node_silent, kPartial},   {CauseKind::node_waits, kPartial},
      {CauseKind::node_degraded, kDegraded}};
  for (const auto& [kind, word] : kCauseKinds) {
    CAPTURE(word);
    REQUIRE(codes.count(kind) == 1);
    CHECK(of_causes({std::string(word)}) == codes.at(kind));
  }
  CHECK(of_causes({}) == kAccepted);
  CHECK(of_causes({"node_degraded", "node_silent"}) == kPartial);
  CHECK(of_causes({"node_silent", "controller", "node_degraded"}) == kFailed);
  CHECK(of_causes({"of a later version"}) == kPartial);
}

TEST_CASE("what has no cause needs no operator, whatever its state, until it is named", "[cli]") {
  Json drained = node("drained");
  drained["silent_since"] = 5;
  const Json held = {{"nodes", Json::array({node("quarantined"), drained})}, {"causes", Json::array()}};
  CHECK(of_status(held) == kAccepted);
  CHECK(of_status(held, "quarantined") == kPartial);
  CHECK(of_status(held, "silent") == kPartial);
  // An accepted node that is back in its previous system.
  const Json back = {{"nodes", Json::array({node("accepted")})},
                     {"causes", Json::array({{{"kind", "node_failed"}, {"nodes", {"n1"}}}})}};
  CHECK(of_status(back) == kPartial);
  CHECK(of_status(back, "quarantined") == kAccepted);
}

TEST_CASE("each state of a node is 3 or 5 where it is named", "[cli]") {
  for (const NodeState state : node_states()) {
    const std::string word(to_string(state));
    CAPTURE(word);
    if (word == "accepted")
      CHECK_FALSE(fail_words(Shown::status, {true, word}).ok());
    else
      CHECK(of_nodes(Json::array({node(word)}), word) == (word == "degraded" ? kDegraded : kPartial));
  }
}

TEST_CASE("of several states the most serious decides, and the controller's own problem before them",
          "[cli]") {
  Json silent = node("accepted"), by_hand = node("installing"), waiting = node("installing");
  silent["silent_since"] = 5;
  by_hand["by_hand"] = true;
  waiting["waiting"] = "a place";
  CHECK(of_nodes(Json::array({by_hand}), "by-hand") == kPartial);
  CHECK(of_nodes(Json::array({waiting}), "waiting") == kPartial);
  CHECK(of_nodes(Json::array({node("degraded"), silent}), "degraded,silent") == kPartial);
  CHECK(of_nodes(Json::array({silent}), "quarantined,degraded") == kAccepted);
  Json status = {{"nodes", Json::array({silent})}, {"problems", {{"rollout", "stopped"}}}};
  CHECK(of_status(status, "problem,rollout") == kPartial);
  status["problems"]["dhcp"] = "no interface";
  CHECK(of_status(status, "problem,rollout") == kFailed);
  CHECK(of_status(status, "rollout") == kPartial);
}

TEST_CASE("the newest run decides, and one that is active is none to fail on", "[cli]") {
  const std::map<RunState, int> codes = {{RunState::running, kAccepted},
                                         {RunState::done, kAccepted},
                                         {RunState::partial, kPartial},
                                         {RunState::failed, kFailed},
                                         {RunState::cancelled, kFailed}};
  for (const auto& [state, code] : codes) {
    const Json runs = {{"runs", {{{"state", to_string(state)}}, {{"state", "failed"}}}}};
    CAPTURE(to_string(state));
    CHECK(exit_for_words(Shown::runs, words_of_runs(runs), chosen(Shown::runs, "")) == code);
  }
  CHECK(words_of_runs({{"runs", Json::array()}}).empty());
}

TEST_CASE("what came of a rollout's last window is its exit code, until it is resumed or approved again",
          "[cli]") {
  for (const auto& [outcome, word] : rollout::kWindowOutcomes) {
    CAPTURE(word);
    Json shown = {{"state", "batches"}, {"last_window", {{"outcome", word}}}};
    const auto exit = [&] {
      return exit_for_words(Shown::rollout, words_of_rollout(shown), chosen(Shown::rollout, ""));
    };
    using rollout::WindowOutcome;
    const bool resumed = outcome == WindowOutcome::paused || outcome == WindowOutcome::stopped;
    const int expected = resumed ? int{kAccepted} : exit_for_outcome(std::string(word));
    CHECK(exit() == expected);
    shown["state"] = "stopped";
    CHECK(exit() == kRefused);
    shown["state"] = "approved";
    CHECK(exit() == kAccepted);
  }
  CHECK(exit_for_outcome("of a later version") == kRefused);
  CHECK(words_of_rollout({{"state", "none"}, {"last_window", nullptr}}).count("none") == 1);
}

TEST_CASE("a night that a void approval refused needs an operator, until another approval", "[cli]") {
  Json shown = {{"state", "approved"}, {"last_window", {{"outcome", "nothing"}, {"ended", 6}}}};
  shown["approval"]["time"] = 5;
  CHECK(words_of_rollout(shown).count("nothing") == 1);
  shown["approval"]["time"] = 7;
  CHECK(words_of_rollout(shown).empty());
}

TEST_CASE("a word that a verb does not have is bad usage, reported with those that it has", "[cli]") {
  for (const auto& [what, known] : std::map<Shown, std::string>{
           {Shown::status, "silent"}, {Shown::runs, "partial"}, {Shown::rollout, "stopped"}}) {
    const auto words = fail_words(what, {false, known + ",broken"});
    REQUIRE_FALSE(words.ok());
    CHECK(words.error().code == Code::invalid);
    CHECK(words.error().message.find(known) != std::string::npos);
    CHECK(words.error().message.find("'broken'") != std::string::npos);
  }
}

TEST_CASE("the verbs print what they always print, and end with the code", "[cli]") {
  ApiAnswers controller({{"/v1/status",
                          {{"nodes", Json::array({node("degraded")})},
                           {"causes", Json::array({{{"kind", "node_degraded"}, {"nodes", {"n1"}}}})},
                           {"spec_revision", 1}}},
                         {"/v1/runs", {{"runs", {{{"id", 4}, {"state", "partial"}}}}}},
                         {"/v1/rollout", {{"state", "stopped"}, {"stop", "budget"}}}});
  const auto expect = [&](std::vector<std::string> words, int code) {
    CAPTURE(words);
    const auto ran = controller.run(words);
    CHECK(ran.exit == code);
    CHECK_FALSE(ran.out.empty());
  };
  expect({"status"}, kAccepted);
  expect({"status", "--exit-code"}, kDegraded);
  expect({"status", "--exit-code", "--json"}, kDegraded);
  expect({"status", "--fail-on", "quarantined"}, kAccepted);
  expect({"status", "--exit-code", "--fail-on", "degraded"}, kDegraded);
  expect({"runs"}, kAccepted);
  expect({"runs", "--exit-code"}, kPartial);
  expect({"runs", "--fail-on", "failed"}, kAccepted);
  expect({"rollout", "status"}, kAccepted);
  expect({"rollout", "status", "--exit-code"}, kRefused);
  for (const auto& verb :
       std::vector<std::vector<std::string>>{{"status"}, {"runs"}, {"rollout", "status"}}) {
    auto words = verb;
    words.insert(words.end(), {"--fail-on", "broken"});
    CHECK(controller.run(words).exit == kUsage);
  }
}
