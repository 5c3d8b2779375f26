// Acceptance from the journal to the signed report, on effects: states of nodes, what the report says, what
// was signed.
#include "controller/bringup/acceptance.h"
#include "controller/bringup/conclude.h"

#include <functional>
#include <memory>
#include <set>

#include "base/facts.h"
#include "base/standin.h"
#include "cli/follow.h"
#include "controller/report/signature.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

constexpr const char* kSpec = R"(cluster: gaggle
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc: { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W ops" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ base ] }
nodes:
  - name: node[01-04]
    role: cpu
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02", "52:54:00:20:00:03", "52:54:00:20:00:04" ]
    image: cpu
    hardware: { memory: ">= 1 GiB" }
    disks:
      os: { match: { serial: "OS*", count: 1 }, policy: format-if-blank }
roles:
  cpu: { playbooks: [ base ] }
acceptance: { profile: lab }
)";

HardwareFacts facts_of(const std::string& node) {
  HardwareFacts out;
  out.system = {"ACME", "Server", "SN-" + node, "uuid-" + node};
  out.memory_bytes = uint64_t{2} << 30;
  DiskFacts disk;
  disk.serial = "OS" + node;
  disk.wwid = "eui." + node;
  disk.model = "FAST DRIVE";
  disk.size_bytes = uint64_t{8} << 30;
  disk.transport = "nvme";
  disk.name = "nvme0n1";
  out.disks = {disk};
  return out;
}

Json measured(const std::string& check, const std::string& metric, double value) {
  return {{"check", check},          {"version", 1},
          {"outcome", "measured"},   {"error", ""},
          {"blame", Json::array()},  {"metrics", {{metric, {{"value", value}, {"unit", "x"}}}}},
          {"detail", Json::object()}};
}

// The real executor, judge, follow-up and conclusion over a store in memory; agents answer what the test
// says.
struct Bench : PowerPort, BootPort, LinkPort {
  ManualReactor reactor;
  MemStore store{reactor};
  CurrentSpec spec{store};
  KeptOfPlan kept;
  pki::KeyPair key = pki::make_signing_key().value();
  std::unique_ptr<Executor> executor;
  Plan plan;
  std::vector<std::string> names = {"node01", "node02", "node03", "node04"};
  std::map<std::string, std::map<std::string, wire::WorkOrder>> offers;
  // What the agent of a node measures for a step; by the step's module.
  std::function<Json(const std::string& node, const wire::Step& step)> measure;
  std::vector<size_t> orders;  // steps of each order carried out

  Bench() {
    store.write({SpecRow{1, 1, kSpec, "sha256:spec", ""}}, [](Status s) { REQUIRE(s.ok()); });
    plan.kind = PlanKind::accept;
    plan.cluster = "gaggle";
    plan.spec_revision = 1;
    plan.profile = "lab";
    plan.nodes = names;
    reactor.advance(100);
    live();
    for (const auto& name : names)
      executor->set_node(NodeName(name), [&](NodeRow& row) {
        row.state = NodeState::accepted;
        row.facts = to_json(facts_of(name)).dump();
        row.image_digest = "sha256:image";
      });
    reactor.advance(100);
  }
  void live() {
    ExecutorHooks hooks;
    hooks.judge = [this](const Action& action, const Json& result) {
      return judge(spec, kept, *executor, action, result);
    };
    hooks.reservation = [this](const Action& action, const Json& result) {
      return reservation(spec, kept, *executor, action, result);
    };
    hooks.follow_up = [this](const Action& action, const std::vector<Json>& results) {
      return follow_up(spec, kept, *executor, action, results);
    };
    hooks.conclude = [this](const RunRow& run, ExecutorHooks::Concluded done) {
      done(conclude(store, known_of(*executor, run), key));
    };
    executor = std::make_unique<Executor>(reactor, ExecutorPorts{store, *this, *this, *this}, hooks);
  }
  void netboot(const NodeName&, PowerPort::Done) override { FAIL("acceptance touches no power"); }
  void power_off(const NodeName&, PowerPort::Done) override { FAIL("acceptance touches no power"); }
  void power_on(const NodeName&, PowerPort::Done) override { FAIL("acceptance touches no power"); }
  void forget(const NodeName&) override {}
  void state(const NodeName&, std::function<void(Result<PowerState>)> done) override {
    reactor.post([done] { done(PowerState::on); });
  }
  void arm(const NodeName&, std::function<void(Status)> done) override {
    reactor.post([done] { done(Ok{}); });
  }
  void rearm(const NodeName& node, std::function<void(Status)> done) override { arm(node, std::move(done)); }
  void leave_order(const NodeName&, std::function<void(Result<Json>)>) override {
    FAIL("acceptance boots nothing");
  }
  void disarm(const NodeName&) override {}
  void offer(const NodeName& node, wire::WorkOrder order) override { offers[node][order.id] = order; }
  void withdraw(const NodeName& node, const OrderId& id) override { offers[node].erase(id); }
  void let_go(const NodeName& node, const OrderId& id) override { offers[node].erase(id); }

  Action& check(const std::string& node, Json steps, const std::string& name = "accept") {
    Action a;
    a.id = node + "/" + name;
    a.node = NodeName(node);
    a.kind = ActionKind::check;
    a.phase = "accept";
    a.title = "acceptance";
    a.max_attempts = 1;
    a.params = {{"steps", std::move(steps)}, {"stop_on_failure", false}};
    plan.actions.push_back(a);
    return plan.actions.back();
  }
  static Json step(const std::string& id, const std::string& module, Json params, Json expect) {
    wire::Step s;
    s.id = id;
    s.module = module;
    s.params = std::move(params);
    s.expect = std::move(expect);
    return to_json(s);
  }
  // One check of its own per node, and an all-reduce led by `leader`.
  void all_nodes(const std::string& leader, const Json& more = Json::object()) {
    Json hosts = Json::array();
    for (const auto& name : names)
      hosts.push_back({{"name", name}, {"address", "10.20.0." + name.substr(5)}});
    for (const auto& name : names) {
      Json steps = {step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}}, {{"gflops", {{"min", 10}}}})};
      Json params = {{"hosts", hosts}, {"peers_live", true}, {"seconds", "30"}};
      params.update(more);
      if (name == leader)
        steps.push_back(step("acceptance/all-reduce", "accept_mpi", params, {{"busbw_mbps", {{"min", 20}}}}));
      check(name, steps);
    }
  }
  // What this agent tells of the order it has at hand: one step of it, or the end.
  void tell(const std::string& node, const std::string& kind, Json data) {
    wire::Event e;
    e.order = offers.at(node).begin()->second.id;
    e.kind = kind;
    e.data = std::move(data);
    executor->on_event(NodeName(node), e);
    reactor.advance(100);
  }
  // Agents carry out what is on offer, one order after the other, until nothing is.
  bool work_once() {
    for (const auto& name : names) executor->on_contact(NodeName(name));  // agents ask for work all the time
    for (auto& [node, orders_of] : offers) {
      if (orders_of.empty()) continue;
      const wire::WorkOrder order = orders_of.begin()->second;
      Json steps = Json::array();
      for (const Json& json : order.params["steps"]) {
        const auto s = wire::step_from_json(json).value();
        steps.push_back({{"step", s.id},
                         {"status", "measured"},
                         {"message", ""},
                         {"ms", 1},
                         {"result", measure(node, s)}});
      }
      orders.push_back(steps.size());
      wire::Event e;
      e.order = order.id;
      e.kind = "finished";
      e.data = {{"ok", true}, {"code", ""}, {"message", ""}, {"result", {{"steps", steps}}}};
      executor->on_event(NodeName(node), e);
      reactor.advance(100);
      return true;
    }
    return false;
  }
  void hello() {
    for (const auto& name : names)
      executor->on_hello({NodeName(name), wire::Mode::installed, "boot-" + name, "sha256:image"});
    reactor.advance(100);
  }
  void start() {
    executor->start(plan, "ops", [](Result<int64_t> id) { REQUIRE(id.ok()); });
    reactor.advance(100);
    hello();
  }
  void run() {
    start();
    finish();
  }
  void finish() {
    for (int i = 0; i < 1000 && (work_once() || executor->active()); ++i) reactor.advance(kSecond);
    REQUIRE_FALSE(executor->active());
  }
  NodeState state_of(const std::string& node) { return store.node(NodeName(node)).value().state; }
  Report report() { return report_of(store, known_of(*executor, store.run(0).value())).value(); }
  std::set<std::string> in_state(NodeState state) {
    std::set<std::string> out;
    for (const auto& name : names)
      if (state_of(name) == state) out.insert(name);
    return out;
  }
};

