// muster power test NODE: the contract of power drivers (tests/conformance/power_suite.h), asked of a real
// one.
//
// Through the controller's API, one verb after the other, each read back. A machine that is on is switched
// off three times (twice hard, once by asking its system, hard where that does not listen) and on again, so
// it is asked first then. What the machine boots cannot be seen from here; nor is asked what nobody can ask
// of a machine without harm: another machine behind the address, a refused login, a dead one.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace CLI {
class App;
}

namespace muster::cli {

struct Context;

// One power verb of the node: "state", "describe" (read), "on", "off", "shut-down", "network-once".
using PowerVerb = std::function<Result<Json>(const std::string& verb)>;
struct PowerTestHooks {
  PowerVerb call;
  std::function<TimeMs()> now;                     // monotonic
  std::function<bool()> may_switch_off;            // asked once, when the machine is on
  std::function<void(const Json& step)> finished;  // after each step
};
// {"node", "driver", "steps": [{"step", "ok", "detail", "ms"}], "passed"}. Stops at the first step that
// fails, and leaves the machine on if it was on. Code::denied when it may not be switched off, Code as the
// driver says when not even its state can be read: then nothing was switched.
Result<Json> test_power(const std::string& node, const PowerTestHooks& hooks);

void add_power_test(CLI::App& power, Context& context);

}  // namespace muster::cli
