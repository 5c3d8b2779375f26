#include "agent/measuring/measure_orders.h"

#include <string>

#include "agent/core/step.h"

namespace muster {
namespace {

// True for modules of agent/checks: they measure, and have nothing to apply.
bool only_measures(const Json& step_or_verify) {
  const auto name = step_or_verify.is_object() ? step_or_verify.find("module") : step_or_verify.end();
  if (name == step_or_verify.end() || !name->is_string()) return false;
  const std::string module_name = name->get<std::string>();
  const StepModule* module = find_step_module(module_name);
  return module && module_name.starts_with("accept") && module->measure && !module->apply;
}

// Returns why an order is not a check that only measures; "" if it is one.
std::string not_a_check(const Json& params) {
  if (!params.is_object() || params.value("mode", Json()) != "check") return "whose `mode` is not `check`";
  const auto steps = params.find("steps");
  if (steps == params.end() || !steps->is_array()) return "without steps";
  for (const Json& step : *steps) {
    const Json verify = step.is_object() ? step.value("verify", Json()) : Json();
    if (!only_measures(step) || !(verify.is_null() || only_measures(verify)))
      return "with a step that does more than measure";
  }
  return "";
}

}  // namespace

wire::WorkOrder only_measuring(wire::WorkOrder order) {
  if (order.kind == wire::OrderKind::inventory || order.kind == wire::OrderKind::unknown) return order;
  std::string word = order.kind_word();
  if (order.kind == wire::OrderKind::check) {
    const std::string why = not_a_check(order.params);
    if (why.empty()) return order;
    word += " " + why;
  }
  order.kind = wire::OrderKind::unknown;
  order.unknown_kind = std::move(word);
  order.params = Json::object();
  return order;
}

}  // namespace muster