// The members of a test of several nodes, whole or in pairs; `bad` ones spoil it.
Json all_reduce(const wire::Step& step,
                const std::function<Json(const std::set<std::string>& members)>& test) {
  const auto one = [&](const std::set<std::string>& members) {
    Json result = test(members);
    result["members"] = members;
    return result;
  };
  if (!step.params.contains("pairs")) {
    std::set<std::string> members;
    for (const Json& host : step.params["hosts"]) members.insert(host["name"].get<std::string>());
    return one(members);
  }
  Json parts = Json::array();
  for (const Json& pair : step.params["pairs"])
    parts.push_back(
        {{"pair", pair}, {"result", one({pair[0].get<std::string>(), pair[1].get<std::string>()})}});
  return {{"check", "allreduce-pairs"}, {"parts", parts}};
}
std::function<Json(const std::string&, const wire::Step&)> cluster_with(const std::string& bad,
                                                                        Json spoiled) {
  return [bad, spoiled](const std::string&, const wire::Step& step) {
    if (step.module != "accept_mpi") return measured("dgemm", "gflops", 50);
    return all_reduce(step, [&](const std::set<std::string>& members) {
      return members.count(bad) ? spoiled : measured("allreduce", "busbw_mbps", 100);
    });
  };
}
const Json kBroken = {{"check", "allreduce"}, {"outcome", "failed"}, {"error", "exit 139"}};

// Its own check of the node with this metric; a test that has none fails.
Check check_of(const Report& report, const std::string& node, const std::string& name) {
  for (const auto& n : report.nodes)
    for (const auto& check : n.checks)
      if (n.name == node && check.name == name) return check;
  FAIL("no check " << name << " of " << node);
  return {};
}
// Two measurements of each node alone, then one more in a later stage, behind all of those.
Bench& with_stages(Bench& b) {
  const std::vector<std::string> nodes = b.plan.nodes;
  std::vector<std::string> first;
  for (const auto& name : nodes) {
    b.check(
        name,
        {Bench::step("acceptance/memory", "accept", {{"kernel", "stream"}}, {{"triad_mbps", {{"min", 10}}}}),
         Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}}, {{"gflops", {{"min", 10}}}})});
    first.push_back(name + "/accept");
  }
  b.plan.barriers.push_back(first);
  for (const auto& name : nodes)
    b.check(
         name,
         {Bench::step("acceptance/shared", "accept", {{"kernel", "fio"}}, {{"write_mbps", {{"min", 10}}}})},
         "accept-2")
        .behind = 0;
  return b;
}
// What each kernel measures on each node: 50, where `low` does not say otherwise.
std::function<Json(const std::string&, const wire::Step&)> kernels(
    const std::map<std::string, std::map<std::string, double>>& low) {
  return [low](const std::string& node, const wire::Step& step) {
    const std::string kernel = step.params["kernel"].get<std::string>();
    const auto of = low.find(node);
    const double value = of != low.end() && of->second.count(kernel) ? of->second.at(kernel) : 50;
    return measured(kernel,
                    kernel == "stream" ? "triad_mbps"
                    : kernel == "fio"  ? "write_mbps"
                                       : "gflops",
                    value);
  };
}
Json step_told(const std::string& id, const std::string& status, Json result) {
  return {{"step", id},    {"name", id}, {"status", status},
          {"message", ""}, {"ms", 1},    {"result", std::move(result)}};
}

}  // namespace

TEST_CASE("a drain is no acceptance: its nodes are drained, and nothing judges them", "[acceptance]") {
  for (const auto& [kind, state] :
       {std::pair(PlanKind::drain, NodeState::drained), std::pair(PlanKind::undrain, NodeState::accepted)}) {
    Bench b;
    b.plan.kind = kind;
    b.plan.profile = "";  // as planned
    b.plan.nodes = {"node02"};
    b.check("node02", {Bench::step("shared/empty", "ceph_out", Json::object(), Json::object())}, "drain")
        .kind = ActionKind::steps;
    b.measure = [](const std::string&, const wire::Step&) { return Json::object(); };
    b.run();
    const auto row = b.store.run(0).value();
    CHECK(row.state == RunState::done);
    CHECK(b.state_of("node02") == state);
    CHECK(b.in_state(NodeState::degraded).empty());
    // Its report is signed like that of any run that changes nodes.
    const Report report = report_from_signed(signed_report(b.store, row.id).value()).value();
    CHECK(report.kind == to_string(kind));
    CHECK(totals(report).looked_at == 0);
    CHECK(totals(report).degraded == 0);
  }
}

TEST_CASE("the report names every disk that the plan destroys, with what was on it", "[acceptance]") {
  Bench b;
  b.plan.kind = PlanKind::install;
  b.plan.destroys = {{{"OSnode01", "eui.node01", "FAST DRIVE", 8ull << 30},
                      "node01",
                      "os",
                      "nvme0n1",
                      "ext4 'old'",
                      "sha256:x",
                      "operating system image cpu"},
                     {{"OSnode02", "eui.node02", "FAST DRIVE", 8ull << 30},
                      "node02",
                      "os",
                      "nvme0n1",
                      "blank",
                      "sha256:y",
                      "operating system image cpu"}};
  b.all_nodes("node01");
  b.measure = cluster_with("", {});
  b.run();
  const Report signed_one = b.report();
  REQUIRE(signed_one.destroyed.size() == 2);
  CHECK(signed_one.destroyed[0].node == "node01");
  CHECK(signed_one.destroyed[0].group == "os");
  CHECK(signed_one.destroyed[0].serial == "OSnode01");
  CHECK(signed_one.destroyed[0].wwid == "eui.node01");
  CHECK(signed_one.destroyed[0].model == "FAST DRIVE");
  CHECK(signed_one.destroyed[0].size_bytes == int64_t{8} << 30);
  CHECK(signed_one.destroyed[0].content == "ext4 'old'");
  CHECK(signed_one.destroyed[0].why == "operating system image cpu");
  CHECK(signed_one.destroyed[1].serial == "OSnode02");
  // And so does every form of it that people read.
  CHECK(render_html(signed_one).find("operating system image cpu") != std::string::npos);
  CHECK(signed_report(b.store, 0).value().find("ext4 'old'") != std::string::npos);
}

