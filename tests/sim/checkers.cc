#include "tests/sim/checkers.h"

#include <algorithm>

namespace muster::sim {
namespace {

// "3-18f/node01/image#2" -> node01/image, 2
std::pair<std::string, int> action_of(const std::string& order) {
  const auto slash = order.find('/'), hash = order.rfind('#');
  return {order.substr(slash + 1, hash - slash - 1), std::atoi(order.c_str() + hash + 1)};
}

}  // namespace

void Checkers::approve(const Plan& plan) {
  plan_ = plan;
  stops_.clear();
  by_id_.clear();
  by_node_.clear();
  for (const auto& a : plan_.actions) {
    by_id_.emplace(a.id, &a);
    by_node_[a.node].push_back(&a);
  }
}

const Action* Checkers::planned(const std::string& action) const {
  const auto found = by_id_.find(action);
  return found == by_id_.end() ? nullptr : found->second;
}

const std::vector<const Action*>& Checkers::actions_of(const std::string& node) const {
  static const std::vector<const Action*> none;
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? none : found->second;
}

void Checkers::written(const std::vector<Write>& rows) {
  for (const Write& row : rows) {
    if (const auto* run = std::get_if<RunRow>(&row)) durable_.add(*run);
    if (const auto* entry = std::get_if<JournalRow>(&row))
      if (auto legal = durable_.add(*entry); !legal.ok()) world_.violated("S5", legal.error().message);
  }
}

StepLog Checkers::replay(int64_t run) {
  StepLog log;
  for (const auto& row : store_.journal(run).value_or({}))
    if (auto legal = log.apply(row); !legal.ok()) world_.violated("S5", legal.error().message);
  return log;
}

void Checkers::on_power(const std::string& node, const Executor& executor) {
  bool named = false, intended = false;
  const Action* before = nullptr;  // the node's own
  for (const Action* a : actions_of(node)) {
    // An inventory of the RAM system that the plan itself started right before.
    const bool of_ram = a->kind == ActionKind::inventory && before && before->kind == ActionKind::netboot;
    before = a;
    const bool power = of_ram || a->kind == ActionKind::netboot || a->kind == ActionKind::image ||
                       a->kind == ActionKind::boot_disk;
    named = named || power;
    const auto& record = executor.log().of(a->id);
    const bool open = record.state == ActionState::intent || record.state == ActionState::started;
    intended = intended || (power && open && intent_is_durable(a->id, record.attempt));
  }
  if (!named) world_.violated("S1", "power cycle of " + node + ", for which the plan has no such action");
  if (!intended) world_.violated("S2", "power cycle of " + node + " without a durable intent");
  if (world_.options.stagger && last_power_ && world_.now() < last_power_ + world_.options.stagger)
    if (executor.log().all().size() > 0) {
      // A repeated call for the same attempt is not another power-on; those are distinguished by the node.
      if (last_power_node_ != node)
        world_.violated("S4", "two power-ons too close: " + last_power_node_ + ", " + node);
    }
  last_power_ = world_.now();
  last_power_node_ = node;
}

void Checkers::on_wake(const std::string& node, const Executor& executor) {
  for (const Action* a : actions_of(node)) {
    if (switches(*a, executor)) return;
    if (a->kind != ActionKind::wake) continue;
    const auto& record = executor.log().of(a->id);
    if (record.state != ActionState::intent || !intent_is_durable(a->id, record.attempt))
      world_.violated("S2", node + " is powered on without a durable intent");
    return;
  }
  world_.violated("S1", node + " is powered on, for which the plan has no action");
}

void Checkers::on_cycle(const std::string& node, const Executor& executor, bool running) {
  if (!running) return;
  for (const Action* a : actions_of(node)) {
    const auto& record = executor.log().of(a->id);
    const bool open = record.state == ActionState::intent || record.state == ActionState::started;
    if (open && stops_.count(fmt::format("{}#{}", a->id, record.attempt))) return;
  }
  world_.violated("S8", "the power of " + node + " is cut though its system runs and was not asked to stop");
}

void Checkers::on_offer(const std::string& node, const wire::WorkOrder& order) {
  const auto [action, attempt] = action_of(order.id);
  const Action* known = planned(action);
  if (!known || known->node != node)
    return world_.violated("S1", "order " + order.id + " for " + node + " is not in the plan");
  if (order.kind == wire::OrderKind::power_off) stops_.insert(fmt::format("{}#{}", action, attempt));
  if (!intent_is_durable(action, attempt))
    world_.violated("S2", "order " + order.id + " on offer without a durable intent");
}

void Checkers::on_order_run(const std::string& node, const wire::WorkOrder& order, bool remembers_its_end) {
  if (remembers_its_end) world_.violated("S3", node + " carries out " + order.id + " again");
  if (const auto it = running_.find(node); it != running_.end())
    world_.violated("S2", node + " runs " + order.id + " while it runs " + it->second);
  running_[node] = order.id;
  const auto [action, attempt] = action_of(order.id);
  const auto run = store_.run(0);
  if (run.ok() && order.id == order_id(*run, action, attempt) &&
      durable_.log().of(action).state == ActionState::succeeded)
    world_.violated("S3", order.id + " is carried out although " + action + " succeeded");
}

void Checkers::on_order_end(const std::string& node, const std::string& order, bool ok) {
  running_.erase(node);
  if (ok) carried_out_.insert(order);
}

void Checkers::on_disk_write(const std::string& node, const std::string& serial, const std::string& content) {
  for (const Action* a : actions_of(node)) {
    if (a->kind != ActionKind::image || a->params.value("disk_serial", "") != serial) continue;
    const bool bound =
        a->params.value("content_hash", "") == content || a->params.value("allow_ours", false).get<bool>();
    if (!bound)
      world_.violated(
          "S1", node + ": disk " + serial + " is written although it holds something else than approved");
    const auto row = store_.node(NodeName(node));
    const auto marks = row.ok() ? row->disk_written : std::map<std::string, TimeMs>();
    const auto mark = marks.find("");
    if (mark == marks.end() || mark->second < durable_.log().of(a->id).intent_time)
      world_.violated("K2", node + ": its disk is written, which its row does not say");
    return;
  }
  world_.violated("S1", node + ": disk " + serial + " is written, which the plan does not name");
}

void Checkers::on_step(const std::string& node, const std::string& step) {
  for (const Action* a : actions_of(node)) {
    if (!a->params.contains("steps")) continue;
    for (const auto& s : a->params["steps"])
      if (s["id"] == step) return;
  }
  world_.violated("S1", node + ": step " + step + " is not in the plan");
}

void Checkers::on_succeeded(const std::string& action, int attempt) {
  const Action* known = planned(action);
  const auto run = store_.run(0);
  if (!known || !run.ok()) return;
  // What counts for these is the system that came up, whatever made it.
  if (known->kind == ActionKind::netboot || known->kind == ActionKind::boot_disk ||
      known->kind == ActionKind::wake || is_for_slot(known->kind))
    return;
  // Its agent reports that, too (NodeTurn::stands_in_new).
  if (known->phase == "commit" && committed_.count(known->node)) return;
  if (!carried_out_.count(order_id(*run, action, attempt)))
    world_.violated("S3",
                    fmt::format("{} is recorded as succeeded, but attempt {} never was", action, attempt));
}

void Checkers::on_quarantined(const std::string& node, const std::string& reason) {
  // In this world a probe fails only because of the probed node or because the prober itself is cut off. The
  // second is its own fault. What needs the leader goes with it, whichever node saw that the leader is lost.
  if (reason.find("which will not happen") != std::string::npos) return;
  if (reason.find("asked from " + node + ".") != std::string::npos && !world_.blind.count(node))
    world_.violated("S7", node + " is blamed for another node: " + reason);
}

void Checkers::at_all_times(const Executor& executor) {
  int imaging = 0, netboot = 0;
  for (const auto& [id, record] : executor.log().all()) {
    const Action* action = planned(id);
    const bool open = record.state == ActionState::intent || record.state == ActionState::started;
    imaging +=
        open && action && (action->kind == ActionKind::image || action->kind == ActionKind::write_slot);
    netboot += open && action && action->kind == ActionKind::netboot;
  }
  if (imaging > world_.options.parallel_imaging)
    world_.violated("S4", fmt::format("{} nodes are imaged at once", imaging));
  if (netboot > world_.options.parallel_netboot)
    world_.violated("S4", fmt::format("{} nodes netboot at once", netboot));
  if (const std::string wrong = executor.kept_wrong(turn_++); !wrong.empty()) world_.violated("K1", wrong);
  if (!executor.active()) return;
  const Json progress = executor.progress();
  for (const auto& node : progress["nodes"]) {
    if (!node.contains("wait")) continue;
    const TimeMs until = node["wait"].value("until", TimeMs{0});
    if (until > 0 && world_.reactor.now() > until + 5 * kSecond)
      world_.violated("L2", fmt::format("{} waits for {} {} ms past its time", node.value("node", ""),
                                        node["wait"].value("awaited", ""), world_.reactor.now() - until));
  }
}

void Checkers::after_restart(const Executor& executor) {
  const StepLog durable = replay(executor.run_id());
  for (const auto& [id, record] : durable.all()) {
    const auto& believed = executor.log().of(id);
    const bool same = believed.state == record.state && believed.attempt == record.attempt;
    // Resuming may itself have gone on: only forward.
    if (!same && believed.attempt < record.attempt)
      world_.violated("S5", id + " went back in time after a restart");
    if (record.state == ActionState::succeeded && !same)
      world_.violated("S5", id + " lost its success in a restart");
  }
}

void Checkers::disks_are_marked(int64_t run) {
  for (const auto& entry : store_.journal(run).value_or({})) {
    const Action* action = entry.event == "intent" ? planned(entry.action) : nullptr;
    if (!action || (action->kind != ActionKind::image && action->kind != ActionKind::write_slot)) continue;
    const std::string slot = action->kind == ActionKind::write_slot
                                 ? action->params.value("slot", "").get<std::string>()
                                 : std::string();
    const auto row = store_.node(entry.node);
    const auto marks = row.ok() ? row->disk_written : std::map<std::string, TimeMs>();
    if (const auto mark = marks.find(slot); mark == marks.end() || mark->second < entry.time)
      world_.violated("K2", entry.action + " began to write a disk, which the row of its node does not say");
  }
}

void Checkers::at_run_end(const Executor& executor, const RunRow& run) {
  const StepLog durable = replay(run.id);
  for (const auto& [id, record] : executor.log().all()) {
    const auto& kept = durable.of(id);
    if (kept.state != record.state || kept.attempt != record.attempt)
      world_.violated(
          "S5", fmt::format("{}: executor says {} #{}, journal says {} #{}", id, to_string(record.state),
                            record.attempt, to_string(kept.state), kept.attempt));
  }
  disks_are_marked(run.id);
  if (world_.options.in_place) return ends_in_place(durable, run);
  size_t good = 0;
  for (const auto& node : plan_.nodes) {
    bool all = true;
    for (const Action* a : actions_of(node)) all = all && durable.of(a->id).state == ActionState::succeeded;
    good += all;
    const auto row = store_.node(NodeName(node));
    const bool accepted =
        row.ok() && (row->state == NodeState::accepted || row->state == NodeState::discovered);
    if (accepted != all)
      world_.violated("S6", fmt::format("{} is {}, but its journal says otherwise", node,
                                        row.ok() ? to_string(row->state) : ""));
    if (!all && (!row.ok() || row->reason.empty()))
      world_.violated("S6", node + " is not accepted and has no reason");
  }
  const RunState expected = good == plan_.nodes.size() ? RunState::done
                            : good                     ? RunState::partial
                                                       : RunState::failed;
  if (run.state != expected)
    world_.violated(
        "S6", fmt::format("run ended as {}, the journal says {}", to_string(run.state), to_string(expected)));
}

}  // namespace muster::sim
