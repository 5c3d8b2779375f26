// command: runs a program, for work that no other module covers. Requires a test that shows whether the work
// is already done.
#include <fmt/format.h>

#include "agent/steps/step_modules.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

Result<CheckResult> check_command(StepContext& context, const Json& params) {
  const auto probe = list_of(params, "check");
  const std::string creates = text_of(params, "creates");
  if (probe.empty() && creates.empty())
    return fail(Code::invalid,
                "command: 'check' or 'creates' is required, to detect whether the work is already done");
  if (!creates.empty() && !context.files.exists(creates)) return differs(creates + " does not exist");
  if (probe.empty()) return holds();
  Command command;
  command.argv = probe;
  command.deadline = int_of(params, "deadline_seconds", 60) * kSecond;
  TRY(const Output out, context.process.run(command));
  if (out.ok()) return holds();
  return differs(fmt::format("`{}` exited with {}", join(probe, " "), out.exit_code));
}

Status apply_command(StepContext& context, const Json& params) {
  Command command;
  command.argv = list_of(params, "argv");
  if (command.argv.empty()) return fail(Code::invalid, "command: 'argv' is empty");
  command.cwd = text_of(params, "cwd");
  command.deadline = int_of(params, "deadline_seconds", 60) * kSecond;
  for (const auto& [name, value] : object_of(params, "env").items())
    command.env[name] = value.is_string() ? value.get<std::string>() : dump_json(value);
  TRY(auto out, run_ok(context.process, command));
  (void)out;
  return Ok{};
}

}  // namespace

StepModule command_module() {
  StepModule m;
  m.name = "command";
  m.help =
      "Runs a program (no shell) unless `check` succeeds or `creates` exists. One of the two is required.";
  m.parameters = Json::array(
      {parameter("argv", "list", true, "program and arguments"),
       parameter("check", "list", false, "program that succeeds if the work is already done"),
       parameter("creates", "string", false, "path that exists if the work is already done"),
       parameter("env", "object", false, "environment variables to add"),
       parameter("cwd", "string", false, "working directory"),
       parameter("deadline_seconds", "int", false, "timeout, after which the program is killed", 60)});
  m.check = check_command;
  m.apply = apply_command;
  return m;
}

}  // namespace muster::steps