TEST_CASE("what was proven is signed once, bound to what it is about, and read back the same",
          "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  b.measure = cluster_with("", {});
  b.plan.images = {{"cpu", "sha256:image"}};
  b.plan.notes = {"links are not measured"};
  b.run();
  CHECK(b.in_state(NodeState::accepted).size() == 4);
  const std::string text = signed_report(b.store, 0).value();
  const auto parts = split_signature(text).value();
  CHECK(pki::verify(b.key.certificate_pem, parts.body, parts.value).value());
  const Report report = b.report();
  CHECK(report.digest == parts.digest);
  CHECK(to_json_text(report) == parts.body);
  CHECK(report.cluster == "gaggle");
  CHECK(report.profile == "lab");
  CHECK(report.approved_by == "ops");
  CHECK(report.spec_digest == "sha256:spec");
  CHECK(report.plan_digests == std::vector<std::string>{plan_digest(b.plan)});
  CHECK(report.images == b.plan.images);
  CHECK(report.notes == b.plan.notes);
  REQUIRE(report.nodes.size() == 4);
  CHECK(report.nodes[2].serial == "SN-node03");
  CHECK(report.nodes[2].uuid == "uuid-node03");
  CHECK(report.nodes[2].image_digest == "sha256:image");
  REQUIRE(report.nodes[2].disks.size() == 1);
  CHECK(report.nodes[2].disks[0].group == "os");
  CHECK(report.nodes[2].disks[0].serial == "OSnode03");
  bool dgemm = false;
  for (const auto& check : report.nodes[2].checks)
    dgemm = dgemm || (check.name == "dgemm/gflops" && check.measured == 50.0);
  CHECK(dgemm);
}

TEST_CASE("a run that did not end has a report, without a signature; a discovery has none to sign",
          "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  b.measure = cluster_with("", {});
  b.start();
  const Report early = b.report();
  CHECK(early.digest.empty());
  for (const auto& node : early.nodes) CHECK(node.verdict == NodeVerdict::failed);
  CHECK_FALSE(signed_report(b.store, 0).ok());

  Bench d;
  d.plan.kind = PlanKind::discover;
  d.all_nodes("node01");
  d.measure = cluster_with("", {});
  d.run();
  CHECK_FALSE(signed_report(d.store, 0).ok());
}

TEST_CASE("a node below a floor that the others reach is quarantined; with the fleet's rule it is degraded",
          "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  b.measure = [](const std::string& node, const wire::Step& step) {
    if (step.module == "accept_mpi")
      return all_reduce(step, [](const auto&) { return measured("allreduce", "busbw_mbps", 100); });
    return measured("dgemm", "gflops", node == "node02" ? 5 : 50);
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
  CHECK(b.store.node("node02").value().reason.find("5 x is below 10 x") != std::string::npos);
  CHECK(b.report().nodes[1].verdict == NodeVerdict::quarantined);
  CHECK(b.store.run(0)->state == RunState::partial);

  Bench f;
  f.all_nodes("node01");
  for (auto& action : f.plan.actions) {
    Json params = action.params.json();
    params["steps"][0]["expect"] = {{"gflops", {{"min", 1}, {"fleet_min_ratio", 0.9}}}};
    action.params = std::move(params);
  }
  f.measure = [](const std::string& node, const wire::Step& step) {
    if (step.module == "accept_mpi")
      return all_reduce(step, [](const auto&) { return measured("allreduce", "busbw_mbps", 100); });
    return measured("dgemm", "gflops", node == "node02" ? 30 : 50);
  };
  f.run();
  CHECK(f.in_state(NodeState::degraded) == std::set<std::string>{"node02"});
  CHECK(f.in_state(NodeState::accepted).size() == 3);
  CHECK(f.report().nodes[1].verdict == NodeVerdict::degraded);
}

TEST_CASE("hardware that is declared and not there is a failure of that node", "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  b.executor->set_node("node03", [](NodeRow& row) {
    HardwareFacts facts = facts_of("node03");
    facts.disks.clear();
    row.facts = to_json(facts).dump();
  });
  b.measure = cluster_with("", {});
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node03"});
}

TEST_CASE("an all-reduce that fails quarantines the node the pairs convict, not the one that started it",
          "[acceptance]") {
  const std::string bad = GENERATE(as<std::string>{}, "node01", "node02", "node04");
  Json corrupt = measured("allreduce", "busbw_mbps", 100);
  corrupt["outcome"] = "corrupt";
  corrupt["blame"] = {"rank 0 on node01"};
  const std::vector<Json> ways = {kBroken, corrupt, measured("allreduce", "busbw_mbps", 3)};
  const Json& how = ways[static_cast<size_t>(GENERATE(0, 1, 2))];
  CAPTURE(bad, how.dump());
  Bench b;
  b.all_nodes("node01");
  b.measure = cluster_with(bad, how);
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{bad});
  CHECK(b.in_state(NodeState::accepted).size() == 3);
  CHECK(b.store.node(NodeName(bad)).value().reason.find("all-reduce/located") != std::string::npos);
  CHECK(b.store.run(0)->state == RunState::partial);
}

TEST_CASE(
    "two tests of all nodes that one node spoils are both repeated in pairs, and only that node is blamed",
    "[acceptance]") {
  const bool dies = GENERATE(false, true);
  Bench b;
  b.all_nodes("node01");
  Json params = b.plan.actions[0].params.json();
  Json& steps = params["steps"];
  Json hosts = steps[1]["params"]["hosts"];
  steps.push_back(Bench::step("acceptance/training load", "accept_mpi",
                              {{"hosts", hosts}, {"load", "training"}}, {{"ranks", {{"min", 2}}}}));
  b.plan.actions[0].params = params;
  b.measure = [&](const std::string&, const wire::Step& step) {
    if (step.module != "accept_mpi") return measured("dgemm", "gflops", 50);
    const bool training = step.params.value("load", "") == "training";
    return all_reduce(step, [&](const std::set<std::string>& members) {
      return members.count("node03") ? kBroken
             : training              ? measured("training", "ranks", 4)
                                     : measured("allreduce", "busbw_mbps", 100);
    });
  };
  b.start();
  for (size_t orders = 0; b.work_once() || b.executor->active(); b.reactor.advance(kSecond)) {
    REQUIRE(++orders < 100);
    if (!dies || orders != 6) continue;  // in the middle of the rounds
    b.store.crash(MemStore::Unsynced::kept);
    b.offers.clear();
    b.live();
    REQUIRE(b.executor->resume(1).ok());
    b.hello();
  }
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node03"});
  CHECK(b.in_state(NodeState::accepted).size() == 3);
  size_t located = 0;
  for (const auto& node : b.report().nodes)
    for (const auto& check : node.checks)
      if (check.name == "all-reduce/located" || check.name == "training load/located") {
        CHECK(node.name == "node03");
        ++located;
      }
  CHECK(located == 2);
}

