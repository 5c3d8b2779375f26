// Variables that a playbook can do without: set in part or misspelt, they are errors of the spec.
#include "controller/spec/variables.h"

#include <fmt/format.h>

#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"

using namespace muster;

namespace {

const VarGroups kGroups = {{"enroot_url", "enroot_sha256"},
                           {"pyxis_url", "pyxis_sha256"},
                           {"apptainer_url", "apptainer_sha256"},
                           {"docker_mirrors"},
                           {"docker_bridge"},
                           {"container_cache_gib"}};

// "PATH" of each error, with a blank after it.
std::string paths(const std::string& playbooks, const std::string& vars, const std::string& own_vars = "{}",
                  const std::string& own_playbook = "") {
  SpecNames names{{"base", "containers", "apptainer"}, {}, {}};
  names.optional_vars = {{"containers", kGroups}};
  const ParsedSpec parsed = parse_spec(
      "cluster: x\nnetwork: { provisioning: { cidr: 10.20.0.0/24 } }\n"
      "nodes:\n  - { name: \"n[1-2]\", role: gpu, power: { driver: redfish, address: \"10.20.1.{n}\", "
      "secret: bmc }, "
      "vars: " +
          own_vars + " }\nroles: { gpu: { playbooks: [ " + playbooks + " ] } }\nvars: " + vars + "\n" +
          own_playbook,
      names);
  std::string out;
  for (const auto& error : parsed.errors) out += error.path + " ";
  return out;
}

}  // namespace

TEST_CASE("variables: a group is set as a whole, or not at all", "[spec]") {
  CHECK(wrong_variables({}, kGroups, {}).empty());
  CHECK(wrong_variables({{"enroot_url", "u"}, {"enroot_sha256", "s"}}, kGroups, {}).empty());
  CHECK(wrong_variables({{"enroot_url", ""}}, kGroups, {}).empty());
  const auto half = wrong_variables({{"enroot_sha256", "s"}}, kGroups, {});
  REQUIRE(half.size() == 1);
  CHECK(half[0].name == "enroot_sha256");
  CHECK(half[0].reason.find("`enroot_url`") != std::string::npos);
  CHECK(is_optional(kGroups, "enroot_sha256"));
  CHECK_FALSE(is_optional(kGroups, "enroot"));
}

TEST_CASE("variables: one that is close to an unset one is misspelt", "[spec]") {
  const auto wrong = wrong_variables({{"docker_mirror", "m"}}, kGroups, {});
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].name == "docker_mirror");
  CHECK(wrong[0].reason.find("'docker_mirrors'") != std::string::npos);
  CHECK(wrong_variables({{"docker_mirror", "m"}}, kGroups, {"docker_mirror"}).empty());
  CHECK(wrong_variables({{"docker_mirror", "m"}, {"docker_mirrors", "m"}}, kGroups, {}).empty());
  CHECK(wrong_variables({{"soft_roce", "yes"}}, kGroups, {}).empty());
}

TEST_CASE("variables: pyxis is of no use without enroot", "[spec]") {
  const auto alone = wrong_variables({{"pyxis_url", "u"}, {"pyxis_sha256", "s"}}, kGroups, {});
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].name == "pyxis_url");
  CHECK(alone[0].reason.find("`enroot_url`") != std::string::npos);
  CHECK(paths("containers", "{ pyxis_url: u, pyxis_sha256: s }") == "vars.pyxis_url ");
  CHECK(paths("containers", "{ pyxis_url: u, pyxis_sha256: s, enroot_url: u, enroot_sha256: s }") == "");
}

TEST_CASE("variables: a value of the wrong form is refused at the variable", "[spec]") {
  for (const char* bridge : {"10.201.0.1/24", "172.17.0.1/16", "192.168.250.9/29"}) {
    CAPTURE(bridge);
    CHECK(paths("containers", fmt::format("{{ docker_bridge: {} }}", bridge)) == "");
  }
  // No network; the network's own address and the last one; no address; a name.
  for (const char* bridge : {"10.201.0.1", "10.201.0.1/", "10.201.0.0/24", "10.201.0.255/24", "10.201.0.1/31",
                             "10.201.1/24", "10.201.0.1/24/1", "docker0", "\"\\n\""}) {
    CAPTURE(bridge);
    CHECK(paths("containers", fmt::format("{{ docker_bridge: {} }}", bridge)) == "vars.docker_bridge ");
  }
  for (const char* limit : {"1", "500", "9999999"}) {
    CAPTURE(limit);
    CHECK(paths("containers", fmt::format("{{ container_cache_gib: {} }}", limit)) == "");
  }
  for (const char* limit : {"0", "007", "-1", "1.5", "500 GiB", "10000000"}) {
    CAPTURE(limit);
    CHECK(paths("containers", fmt::format("{{ container_cache_gib: {} }}", limit)) ==
          "vars.container_cache_gib ");
  }
  // A node's own, and a spec without the playbook.
  CHECK(paths("containers", "{}", "{ docker_bridge: none }") == "nodes[0].vars.docker_bridge ");
  CHECK(paths("base", "{ docker_bridge: none }") == "");
}

