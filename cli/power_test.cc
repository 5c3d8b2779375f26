#include "cli/power_test.h"

#include <fmt/format.h>

#include <chrono>

#include "base/command_line.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "cli/carry_out.h"
#include "cli/cli_context.h"
#include "cli/terminal.h"

namespace muster::cli {
namespace {

struct Step {
  const char* name;
  const char* verb;
  const char* power;  // expected state after the order
};

// Each order is sent twice: an order for the state that the machine is in must succeed and switch nothing.
// The first "on" uses up the network boot that was set before.
constexpr Step kSteps[] = {
    {"off", "off", "off"},
    {"off again", "off", "off"},
    {"network once: set, power unchanged", "network-once", "off"},
    {"network once again", "network-once", "off"},
    {"on", "on", "on"},
    {"on again", "on", "on"},
    {"off while the machine runs", "off", "off"},
    {"on immediately after", "on", "on"},
    {"shutdown", "shut-down", "off"},
    {"shutdown again", "shut-down", "off"},
};

class Test {
 public:
  Test(const std::string& node, const PowerTestHooks& hooks)
      : hooks_(hooks), report_{{"node", node}, {"driver", nullptr}, {"steps", Json::array()}} {}

  Result<Json> run() {
    TRY(const Json first, hooks_.call("state"));
    const std::string before = text_at(first, "power");
    if (before == "on" && !hooks_.may_switch_off())
      return fail(Code::denied,
                  "power was not changed: the machine is on; pass --yes to allow powering it off");
    note("state", true, before, 0);
    bool passed = describe(before) && again(before);
    for (const Step& step : kSteps) passed = passed && carry_out(step);
    // Restore the initial state, even after a failed step.
    if (before == "on") passed = carry_out({"on, as before", "on", "on"}) && passed;
    report_["passed"] = passed;
    return std::move(report_);
  }

 private:
  bool describe(const std::string& before) {
    const TimeMs begin = hooks_.now();
    const auto seen = hooks_.call("describe");
    if (!seen.ok()) return note("describe", false, seen.error().message, hooks_.now() - begin);
    report_["driver"] = *seen;
    const std::string power = text_at(*seen, "power");
    const bool same = power.empty() || power == before;
    return note("describe", same,
                same ? text_at(*seen, "driver")
                     : fmt::format("the driver reported {}, but the power state is {}", power, before),
                hooks_.now() - begin);
  }

  // Nothing was switched.
  bool again(const std::string& before) {
    const TimeMs begin = hooks_.now();
    const auto seen = hooks_.call("state");
    const std::string said = seen.ok() ? text_at(*seen, "power") : seen.error().message;
    return note("state again", seen.ok() && said == before, said, hooks_.now() - begin);
  }

  // Drivers that cannot report the next boot pass this check.
  bool shows_network() {
    const TimeMs begin = hooks_.now();
    const auto seen = hooks_.call("describe");
    const Json next = seen.ok() ? seen->value("boots_network_next", Json()) : Json(false);
    if (!next.is_boolean()) return true;
    return note("network boot is reported", next.get<bool>(),
                next.get<bool>() ? "its next boot is from the network"
                : seen.ok()      ? "its next boot is not from the network"
                                 : seen.error().message,
                hooks_.now() - begin);
  }

  // A driver that reports network boot as unsupported must return an error and leave the machine unchanged.
  bool refuses(const Step& step) {
    const TimeMs begin = hooks_.now();
    const auto done = hooks_.call(step.verb);
    const auto seen = hooks_.call("state");
    const bool right = !done.ok() && done.error().code == Code::invalid && seen.ok() &&
                       text_at(*seen, "power") == step.power;
    const std::string said = done.ok() ? "done" : done.error().message;
    return note(std::string(step.name) + ": refused", right,
                right ? "not supported by the driver; nothing was done" : said, hooks_.now() - begin);
  }

  bool carry_out(const Step& step) {
    const Json& driver = report_["driver"];
    const bool never = driver.is_object() && driver.value("network_boot", Json()) == false;
    if (never && std::string_view(step.verb) == "network-once") return refuses(step);
    const TimeMs begin = hooks_.now();
    const auto done = hooks_.call(step.verb);
    // The response contains the state; a second reading must match it.
    const auto seen = done.ok() ? hooks_.call("state") : done;
    if (!seen.ok()) return note(step.name, false, seen.error().message, hooks_.now() - begin);
    const std::string power = text_at(*seen, "power");
    const bool right = power == step.power && text_at(*done, "power") == step.power;
    const bool noted = note(
        step.name, right,
        right ? power
              : fmt::format("reported {}, then {}; expected {}", text_at(*done, "power"), power, step.power),
        hooks_.now() - begin);
    return noted && (std::string_view(step.verb) != "network-once" || shows_network());
  }

  bool note(const std::string& name, bool ok, const std::string& detail, DurationMs took) {
    const Json step = {{"step", name}, {"ok", ok}, {"detail", detail}, {"ms", took}};
    report_["steps"].push_back(step);
    hooks_.finished(step);
    return ok;
  }

  const PowerTestHooks& hooks_;
  Json report_;
};

void show_step(const Json& step) {
  fmt::print("  {:<6} {:<38} {:>7.1f} s  {}\n", step["ok"].get<bool>() ? "ok" : "FAILED",
             step["step"].get<std::string>(), static_cast<double>(step["ms"].get<int64_t>()) / 1000,
             clean(step["detail"].get<std::string>()));
  std::fflush(stdout);
}

bool may_switch_off(Context& context, const std::string& node, bool yes) {
  if (yes) return true;
  if (context.json) return false;
  Api api(context);
  const auto known = api.get("/v1/nodes/" + url_encode(node));
  const std::string state = known.ok() ? text_at(*known, "state") : "";
  return confirm_prompt(
      fmt::format("{}{} is on. The test powers it off three times, twice hard and once by shutting down "
                  "its system, and on again each time. Continue?",
                  node, state.empty() ? "" : " (" + clean(state) + ")"));
}

void run_test(Context& context, const std::string& node, bool yes) {
  PowerTestHooks hooks;
  hooks.call = [&](const std::string& verb) {
    Api api(context);
    const std::string path = "/v1/power/" + url_encode(node) + "/" + verb;
    return verb == "state" || verb == "describe" ? api.get(path) : api.post(path, Json::object());
  };
  hooks.now = [] {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<TimeMs>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
  };
  hooks.may_switch_off = [&] { return may_switch_off(context, node, yes); };
  hooks.finished = [&](const Json& step) {
    if (!context.json) show_step(step);
  };
  const auto report = test_power(node, hooks);
  if (!report.ok()) return complain(context, report.error());
  const bool passed = report->at("passed").get<bool>();
  context.exit = passed ? kAccepted : kFailed;
  show(context, *report, [&] {
    fmt::print("{}: {}\n", node,
               passed
                   ? "the driver works as required on this machine; what the machine booted was not checked"
                   : "the driver does not work as required on this machine");
  });
}

}  // namespace

Result<Json> test_power(const std::string& node, const PowerTestHooks& hooks) {
  return Test(node, hooks).run();
}

void add_power_test(Verb& power, Context& context) {
  auto node = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  Verb& test = power.add_verb("test",
                              "test the power driver: send each order twice (off, one-time network "
                              "boot, on, shutdown) and check the result");
  test.add_option("NODE", node.get(), "node to test; the test powers it off and on").required();
  test.add_flag("--yes,-y", yes.get(), "power the node off without a prompt, even if it is in use");
  test.runs([node, yes, &context] { run_test(context, *node, *yes); });
  test.example("muster power test gpu03");
}

}  // namespace muster::cli