TEST_CASE("an all-reduce that fails with all nodes only is located nowhere: all are degraded, none is blamed",
          "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  b.measure = [](const std::string&, const wire::Step& step) {
    if (step.module != "accept_mpi") return measured("dgemm", "gflops", 50);
    return all_reduce(step, [](const auto& members) {
      return members.size() > 2 ? kBroken : measured("allreduce", "busbw_mbps", 100);
    });
  };
  b.run();
  CHECK(b.in_state(NodeState::degraded).size() == 4);
  CHECK(b.store.node("node01").value().reason == b.store.node("node03").value().reason);
  CHECK(b.store.node("node01").value().reason.find("not located: ") != std::string::npos);
}

TEST_CASE("pairs have two seconds each and a deadline of their own, whatever the whole test has",
          "[acceptance]") {
  for (const int deadline : {60, 300}) {
    Json more = {{"deadline_seconds", 3000}};
    if (deadline != 60) more["pair_deadline_seconds"] = deadline;
    Bench b;
    b.all_nodes("node01", more);
    std::set<std::pair<int, std::string>> limits;
    b.measure = [&](const std::string& node, const wire::Step& step) {
      if (step.params.contains("pairs"))
        limits.emplace(step.params["deadline_seconds"].get<int>(), step.params["seconds"].get<std::string>());
      return cluster_with("node03", kBroken)(node, step);
    };
    b.run();
    CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node03"});
    CHECK(limits == std::set<std::pair<int, std::string>>{{deadline, "2"}});
  }
}

