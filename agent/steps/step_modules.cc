#include "agent/steps/step_modules.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/json_dump.h"

namespace muster::steps {

std::string text_of(const Json& params, const char* key, const std::string& fallback) {
  const auto it = params.find(key);
  if (it == params.end() || !it->is_string() || it->get_ref<const std::string&>().empty()) return fallback;
  return it->get<std::string>();
}

int64_t int_of(const Json& params, const char* key, int64_t fallback) {
  const auto it = params.find(key);
  return it != params.end() && it->is_number_integer() ? it->get<int64_t>() : fallback;
}

const Json& object_of(const Json& params, const char* key) {
  static const Json none = Json::object();
  const auto it = params.find(key);
  return it != params.end() && it->is_object() ? *it : none;
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : separator) + word;
  return out;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

void say(const StepContext& context, const std::string& text) {
  if (context.say) context.say(context.secrets.text(text));
}

bool is_cancelled(const StepContext& context) { return context.cancelled && context.cancelled(); }

Result<CheckResult> wait_until(StepContext& context, int64_t seconds,
                               const std::function<Result<std::string>()>& lacking) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    const auto now = lacking();
    if (now.ok() && now->empty()) return holds();
    const std::string text = now.ok() ? *now : now.error().message;
    if (is_cancelled(context)) return fail(Code::cancelled, text);
    if (std::chrono::steady_clock::now() >= until) return differs(text);
    std::this_thread::sleep_for(std::chrono::milliseconds(context.pause));
  }
}

Result<std::string> run_tool(StepContext& context, std::vector<std::string> argv, DurationMs deadline) {
  Command command;
  command.argv = std::move(argv);
  command.deadline = deadline;
  if (command.argv.front() == "systemctl") {
    // Process 1 of a machine under load takes its time, for a reload as well as for a start.
    command.deadline = std::max(deadline, 3 * kMinute);
    // All units are native systemd units, and the tools for init scripts would take seconds per unit.
    command.env["SYSTEMCTL_SKIP_SYSV"] = "1";
  }
  return run_ok(context.process, command);
}

}  // namespace muster::steps
