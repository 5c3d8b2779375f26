// The machine that the controller runs on: a node with the system it has, and never installed, wiped or
// switched off.
#include "controller/plan/own_machine.h"

#include <algorithm>
#include <functional>

#include "controller/bringup/own_machine_here.h"
#include "controller/plan/planner.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/shipped.h"

using namespace muster;
using namespace muster::testing;

namespace {

constexpr const char* kUuid = "4c4c4544-0042-3510-8052-b4c04f564433";
constexpr const char* kMac = "b4:96:91:aa:bb:01";

OwnMachine own() { return {kUuid, {kMac}, {"10.20.0.1"}}; }

NodeSpec& node_of(PlannerInput& in, const std::string& name) {
  return *std::find_if(in.spec.nodes.begin(), in.spec.nodes.end(),
                       [&](const NodeSpec& n) { return n.name == name; });
}

// Every sign by which node03 may be known.
const std::vector<std::function<void(PlannerInput&)>>& signs() {
  static const std::vector<std::function<void(PlannerInput&)>> all = {
      [](PlannerInput& in) { in.nodes["node03"].product_uuid = kUuid; },
      [](PlannerInput& in) {
        in.nodes["node03"].facts->system.uuid = in.nodes["node03"].product_uuid =
            "4C4C4544-0042-3510-8052-B4C04F564433";
      },
      // As some BMCs and kernels show it: the first three fields in the other byte order.
      [](PlannerInput& in) { in.nodes["node03"].product_uuid = "44454c4c-4200-1035-8052-b4c04f564433"; },
      [](PlannerInput& in) {
        in.nodes["node03"].machine = in.nodes["node03"].facts;
        in.nodes["node03"].machine->system.uuid = kUuid;
        in.nodes["node03"].facts.reset();
      },
      [](PlannerInput& in) { node_of(in, "node03").mac = kMac; },
      [](PlannerInput& in) { node_of(in, "node03").mac = "B4:96:91:AA:BB:01"; },
      [](PlannerInput& in) { node_of(in, "node03").address = "10.20.0.1"; },
      [](PlannerInput& in) {
        in.nodes["node03"].facts->nics = {{"eth1", kMac, 0, "", "", true}};
      },
  };
  return all;
}

std::vector<std::string> rules_of(const PlannerInput& in, const std::string& node) {
  auto made = make_plan(in);
  std::vector<std::string> rules;
  if (!made.ok()) return {"error: " + made.error().message};
  for (const auto& refusal : made->refusals)
    if (refusal.node == node) rules.push_back(refusal.rule);
  return rules;
}

const std::vector<std::string> kOwn = {"own-machine"};

PlannerInput adopted_head() {
  PlannerInput in = with_nodes(installed);
  in.own = own();
  NodeSpec& node = node_of(in, "node03");
  node.adopt = {"10.20.0.1", 22, "root", "SHA256:key"};
  node.address = "10.20.0.1";
  node.image.clear();
  node.mac.clear();
  node.power = {};
  node.disks.erase("os");
  NodeObservation& seen = in.nodes["node03"];
  seen.mode = wire::Mode::adopted;
  seen.image_digest.clear();
  seen.product_uuid = seen.facts->system.uuid = kUuid;
  return in;
}

}  // namespace

TEST_CASE("every sign is enough to leave the controller's own machine alone, whatever the request",
          "[own-machine]") {
  for (size_t i = 0; i < signs().size(); ++i)
    for (NodeObservation (*state)(const std::string&) : {seen_in_ram, installed})
      for (const RequestKind kind :
           {RequestKind::up, RequestKind::reimage, RequestKind::admit, RequestKind::accept}) {
        CAPTURE(i, static_cast<int>(kind));
        PlannerInput in = with_nodes(state);
        in.own = own();
        in.request.kind = kind;
        in.request.nodes = {"node03"};
        signs()[i](in);
        CHECK(rules_of(in, "node03") == kOwn);
        in.request.force = {"node03"};
        CHECK(rules_of(in, "node03") == kOwn);
        if (kind == RequestKind::reimage || kind == RequestKind::admit) continue;
        in.request.nodes.clear();  // among all the others, too
        in.request.force.clear();
        CHECK(rules_of(in, "node03") == kOwn);
      }
}

