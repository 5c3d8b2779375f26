// The specs of docs/specs: each parses, has a plan on machines that are what it declares, and every playbook
// of a node's role is carried out there.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "controller/plan/lint.h"
#include "controller/spec/address.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/shipped.h"

using namespace muster;
using namespace muster::testing;

namespace fs = std::filesystem;

namespace {

// Playbooks of the steps that a node gets, from the ids "playbook/step".
std::set<std::string> played(const Plan& plan, const std::string& node) {
  std::set<std::string> out;
  for (const auto& action : plan.actions) {
    if (action.node != node) continue;
    for (const Json& step : action.params.value("steps", Json::array())) {
      const std::string id = step["id"].get<std::string>();
      out.insert(id.substr(0, id.find('/')));
    }
  }
  return out;
}

std::vector<fs::path> shown_specs() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(source_dir() + "/docs/specs"))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Comments of the shown specs hold YAML in one form only, which is checked: `# or: KEY: VALUE`, indented as
// the KEY above it that it may stand in the place of.
constexpr char kOr[] = "# or: ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

// With the alternative of that line in place; "" there is no such key above it.
std::string with_alternative(const std::vector<std::string>& lines, size_t at) {
  const size_t indent = lines[at].find('#');
  const std::string said = lines[at].substr(indent + std::string(kOr).size());
  const std::string key = std::string(indent, ' ') + said.substr(0, said.find(':') + 1);
  size_t begin = at;
  while (begin > 0 && !lines[begin - 1].starts_with(key)) --begin;
  if (begin == 0) return "";
  size_t end = begin;  // behind what belongs to the key
  while (end < at && lines[end].find_first_not_of(' ') > indent) ++end;
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == begin - 1) out += std::string(indent, ' ') + said + "\n";
    if (i < begin - 1 || i >= end) out += lines[i] + "\n";
  }
  return out;
}

bool is_alternative(const std::string& line) {
  const size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line.compare(first, sizeof kOr - 1, kOr) == 0;
}

// What is wrong with the YAML in a spec's comments.
std::vector<std::string> wrong_in_comments(const std::string& text) {
  static const std::regex yaml(R"((^|\s)#.*[a-z_]+: *[\[{"'])");
  const auto lines = lines_of(text);
  std::vector<std::string> out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string where = "line " + std::to_string(i + 1) + ": ";
    if (!is_alternative(lines[i])) {
      if (std::regex_search(lines[i], yaml))
        out.push_back(where + "YAML in a comment that no test reads; write it as '" + kOr + "KEY: VALUE'");
      continue;
    }
    const std::string other = with_alternative(lines, i);
    if (other.empty()) out.push_back(where + "stands in the place of no key");
    for (const auto& error : parse_spec(other).errors) out.push_back(where + to_string(error, "alternative"));
  }
  return out;
}

}  // namespace

TEST_CASE("what the comments of the specs offer instead is accepted, too", "[plan][docs]") {
  for (const auto& path : shown_specs()) {
    CAPTURE(path.filename().string());
    for (const auto& wrong : wrong_in_comments(text_of(path))) FAIL_CHECK(wrong);
  }
  const std::string text = text_of(source_dir() + "/docs/specs/hgx-h100.yaml");
  const std::string power = "    power: { driver: redfish, address: \"10.20.1.{n+10}\", secret: bmc }\n";
  const auto at = text.find(power);
  REQUIRE(at != std::string::npos);
  const auto wrong_with = [&](const std::string& comment) {
    return wrong_in_comments(std::string(text).insert(at + power.size(), "    " + comment + "\n")).size();
  };
  CHECK(wrong_with("# or: power: { driver: ipmi, address: \"10.20.1.{n+10}\", secret: bmc }") == 0);
  // `install` goes by ids only.
  const std::string refused =
      "power: { driver: sakura-phy, address: \"gpu{n}\", secret: s, install: { image: a, os: debian-12 } }";
  CHECK(wrong_with("# or: " + refused) == 1);
  CHECK(wrong_with("# " + refused) == 1);
  CHECK(wrong_with("# or: powr: { driver: ssh }") > 0);
  CHECK(wrong_with("# a rented one: see there") == 0);
}

