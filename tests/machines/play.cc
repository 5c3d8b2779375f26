#include "tests/machines/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "agent/core/step_runner.h"
#include "agent/facts/collect_facts.h"
#include "base/digest.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "controller/bringup/acceptance.h"
#include "controller/bringup/conclude.h"
#include "controller/hosts/accept_core.h"
#include "controller/hosts/hosts_spec.h"
#include "controller/report/drive_floors.h"
#include "controller/report/expected.h"
#include "controller/report/measured.h"
#include "host/rails.h"
#include "kernels/cpu/cpu.h"
#include "kernels/rdma/rdma.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"
#include "tests/machines/description.h"
#include "tests/machines/layout.h"
#include "tests/machines/programs.h"
#include "tests/unit/plan/shipped.h"

namespace muster::machines {
namespace {

constexpr int kNodes = 3;

// The real executor, judge and conclusion over a store in memory; the agents' step runner over the fleet.
class Bench : PowerPort, BootPort, LinkPort {
 public:
  explicit Bench(Fleet& fleet) : fleet_(fleet) {
    for (auto& node : fleet.nodes) facts_[node.name] = collect_facts(node.files()).value();
    declare();
    ExecutorHooks hooks;
    hooks.judge = [this](const Action& action, const Json& result) {
      return judge(spec_, kept_, *executor_, action, result);
    };
    hooks.reservation = [this](const Action& action, const Json& result) {
      return reservation(spec_, kept_, *executor_, action, result);
    };
    hooks.follow_up = [this](const Action& action, const std::vector<Json>& results) {
      return follow_up(spec_, kept_, *executor_, action, results);
    };
    hooks.conclude = [this](const RunRow& run, ExecutorHooks::Concluded done) {
      done(muster::conclude(store_, known_of(*executor_, run), key_));
    };
    executor_ = std::make_unique<Executor>(reactor_, ExecutorPorts{store_, *this, *this, *this}, hooks);
    for (const auto& node : fleet.nodes)
      executor_->set_node(NodeName(node.name), [&](NodeRow& row) {
        row.state = NodeState::accepted;
        row.facts = dump_json(to_json(facts_.at(node.name)));
      });
    reactor_.advance(100);
  }

