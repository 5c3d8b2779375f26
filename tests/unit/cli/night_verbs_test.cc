// Verbs that are typed at 3 a.m.: what they request, and what they refuse before anything is requested.
#include <algorithm>

#include "cli/cli_context.h"
#include "cli/local_time.h"
#include "tests/catch.h"
#include "tests/fakes/api_answers.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::ApiAnswers;

namespace {

const Json& two_nodes() {
  static const Json status =
      Json::parse(R"({"spec_revision": 1, "run": {"id": 7, "state": "running"}, "nodes": [
    {"name": "gpu01", "state": "accepted", "role": "gpu", "busy": true},
    {"name": "gpu02", "state": "installing", "role": "gpu", "phase": "image"}]})");
  return status;
}

ApiAnswers controller() {
  return ApiAnswers({{"/v1/status", two_nodes()},
                     {"/v1/power/gpu01/state", {{"node", "gpu01"}, {"power", "on"}}},
                     {"/v1/power/gpu01/off", {{"node", "gpu01"}, {"power", "off"}}},
                     {"/v1/power/gpu02/off", {{"node", "gpu02"}, {"power", "off"}}},
                     {"/v1/power/gpu01/cycle", {{"node", "gpu01"}, {"power", "on"}}}});
}

bool was_switched(ApiAnswers& api) {
  const auto requests = api.requests();
  return std::any_of(requests.begin(), requests.end(),
                     [](const std::string& request) { return request.starts_with("POST /v1/power/"); });
}

// Tests run without a terminal on standard input, or with one that they must not read.
struct NoTerminal {
  NoTerminal() : saved(::dup(STDIN_FILENO)) {
    const int none = ::open("/dev/null", O_RDONLY);
    ::dup2(none, STDIN_FILENO);
    ::close(none);
  }
  ~NoTerminal() {
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
  int saved;
};

}  // namespace

TEST_CASE("power off and cycle do nothing without --yes where they cannot prompt", "[cli][power]") {
  const NoTerminal none;
  for (const char* verb : {"off", "cycle"})
    for (const char* json : {"", "--json"}) {
      CAPTURE(verb, json);
      auto api = controller();
      std::vector<std::string> words = {"power", verb, "gpu01"};
      if (*json) words.push_back(json);
      const auto ran = api.run(words);
      CHECK(ran.exit == kUsage);
      CHECK_FALSE(was_switched(api));
    }
}

TEST_CASE("what is lost is shown before the prompt: state, role, jobs, and the run at work", "[cli][power]") {
  const NoTerminal none;
  auto api = controller();
  const auto ran = api.run({"power", "off", "gpu[01-02]"});
  CHECK(ran.exit == kUsage);
  for (const char* words : {"gpu01", "accepted", "role gpu", "jobs", "gpu02", "run 7", "image"})
    CHECK(ran.err.find(words) != std::string::npos);
}

TEST_CASE("a node that does not exist is reported before the prompt, and nothing is switched",
          "[cli][power]") {
  const NoTerminal none;
  auto api = controller();
  const auto ran = api.run({"power", "off", "gpu01,gpu3"});
  CHECK(ran.exit == kUsage);
  CHECK(ran.err.find("gpu3") != std::string::npos);
  CHECK_FALSE(was_switched(api));
  CHECK(api.run({"power", "off", ",", "--yes"}).exit == kUsage);
}

TEST_CASE("with --yes every node is switched, and one that fails is exit 3", "[cli][power]") {
  auto api = controller();
  CHECK(api.run({"power", "off", "gpu[01-02]", "--yes"}).exit == kAccepted);
  CHECK(api.requests().size() == 2);
  CHECK(api.run({"power", "cycle", "gpu01", "--yes"}).exit == kAccepted);
  const auto some = api.run({"power", "off", "gpu[01-03]", "--yes", "--json"});
  CHECK(some.exit == kPartial);
  const Json all = parse_json(some.out).value();
  REQUIRE(all.size() == 3);
  CHECK(all[0]["power"] == "off");
  CHECK(all[2]["node"] == "gpu03");
  CHECK(all[2]["code"] == "not_found");
}

