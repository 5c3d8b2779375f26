// The scenario Options::in_place: nodes that are at work from slot a get another image in slot b, each one of
// its own, some of them bad, under the same faults as any bring-up. One run; the plan is made here.
#include <algorithm>

#include "tests/sim/controller.h"

namespace muster::sim {
namespace {

constexpr const char* kImages[] = {"sha256:next-good-1", "sha256:next-good-2", "sha256:next-panic",
                                   "sha256:next-hang",   "sha256:next-mute",   "sha256:next-emergency",
                                   "sha256:next-broken", "sha256:next-slow"};

Json steps_of(const std::vector<std::string>& ids) {
  Json steps = Json::array();
  for (const auto& id : ids)
    steps.push_back({{"id", id}, {"module", "file"}, {"params", Json::object()}, {"mandatory", true}});
  return {{"steps", steps}};
}

Action action_of(const std::string& node, const std::string& name, ActionKind kind, const std::string& phase,
                 Json params, DurationMs timeout) {
  Action a;
  a.id = node + "/" + name;
  a.node = NodeName(node);
  a.kind = kind;
  a.phase = phase;
  a.title = name;
  a.params = std::move(params);
  a.timeout = timeout;
  return a;
}

bool open_in(const ActionRecord& record) {
  return record.state == ActionState::intent || record.state == ActionState::started;
}

}  // namespace

Plan SimController::plan_in_place() const {
  Plan plan;
  plan.kind = PlanKind::reimage;
  plan.cluster = "sim";
  plan.limits.parallel_imaging = world_.options.parallel_imaging;
  plan.limits.power_stagger = world_.options.stagger;
  plan.limits.netboot = 10 * kMinute;
  plan.barriers.resize(1);
  for (const auto& node : spec_.nodes) {
    const std::string& n = node.name;
    const std::string& image = wanted_.at(n);
    plan.nodes.push_back(n);
    plan.config_digests[n] = "sha256:conf-" + image;
    wire::SlotJob job;
    job.slot = "b";
    job.image.image = "cpu";
    job.image.digest = image;
    const auto add = [&](Action action) { plan.actions.push_back(std::move(action)); };
    const auto steps = [&](const std::string& name, const std::string& phase,
                           const std::vector<std::string>& ids) {
      add(action_of(n, name, ActionKind::steps, phase, steps_of(ids), 20 * kMinute));
    };
    add(action_of(n, "write", ActionKind::write_slot, "image", wire::to_json(job), 60 * kMinute));
    steps("pause", "pause", {"old/pause"});
    add(action_of(n, "boot", ActionKind::boot_slot, "boot",
                  wire::to_json(wire::BootSlotJob{"b", image, 40 * kMinute}), 60 * kMinute));
    plan.actions.back().max_attempts = 1;
    plan.actions.back().params.set_own("steps", steps_of({"old/pause"})["steps"]);
    steps("configure", "configure", {"hostname", "time"});
    plan.barriers[0].push_back(plan.actions.back().id);
    add(action_of(n, "accept", ActionKind::check, "accept", steps_of({"acceptance/dgemm"}), 20 * kMinute));
    plan.actions.back().behind = 0;
    steps("commit", "commit", {"slot/commit"});
    steps("resume", "resume", {"new/resume"});
    add(action_of(n, "return", ActionKind::return_slot, "return",
                  {{"slot", "a"}, {"digest", kImage}, {"state", "accepted"}}, 30 * kMinute));
    plan.actions.back().max_attempts = 3;
    plan.actions.back().when_failed = true;
    steps("resume-old", "resume", {"old/resume"});
    plan.actions.back().when_failed = true;
  }
  return plan;
}

void SimController::begin_in_place() {
  // It ended, and the controller was killed before the reply.
  if (store_.run(0).ok()) return void(finished_ = true);
  if (wanted_.empty())
    for (const auto& [name, node] : nodes_)
      wanted_[name] = kImages[world_.random.range(0, static_cast<int64_t>(std::size(kImages)) - 1)];
  for (const auto& [name, node] : nodes_)
    executor()->set_node(NodeName(name), [](NodeRow& row) {
      row.state = NodeState::accepted;
      row.config_digest = "sha256:conf-old";
    });
  const Plan plan = plan_in_place();
  checkers_.approve(plan);
  world_.trace("", "muster reimage, in place");
  executor()->start(plan, "sim", [](Result<int64_t>) {});
}

// Each node runs, or would run when it is switched on, what its row says.
void SimController::check_in_place() {
  for (auto& [name, node] : nodes_) {
    const NodeRow row = executor()->node_row(NodeName(name));
    const bool fresh = row.accepted_run != 0;
    const std::string& stands = node->slot(node->standing());
    if (fresh && (stands != wanted_[name] || fate_of(stands) != "good"))
      world_.violated("L1", name + " is accepted for its new image, and stands on " + stands);
    if (fresh && row.config_digest != "sha256:conf-" + wanted_[name])
      world_.violated("L1", name + " is accepted without what was planned for it");
    if (row.state == NodeState::accepted && !fresh &&
        (stands != kImage || row.reason.empty() || row.config_digest != "sha256:conf-old"))
      world_.violated("L1", fmt::format("{} went back, stands on {}: {}", name, stands, row.reason));
    if (row.state == NodeState::accepted && node->answers() && node->running() != node->standing())
      world_.violated("L1", name + " is accepted in a system on trial");
    if (row.state == NodeState::quarantined && row.reason.empty())
      world_.violated("L1", name + " is quarantined without a reason");
    if (stands.empty() || fate_of(stands) != "good")
      world_.violated("I2", name + " stands on a slot that does not boot: '" + stands + "'");
  }
}

// ---- its checkers ----

bool Checkers::switches(const Action& action, const Executor& executor) {
  if (!is_for_slot(action.kind)) return false;
  const auto& record = executor.log().of(action.id);
  return open_in(record) && intent_is_durable(action.id, record.attempt);
}

void Checkers::on_cut(const std::string& node, const Executor& executor, bool running) {
  const auto& own = actions_of(node);
  const bool named =
      std::any_of(own.begin(), own.end(), [&](const Action* a) { return switches(*a, executor); });
  if (!named) world_.violated("S1", "the power of " + node + " is cut, for which no action is open");
  if (running) world_.violated("S8", "the power of " + node + " is cut though its system runs and is heard");
}

// Which of the two systems each part of the plan is for.
void Checkers::on_step_in_slot(const std::string& node, const std::string& step, const std::string& slot) {
  const bool old = step.starts_with("old/");
  if (step == "slot/commit") committed_.insert(node);
  if ((old ? "a" : "b") != slot)
    world_.violated("I1", fmt::format("{}: step {} is done to the system in slot {}", node, step, slot));
}

void Checkers::ends_in_place(const StepLog& durable, const RunRow& run) {
  size_t good = 0, works = 0;
  std::set<std::string> back;
  for (const auto& row : store_.journal(run.id).value_or({}))
    if (row.event == "returned") back.insert(row.node);
  for (const auto& node : plan_.nodes) {
    bool all = true;
    for (const Action* a : actions_of(node))
      all = all && (a->when_failed || durable.of(a->id).state == ActionState::succeeded);
    const bool returned = back.count(node) > 0;
    good += all;
    works += all || returned;
    const NodeRow row = store_.node(NodeName(node)).value_or({});
    if (all && returned) world_.violated("S6", node + " came through and went back");
    if ((row.state == NodeState::accepted) != (all || returned))
      world_.violated("S6", fmt::format("{} is {}, its journal says otherwise", node, to_string(row.state)));
    if ((row.accepted_run == run.id) != all) world_.violated("S6", node + " counts as what it is not");
    if (!all && row.reason.empty()) world_.violated("S6", node + " failed and has no reason");
  }
  const RunState expected = good == plan_.nodes.size() ? RunState::done
                            : works                    ? RunState::partial
                                                       : RunState::failed;
  if (run.state != expected)
    world_.violated(
        "S6", fmt::format("run ended as {}, the journal says {}", to_string(run.state), to_string(expected)));
}

}  // namespace muster::sim