TEST_CASE("also before anything was ever seen of it, and while it is silent", "[own-machine]") {
  PlannerInput in = input();
  in.own = own();
  node_of(in, "node03").mac = kMac;
  CHECK(rules_of(in, "node03") == kOwn);
  in = with_nodes(installed);
  in.own = own();
  in.nodes["node03"].product_uuid = kUuid;
  in.nodes["node03"].online = false;
  CHECK(rules_of(in, "node03") == kOwn);
}

TEST_CASE("what tells no machines apart is no sign", "[own-machine]") {
  PlannerInput in = with_nodes(seen_in_ram);
  for (const char* placeholder :
       {"", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "03000200-0400-0500-0006-000700080009"}) {
    CAPTURE(placeholder);
    in.own = {placeholder, {}, {""}};
    in.nodes["node03"].product_uuid = in.nodes["node03"].facts->system.uuid = placeholder;
    in.nodes["node03"].facts->nics = {{"eth0", "", 0, "", "", false}};
    CHECK(rules_of(in, "node03").empty());
    CHECK(sign_of_own_machine(in.own, NodeSpec{}, placeholder, nullptr).empty());
  }
  in = with_nodes(seen_in_ram);
  in.own = own();
  CHECK(rules_of(in, "node03").empty());  // another machine altogether
}

TEST_CASE("the others go on when the plan is not about it", "[own-machine]") {
  PlannerInput in = with_nodes(seen_in_ram);
  in.own = own();
  in.nodes["node03"].product_uuid = kUuid;
  in.request.nodes = {"node01"};
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  CHECK(made->refusals.empty());
  CHECK(made->plan.nodes == std::vector<std::string>{"node01"});
}

TEST_CASE("adopted it is configured like any adopted node", "[own-machine][adopt]") {
  PlannerInput in = adopted_head();
  const Plan plan = planned(in);
  CHECK(std::count(plan.nodes.begin(), plan.nodes.end(), "node03") == 1);
  for (const auto& action : plan.actions)
    if (action.node == "node03")
      CHECK((action.kind == ActionKind::steps || action.kind == ActionKind::check ||
             action.kind == ActionKind::inventory));
  for (const RequestKind kind : {RequestKind::reimage, RequestKind::admit}) {
    in.request.kind = kind;
    in.request.nodes = {"node03"};
    CHECK(rules_of(in, "node03") == kOwn);
  }
}

TEST_CASE("on it a blank disk is formatted, and none that holds anything, whatever the policy",
          "[own-machine][adopt]") {
  PlannerInput in = adopted_head();
  in.request.kind = RequestKind::adopt;
  in.request.nodes = {"node03"};
  auto& disks = in.nodes["node03"].facts->disks;
  disks[3] = disk("BULKnode03", 2ull << 30);
  CHECK(rules_of(in, "node03").empty());
  CHECK(planned(in).destroys.size() == 1);
  node_of(in, "node03").disks["bulk"].policy = DiskPolicy::format;
  CHECK(rules_of(in, "node03").empty());
  disks[3].blank = false;
  disks[3].content = "xfs label=STATE";
  disks[3].content_hash = "sha256:state";
  CHECK(rules_of(in, "node03") == kOwn);
  // On any other adopted host the same spec is an order.
  in.own = {};
  CHECK(rules_of(in, "node03").empty());
}

TEST_CASE("the spec lets an adopted node have the controller's address, and no other",
          "[own-machine][spec]") {
  const std::string text = kSpec;
  const std::string key = "SHA256:" + std::string(43, 'A');
  const auto with = [&](const std::string& node) {
    std::string out = text;
    out.insert(out.find("storage:"), node);
    return parse_spec(out).errors;
  };
  const std::string adopt = "    adopt: { host: 10.20.0.1, host_key: \"" + key + "\" }\n";
  const auto none = with("  - name: head01\n    role: cpu\n" + adopt +
                         "    disks:\n      fast: { match: { serial: \"F*\", count: 2 }, policy: "
                         "format-if-blank }\n      bulk: { match: { serial: \"B*\", count: 1 }, policy: "
                         "format-if-blank }\n");
  for (const auto& error : none) FAIL_CHECK(to_string(error, "f"));
  const auto errors = with(
      "  - name: head01\n    role: cpu\n    image: cpu\n    mac: \"52:54:00:20:00:09\"\n    address: "
      "10.20.0.1\n"
      "    power: { driver: redfish, address: 10.20.1.19, secret: bmc }\n"
      "    disks:\n      os: { match: { serial: \"OS*\", count: 1 } }\n");
  CHECK(std::any_of(errors.begin(), errors.end(),
                    [](const SpecError& e) { return e.path == "nodes[1].address"; }));
}