TEST_CASE("power state does not prompt, and prints a line per node", "[cli][power]") {
  const NoTerminal none;
  auto api = controller();
  const auto ran = api.run({"power", "state", "gpu01"});
  CHECK(ran.exit == kAccepted);
  CHECK(ran.out == "gpu01: on\n");
  CHECK(api.run({"power", "state", "gpu03"}).exit == kUsage);
}

TEST_CASE("logs are requested by run, time and number, and printed in words", "[cli]") {
  const Json spec = {{"seq", 5},   {"time", 1000},   {"run", 0},
                     {"node", ""}, {"kind", "spec"}, {"data", {{"revision", 3}}}};
  ApiAnswers api({{"/v1/nodes/gpu01/logs", {{"events", Json::array()}}},
                  {"/v1/events/list", {{"events", Json::array({spec})}}}});
  CHECK(api.run({"logs", "gpu01", "--run", "12", "--since", "2026-11-20T19:55:29Z"}).exit == kAccepted);
  CHECK(api.requests().back() ==
        "GET /v1/nodes/gpu01/logs?after=0&limit=1000&since=1795204529000&run=12&newest=0");
  const auto tail = api.run({"logs", "--tail", "20"});
  CHECK(tail.exit == kAccepted);
  CHECK(api.requests().size() == 2);  // one page
  CHECK(api.requests().back() == "GET /v1/events/list?after=0&limit=20&since=0&run=0&newest=1");
  CHECK(tail.out.find("revision 3") != std::string::npos);
  for (const auto& wrong : std::vector<std::vector<std::string>>{
           {"--since", "yesterday"}, {"--tail", "0"}, {"--tail", "many"}, {"--run", "-1"}}) {
    CAPTURE(wrong);
    CHECK(api.run({"logs", wrong[0], wrong[1]}).exit == kUsage);
  }
  CHECK(api.requests().size() == 2);
}

TEST_CASE("what nodes report in a rollout does not steer the terminal", "[cli]") {
  const std::string evil = "\xc2\x9b[2J\x1b[2Jgone";
  const Json node = {
      {"node", "gpu01"}, {"image", "gpu"}, {"reason", evil}, {"why", evil}, {"result", "failed"}};
  const Json shown = {{"state", "batches"},
                      {"held", Json::array({node})},
                      {"failed", Json::array({node})},
                      {"postponed", Json::array({node})},
                      {"left", Json::array({node})}};
  const Json report = {{"state", "done"}, {"nodes", Json::array({node})}, {"left", {{"gpu02", evil}}}};
  ApiAnswers api({{"/v1/rollout", shown}, {"/v1/rollout/report", report}});
  for (const char* verb : {"status", "report"}) {
    const auto ran = api.run({"rollout", verb});
    CAPTURE(verb, ran.err);
    CHECK(ran.exit == kAccepted);
    CHECK(ran.out.find("[2J") != std::string::npos);
    CHECK(ran.out.find_first_of("\x9b\x1b") == std::string::npos);
  }
}

TEST_CASE("a time since when is a duration, an hour of the day, a local time or one in UTC", "[cli]") {
  constexpr TimeMs kNow = 1'795'204'529'000;  // 2026-11-20T19:55:29Z
  constexpr DurationMs kHour = 60 * kMinute;
  CHECK(parse_since("2 h", kNow).value() == kNow - 2 * kHour);
  CHECK(parse_since("30m", kNow).value() == kNow - 30 * kMinute);
  CHECK(parse_since("2026-11-20T19:55:29Z", kNow).value() == kNow);
  CHECK(parse_since("2026-11-20 06:00", kNow).value() == parse_local_time("2026-11-20 06:00").value());
  // The last one before now, in any zone.
  for (const char* hour : {"00:00", "03:00", "22:00", "23:59"}) {
    CAPTURE(hour);
    const TimeMs at = parse_since(hour, kNow).value();
    CHECK(at <= kNow);
    CHECK(at > kNow - 24 * kHour);
    CHECK(local_time(at).find(hour) != std::string::npos);
  }
  for (const char* wrong : {"", "yesterday", "2 weeks", "24:60", "2026-02-31"}) {
    CAPTURE(wrong);
    CHECK(parse_since(wrong, kNow).error().code == Code::invalid);
  }
}
