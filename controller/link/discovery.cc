#include "controller/link/discovery.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_dump.h"
#include "base/machine_uuid.h"
#include "base/placeholders.h"
#include "controller/nodes/states.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr int kMostInventories = 32;    // per machine, since discovery was switched on
constexpr size_t kMostFacts = 1 << 20;  // bytes
constexpr DurationMs kInventory = 5 * kMinute;

}  // namespace

Discovery::Discovery(Reactor& reactor, BootService& boot, LinkPort& link, Hooks hooks)
    : reactor_(reactor), boot_(boot), link_(link), hooks_(std::move(hooks)) {}

Discovery::~Discovery() {
  if (timer_) reactor_.cancel(timer_);
}

void Discovery::on(DurationMs how_long) {
  if (timer_) reactor_.cancel(timer_);
  until_ = reactor_.now() + how_long;
  timer_ = reactor_.after(how_long, [this] {
    timer_ = 0;
    off();
  });
  requests_.clear();
  boot_.discover_unknown(true);
  log::info("discovery of undeclared machines is on", {{"until", to_iso8601(until_)}});
  if (listener_) listener_();
}

void Discovery::off() {
  if (!active()) return;
  if (timer_) reactor_.cancel(timer_);
  timer_ = 0;
  until_ = 0;
  for (const auto& [name, requested] : std::exchange(requests_, {})) {
    if (!requested.order.empty()) link_.withdraw(NodeName(name), requested.order);
    if (hooks_.hang_up) hooks_.hang_up(NodeName(name));
  }
  boot_.discover_unknown(false);
  log::info("discovery of undeclared machines is off");
  if (listener_) listener_();
}

void Discovery::on_hello(const Hello& hello) {
  if (!active() || mac_of_unknown(hello.node).empty()) return;
  Requested& requested = requests_[hello.node];
  // The inventory was ordered at the machine's first contact, before its boot id was known.
  if (requested.boot_id.empty() && !requested.order.empty()) requested.boot_id = hello.boot_id;
  // An agent that restarted within the same boot already has the order.
  if (requested.boot_id != hello.boot_id) request(hello.node, hello.boot_id);
}

// An agent that connected before discovery was switched off and on again sends no second hello.
void Discovery::on_contact(const NodeName& name) {
  if (active() && !mac_of_unknown(name).empty() && !requests_.count(name)) request(name, "");
}

void Discovery::request(const NodeName& name, const std::string& boot_id) {
  Requested& requested = requests_[name];
  if (requested.times >= kMostInventories) return;
  withdraw(name);
  ++requested.times;
  requested.boot_id = boot_id;
  requested.order = OrderId(fmt::format("0/{}/inventory#{}", name, requested.times));
  wire::WorkOrder order;
  order.id = requested.order;
  order.kind = wire::OrderKind::inventory;
  order.deadline = kInventory;
  link_.offer(name, order);
}

void Discovery::withdraw(const NodeName& name) {
  Requested& requested = requests_[name];
  if (!requested.order.empty()) link_.withdraw(name, requested.order);
  requested.order = {};
}

void Discovery::on_event(const NodeName& name, const wire::Event& event) {
  const auto requested = requests_.find(name);
  if (event.kind != "finished" || requested == requests_.end() || requested->second.order.empty() ||
      requested->second.order != event.order)
    return;
  withdraw(name);
  take(name, event);
}

void Discovery::take(const NodeName& name, const wire::Event& finished) {
  const Json& data = finished.data;
  const Json result = data.is_object() && data.contains("result") ? data["result"] : Json();
  const Json facts = result.is_object() && result.contains("facts") ? result["facts"] : result;
  const auto read = hardware_facts_from_json(facts);
  const std::string text = dump_ascii(facts);
  if (!read.ok() || !facts.is_object() || text.size() > kMostFacts)
    return log::warning(
        "an undeclared machine's inventory was rejected",
        {{"node", name}, {"why", read.ok() ? "not an inventory, or too large" : read.error().message}});
  hooks_.set_row(name, [text, system = read->system, now = reactor_.now()](NodeRow& row) {
    row.state = NodeState::unadmitted;
    row.mode = std::string(wire::to_string(wire::Mode::ram));
    row.last_seen = row.facts_time = now;
    row.facts = text;
    // The operator admits the machine that was shown: one that later has this MAC must be the same.
    if (machine_of(row.product_uuid).empty()) row.product_uuid = machine_of(system.uuid);
    row.system_serial = names_one_thing(system.serial) ? system.serial : "";
  });
  log::info("an undeclared machine reported its inventory",
            {{"node", name}, {"serial", read->system.serial}});
  if (hooks_.seen) hooks_.seen(name, *read);
}

}  // namespace muster