TEST_CASE("a leader that fails by itself is not excused by the all-reduce, and no pairs are tried",
          "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  size_t pairs = 0;
  b.measure = [&](const std::string& node, const wire::Step& step) {
    pairs += step.params.contains("pairs");
    if (step.module == "accept_mpi") return all_reduce(step, [](const auto&) { return kBroken; });
    Json result = measured("dgemm", "gflops", 50);
    if (node == "node01") result["outcome"] = "corrupt";
    return result;
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node01"});
  CHECK(b.in_state(NodeState::accepted).size() == 3);
  CHECK(pairs == 0);
  CHECK(check_of(b.report(), "node01", "all-reduce/data").verdict == Verdict::fail);  // it ran, and is shown
}

TEST_CASE(
    "a leader that missed a floor does not explain why the all-reduce broke off: it is looked for in pairs",
    "[acceptance]") {
  Bench b;
  b.all_nodes("node01");
  b.measure = [](const std::string& node, const wire::Step& step) {
    if (step.module != "accept_mpi") return measured("dgemm", "gflops", node == "node01" ? 1 : 50);
    return cluster_with("node03", kBroken)(node, step);
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node01", "node03"});
  CHECK(b.in_state(NodeState::accepted).size() == 2);
}

TEST_CASE(
    "a controller killed between two rounds of pairs goes on with the next, and ends with the same name",
    "[acceptance]") {
  for (size_t orders_before = 4; orders_before <= 7; ++orders_before) {
    CAPTURE(orders_before);
    Bench b;
    b.all_nodes("node01");
    b.measure = cluster_with("node03", kBroken);
    b.start();
    while (b.orders.size() < orders_before && b.work_once()) b.reactor.advance(kSecond);
    if (!b.executor->active()) break;
    b.store.crash(MemStore::Unsynced::kept);
    b.offers.clear();
    b.live();
    REQUIRE(b.executor->resume(1).ok());
    b.hello();
    b.finish();
    CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node03"});
    CHECK(b.in_state(NodeState::accepted).size() == 3);
  }
}

TEST_CASE("a failed acceptance keeps what was measured: only what never ran is not run", "[acceptance]") {
  Bench b;
  with_stages(b);
  b.measure = [](const std::string& node, const wire::Step& step) {
    Json result = kernels({})(node, step);
    if (node == "node02" && step.params["kernel"] == "dgemm")
      result["outcome"] = "corrupt", result["error"] = "element (3,4)";
    return result;
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
  const Report report = b.report();
  CHECK(check_of(report, "node02", "dgemm/data").verdict == Verdict::fail);
  CHECK(check_of(report, "node02", "dgemm/data").measured_text == "corrupt");
  CHECK(check_of(report, "node02", "memory/triad_mbps").verdict == Verdict::pass);
  CHECK(check_of(report, "node02", "memory/triad_mbps").measured == 50.0);
  CHECK(check_of(report, "node02", "shared/data").verdict == Verdict::skipped);
  CHECK(check_of(report, "node01", "shared/write_mbps").measured == 50.0);
}

TEST_CASE("a node that is lost in the middle of its acceptance keeps what it told until then",
          "[acceptance]") {
  Bench b;
  with_stages(b);
  b.measure = kernels({});
  b.start();
  b.tell("node02", "step", step_told("acceptance/memory", "measured", measured("stream", "triad_mbps", 3)));
  b.offers["node02"].clear();
  b.executor->quarantine("node02", "its power supply smokes");
  b.finish();
  const Report report = b.report();
  CHECK(report.nodes[1].verdict == NodeVerdict::quarantined);
  CHECK(check_of(report, "node02", "memory/triad_mbps").verdict == Verdict::fail);
  CHECK(check_of(report, "node02", "memory/triad_mbps").measured == 3.0);
  CHECK(check_of(report, "node02", "dgemm/data").verdict == Verdict::skipped);
}

TEST_CASE("what one attempt measured is not lost because a later one did not come so far", "[acceptance]") {
  Bench b;
  with_stages(b);
  for (auto& action : b.plan.actions) action.max_attempts = 2;
  b.measure = kernels({});
  b.start();
  Json wrong = measured("dgemm", "gflops", 50);
  wrong["outcome"] = "corrupt";
  const auto ends = [&](Json steps) {
    b.tell("node02", "finished",
           {{"ok", true}, {"code", ""}, {"message", ""}, {"result", {{"steps", std::move(steps)}}}});
  };
  ends({step_told("acceptance/memory", "measured", measured("stream", "triad_mbps", 40)),
        step_told("acceptance/dgemm", "measured", wrong)});
  b.reactor.advance(6 * kSecond);
  REQUIRE(b.offers["node02"].size() == 1);  // the second attempt
  ends({step_told("acceptance/memory", "incomplete", nullptr),
        step_told("acceptance/dgemm", "measured", wrong)});
  b.finish();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
  const Report report = b.report();
  CHECK(check_of(report, "node02", "memory/triad_mbps").measured == 40.0);
  CHECK(check_of(report, "node02", "memory/triad_mbps").verdict == Verdict::pass);
  CHECK(check_of(report, "node02", "dgemm/data").verdict == Verdict::fail);
}

TEST_CASE("a success counts alone: what a failed attempt before it measured is gone", "[acceptance]") {
  Bench b;
  with_stages(b);
  for (auto& action : b.plan.actions) action.max_attempts = 2;
  bool first = true;
  b.measure = [&](const std::string& node, const wire::Step& step) {
    Json result = kernels({})(node, step);
    if (node == "node02" && step.params["kernel"] == "dgemm" && std::exchange(first, false))
      result["outcome"] = "failed";
    return result;
  };
  b.run();
  CHECK(b.in_state(NodeState::accepted).size() == 4);
  CHECK(check_of(b.report(), "node02", "dgemm/data").verdict == Verdict::pass);
}

TEST_CASE("a floor that every node misses is put to the operator: no node is quarantined, and none accepted",
          "[acceptance]") {
  Bench b;
  with_stages(b);
  b.measure = kernels({{"node01", {{"stream", 3}}},
                       {"node02", {{"stream", 4}}},
                       {"node03", {{"stream", 5}}},
                       {"node04", {{"stream", 4}}}});
  b.run();
  CHECK(b.in_state(NodeState::degraded).size() == 4);
  CHECK(b.store.run(0)->state == RunState::done);  // and nodes that are degraded: muster exits with 5
  const Report report = b.report();
  for (const auto& node : report.nodes) {
    CHECK(node.verdict == NodeVerdict::degraded);
    CHECK(check_of(report, node.name, "memory/triad_mbps").verdict == Verdict::degraded);
    CHECK(check_of(report, node.name, "shared/write_mbps").verdict == Verdict::pass);  // all stages ran
  }
  CHECK(totals(report).accepted == 0);
  REQUIRE(report.notes.size() == 1);
  for (const char* word :
       {"memory/triad_mbps", "at least 10", "3 x to 5 x", "4 measured nodes", "profile lab", "min"}) {
    CAPTURE(word);
    CHECK(report.notes[0].find(word) != std::string::npos);
    CHECK(b.store.node("node03").value().reason.find("memory/triad_mbps") != std::string::npos);
  }
}

TEST_CASE("one node at fault of its own is quarantined all the same when a floor is in question",
          "[acceptance]") {
  Bench b;
  with_stages(b);
  const bool corrupt = GENERATE(false, true);  // else it misses a second floor, alone
  b.measure = [&](const std::string& node, const wire::Step& step) {
    Json result = kernels({{"node01", {{"stream", 3}}},
                           {"node02", {{"stream", 4}, {"dgemm", corrupt ? 50 : 1}}},
                           {"node03", {{"stream", 5}}},
                           {"node04", {{"stream", 4}}}})(node, step);
    if (corrupt && node == "node02" && step.params["kernel"] == "dgemm") result["outcome"] = "corrupt";
    return result;
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
  CHECK(b.in_state(NodeState::degraded).size() == 3);
}

TEST_CASE("a node measured alone is judged alone", "[acceptance]") {
  Bench b;
  b.plan.nodes = {"node02"};
  with_stages(b);
  b.measure = kernels({{"node02", {{"stream", 3}}}});
  b.run();
  CHECK(b.state_of("node02") == NodeState::quarantined);
  CHECK(b.report().notes.empty());
}

TEST_CASE("errors that all nodes have are no question about a floor", "[acceptance]") {
  Bench b;
  with_stages(b);
  for (auto& action : b.plan.actions)
    if (action.id == action.node + "/accept") {
      Json params = action.params.json();
      params["steps"][0]["expect"] = {{"triad_mbps", {{"max", 10}}}};  // as counters have it
      action.params = std::move(params);
    }
  b.measure = kernels({});
  b.run();
  CHECK(b.in_state(NodeState::quarantined).size() == 4);
  CHECK(b.store.run(0)->state == RunState::failed);
}

TEST_CASE(
    "a node that missed a floor is not accepted in between, nor when the run is cancelled before anybody "
    "judged",
    "[acceptance]") {
  Bench b;
  with_stages(b);
  b.measure = kernels({{"node01", {{"dgemm", 3}}}});
  b.start();
  while (b.state_of("node01") == NodeState::accepted && b.executor->active() && b.orders.size() < 5) {
    b.work_once();
    b.reactor.advance(100);
  }
  REQUIRE(b.orders.size() == 5);  // the first order of each, and the second one of node01
  REQUIRE(b.executor->active());
  CHECK(b.state_of("node01") == NodeState::degraded);
  CHECK(b.store.node("node01").value().reason.find("dgemm/gflops") != std::string::npos);
  b.executor->cancel("enough");
  b.reactor.advance(kSecond);
  CHECK(b.state_of("node01") == NodeState::degraded);
}

TEST_CASE("what a lab plays of GPUs is not applicable; outside a lab it is no GPU", "[acceptance]") {
  for (const bool lab : {true, false}) {
    CAPTURE(lab);
    Bench b;
    b.plan.simulated = lab;
    for (const auto& name : b.names) {
      HardwareFacts facts = facts_of(name);
      facts.gpus.resize(2);
      // Of node04 one is real: its GPUs are measured like any others.
      for (auto& gpu : facts.gpus) gpu.simulated = name != "node04" || &gpu == &facts.gpus.front();
      b.executor->set_node(NodeName(name), [facts](NodeRow& row) { row.facts = to_json(facts).dump(); });
      b.check(name,
              {Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}}, {{"gflops", {{"min", 10}}}}),
               Bench::step("acceptance/gpu memory", "accept", {{"kernel", "gpu-memory"}},
                           {{"copy_gbps", {{"min", 10}}}})});
    }
    b.reactor.advance(100);
    b.measure = [](const std::string& node, const wire::Step& step) {
      if (step.params["kernel"] == "dgemm") return measured("dgemm", "gflops", 50);
      // A stand-in that seems to work is no pass either.
      if (node == "node02") return measured("gpu-memory", "copy_gbps", 5000);
      return Json{{"check", "gpu-memory"},
                  {"outcome", "unavailable"},
                  {"error", "not there"},
                  {"detail", {{"missing", "muster-accept-gpu"}}}};
    };
    b.run();
    CHECK(b.in_state(NodeState::quarantined) ==
          (lab ? std::set<std::string>{"node04"} : std::set<std::string>(b.names.begin(), b.names.end())));
    CHECK(check_of(b.report(), "node02", "gpu memory/data").verdict ==
          (lab ? Verdict::not_applicable : Verdict::fail));
    CHECK(check_of(b.report(), "node04", "gpu memory/data").verdict == Verdict::fail);
  }
}

TEST_CASE("a node that is out for one of its GPUs says which, and that a lab stands in for it",
          "[acceptance][standin]") {
  Bench b;
  b.plan.simulated = true;
  for (const auto& name : b.names) {
    HardwareFacts facts = facts_of(name);
    facts.gpus = standin_facts({2}, name);
    b.executor->set_node(NodeName(name), [facts](NodeRow& row) { row.facts = to_json(facts).dump(); });
    b.check(name, {Bench::step("acceptance/counters", "accept", {{"kernel", "counters"}},
                               {{"gpu_xids", {{"max", 0}}}})});
  }
  b.reactor.advance(100);
  b.measure = [](const std::string& node, const wire::Step&) {
    Json reported = measured("counters", "gpu_xids", node == "node02" ? 12 : 0);
    if (node == "node02")
      reported["detail"]["moved"] = {{"NIC 52:54:00:20:00:02", {{"link_down", 1}}},
                                     {"SIMULATED GPU 0000:e1:00", {{"gpu_xids", 12}}}};
    return reported;
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
  const std::string reason = b.store.node("node02").value().reason;
  CAPTURE(reason);
  CHECK(reason.find("SIMULATED GPU 0000:e1:00") != std::string::npos);
  CHECK(reason.find("NIC") == std::string::npos);
  for (const auto& name : b.names)
    CHECK(check_of(b.report(), name, "counters/gpu_xids").measured_text.find(kSimulatedGpu) !=
          std::string::npos);
}

namespace {

// Four nodes with two GPUs each; each of these steps is a check of GPUs as the shipped profiles have them.
void with_gpus(Bench& b, const std::set<std::string>& stand_ins = {}) {
  b.plan.simulated = !stand_ins.empty();
  for (const auto& name : b.names) {
    HardwareFacts facts = facts_of(name);
    facts.gpus.resize(2);
    for (auto& gpu : facts.gpus) gpu.simulated = stand_ins.count(name) > 0, gpu.model = "H100";
    b.executor->set_node(NodeName(name), [facts](NodeRow& row) { row.facts = to_json(facts).dump(); });
    Json steps = {
        Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}}, {{"gflops", {{"min", 10}}}})};
    for (const char* kernel : {"gpu-gemm", "gpu-sdc", "gpu-nccl", "gpu-training"})
      steps.push_back(Bench::step(std::string("acceptance/") + kernel, "accept", {{"kernel", kernel}},
                                  {{"value", {{"fleet_min_ratio", 0.9}}}, {"blocks", {"data"}}}));
    steps.push_back(Bench::step("acceptance/gpu counters", "accept",
                                {{"kernel", "counters"}, {"options", {{"gpus", true}}}},
                                {{"value", {{"max", 60}}}, {"blocks", {"data"}}}));
    b.check(name, std::move(steps));
  }
  b.reactor.advance(100);
}
Json not_run(const std::string& check, const Json& detail) {
  return {{"check", check}, {"outcome", "unavailable"}, {"error", "it could not be run"}, {"detail", detail}};
}

}  // namespace

