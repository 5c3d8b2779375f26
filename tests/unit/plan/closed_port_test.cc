// Playbook firewall's proof that a neighbour is closed, against the rules that the neighbour gets from the
// same spec: what they let in from a node is never expected to be filtered from there.
#include "controller/plan/network_services.h"

#include <algorithm>

#include "controller/plan/plan_steps.h"
#include "controller/spec/address.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

// Three nodes of two roles; `network` and `top` are put into the spec.
Spec spec_with(const std::string& network, const std::string& top = "") {
  std::string text = replaced(kSpec, "users:\n", network + top + "users:\n");
  text = replaced(text, "playbooks: [ base, storage, shared ] }",
                  "playbooks: [ base, firewall ] }\n  spare: { playbooks: [ base, firewall ] }");
  auto parsed = parse_spec(text);
  for (const auto& e : parsed.errors) UNSCOPED_INFO(to_string(e, "spec"));
  REQUIRE(parsed.errors.empty());
  return parsed.spec;
}

std::map<std::string, wire::Step> firewall_of(const Spec& spec, const std::string& node,
                                              const std::string& controller) {
  const NodeDisks disks;
  const std::map<std::string, std::string> values;
  const std::map<std::string, const HardwareFacts*> machines;
  ClusterContext cluster(spec, machines);
  NodeContext context({spec, *spec.node(node), disks, controller, values, cluster, true});
  context.enter("firewall");
  std::vector<std::string> problems;
  std::map<std::string, wire::Step> out;
  for (const std::string phase : {"node", "cluster"})
    for (auto& planned : plan_steps(shipped_playbooks().at("firewall"), phase, context, problems))
      out[planned.name] = planned.step();
  for (const auto& problem : problems) UNSCOPED_INFO(problem);
  REQUIRE(problems.empty());
  return out;
}

// As ufw and the kernel take a rule.
bool lets_in(const Json& rule, const std::string& from, const std::string& to, int port) {
  const std::string network = rule.value("from", "0.0.0.0/0"), proto = rule.value("proto", "");
  if (network.empty() || proto == "udp" || (rule.contains("to") && rule["to"] != to)) return false;
  const bool cidr = network.find('/') != std::string::npos;
  if (cidr ? !parse_cidr(network, 0, 32)->contains(*parse_ipv4(from)) : network != from) return false;
  if (rule.contains("port")) return rule["port"] == port;
  const std::string ports = rule.value("ports", "0:65535");
  const size_t colon = ports.find(':');
  return std::stoi(ports) <= port &&
         port <= std::stoi(colon == std::string::npos ? ports : ports.substr(colon + 1));
}

// The port that the node probes, 0 where it says why it probes none.
int probed(const Spec& spec, const std::string& node, const std::string& controller) {
  const wire::Step step = firewall_of(spec, node, controller).at("the rest is closed");
  if (step.module == "not_applicable") {
    CHECK_FALSE(step.mandatory);
    return 0;
  }
  CHECK(step.module == "probe");
  CHECK(step.params["expect"] == "filtered");
  return step.params["port"].get<int>();
}

// Whichever neighbour is probed, as at the moment of the order another one may take the planned one's place.
bool some_neighbour_lets_in(const Spec& spec, const std::string& node, const std::string& controller,
                            int port) {
  return std::any_of(spec.nodes.begin(), spec.nodes.end(), [&](const NodeSpec& other) {
    if (other.name == node) return false;
    const Json allow = firewall_of(spec, other.name, controller).at("rules").params["allow"];
    return std::any_of(allow.begin(), allow.end(), [&](const Json& rule) {
      return lets_in(rule, spec.node(node)->address, other.address, port);
    });
  });
}

}  // namespace

TEST_CASE("a firewall is not to be proved from where its rules let everything in", "[plan][firewall]") {
  struct Case {
    const char *what, *network, *top;
    std::map<std::string, int> ports;
  };
  const std::string own = "10.20.0.12";  // the controller's machine is node02
  const std::map<std::string, int> others = {{"node01", 9}, {"node02", 0}, {"node03", 9}};
  const std::map<std::string, int> none = {{"node01", 0}, {"node02", 0}, {"node03", 0}};
  const std::vector<Case> cases = {
      {"the controller's machine probes none", "", "", others},
      {"a storage network of its own changes nothing", "  storage: { cidr: 10.30.0.0/24 }\n", "", others},
      {"one network for all", "  storage: { cidr: 10.20.0.0/24 }\n", "", none},
      {"everything from everywhere near", "", "firewall: [ { from: 10.0.0.0/8 } ]\n", none},
      {"everything over TCP, for one role", "",
       "firewall: [ { from: 10.20.0.0/24, proto: tcp, roles: [ cpu ] } ]\n", none},
      {"one node", "", "firewall: [ { from: 10.20.0.13 } ]\n", {{"node01", 9}, {"node02", 0}, {"node03", 0}}},
      {"elsewhere", "", "firewall: [ { from: 192.168.0.0/16 } ]\n", others},
      {"UDP", "", "firewall: [ { port: 9, proto: udp }, { from: 10.20.0.0/24, proto: udp } ]\n", others},
      {"the usual port", "", "firewall: [ { port: 9 } ]\n", {{"node01", 7}, {"node02", 0}, {"node03", 7}}},
      {"a range", "", "firewall: [ { ports: \"7:19\" } ]\n", {{"node01", 37}, {"node02", 0}, {"node03", 37}}},
      {"every port by number", "", "firewall: [ { ports: \"1:65535\" } ]\n", none},
  };
  for (const auto& c : cases) {
    const Spec spec = spec_with(c.network, c.top);
    for (const auto& [node, port] : c.ports) {
      CAPTURE(c.what, node);
      const int found = probed(spec, node, own);
      CHECK(found == port);
      if (found == 0)
        CHECK(some_neighbour_lets_in(spec, node, own, 9));
      else
        CHECK_FALSE(some_neighbour_lets_in(spec, node, own, found));
    }
  }
}

TEST_CASE("a controller that is no node leaves every node a probe, a node alone has no neighbour",
          "[plan][firewall]") {
  Spec spec = spec_with("");
  for (const auto& node : spec.nodes) CHECK(probed(spec, node.name, "10.20.0.1") == 9);
  spec.nodes.resize(1);
  CHECK(firewall_of(spec, "node01", "10.20.0.1").count("the rest is closed") == 0);
}
