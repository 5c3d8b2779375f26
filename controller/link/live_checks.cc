#include "controller/link/live_checks.h"

#include <fmt/format.h>

#include <utility>

#include "base/digest.h"
#include "base/json_at.h"
#include "base/time.h"

namespace muster {
namespace {

OrderId live_order(const std::string& look, const std::string& node) {
  return OrderId(fmt::format("0-{}/{}/preview#1", look, node));
}

}  // namespace

void LiveChecks::start(const std::map<std::string, Json>& steps, DurationMs within, Done done) {
  if (steps.empty()) return reactor_.post([done = std::move(done)] { done({}); });
  const auto look = std::make_shared<Look>();
  look->id = random_hex(6);
  look->done = std::move(done);
  looks_[look->id] = look;
  for (const auto& [node, list] : steps) {
    look->found[node] = {{"steps", Json::array()}, {"error", ""}};
    look->waiting.insert(node);
  }
  look->timer = reactor_.after(within, alive_.wrap([this, look, within] { late(look, within); }));
  for (const auto& [node, list] : steps) {
    wire::WorkOrder order;
    order.id = live_order(look->id, node);
    order.kind = wire::OrderKind::steps;
    order.params = {{"mode", "check"}, {"stop_on_failure", false}, {"steps", list}};
    order.deadline = within;
    link_.offer(NodeName(node), std::move(order));
  }
}

LiveChecks::LookPtr LiveChecks::look_of(const NodeName& node, const OrderId& order) const {
  for (const auto& [id, look] : looks_)
    if (look->waiting.count(node) && order == live_order(id, node)) return look;
  return nullptr;
}

bool LiveChecks::expects(const NodeName& node, const OrderId& order) const {
  return look_of(node, order) != nullptr;
}

bool LiveChecks::take(const NodeName& node, const wire::Event& event) {
  const LookPtr look = look_of(node, event.order);
  if (!look) return false;
  if (event.kind == "step") {
    look->found[node]["steps"].push_back({{"step", text_at(event.data, "step")},
                                          {"status", text_at(event.data, "status")},
                                          {"message", text_at(event.data, "message")},
                                          {"diff", text_at(event.data, "diff")}});
  } else if (event.kind == "finished") {
    // A step that is not as declared fails the order, too. Without any step the order itself was wrong.
    const bool none = look->found[node]["steps"].empty();
    answered(look, node, none ? text_at(event.data, "message") : "");
  }
  return true;
}

void LiveChecks::answered(const LookPtr& look, const std::string& node, const std::string& error) {
  look->found[node]["error"] = error;
  look->waiting.erase(node);
  link_.withdraw(NodeName(node), live_order(look->id, node));
  if (!look->waiting.empty()) return;
  reactor_.cancel(look->timer);
  looks_.erase(look->id);
  look->done(std::move(look->found));
}

void LiveChecks::late(const LookPtr& look, DurationMs within) {
  const LookPtr kept = look;  // the last answer ends it
  const std::string error = fmt::format("its agent did not finish within {}", to_human(within));
  for (const std::string& node : std::set<std::string>(kept->waiting)) answered(kept, node, error);
}

}  // namespace muster