TEST_CASE("a GPU check of the profile that did not run leaves its node out, with the command that mends it",
          "[acceptance][gpu-checks]") {
  struct Row {
    Json detail;
    const char* command;
  };
  const Row rows[] = {
      {{{"missing", "muster-accept-gpu"}}, "`scripts/build-gpu-package.sh`"},
      {{{"missing", "libcublasLt.so.12"}, {"found", "libcublasLt.so.13"}},
       "`scripts/build-gpu-package.sh --here`"},
      {{{"missing", "driver"}}, "`muster reimage node02`"},
      {Json::object(), "`muster accept --limit node02`"},
  };
  const std::string kernel =
      GENERATE(as<std::string>{}, "gpu-gemm", "gpu-sdc", "gpu-nccl", "gpu-training", "counters");
  for (const auto& row : rows) {
    CAPTURE(kernel, row.detail.dump());
    Bench b;
    with_gpus(b);
    b.measure = [&](const std::string& node, const wire::Step& step) {
      const std::string own = step.params["kernel"].get<std::string>();
      if (node == "node02" && own == kernel) return not_run(own, row.detail);
      return measured(own, own == "dgemm" ? "gflops" : "value", 50);
    };
    b.run();
    CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
    CHECK(b.in_state(NodeState::accepted).size() == 3);
    CHECK(b.report().nodes[1].verdict == NodeVerdict::quarantined);
    CHECK(b.store.run(0)->state == RunState::partial);
    CHECK(b.store.node("node02").value().reason.find(row.command) != std::string::npos);
  }
}

TEST_CASE("stand-ins are let off their GPU checks in a lab, real GPUs beside them are not",
          "[acceptance][gpu-checks]") {
  Bench b;
  with_gpus(b, {"node01", "node02"});
  b.measure = [&](const std::string&, const wire::Step& step) {
    const std::string own = step.params["kernel"].get<std::string>();
    if (own.starts_with("gpu-")) return not_run(own, {{"missing", "driver"}});
    return measured(own, own == "dgemm" ? "gflops" : "value", 50);
  };
  b.run();
  CHECK(b.in_state(NodeState::accepted) == std::set<std::string>{"node01", "node02"});
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node03", "node04"});
  CHECK(check_of(b.report(), "node01", "gpu-sdc/data").verdict == Verdict::not_applicable);
  CHECK(b.report().simulated);
}

TEST_CASE("GPUs that a check passed over, an answer without a figure, and `not applicable` are no run",
          "[acceptance][gpu-checks]") {
  const auto part = [](Json result) { return Json{{"subject", "GPU-1"}, {"result", std::move(result)}}; };
  const Json good = measured("gpu-sdc", "value", 50);
  Json empty = good;
  empty["metrics"] = Json::object();
  const Json rows[] = {
      {{"check", "gpu-sdc"}, {"parts", Json::array({part(good)})}},
      {{"check", "gpu-sdc"}, {"parts", Json::array()}},
      {{"check", "gpu-sdc"}, {"parts", {part(good), part(not_run("gpu-sdc", Json::object()))}}},
      empty,
      nullptr,
  };
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    Bench b;
    with_gpus(b);
    b.measure = [&](const std::string& node, const wire::Step& step) {
      const std::string own = step.params["kernel"].get<std::string>();
      if (own == "gpu-sdc" && node == "node02") return row;
      if (own == "gpu-sdc") return Json{{"check", own}, {"parts", {part(good), part(good)}}};
      return measured(own, own == "dgemm" ? "gflops" : "value", 50);
    };
    b.run();
    CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node02"});
    CHECK(b.in_state(NodeState::accepted).size() == 3);
  }
}

namespace {

void set_gpus(Bench& b, const std::string& node, size_t count) {
  HardwareFacts facts = facts_of(node);
  facts.gpus.resize(count);
  for (auto& gpu : facts.gpus) gpu.model = "H100";
  b.executor->set_node(NodeName(node), [facts](NodeRow& row) { row.facts = to_json(facts).dump(); });
}
// A test over the GPUs of these nodes, as the shipped profiles have it, behind what `leader` has to do.
void with_nccl(Bench& b, const std::string& leader, const std::vector<std::string>& over,
               bool mandatory = false) {
  Json hosts = Json::array();
  for (const auto& name : over) hosts.push_back({{"name", name}, {"address", "10.20.0." + name.substr(5)}});
  Json expect = {{"ranks", {{"min", 2}}}};
  if (!mandatory) expect["blocks"] = {"data"};
  Json step =
      Bench::step("acceptance/nccl", "accept_mpi", {{"load", "nccl"}, {"hosts", hosts}}, std::move(expect));
  step["mandatory"] = mandatory;
  for (auto& action : b.plan.actions)
    if (action.node == leader) {
      Json params = action.params.json();
      params["steps"].push_back(step);
      action.params = std::move(params);
    }
}
// All that is measured on a node alone is well; `nccl` is what the test of several nodes comes to.
std::function<Json(const std::string&, const wire::Step&)> nccl_comes_to(const Json& nccl) {
  return [nccl](const std::string&, const wire::Step& step) {
    if (step.module == "accept_mpi")
      return nccl.is_null() ? nccl : all_reduce(step, [&](const auto&) { return nccl; });
    const std::string own = step.params["kernel"].get<std::string>();
    return measured(own, own == "dgemm" ? "gflops" : "value", 50);
  };
}

}  // namespace

