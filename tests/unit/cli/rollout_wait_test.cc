// muster rollout start --wait: what is waited out, and what the night's end is as an exit code; and times of
// the site's zone.
#include "cli/rollout_wait.h"

#include <cstdlib>
#include <ctime>
#include <deque>

#include "cli/cli_context.h"
#include "cli/local_time.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"

using namespace muster;
using namespace muster::cli;

namespace {

constexpr DurationMs kHour = 60 * kMinute;

// A controller that answers as the test says, and a clock that goes on while the command sleeps.
struct Night {
  Json shown = {{"id", 3}, {"night", 7}, {"state", "batches"}, {"batch", Json()}, {"last_window", Json()}};
  std::deque<Error> start_fails;
  std::function<void(DurationMs at)> on_time = [](DurationMs) {};
  std::optional<Error> away;
  std::vector<DurationMs> starts;  // how late each was
  DurationMs at = 0;

  void ends(const std::string& outcome, int64_t night = 7) {
    shown["last_window"] = {{"rollout", 3}, {"night", night}, {"outcome", outcome}};
  }
  Result<WaitResult> wait(WaitTimes times = {0, 23 * kHour}) {
    WindowCalls calls;
    calls.start = [this](DurationMs late) -> Result<Json> {
      starts.push_back(late);
      if (away) return *away;
      if (start_fails.empty()) return shown;
      const Error error = start_fails.front();
      start_fails.pop_front();
      return error;
    };
    calls.status = [this]() -> Result<Json> {
      if (away) return *away;
      return shown;
    };
    calls.now = [this] { return SteadyMs{1'000'000 + at}; };
    calls.sleep = [this](DurationMs span, const std::string&) {
      REQUIRE(at < 30 * kHour);
      at += span;
      on_time(at);
    };
    return wait_for_window(calls, times);
  }
  int exit() {
    const auto result = wait();
    REQUIRE(result.ok());
    return result->exit;
  }
};

struct Zone {
  explicit Zone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    ::unsetenv("TZ");
    ::tzset();
  }
};

}  // namespace

TEST_CASE("rollout start --wait: the outcome of the night is the exit code", "[cli][rollout]") {
  for (const auto& [outcome, code] : std::map<std::string, int>{{"done", kAccepted},
                                                                {"progress", kAccepted},
                                                                {"partial", kPartial},
                                                                {"nothing", kPartial},
                                                                {"paused", kRefused},
                                                                {"stopped", kRefused}}) {
    CAPTURE(outcome);
    Night n;
    n.ends("nothing", 6);  // of the night before
    n.on_time = [&, outcome = outcome](DurationMs at) {
      if (at >= 8 * kHour) n.ends(outcome);
    };
    CHECK(n.exit() == code);
    CHECK(n.at >= 8 * kHour);
  }
}

TEST_CASE("rollout start --wait: a batch that ends behind the window is waited for", "[cli][rollout]") {
  Night n;
  n.ends("progress");
  n.shown["batch"] = {{"number", 2}};
  n.on_time = [&](DurationMs at) {
    if (at >= 9 * kHour) n.shown["batch"] = Json();
  };
  CHECK(n.exit() == kAccepted);
  CHECK(n.at >= 9 * kHour);
}

TEST_CASE("rollout start --wait: a pause and another approval end it, refused", "[cli][rollout]") {
  Night paused;
  paused.shown["state"] = "paused";
  CHECK(paused.exit() == kRefused);
  Night replaced;
  replaced.on_time = [&](DurationMs) { replaced.shown["id"] = 4, replaced.shown["state"] = "approved"; };
  CHECK(replaced.exit() == kRefused);
}

TEST_CASE("rollout start --wait: what passes is retried, with how late the window is", "[cli][rollout]") {
  Night n;
  n.ends("done");
  for (int i = 0; i < 120; ++i) n.start_fails.push_back(fail(Code::conflict, "run 5 is still active"));
  const auto result = n.wait({10 * kMinute, 23 * kHour});
  REQUIRE(result.ok());
  CHECK(result->exit == kAccepted);
  CHECK(n.starts.front() == 10 * kMinute);
  CHECK(n.starts.back() == 70 * kMinute);

  Night refused;
  refused.start_fails = {fail(Code::unavailable, "the nodes cannot be read"), fail(Code::denied, "paused")};
  CHECK(refused.wait().error().code == Code::denied);
  CHECK(refused.starts.size() == 2);
}

