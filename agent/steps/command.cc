// command: runs a program, for work that no other module covers. Requires a test that shows whether the work
// is already done.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/unattended.h"

namespace muster::steps {
namespace {

struct WantedCommand {
  Texts argv, check;
  std::string creates, cwd;
  std::map<std::string, Json> env;
  int64_t deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedCommand, required(argv, "program and arguments"),
                  optional(check, "program that succeeds if the work is already done"),
                  optional(creates, "path that exists if the work is already done"),
                  optional(env, "environment variables to add"), optional(cwd, "working directory"),
                  optional(deadline_seconds, "timeout, after which the program is killed"))

Result<CheckResult> check_command(StepContext& context, const WantedCommand& want) {
  if (want.check.empty() && want.creates.empty())
    return fail(Code::invalid,
                "command: 'check' or 'creates' is required, to detect whether the work is already done");
  if (!want.creates.empty() && !context.files.exists(want.creates))
    return differs(want.creates + " does not exist");
  if (want.check.empty()) return holds();
  Command command;
  command.argv = want.check;
  command.deadline = want.deadline_seconds * kSecond;
  TRY(const Output out, context.process.run(command));
  if (out.ok()) return holds();
  return differs(fmt::format("`{}` exited with {}", join(want.check, " "), out.exit_code));
}

Status apply_command(StepContext& context, const WantedCommand& want) {
  if (want.argv.empty()) return fail(Code::invalid, "command: 'argv' is empty");
  Command command;
  command.argv = want.argv;
  command.cwd = want.cwd;
  command.deadline = want.deadline_seconds * kSecond;
  command.env = unattended_environment();  // it may install packages
  for (const auto& [name, value] : want.env) command.env[name] = value_text(value);
  TRY_(run_ok(context.process, command));
  return Ok{};
}

}  // namespace

StepModule command_module() {
  return step_module<WantedCommand>({
      .name = "command",
      .help = "Runs a program (no shell) unless `check` succeeds or `creates` exists. One of the two is "
              "required.",
      .check = check_command,
      .apply = apply_command,
  });
}

}  // namespace muster::steps