TEST_CASE("who starts a test over other nodes' GPUs need have none: the GPUs are held, and it is not out",
          "[acceptance][gpu-checks]") {
  const bool mandatory = GENERATE(false, true);
  Json by_member = not_run("nccl", Json::object());
  by_member["detail"]["nodes"] = {{{"host", "node03"},
                                   {"outcome", "unavailable"},
                                   {"error", "no NCCL"},
                                   {"detail", {{"missing", "libnccl.so.2"}}}}};
  struct Row {
    Json nccl;
    std::set<std::string> out, held;
  };
  const Row rows[] = {
      {not_run("nccl", Json::object()), {}, {"node01", "node02", "node03", "node04"}},
      {nullptr, {}, {"node01", "node02", "node03", "node04"}},
      {{{"check", "nccl"}, {"outcome", "failed"}, {"error", "mpirun: no such program"}},
       {},
       {"node01", "node02", "node03", "node04"}},
      {by_member, {"node03"}, {"node02", "node04"}},
      {measured("nccl", "ranks", 3), {}, {}},
  };
  for (const auto& row : rows) {
    CAPTURE(mandatory, row.nccl.dump());
    Bench b;
    with_gpus(b);
    set_gpus(b, "node01", 0);
    Json params = b.plan.actions[0].params.json();
    params["steps"] = Json::array({params["steps"][0]});  // as it is planned for a node without any
    b.plan.actions[0].params = std::move(params);
    with_nccl(b, "node01", {"node02", "node03", "node04"}, mandatory);
    b.reactor.advance(100);
    b.measure = nccl_comes_to(row.nccl);
    b.run();
    CHECK(b.in_state(NodeState::quarantined) == row.out);
    CHECK(b.in_state(NodeState::degraded) == row.held);
  }
}

TEST_CASE("a test over all GPUs that fails without having run anywhere is no test of them",
          "[acceptance][gpu-checks]") {
  const Json broken = {{"check", "nccl"}, {"outcome", "failed"}, {"error", "mpirun: no such program"}};
  Bench b;
  with_gpus(b);
  with_nccl(b, "node01", b.names);
  b.measure = nccl_comes_to(broken);
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node01"});
  CHECK(b.in_state(NodeState::degraded) == std::set<std::string>{"node02", "node03", "node04"});
  const std::string reason = b.store.node("node01").value().reason;
  CHECK(reason.find("`muster accept`") != std::string::npos);
  CHECK(b.store.node("node02").value().reason.find("`muster accept`") != std::string::npos);
  // One pair that ran is a test, and names the node that the others fail with.
  Bench located;
  with_gpus(located);
  with_nccl(located, "node01", located.names);
  located.measure = [&](const std::string& node, const wire::Step& step) {
    if (step.module != "accept_mpi") return nccl_comes_to(nullptr)(node, step);
    return all_reduce(step, [&](const std::set<std::string>& members) {
      return members.count("node03") ? broken : measured("nccl", "ranks", 2);
    });
  };
  located.run();
  CHECK(located.in_state(NodeState::quarantined) == std::set<std::string>{"node03"});
  CHECK(located.in_state(NodeState::accepted).size() == 3);
}

TEST_CASE("a node that was adopted is not told to be re-imaged for a GPU check that did not run",
          "[acceptance][gpu-checks]") {
  Bench b;
  std::string text = kSpec;
  text.insert(text.find("roles:"),
              "  - name: node05\n    role: cpu\n    adopt: { host: 10.20.0.5, host_key: \"SHA256:" +
                  std::string(43, 'B') + "\" }\n");
  b.store.write({SpecRow{2, 2, text, "sha256:spec-2", ""}}, [](Status s) { REQUIRE(s.ok()); });
  b.reactor.advance(100);
  b.spec.changed();
  REQUIRE(b.spec.get().ok());
  b.plan.spec_revision = 2;
  b.names = {"node04", "node05"};
  b.plan.nodes = b.names;
  with_gpus(b);
  b.executor->set_node("node05", [](NodeRow& row) { row.state = NodeState::accepted; });
  b.reactor.advance(100);
  b.measure = [](const std::string&, const wire::Step& step) {
    const std::string own = step.params["kernel"].get<std::string>();
    if (own == "gpu-sdc") return not_run(own, {{"missing", "muster-accept-gpu"}});
    return measured(own, own == "dgemm" ? "gflops" : "value", 50);
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node04", "node05"});
  const auto says = [&](const std::string& node, const std::string& what) {
    return check_of(b.report(), node, "gpu-sdc/data").reason.find(what) != std::string::npos &&
           b.store.node(NodeName(node)).value().reason.find(what) != std::string::npos;
  };
  CHECK(says("node04", "`muster reimage node04`"));
  CHECK_FALSE(says("node05", "muster reimage"));
  CHECK(says("node05", "/usr/lib/muster"));
}

// Whether the agent skips the step does not matter: an older one, or one with such an order, may measure.
TEST_CASE("RDMA from the memory of a stand-in is never counted as measured", "[acceptance]") {
  for (const bool lab : {true, false}) {
    CAPTURE(lab);
    Bench b;
    b.plan.simulated = lab;
    for (const auto& name : b.names) {
      HardwareFacts facts = facts_of(name);
      facts.gpus.resize(1);
      facts.gpus.front().simulated = true;
      b.executor->set_node(NodeName(name), [facts](NodeRow& row) { row.facts = to_json(facts).dump(); });
      b.check(name, {Bench::step("acceptance/rdma", "accept_rdma", {{"peers", Json::array()}},
                                 {{"gdr_ratio", {{"min", 0.1}}}}),
                     Bench::step("acceptance/rdma from gpu memory", "accept_rdma",
                                 {{"peers", Json::array()}, {"gpu_memory", true}},
                                 {{"gdr_ratio", {{"min", 0.1}}}})});
    }
    b.reactor.advance(100);
    b.measure = [](const std::string&, const wire::Step&) {
      return measured("rdma-gpu-memory", "gdr_ratio", 0.95);
    };
    b.run();
    CHECK(check_of(b.report(), "node02", "rdma/gdr_ratio").verdict == Verdict::pass);
    CHECK(check_of(b.report(), "node02", "rdma from gpu memory/data").verdict ==
          (lab ? Verdict::not_applicable : Verdict::fail));
    const Report report = b.report();
    for (const auto& node : report.nodes)
      for (const auto& check : node.checks)
        if (check.name.starts_with("rdma from gpu memory/")) {
          CAPTURE(check.name);
          CHECK(check.verdict != Verdict::pass);
          CHECK_FALSE(check.measured);
        }
  }
}

TEST_CASE("a drive below what the spec says of its model takes its node out, and the report says by what",
          "[acceptance]") {
  Bench b;
  const std::string own = "drives: [ { model: \"FAST*\", read_mbps: 7000, source: the quotation of May } ] }";
  std::string text = kSpec;
  text.replace(text.find("profile: lab }"), 14, "profile: lab, " + own);
  b.store.write({SpecRow{2, 2, text, "sha256:spec-2", ""}}, [](Status s) { REQUIRE(s.ok()); });
  b.reactor.advance(100);
  b.spec.changed();
  b.plan.spec_revision = 2;
  for (const auto& name : b.names)
    b.check(name,
            {Bench::step("acceptance/drives", "accept", {{"kernel", "drives"}},
                         {{"read_mbps", {{"min", 50}, {"derive", "drive_models"}, {"fail_ratio", 0.4}}}})});
  b.measure = [](const std::string& node, const wire::Step&) {
    const Json part = {{"subject", "OS" + node},
                       {"like", "FAST DRIVE 8589934592"},
                       {"result", measured("drives", "read_mbps", node == "node03" ? 2000 : 6000)}};
    return Json{{"check", "drives"}, {"parts", Json::array({part})}};
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined) == std::set<std::string>{"node03"});
  const Check check = check_of(b.report(), "node03", "drives/read_mbps");
  CHECK(check.verdict == Verdict::fail);
  CHECK(check.expected == 2800);
  CHECK(check.derivation.find("the quotation of May") != std::string::npos);
}

