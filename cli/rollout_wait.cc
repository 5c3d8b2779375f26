#include "cli/rollout_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_at.h"
#include "cli/attention.h"
#include "cli/cli_context.h"

namespace muster::cli {
namespace {

constexpr DurationMs kPoll = 5 * kSecond, kRetry = 30 * kSecond;
constexpr DurationMs kAway = 60 * kMinute;  // as long as a run goes on without its controller

bool is_away(const Error& error) { return error.code == Code::unavailable || error.code == Code::timeout; }

// The night that is waited for.
struct Awaited {
  int64_t rollout = 0, night = 0;

  bool replaced(const Json& s) const { return s.value("id", int64_t{0}) != rollout; }
  bool noted(const Json& s) const {
    const Json last = s.value("last_window", Json());
    return last.is_object() && last.value("rollout", int64_t{0}) == rollout &&
           last.value("night", int64_t{0}) >= night;
  }
  bool over(const Json& s) const {
    if (replaced(s)) return true;
    if (s.value("batch", Json()).is_object()) return false;
    const std::string state = text_at(s, "state");
    return noted(s) || (state != "canary" && state != "batches");
  }
  int exit_of(const Json& s) const {
    if (replaced(s) || !noted(s)) return kRefused;  // paused, or another rollout was approved
    return exit_for_outcome(text_at(s["last_window"], "outcome"));
  }
};

class Waiting {
 public:
  Waiting(const WindowCalls& calls, const WaitTimes& times)
      : calls_(calls), times_(times), began_(calls.now()), answered_(began_) {}

  Result<WaitResult> run() {
    TRY(const Json started,
        retried(true, [&] { return calls_.start(times_.late + (calls_.now() - began_)); }));
    const Awaited awaited{started.value("id", int64_t{0}), started.value("night", int64_t{0})};
    for (;;) {
      TRY(const Json s, retried(false, calls_.status));
      if (awaited.over(s)) return WaitResult{s, awaited.exit_of(s)};
      if (calls_.now() - began_ >= times_.limit)
        return fail(Code::timeout, fmt::format("night {} of rollout {} is not over after {}; it goes on",
                                               awaited.night, awaited.rollout, to_human(times_.limit)));
      calls_.sleep(kPoll, "");
    }
  }

 private:
  // `conflict`: so does a conflict pass.
  Result<Json> retried(bool conflict, const std::function<Result<Json>()>& call) {
    for (;;) {
      auto answer = call();
      const SteadyMs now = calls_.now();
      const bool away = !answer.ok() && is_away(answer.error());
      if (!away) answered_ = now;
      if (answer.ok()) return answer;
      const bool passes = away || (conflict && answer.error().code == Code::conflict);
      if (!passes || now - answered_ >= kAway || now - began_ >= times_.limit) return answer;
      calls_.sleep(kRetry, answer.error().message);
    }
  }

  const WindowCalls& calls_;
  const WaitTimes& times_;
  SteadyMs began_, answered_;
};

}  // namespace

Result<WaitResult> wait_for_window(const WindowCalls& calls, const WaitTimes& times) {
  return Waiting(calls, times).run();
}

DurationMs since_timer(const char* trigger_monotonic_usec, int64_t monotonic_ms) {
  if (!trigger_monotonic_usec) return 0;
  const int64_t at = std::strtoll(trigger_monotonic_usec, nullptr, 10) / 1000;
  return at > 0 ? std::max<DurationMs>(monotonic_ms - at, 0) : 0;
}

}  // namespace muster::cli