TEST_CASE("the rented reference cluster: eight servers by their ids, and a plan that says what is lost",
          "[plan][docs][phy]") {
  PlannerInput in = shipped_input(text_of(source_dir() + "/docs/specs/hgx-h100-phy.yaml"));
  REQUIRE(in.spec.nodes.size() == 8);
  std::set<std::string> servers;
  for (const auto& node : in.spec.nodes) {
    CAPTURE(node.name);
    CHECK(node.power.driver == "sakura-phy");
    CHECK(node.power.address.size() == 12);
    CHECK_FALSE(node.power.install_os.empty());
    CHECK(node.power.api.empty());  // the real one
    servers.insert(node.power.address);
    CHECK(node.hardware.gpus == 8);
    CHECK(node.rails.size() == 8);
    // What its provider installs is on that disk.
    CHECK(node.disks.at("os").policy == DiskPolicy::format);
  }
  CHECK(servers.size() == 8);
  // Nothing there needs a boot from the network or a name that is looked up.
  CHECK(parse_ipv4(in.spec.network.controller));
  CHECK(parse_ipv4(in.spec.network.gateway));
  CHECK(in.spec.network.bmc.cidr.empty());

  in.nodes.clear();  // as it begins: none was ever seen
  const Plan plan = planned_of(in);
  CHECK(plan.kind == PlanKind::discover);
  CHECK(lint_plan(plan).empty());
  std::set<std::string> lost;
  for (const auto& one : plan.destroys) {
    CHECK(one.every_disk);
    lost.insert(one.node);
  }
  CHECK(lost.size() == 8);
  for (const auto& node : in.spec.nodes) {
    const Action* netboot = plan.find(node.name + "/netboot");
    REQUIRE(netboot);
    CHECK(netboot->params["reinstall"]["os"] == node.power.install_os);
  }
}

TEST_CASE("the specs that are shown have a plan without an objection", "[plan][docs]") {
  const auto specs = shown_specs();
  std::set<std::string> names;
  for (const auto& path : specs) names.insert(path.filename().string());
  for (const char* cluster :
       {"hgx-h100", "hgx-h100-phy", "head-login-gpu-storage", "cpu-cluster", "roce", "one-server"}) {
    CAPTURE(cluster);
    CHECK(names.count(std::string(cluster) + ".yaml") == 1);
  }
  const std::string index = text_of(source_dir() + "/docs/specs/README.md");
  for (const auto& path : specs) {
    CAPTURE(path.filename().string());
    CHECK(index.find("](" + path.filename().string() + ")") != std::string::npos);
    const PlannerInput in = shipped_input(text_of(path));
    const Plan plan = planned_of(in);
    CHECK(lint_plan(plan).empty());
    CHECK(plan.kind == PlanKind::install);
    CHECK(plan.nodes.size() == in.spec.nodes.size());
    CHECK(plan.profile == in.spec.acceptance_profile);
    for (const auto& note : plan.notes) {
      CAPTURE(note);
      CHECK(note.find("left out") == std::string::npos);
    }
    // They are for servers: with firmware and microcode.
    for (const auto& [name, image] : in.spec.images) {
      CAPTURE(name, image.recipe);
      CHECK(fs::exists(source_dir() + "/images/" + image.recipe + ".yaml"));
      CHECK(image.recipe.find("-metal") != std::string::npos);
    }
    for (const auto& node : in.spec.nodes) {
      CAPTURE(node.name);
      const auto there = played(plan, node.name);
      CHECK(there.count(in.spec.acceptance_profile) == 1);
      for (const auto& playbook : in.spec.roles.at(node.role)) {
        CAPTURE(playbook);
        // What an image has baked is not carried out again; the verifying steps of the others are.
        const auto& baked = in.spec.images.at(node.image).bake;
        CHECK((there.count(playbook) == 1 || std::count(baked.begin(), baked.end(), playbook) == 1));
      }
    }
  }
}

