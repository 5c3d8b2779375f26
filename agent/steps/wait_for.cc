// wait_for: waits until conditions hold that this step cannot influence. Changes nothing.
#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "agent/steps/tcp.h"

namespace muster::steps {
namespace {

// Time that a program gets even if `deadline_seconds` is less. A node whose cores are all busy is slow, not
// broken: five seconds were too short for iptables while jobs were running.
constexpr DurationMs kAnswer = 60 * kSecond;

// Returns which condition does not hold yet; "" if all hold.
Result<std::string> missing(StepContext& context, const Json& params, DurationMs left) {
  if (const auto path = text_of(params, "path"); !path.empty() && !context.files.exists(path))
    return path + " does not exist";
  if (const auto path = text_of(params, "path_gone"); !path.empty() && context.files.exists(path))
    return path + " still exists";
  if (const auto host = text_of(params, "host"); !host.empty()) {
    const int64_t port = int_of(params, "port", 0);
    TRY(const TcpAnswer answer, tcp_probe(host, static_cast<uint16_t>(port), 2 * kSecond));
    if (answer.state != TcpState::open)
      return fmt::format("{} port {} is {}", host, port, to_string(answer.state));
  }
  if (const auto argv = list_of(params, "command"); !argv.empty()) {
    Command command;
    command.argv = argv;
    // A timeout means that the condition does not hold yet; it is not an error.
    command.deadline = std::max(left, kAnswer);
    const auto out = context.process.run(command);
    if (!out.ok() && out.error().code == Code::timeout) return out.error().message;
    if (!out.ok()) return out.error();
    if (!out->ok()) return fmt::format("`{}` exited with {}", join(argv, " "), out->exit_code);
  }
  return std::string();
}

Result<CheckResult> check_wait_for(StepContext& context, const Json& params) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(int_of(params, "deadline_seconds", 60));
  DurationMs pause = 250;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    TRY(const std::string lacking, missing(context, params, left.count()));
    if (lacking.empty()) return holds();
    if (is_cancelled(context)) return fail(Code::cancelled, lacking);
    if (std::chrono::steady_clock::now() >= until) return differs(lacking);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    pause = std::min<DurationMs>(pause * 2, 3 * kSecond);
  }
}

}  // namespace

StepModule wait_for_module() {
  StepModule m;
  m.name = "wait_for";
  m.help =
      "Waits until all given conditions hold: a path exists, a path does not exist, a TCP port is open, a "
      "program succeeds. A program gets a minute to finish, even if `deadline_seconds` is less.";
  m.parameters =
      Json::array({parameter("path", "string", false, "path that must exist"),
                   parameter("path_gone", "string", false, "path that must not exist"),
                   parameter("host", "string", false, "numeric address; requires `port`"),
                   parameter("port", "int", false, "TCP port that must be open"),
                   parameter("command", "list", false, "program that must succeed"),
                   parameter("deadline_seconds", "int", false, "how long to wait for the conditions", 60)});
  m.check = check_wait_for;
  return m;
}

}  // namespace muster::steps