TEST_CASE("variables: a bridge overlaps no network of the cluster", "[spec]") {
  SpecNames names{{"base", "networks", "containers"}, {}, {}};
  names.optional_vars = {{"containers", kGroups}};
  // "PLACE: WORDS" of each error; line 13 has the cluster's variable, line 9 the entry's own.
  const auto errors = [&](const std::string& bridge, const std::string& own = "{}",
                          const std::string& playbook = "containers") {
    const ParsedSpec parsed = parse_spec(fmt::format(R"(cluster: x
network:
  provisioning: {{ cidr: 10.20.0.0/24 }}
  bmc: {{ cidr: 10.20.1.0/24 }}
  storage: {{ cidr: 10.40.0.0/16, port: eth1 }}
  rails: {{ count: 2, cidr: "10.100.{{rail}}.0/24" }}
nodes:
  - name: "n[1-2]"
    vars: {}
    role: gpu
    power: {{ driver: redfish, address: "10.20.1.{{n}}", secret: bmc }}
roles: {{ gpu: {{ playbooks: [ base, networks, {} ] }} }}
vars: {{ docker_bridge: {} }}
)",
                                                     own, playbook, bridge),
                                         names);
    std::string out;
    for (const SpecError& error : parsed.errors) out += to_string(error, "f") + "\n";
    return out;
  };
  const std::string end = ": a bridge needs a network of its own\n";
  CHECK(errors("10.201.0.1/24") == "");
  CHECK(errors("10.20.0.129/25") ==
        "f:13:24: vars.docker_bridge: 10.20.0.128/25 overlaps the provisioning network 10.20.0.0/24" + end);
  CHECK(errors("10.20.1.1/24") ==
        "f:13:24: vars.docker_bridge: 10.20.1.0/24 overlaps the bmc network 10.20.1.0/24" + end);
  CHECK(errors("10.32.0.1/11") ==
        "f:13:24: vars.docker_bridge: 10.32.0.0/11 overlaps the storage network 10.40.0.0/16" + end);
  CHECK(errors("10.100.1.1/28") ==
        "f:13:24: vars.docker_bridge: 10.100.1.0/28 overlaps 10.100.1.0/24 of rail 1" + end);
  CHECK(errors("10.201.0.1/24", "{ docker_bridge: 10.40.7.1/24 }") ==
        "f:9:28: nodes[0].vars.docker_bridge: 10.40.7.0/24 overlaps the storage network 10.40.0.0/16" + end);
  CHECK(errors("10.20.0.1/24", "{}", "base2").find("docker_bridge") == std::string::npos);
}

TEST_CASE("variables: Apptainer comes from one place", "[spec]") {
  const std::string vars = "{ apptainer_url: u, apptainer_sha256: s }";
  CHECK(paths("containers, apptainer", vars) == "vars.apptainer_url ");
  CHECK(paths("containers", vars) == "");
  CHECK(paths("apptainer", vars) == "");
  CHECK(paths("containers, apptainer", "{ apptainer_url: \"\" }") == "");
}

TEST_CASE("variables: a spec is refused at the variable, where a playbook in use has it", "[spec]") {
  CHECK(paths("base, containers", "{ enroot_url: u, enroot_sha256: s }") == "");
  CHECK(paths("base, containers", "{ enroot_url: u, docker_miror: m }") ==
        "vars.enroot_url vars.docker_miror ");
  CHECK(paths("base", "{ enroot_url: u, docker_miror: m }") == "");
  // A node's own, once for the entry's range, together with the cluster's.
  CHECK(paths("base, containers", "{}", "{ enroot_url: u }") == "nodes[0].vars.enroot_url ");
  CHECK(paths("base, containers", "{ enroot_url: u, enroot_sha256: s }", "{ enroot_url: v }") == "");
  // What the site's own playbook reads is no mistake.
  CHECK(
      paths("base, containers", "{ docker_mirror: m }", "{}",
            "playbooks:\n  site.yaml: |\n    playbook: site\n    steps: [ { name: n, module: file, params: { "
            "path: /x, content: \"{{vars.docker_mirror}}\" } } ]\n") == "");
}
