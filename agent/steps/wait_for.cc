// wait_for: waits until conditions hold that this step cannot influence. Changes nothing.
#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/tcp.h"
#include "base/split.h"

namespace muster::steps {
namespace {

// Time that a program gets even if `deadline_seconds` is less. A node whose cores are all busy is slow, not
// broken: five seconds were too short for iptables while jobs were running.
constexpr DurationMs kAnswer = 60 * kSecond;

struct Conditions {
  std::string path, path_gone, host;
  std::optional<int64_t> port;
  Texts command;
  std::optional<int64_t> skipped;
  int64_t deadline_seconds = 60;
};
MUSTER_PARAMETERS(Conditions, optional(path, "path that must exist"),
                  optional(path_gone, "path that must not exist"),
                  optional(host, "numeric address; requires `port`"),
                  optional(port, "TCP port that must be open"),
                  optional(command, "program that must succeed"),
                  optional(skipped,
                           "exit status by which the program says that there is nothing to test now: the "
                           "step is not applicable, with what it printed as the reason"),
                  optional(deadline_seconds, "how long to wait for the conditions"))

// Says which condition does not hold yet.
Result<CheckResult> look(StepContext& context, const Conditions& want, DurationMs left) {
  if (!want.path.empty() && !context.files.exists(want.path)) return differs(want.path + " does not exist");
  if (!want.path_gone.empty() && context.files.exists(want.path_gone))
    return differs(want.path_gone + " still exists");
  if (!want.host.empty()) {
    const int64_t port = want.port.value_or(0);
    TRY(const TcpAnswer answer, tcp_probe(want.host, static_cast<uint16_t>(port), 2 * kSecond));
    if (answer.state != TcpState::open)
      return differs(fmt::format("{} port {} is {}", want.host, port, to_string(answer.state)));
  }
  if (!want.command.empty()) {
    Command command;
    command.argv = want.command;
    // A timeout means that the condition does not hold yet; it is not an error.
    command.deadline = std::max(left, kAnswer);
    const auto out = context.process.run(command);
    if (!out.ok() && out.error().code == Code::timeout) return differs(out.error().message);
    if (!out.ok()) return out.error();
    if (want.skipped == out->exit_code) return CheckResult{Holds::not_applicable, trim(out->out)};
    if (!out->ok())
      return differs(
          fmt::format("`{}` exited with {}{}", want.command.front(), out->exit_code, failure_text(*out)));
  }
  return holds();
}

Result<CheckResult> check_wait_for(StepContext& context, const Conditions& want) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(want.deadline_seconds);
  DurationMs pause = 250;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    TRY(const CheckResult now, look(context, want, left.count()));
    if (now.holds != Holds::no) return now;
    if (is_cancelled(context)) return fail(Code::cancelled, now.diff);
    if (std::chrono::steady_clock::now() >= until) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    pause = std::min<DurationMs>(pause * 2, 3 * kSecond);
  }
}

}  // namespace

StepModule wait_for_module() {
  return step_module<Conditions>({
      .name = "wait_for",
      .help = "Waits until all given conditions hold: a path exists, a path does not exist, a TCP port is "
              "open, a program succeeds. A program gets a minute to finish, even if `deadline_seconds` is "
              "less.",
      .check = check_wait_for,
  });
}

}  // namespace muster::steps