TEST_CASE("its firewall lets in what booting machines ask for, the others' does not",
          "[own-machine][firewall]") {
  PlannerInput in = adopted_head();
  in.controller_address = "10.20.0.1";
  in.playbooks["base"] = shipped_playbooks().at("firewall");
  in.playbooks["base"].name = "base";
  in.spec.images["cpu"].bake.clear();
  for (const char* name : {"node01", "node03"}) {
    const Plan plan = planned(in);
    const Action* configure = plan.find(std::string(name) + "/configure");
    REQUIRE(configure);
    const std::string text = configure->params["steps"].dump();
    CAPTURE(name);
    CHECK((text.find("\"DHCP\"") != std::string::npos) == (std::string(name) == "node03"));
    CHECK((text.find("\"TFTP\"") != std::string::npos) == (std::string(name) == "node03"));
  }
}

TEST_CASE("the machine is known by its UUID and its physical ports", "[own-machine]") {
  const TempDir dir;
  const auto write = [&](const std::string& path, const std::string& text) {
    REQUIRE(Files(dir.path("")).write(path, text).ok());
  };
  write("/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8052-B4C04F564433\n");
  write("/class/net/eth0/address", "B4:96:91:AA:BB:01\n");
  write("/class/net/eth0/device/vendor", "0x8086\n");
  write("/class/net/eth1/address", "b4:96:91:aa:bb:01\n");  // of a bond: shows the bond's
  write("/class/net/eth1/bonding_slave/perm_hwaddr", "b4:96:91:aa:bb:02\n");
  write("/class/net/eth1/device/vendor", "0x8086\n");
  write("/class/net/br0/address", "52:54:00:20:00:01\n");  // made up, and a lab's machine has the same
  write("/class/net/lo/address", "00:00:00:00:00:00\n");
  write("/class/net/usb0/address", "00:00:00:00:00:00\n");
  write("/class/net/usb0/device/vendor", "x\n");
  const OwnMachine found = read_own_machine(dir.path(""));
  CHECK(found.uuid == kUuid);
  CHECK(found.macs == std::set<std::string>{kMac, "b4:96:91:aa:bb:02"});
  CHECK(found.addresses.empty());  // what it listens on is said later
  const OwnMachine nothing = read_own_machine(dir.path("none"), dir.path("none"));
  CHECK(nothing.uuid.empty());
  CHECK(nothing.macs.empty());
  CHECK(nothing.names.empty());
}

TEST_CASE("the machine is known to a provider by its addresses and its host name", "[own-machine]") {
  const TempDir dir;
  const Files proc(dir.path(""));
  REQUIRE(proc.write("/net/fib_trie",
                     "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n"
                     "     +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n           /32 host LOCAL\n"
                     "Local:\n     |-- 198.51.100.0\n        /24 link UNICAST\n     |-- 198.51.100.7\n"
                     "        /32 host LOCAL\n     |-- 198.51.100.255\n        /32 link BROADCAST\n")
              .ok());
  std::string host;
  std::set<std::string> names = {"198.51.100.7"};
  SECTION("with a domain") { host = "Head01.example.org", names.insert({"head01", "head01.example.org"}); }
  SECTION("a name that many machines have") { host = "localhost.localdomain"; }
  SECTION("none") {}
  if (!host.empty()) REQUIRE(proc.write("/sys/kernel/hostname", host + "\n").ok());
  CHECK(read_own_machine(dir.path("none"), dir.path("")).names == names);
}
