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
  std::string creates, cwd, input;
  std::map<std::string, Json> env;
  int64_t deadline_seconds = 60;
};
MUSTER_PARAMETERS(WantedCommand, required(argv, "program and arguments"),
                  optional(check, "program that succeeds if the work is already done"),
                  optional(creates, "path that exists if the work is already done"),
                  optional(env, "environment variables to add, for `check` as well", kMayBeSecret),
                  optional(input, "standard input, of `check` as well; default: none", kMayBeSecret),
                  optional(cwd, "working directory of `argv`"),
                  optional(deadline_seconds, "timeout, after which the program is killed"))

Command command_of(const WantedCommand& want, const Texts& argv) {
  Command command;
  command.argv = argv;
  command.input = want.input;
  command.deadline = want.deadline_seconds * kSecond;
  for (const auto& [name, value] : want.env) command.env[name] = value_text(value);
  return command;
}

Result<CheckResult> check_command(StepContext& context, const WantedCommand& want) {
  if (want.check.empty() && want.creates.empty())
    return fail(Code::invalid,
                "command: 'check' or 'creates' is required, to detect whether the work is already done");
  if (!want.creates.empty() && !context.files.exists(want.creates))
    return differs(want.creates + " does not exist");
  if (want.check.empty()) return holds();
  TRY(const Output out, context.process.run(command_of(want, want.check)));
  if (out.ok()) return holds();
  return differs(fmt::format("`{}` exited with {}", want.check.front(), out.exit_code));
}

Status apply_command(StepContext& context, const WantedCommand& want) {
  if (want.argv.empty()) return fail(Code::invalid, "command: 'argv' is empty");
  Command command = command_of(want, want.argv);
  command.cwd = want.cwd;
  command.env.merge(unattended_environment());  // it may install packages
  TRY_(run_ok(context.process, command));
  return Ok{};
}

}  // namespace

StepModule command_module() {
  return step_module<WantedCommand>({
      .name = "command",
      .help = "Runs a program (no shell) unless `check` succeeds or `creates` exists. One of the two is "
              "required. Messages name the program without its arguments.",
      .check = check_command,
      .apply = apply_command,
  });
}

}  // namespace muster::steps
