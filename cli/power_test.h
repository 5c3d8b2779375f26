// muster power test NODE: the contract of power drivers (tests/conformance/power_suite.h) on a real machine.
//
// Runs one power verb after the other through the controller's API and reads each result back. A machine that
// is on is switched off three times (twice hard, once by a shutdown of its system, hard if that does not
// react) and on again, after a prompt. What the machine boots cannot be seen; harmful cases are not tested: a
// different machine at the BMC's address, a rejected login, a dead machine.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace muster {
class Verb;
}

namespace muster::cli {

struct Context;

// One power verb of the node: "state", "describe" (read), "on", "off", "shut-down", "network-once".
using PowerVerb = std::function<Result<Json>(const std::string& verb)>;
struct PowerTestHooks {
  PowerVerb call;
  std::function<TimeMs()> now;                     // monotonic
  std::function<bool()> may_switch_off;            // called once, if the machine is on
  std::function<void(const Json& step)> finished;  // after each step
};
// Returns {"node", "driver", "steps": [{"step", "ok", "detail", "ms"}], "passed"}. Stops at the first step
// that fails, and leaves the machine on if it was on. Errors, before anything was switched: Code::denied if
// the machine may not be switched off, the driver's code if its state cannot be read.
Result<Json> test_power(const std::string& node, const PowerTestHooks& hooks);

void add_power_test(Verb& power, Context& context);

}  // namespace muster::cli