TEST_CASE("GPUs whose program loads on no node: none is accepted, and nothing is found wrong with any",
          "[acceptance][gpu-checks]") {
  Bench b;
  with_gpus(b);
  b.measure = [&](const std::string&, const wire::Step& step) {
    const std::string own = step.params["kernel"].get<std::string>();
    if (own.starts_with("gpu-")) return not_run(own, {{"missing", "libcudart.so.12"}});
    return measured(own, own == "dgemm" ? "gflops" : "value", 50);
  };
  b.run();
  CHECK(b.in_state(NodeState::quarantined).size() == b.names.size());
  CHECK(b.store.run(0)->state == RunState::failed);
  const Report report = b.report();
  for (const auto& node : report.nodes) {
    CHECK(only_unrun(node));
    CHECK(node.reason.find("it could not be run") != std::string::npos);
  }
  CHECK(cli::exit_for_run({{"state", "failed"}}, report) == cli::kPartial);
  // A fault beside it is one.
  Bench other;
  with_gpus(other);
  other.measure = [&](const std::string& node, const wire::Step& step) {
    if (node == "node03" && step.params["kernel"] == "dgemm") return measured("dgemm", "gflops", 1);
    return b.measure(node, step);
  };
  other.run();
  CHECK(cli::exit_for_run({{"state", "failed"}}, other.report()) == cli::kFailed);
}

TEST_CASE("a step that a plain user's agent did not look at holds no node, and the report counts it",
          "[acceptance][not-looked-at]") {
  Bench b;
  for (const auto& name : b.names) {
    wire::Step drives;
    drives.id = "acceptance/drives";
    drives.module = "accept";
    drives.params = {{"kernel", "drives"}};
    drives.expect = {{"read_mbps", {{"min", 50}}}};
    drives.needs = {"root"};
    b.check(name, {wire::to_json(drives), Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}},
                                                      {{"gflops", {{"min", 10}}}})});
  }
  b.start();
  for (const auto& name : b.names) {
    Json steps = {step_told("acceptance/drives", "not_looked_at", nullptr),
                  step_told("acceptance/dgemm", "measured", measured("dgemm", "gflops", 50))};
    b.tell(name, "finished", {{"ok", true}, {"code", ""}, {"message", ""}, {"result", {{"steps", steps}}}});
  }
  b.finish();
  CHECK(b.in_state(NodeState::accepted).size() == 4);
  CHECK(check_of(b.report(), "node02", "drives/data").verdict == Verdict::not_looked_at);
  CHECK(title(b.report()).find("4 of 4 nodes accepted, 1 check not looked at") != std::string::npos);
}

TEST_CASE("an acceptance says what differs among like nodes, and holds it against none",
          "[acceptance][drift]") {
  Bench b;
  b.measure = kernels({});
  for (const auto& name : b.names) {
    HardwareFacts facts = facts_of(name);
    facts.kernel = name == "node03" ? "6.1.0-18" : "6.1.0-25";
    if (name == "node02") facts.share = {32, 128, "cpuset", {"32 of 128 cores (cpuset)"}};
    b.executor->set_node(NodeName(name), [facts](NodeRow& row) { row.facts = to_json(facts).dump(); });
    b.check(name,
            {Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}}, {{"gflops", {{"min", 1}}}})});
  }
  b.reactor.advance(100);
  b.run();
  CHECK(b.in_state(NodeState::accepted).size() == 4);
  const Report report = b.report();
  REQUIRE(report.drift.size() == 1);
  CHECK(report.drift[0].name == "cpu, ACME Server");
  for (const auto& property : report.drift[0].properties)
    if (property.name == "kernel") {
      REQUIRE(property.agreement == Agreement::outliers);
      CHECK(property.values[1].hosts == std::vector<std::string>{"node03"});
    }
  CHECK(report.nodes[1].share == "32 of 128 cores (cpuset)");
  CHECK(report.nodes[0].share.empty());
  Bench install;
  install.plan.kind = PlanKind::install;
  install.measure = kernels({});
  for (const auto& name : install.names)
    install.check(
        name, {Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}}, {{"gflops", {{"min", 1}}}})});
  install.run();
  CHECK(install.report().drift.empty());
}

TEST_CASE("the history of a node goes on under another revision of the spec", "[acceptance]") {
  Bench b;
  for (const auto& name : b.names)
    b.check(name, {Bench::step("acceptance/dgemm", "accept", {{"kernel", "dgemm"}},
                               {{"gflops", {{"history_min_ratio", 0.9}}}})});
  b.measure = kernels({});
  b.run();
  REQUIRE(b.in_state(NodeState::accepted).size() == 4);
  // As a generated spec is when a host was added to the list: another text, the next revision.
  b.store.write({SpecRow{2, 2, std::string(kSpec) + "# another\n", "sha256:other", ""}},
                [](Status s) { REQUIRE(s.ok()); });
  b.reactor.advance(100);
  b.plan.spec_revision = 2;
  b.measure = kernels({{"node02", {{"dgemm", 30}}}});
  b.run();
  CHECK(b.store.run(0)->id == 2);
  CHECK(b.report().spec_revision == 2);
  CHECK(b.in_state(NodeState::degraded) == std::set<std::string>{"node02"});
  CHECK(check_of(b.report(), "node02", "dgemm/gflops").history.size() == 1);
}

TEST_CASE("a group that its nodes serve is let go when nothing more is to be measured",
          "[acceptance][group]") {
  const std::string bad = GENERATE(as<std::string>{}, "", "node02");
  Bench b;
  Json hosts = Json::array();
  for (const auto& name : b.names)
    hosts.push_back({{"name", name}, {"address", "10.20.0." + name.substr(5)}});
  for (const auto& name : b.names) {
    const Json leads = {{"hosts", hosts}, {"peers_live", true}},
               serves = {{"peers", {hosts[0]}}, {"peers_live", true}};
    b.check(name, {name == "node01"
                       ? Bench::step("acceptance/all-reduce", "accept_group", leads,
                                     {{"busbw_mbps", {{"min", 20}}}})
                       : Bench::step("acceptance/all-reduce serves", "accept_group_serve", serves, nullptr)});
  }
  std::vector<std::string> loads;  // of the one that leads
  b.measure = [&](const std::string&, const wire::Step& step) -> Json {
    // Of no weight, whatever it says.
    if (step.module == "accept_group_serve") return {{"check", "group-serve"}, {"outcome", "unavailable"}};
    const bool bye = step.params.value("bye", false);
    loads.push_back(bye ? "bye" : step.params.contains("pairs") ? "pairs" : "all");
    if (bye) return measured("group", "none", 0);
    return all_reduce(step, [&](const std::set<std::string>& members) {
      return members.count(bad) ? kBroken : measured("allreduce", "busbw_mbps", 100);
    });
  };
  b.run();
  REQUIRE(loads.size() >= 2);
  CHECK(loads.front() == "all");
  CHECK(loads.back() == "bye");
  CHECK(std::count(loads.begin(), loads.end(), "bye") == 1);
  CHECK((std::count(loads.begin(), loads.end(), "pairs") > 0) == !bad.empty());
  CHECK(b.in_state(NodeState::quarantined) ==
        (bad.empty() ? std::set<std::string>{} : std::set<std::string>{bad}));
  for (const auto& node : b.report().nodes)
    for (const auto& check : node.checks) CHECK(check.name.find("serves") == std::string::npos);
}