TEST_CASE("nodes of the specs that are shown have declared addresses, numbered alike in all networks",
          "[plan][docs]") {
  for (const auto& path : shown_specs()) {
    CAPTURE(path.filename().string());
    const Spec spec = shipped_input(text_of(path)).spec;
    const auto number_of = [](const std::string& address) {
      const auto parsed = parse_ipv4(address);
      REQUIRE(parsed);
      return *parsed & 0xff;
    };
    for (const auto& node : spec.nodes) {
      CAPTURE(node.name, node.address, node.power.address);
      // With an address of muster's choice one that leaves would move the others.
      CHECK((spec.nodes.size() == 1 || !node.address_chosen));
      if (node.power.driver != "sakura-phy")  // ids of a provider say nothing
        CHECK(number_of(node.power.address) == number_of(node.address));
      for (const auto& rail : node.rails) CHECK(number_of(rail.address) == number_of(node.address));
    }
  }
  // The node's number goes in without the zeros of its name.
  const auto addresses = [](const char* file, const char* name) {
    const Spec spec = shipped_input(text_of(source_dir() + "/docs/specs/" + file)).spec;
    const NodeSpec* node = spec.node(name);
    REQUIRE(node);
    return node->address + " " + node->power.address;
  };
  CHECK(addresses("cpu-cluster.yaml", "cpu01") == "10.20.0.11 10.20.1.11");
  CHECK(addresses("cpu-cluster.yaml", "cpu16") == "10.20.0.26 10.20.1.26");
  CHECK(addresses("hgx-h100.yaml", "hgx08") == "10.20.0.18 10.20.1.18");
  CHECK(addresses("hgx-h100.yaml", "store02") == "10.20.0.112 10.20.1.112");
}

TEST_CASE("the plan of the HGX spec says which adapters will be rails, and of which node",
          "[plan][docs][rails]") {
  PlannerInput in = shipped_input(text_of(source_dir() + "/docs/specs/hgx-h100.yaml"));
  for (auto& [name, seen] : in.nodes) {
    if (!name.starts_with("hgx")) continue;
    HardwareFacts& facts = *seen.facts;
    const auto nic = [&facts](const std::string& mac, const std::string& pci, const std::string& path) {
      NicFacts out;
      out.mac = mac;
      out.pci = pci;
      out.pci_path = path;
      facts.nics.push_back(out);
    };
    nic(in.spec.node(name)->mac, "0000:c1:00.0", "pci0000:c0/0000:c0:01.0");
    nic("b8:ce:f6:00:99:01", "0000:c1:00.1", "pci0000:c0/0000:c0:01.0");  // the storage port
    for (int i = 0; i < 8; ++i) {
      const std::string n = std::to_string(i), bus = "pci0000:1" + n,
                        switched = bus + "/0000:1" + n + ":01.0";
      facts.gpus[static_cast<size_t>(i)].pci_path = switched;
      // Adapters are longer than Ethernet's addresses: InfiniBand. One board is wired the other way round.
      const std::string beside = name == "hgx05" ? std::to_string(7 - i) : n;
      nic("80:00:00:20:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:0" + n, "0000:2" + n + ":00.0",
          "pci0000:1" + beside + "/0000:1" + beside + ":01.0");
    }
  }
  std::vector<std::string> said;
  const Plan plan = planned_of(in);
  for (const auto& note : plan.notes)
    if (note.starts_with("rails of ")) said.push_back(note);
  REQUIRE(said.size() == 2);
  std::sort(said.begin(), said.end());
  CHECK(said[0].starts_with(
      "rails of hgx01, hgx02, hgx03, hgx04, hgx06, hgx07, hgx08: rail 0 = 0000:20:00.0, "));
  CHECK(said[1].starts_with("rails of hgx05: rail 0 = 0000:27:00.0, rail 1 = 0000:26:00.0, "));
}