  Report run() {
    plan_ = planned();
    executor_->start(plan_, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor_.advance(100);
    for (const auto& node : fleet_.nodes)
      executor_->on_hello({NodeName(node.name), wire::Mode::adopted, "boot-" + node.name, ""});
    reactor_.advance(100);
    for (int i = 0; i < 1000 && (work_once() || executor_->active()); ++i) reactor_.advance(kSecond);
    REQUIRE_FALSE(executor_->active());
    return report_of(store_, known_of(*executor_, store_.run(0).value())).value();
  }

  const HardwareFacts& facts(const std::string& node) const { return facts_.at(node); }
  const Plan& plan() const { return plan_; }
  const Json& answers(const std::string& action) const {
    static const Json kNone = Json::array();
    const auto found = answers_.find(action);
    return found == answers_.end() ? kNone : found->second;
  }

 private:
  void declare() {
    std::vector<AcceptHost> hosts;
    for (const auto& node : fleet_.nodes) {
      AcceptHost host;
      host.name = node.name;
      host.address = node.address;
      host.facts = &facts_.at(node.name);
      host.rdma_ports = fabric_ports(node.files());
      hosts.push_back(host);
    }
    const auto made = hosts_spec("machines", "standard", hosts);
    if (!made.ok()) FAIL(made.error().message);
    declared_ = made->spec;
    store_.write({SpecRow{1, 1, made->text, sha256(made->text), ""}}, [](Status s) { REQUIRE(s.ok()); });
    reactor_.advance(100);
  }

  Plan planned() const {
    PlannerInput in;
    in.spec = declared_;
    in.revision = 1;
    in.authority = "sha256:test";
    in.playbooks = testing::shipped_playbooks();
    in.request.kind = RequestKind::accept;
    for (const auto& node : fleet_.nodes) {
      NodeObservation& seen = in.nodes[node.name];
      seen.facts = seen.machine = facts_.at(node.name);
      seen.mode = wire::Mode::adopted;
      seen.online = true;
      seen.state = NodeState::accepted;
      seen.product_uuid = seen.facts->system.uuid;
    }
    const Plan plan = testing::planned_of(in);
    REQUIRE(measures_only(plan).ok());
    return plan;
  }

  bool work_once() {
    for (const auto& node : fleet_.nodes) executor_->on_contact(NodeName(node.name));
    for (size_t i = 0; i < fleet_.nodes.size(); ++i) {
      auto& open = offers_[fleet_.nodes[i].name];
      if (open.empty()) continue;
      const wire::WorkOrder order = open.begin()->second;
      wire::Event event;
      event.order = order.id;
      event.kind = "finished";
      event.data = carried_out(i, order);
      executor_->on_event(NodeName(fleet_.nodes[i].name), event);
      reactor_.advance(100);
      return true;
    }
    return false;
  }
  Json carried_out(size_t own, const wire::WorkOrder& order) {
    const FleetNode& node = fleet_.nodes[own];
    Files files = node.files();
    StepContext context{files, *fleet_.programs[own], node.name};
    context.order = order.id.str();
    context.module = [](const std::string& name) { return find_step_module(name); };
    const auto steps = step_order_from_json(order.params, context);
    if (!steps.ok()) FAIL(steps.error().message);
    const WorkOutcome done = run_steps(
        context, *steps, [] { return TimeMs(0); }, [](const std::string&, const Json&) {});
    const std::string id = order.id.str();
    const size_t slash = id.find('/'), attempt = id.rfind('#');
    Json& all = answers_[id.substr(slash + 1, attempt - slash - 1)];
    if (all.is_null()) all = Json::array();
    for (const Json& step : list_at(done.result, "steps"))
      if (std::none_of(all.begin(), all.end(), [&](const Json& one) { return one["step"] == step["step"]; }))
        all.push_back(step);  // what follows is a repetition in pairs, or the end of a group
    const Error error = done.status.ok() ? fail(Code::failed, "") : done.status.error();
    return {{"ok", done.status.ok()},
            {"code", done.status.ok() ? "" : std::string(to_string(error.code))},
            {"message", error.message},
            {"result", done.result}};
  }

  // Acceptance touches no power and boots nothing.
  void netboot(const NodeName&, PowerPort::Done) override { FAIL("power"); }
  void power_off(const NodeName&, PowerPort::Done) override { FAIL("power"); }
  void power_on(const NodeName&, PowerPort::Done) override { FAIL("power"); }
  void forget(const NodeName&) override {}
  void state(const NodeName&, std::function<void(Result<PowerState>)> done) override {
    reactor_.post([done] { done(PowerState::on); });
  }
  void arm(const NodeName&, std::function<void(Status)>) override { FAIL("boot"); }
  void rearm(const NodeName&, std::function<void(Status)>) override { FAIL("boot"); }
  void leave_order(const NodeName&, std::function<void(Result<Json>)>) override { FAIL("boot"); }
  void disarm(const NodeName&) override {}
  void offer(const NodeName& node, wire::WorkOrder order) override { offers_[node][order.id] = order; }
  void withdraw(const NodeName& node, const OrderId& id) override { offers_[node].erase(id); }
  void let_go(const NodeName& node, const OrderId& id) override { offers_[node].erase(id); }

  Fleet& fleet_;
  ManualReactor reactor_;
  MemStore store_{reactor_};
  CurrentSpec spec_{store_};
  KeptOfPlan kept_;
  pki::KeyPair key_ = pki::make_signing_key().value();
  std::map<std::string, HardwareFacts> facts_;
  Spec declared_;
  Plan plan_;
  std::unique_ptr<Executor> executor_;
  std::map<std::string, std::map<std::string, wire::WorkOrder>> offers_;
  std::map<std::string, Json> answers_;  // by action: its steps as answered
};

using Statements = std::map<std::string, std::set<std::string>>;  // by node

void state_parts(const FleetNode& node, const HardwareFacts& facts, std::set<std::string>& out) {
  const auto rails = kernels::rail_ports(node.files());
  out.insert(fmt::format("has gpus {}", compute_gpus(facts)));
  out.insert(fmt::format("has ports {}", facts.nics.size()));
  out.insert(fmt::format("has rails {}", std::count_if(rails.begin(), rails.end(),
                                                       [](const auto& port) { return port.active; })));
  out.insert(fmt::format("has sockets {}", facts.cpus.sockets));
  out.insert(fmt::format("has cores {}", kernels::look_at_machine(node.files()).physical_cores));
}

void state_unjudged(const Bench& bench, const Action& action, std::set<std::string>& out) {
  const HardwareFacts& facts = bench.facts(action.node.str());
  const GpuHosts hosts{false, [&](const std::string& name) { return &bench.facts(name); }};
  size_t drives = 0;
  for (const auto& step :
       expand(measured_steps(action.node.str(), planned_steps(action), bench.answers(action.id), hosts))) {
    drives += text_of(field(step.result, "check")) == "drives";
    if (!step.expect.is_object() || text_of(field(step.result, "outcome")) != "measured") continue;
    for (const auto& [metric, limit] : step.expect.items())
      if (const std::string name = text_of(field(limit, "derive")); !name.empty() && name != kDriveModels)
        if (!derive(name, step.result, &facts).value)
          out.insert(fmt::format("no figure for {}/{}", step.group, metric));
  }
  if (drives > 0) out.insert(fmt::format("has drives {}", drives));
}

// Serial numbers and addresses by what people call the part.
std::string readable(std::string text, const HardwareFacts& facts) {
  std::map<std::string, std::string> names;
  for (const auto& gpu : facts.gpus) names[gpu.uuid] = gpu.pci;
  for (const auto& disk : facts.disks) names[disk.serial] = disk.name;
  for (const auto& nic : facts.nics) names[nic.mac] = nic.name;
  for (const auto& [id, name] : names)
    if (const size_t at = id.empty() ? text.npos : text.find(id); at != text.npos)
      text.replace(at, id.size(), name);
  return text;
}

void state_verdicts(const NodeReport& node, const HardwareFacts& facts, std::set<std::string>& out) {
  out.insert(std::string(to_string(node.verdict)));
  for (const Check& check : node.checks) {
    if (check.verdict == Verdict::pass || check.verdict == Verdict::not_applicable ||
        check.verdict == Verdict::not_judged)  // what has no figure is a statement of its own
      continue;
    UNSCOPED_INFO(node.name << " " << check.name << " " << check.subject << ": " << check.reason);
    const std::string which = readable(check.subject, facts);  // of GPUs or drives
    out.insert(fmt::format("{}{} {}", check.name, which == check.subject ? "" : " of " + which,
                           to_string(check.verdict)));
    for (const auto& faulty : check.faulty_parts) out.insert("at fault: " + readable(faulty, facts));
  }
}

std::set<std::string> in_lines(const Statements& by_node) {
  std::set<std::string> out;
  for (const auto& [node, statements] : by_node)
    for (const auto& one : statements) {
      const bool all = std::all_of(by_node.begin(), by_node.end(),
                                   [&](const auto& other) { return other.second.count(one) > 0; });
      out.insert(all ? "all: " + one : node + ": " + one);
    }
  return out;
}

}  // namespace

std::set<std::string> play(const Json& machine, bool faulty) {
  // In memory: some ten thousand files, and perftest has 20 s to appear in one of them.
  const bool memory = std::filesystem::is_directory("/dev/shm");
  const TempDir dir(memory ? "/dev/shm" : std::filesystem::temp_directory_path());
  Fleet fleet;
  for (int i = 1; i <= kNodes; ++i) {
    FleetNode node;
    node.name = fmt::format("node{:02}", i);
    node.address = fmt::format("10.0.3.{}", i);
    node.machine = node_of(machine, i, faulty);
    node.root = dir.path(node.name);
    lay_out(node.machine, node.root, dir.path("shared"));
    fleet.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < fleet.nodes.size(); ++i)
    fleet.programs.push_back(std::make_unique<Programs>(fleet, i));
  Bench bench(fleet);
  const Report report = bench.run();
  Statements out;
  for (const auto& node : fleet.nodes) state_parts(node, bench.facts(node.name), out[node.name]);
  for (const auto& node : report.nodes) state_verdicts(node, bench.facts(node.name), out[node.name]);
  for (const auto& action : bench.plan().actions)
    if (action.kind == ActionKind::check) state_unjudged(bench, action, out[action.node.str()]);
  return in_lines(out);
}

}  // namespace muster::machines