TEST_CASE("rollout start --wait: a controller that restarts is waited for, one that is gone is not",
          "[cli][rollout]") {
  Night restarts;
  restarts.on_time = [&](DurationMs at) {
    restarts.away.reset();
    if (at > kHour && at < 100 * kMinute) restarts.away = fail(Code::unavailable, "no controller");
    if (at > 3 * kHour && at < 3 * kHour + kMinute) restarts.away = fail(Code::timeout, "no answer");
    if (at > 8 * kHour) restarts.ends("done");
  };
  CHECK(restarts.exit() == kAccepted);

  for (const bool at_start : {true, false}) {
    Night gone;
    if (at_start) gone.away = fail(Code::unavailable, "no controller");
    gone.on_time = [&](DurationMs) { gone.away = fail(Code::unavailable, "no controller"); };
    CHECK(gone.wait().error().code == Code::unavailable);
    CHECK(gone.at >= kHour);
    CHECK(gone.at < kHour + 2 * kMinute);
  }
  Night other;
  other.on_time = [&](DurationMs) { other.away = fail(Code::denied, "another token"); };
  CHECK(other.wait().error().code == Code::denied);
}

TEST_CASE("rollout start --wait: the limit ends it", "[cli][rollout]") {
  Night n;
  CHECK(n.wait({0, 2 * kHour}).error().code == Code::timeout);
  CHECK(n.at < 2 * kHour + kMinute);
}

TEST_CASE("rollout start: a unit that its timer started knows how late it is", "[cli][rollout]") {
  CHECK(since_timer(nullptr, 5'000) == 0);
  CHECK(since_timer("", 5'000) == 0);
  CHECK(since_timer("x", 5'000) == 0);
  CHECK(since_timer("2000000", 5'000) == 3'000);
  CHECK(since_timer("9000000", 5'000) == 0);
}

TEST_CASE("rollout: times are shown and read in the site's zone, with its changes", "[cli][rollout]") {
  const Zone berlin("CET-1CEST,M3.5.0,M10.5.0/3");
  const TimeMs ten = parse_local_time("2026-10-24 22:00").value();  // the night in which summer ends
  CHECK(local_time(ten) == "2026-10-24 22:00 CEST");
  CHECK(local_time(ten + 8 * kHour) == "2026-10-25 05:00 CET");
  CHECK(ten == 1'792'872'000'000);
  const TimeMs spring = parse_local_time("2026-03-28T22:00").value();
  CHECK(local_time(spring + 8 * kHour) == "2026-03-29 07:00 CEST");
  CHECK(parse_local_time("2026-12-24").value() == parse_local_time("2026-12-24 00:00").value());
  for (const char* wrong : {"", "tomorrow", "2026-13-01", "2026-02-31", "24.12.2026", "2026-12-24 6 pm"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_local_time(wrong).ok());
  }
}

TEST_CASE("rollout skip: bad usage is reported before any request", "[cli][rollout]") {
  const auto exit_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "rollout");
    arguments.insert(arguments.end(), {"--socket", "/tmp/no-such-muster.sock"});
    return muster::testing::muster_command(arguments).exit;
  };
  CHECK(exit_of({"skip", "gpu01"}) == kUsage);
  CHECK(exit_of({"skip", "--reason", "demo"}) == kUsage);
  CHECK(exit_of({"skip", "gpu01", "--reason", "demo", "--until", "soon"}) == kUsage);
  CHECK(exit_of({"skip", "gpu01", "--reason", "demo", "--until", "2099-01-01"}) == kFailed);
  CHECK(exit_of({"unskip"}) == kUsage);
  CHECK(exit_of({"start", "--wait", "--timeout", "long"}) == kUsage);
}
