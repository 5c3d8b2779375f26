// Many nodes share what is planned for them, and each gets what it gets alone: 60 nodes of three roles with
// the playbooks that are shipped.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/json_dump.h"
#include "controller/locate/pairing.h"
#include "controller/plan/lint.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

constexpr int kOfEach = 20;

std::string group(const std::string& letter, int first, const std::string& role, const std::string& rest) {
  std::string macs;
  for (int i = 0; i < kOfEach; ++i)
    macs += fmt::format("{}\"52:54:00:20:00:{:02x}\"", i > 0 ? ", " : "", first + i);
  return fmt::format(
      "  - name: {0}[01-{1}]\n    role: {2}\n    power: {{ driver: redfish, address: \"10.20.1.{3}:{{n}}\", "
      "secret: bmc }}\n    mac: [ {4} ]\n    image: cpu\n    hardware: {{ cpus: 4, memory: \">= 8 GiB\" }}\n"
      "    disks: {{ {5} }}\n",
      letter, kOfEach, role, first, macs, rest);
}

PlannerInput sixty() {
  const std::string os = "os: { match: { serial: \"OS*\", count: 1 } }";
  const std::string bulk = os + ", bulk: { match: { serial: \"BULK*\", count: 2 }, policy: format-if-blank }";
  PlannerInput in = shipped_input(fmt::format(
      R"(cluster: gaggle
network:
  provisioning: {{ cidr: 10.20.0.0/24, dhcp: managed }}
  bmc: {{ cidr: 10.20.1.0/24 }}
users:
  ops: {{ keys: [ "{}" ], sudo: true }}
images:
  cpu: {{ recipe: debian-12, kernel: cloud, bake: [ base ] }}
nodes:
{}{}{}storage:
  shared: {{ engine: moosefs, disks: bulk, copies: 2, mount: /shared }}
roles:
  arc: {{ playbooks: [ base, monitoring, storage-shared ] }}
  cpu: {{ playbooks: [ base, ssh, firewall, mpi, scheduler, storage-shared ] }}
  net: {{ playbooks: [ base, ssh, firewall, mpi, interconnect, scheduler, monitoring, storage-shared ] }}
acceptance: {{ profile: standard }}
)",
      kKey, group("a", 10, "cpu", os), group("b", 40, "arc", bulk), group("c", 80, "net", bulk)));
  PlaybookStep own =
      step("rack", "node",
           {{"path", "/etc/rack"}, {"content", "{{node.name}} {{vars.rack}}, {{cluster}} \u00e4\n"}});
  PlaybookStep shared = step("room", "node", {{"path", "/etc/room"}, {"content", "{{vars.room}}"}});
  PlaybookStep leader =
      step("leader", "cluster", {{"path", "/etc/x"}, {"content", "{{#peers}}{{name}} {{/peers}}"}});
  in.playbooks["base"].steps.insert(in.playbooks["base"].steps.end(), {own, shared, leader});
  for (size_t i = 0; i < in.spec.nodes.size(); ++i) {
    in.spec.nodes[i].vars["rack"] = fmt::format("r{}", i % 7);
    in.spec.nodes[i].vars["room"] = i % 3 == 0 ? "east" : "west";
  }
  return in;
}

std::map<std::string, Json> by_id(const Plan& plan, const std::string& id) {
  std::map<std::string, Json> out;
  for (const auto& action : plan.actions)
    for (const Json& one : action.params.value("steps", Json::array()))
      if (one["id"] == id) out[action.node] = one["params"];
  return out;
}

}  // namespace

TEST_CASE("each of many nodes gets byte for byte what is planned for it alone", "[plan][many]") {
  const PlannerInput in = sixty();
  const Plan plan = planned_of(in);
  REQUIRE(plan.nodes.size() == 3 * kOfEach);
  std::map<std::string, const Action*> actions;
  for (const auto& action : plan.actions) actions[action.id] = &action;
  size_t compared = 0;
  for (const auto& node : plan.nodes) {
    PlannerInput one = in;
    one.request.nodes = {node};
    const Plan alone = planned_of(one);
    CAPTURE(node);
    CHECK(alone.config_digests.at(node) == plan.config_digests.at(node));
    for (const auto& action : alone.actions) {
      // Links are measured between the nodes of a plan.
      if (action.node != node || action.phase == "accept") continue;
      REQUIRE(actions.count(action.id));
      if (!(actions[action.id]->params == action.params)) FAIL(action.id);
      CHECK(actions[action.id]->title == action.title);
      CHECK(actions[action.id]->timeout == action.timeout);
      ++compared;
    }
  }
  CHECK(compared > 6 * plan.nodes.size());
}

TEST_CASE("what many nodes share is what each template says of each of them", "[plan][many]") {
  const PlannerInput in = sixty();
  const Plan plan = planned_of(in);
  const auto rack = by_id(plan, "base/rack"), room = by_id(plan, "base/room"),
             all = by_id(plan, "base/leader");
  REQUIRE(rack.size() == in.spec.nodes.size());
  for (const auto& node : in.spec.nodes) {
    Json context = {{"cluster", "gaggle"}, {"node", {{"name", node.name}}}, {"vars", node.vars}};
    context["peers"] = Json::array();
    for (const auto& other : in.spec.nodes)
      if (other.name != node.name) context["peers"].push_back({{"name", other.name}});
    const auto& steps = in.playbooks.at("base").steps;
    const auto alone = [&](size_t from_the_end) {
      return render_params(steps[steps.size() - from_the_end].params, context).value();
    };
    CHECK(rack.at(node.name) == alone(3));
    CHECK(room.at(node.name) == alone(2));
    CHECK(all.at(node.name) == alone(1));
  }
}

TEST_CASE("the text and the digest of a plan are those of its tree", "[plan][many]") {
  Plan plan = planned_of(sixty());
  plan.notes.push_back("caf\u00e9 \U0001f600 \x7f \"quoted\"");
  plan.follows = "run 7";
  const Json tree = to_json(plan);
  CHECK(plan_text(plan) == dump_json(tree));
  CHECK(plan_digest(plan) == sha256(dump_ascii(tree)));
  const auto read = plan_from_json(tree);
  REQUIRE(read.ok());
  CHECK(plan_text(*read) == dump_json(tree));
  CHECK(plan_digest(*read) == plan_digest(plan));
  CHECK(lint_plan(*read).empty());
  std::string pieces;
  size_t largest = 0;
  write_plan(plan, [&](std::string_view piece) {
    pieces += piece;
    largest = std::max(largest, piece.size());
  });
  CHECK(pieces == dump_json(tree));
  CHECK(largest < pieces.size() / 10);
  CHECK(plan_text(Plan()) == dump_json(to_json(Plan())));
}

TEST_CASE("lint looks into what many nodes share, and into what is read back", "[plan][many]") {
  PlannerInput in = sixty();
  const auto problem_of = [&](const Json& params) {
    PlannerInput bad = in;
    bad.playbooks["base"].steps.push_back(step("bad", "node", params));
    auto made = make_plan(bad);
    return made.ok() ? std::string() : made.error().message;
  };
  CHECK(problem_of({{"text", "fine"}}).empty());
  CHECK(problem_of({{"content", "secret:mpi-ssh-key"}}).empty());
  CHECK(problem_of({{"a", {{"password", "hunter2"}}}}).find("/configure.steps[].params.a.password") !=
        std::string::npos);
  CHECK(
      problem_of({{"list", Json::array({"x -----BEGIN PRIVATE KEY-----"})}}).find("contains a private key") !=
      std::string::npos);
  const Json disk = {{"serial", "S1"}, {"wwid", ""}, {"content_hash", "sha256:x"}};
  CHECK(problem_of({{"disks", Json::array({disk})}}).find("not in the destruction list") !=
        std::string::npos);
  // A secret that a template puts where others could read it.
  for (auto& node : in.spec.nodes) node.vars["app"] = "secret:app";
  CHECK(problem_of({{"content", "{{vars.app}}"}}).empty());
  CHECK_FALSE(problem_of({{"path", "{{vars.app}}"}}).empty());
  // Not of a step's text: what looks like a key and is part of a text.
  CHECK(problem_of({{"text", "\"password\":\"hunter2\" \"content_hash\":"}}).empty());
}

TEST_CASE("each node is measured with its partners among those of the plan, and steps have no other peers",
          "[plan][many]") {
  PlannerInput in = sixty();
  for (const auto& node : in.spec.nodes) make_installed(in, node.name);
  in.request.kind = RequestKind::accept;
  const bool some = GENERATE(false, true);
  for (size_t i = 0; some && i < in.spec.nodes.size(); i += 2)
    in.request.nodes.push_back(in.spec.nodes[i].name);
  const Plan plan = planned_of(in);
  for (const std::string id : {"standard/links", "standard/rdma"}) {
    std::vector<std::string> measured;
    for (const auto& node : plan.nodes)
      if (id == "standard/links" || in.spec.node(node)->role == "net") measured.push_back(node);
    const auto links = by_id(plan, id);
    REQUIRE(links.size() == measured.size());
    for (size_t i = 0; i < measured.size(); ++i) {
      std::set<std::string> wanted;
      for (const int partner : locate::partners(static_cast<int>(measured.size()), static_cast<int>(i)))
        wanted.insert(measured[static_cast<size_t>(partner)]);
      Json peers = Json::array();
      for (const auto& node : in.spec.nodes)
        if (wanted.count(node.name))
          peers.push_back({{"name", node.name}, {"address", node.address}, {"role", node.role}});
      CHECK(links.at(measured[i])["peers"] == peers);
      CHECK_FALSE(links.at(measured[i]).contains("peers_in_plan"));
    }
  }
  const auto reads = by_id(plan, "standard/shared file of another node[shared]");
  REQUIRE(reads.size() == plan.nodes.size());
  for (const auto& [node, params] : reads) CHECK(params["peers"].size() == in.spec.nodes.size() - 1);
}

TEST_CASE("a list of peers that a profile makes itself is cut to the plan, too", "[plan][many]") {
  PlannerInput in = with_nodes(installed);
  const Json own =
      Json::array({{{"name", "node03"}, {"port", 7}}, {{"name", "elsewhere"}}, {{"name", "node01"}}});
  in.playbooks["acceptance/lab"].steps.push_back(
      step("own", "cluster", {{"peers", own}, {"peers_in_plan", true}}, 1));
  in.request.kind = RequestKind::accept;
  const auto peers = by_id(planned(in), "acceptance/lab/own");
  CHECK(peers.at("node02")["peers"] == Json::array({own[0], own[2]}));
  CHECK(peers.at("node01")["peers"] == Json::array({own[0]}));
  in.request.nodes = {"node02"};
  CHECK(by_id(planned(in), "acceptance/lab/own").empty());
}
