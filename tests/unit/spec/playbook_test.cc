#include "controller/spec/playbook.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

std::string errors_of(const std::string& text) {
  std::string out;
  for (const SpecError& error : parse_playbook(text).errors) out += to_string(error, "p") + "\n";
  return out;
}

std::string step(const std::string& rest) {
  return "playbook: x\nsteps:\n  - name: one\n    module: file\n" + rest;
}

Json context() {
  return Json::parse(R"({"cluster":"g","node":{"name":"gpu01","sudo":true},"empty":"","none":[],"no":false,
    "users":[{"name":"a","keys":["k1","k2"]},{"name":"b","keys":[]}],"count":3,"html":"<a&\"b\">"})");
}

Json rendered(const Json& value) {
  auto out = render_params(value, context());
  INFO((out.ok() ? "" : out.error().message));
  REQUIRE(out.ok());
  return *out;
}

std::string refused(const Json& value) {
  const auto out = render_params(value, context());
  REQUIRE_FALSE(out.ok());
  CHECK(out.error().code == Code::invalid);
  return out.error().message;
}

}  // namespace

TEST_CASE("a list's name as an element of a list stands for its elements", "[playbook]") {
  CHECK(rendered({"x", "{{users}}", "y"}).size() == 4);
  CHECK(rendered({"x", "{{none}}", "y"}) == Json{"x", "y"});
  CHECK(rendered(Json::array({"{{cluster}}", Json::array({"a"})})) == Json::array({"g", Json::array({"a"})}));
  CHECK(rendered(Json::array({"{{count}}", "{{#users}}{{name}}{{/users}}"})) == Json::array({3, "ab"}));
  CHECK(refused(Json::array({"ok", "{{nope}}"})).find("[1]") != std::string::npos);
}

TEST_CASE("a playbook is read", "[playbook]") {
  const ParsedPlaybook parsed = parse_playbook(R"(playbook: storage-local
help: RAID0 + XFS
steps:
  - name: scratch array
    when: "{{#scratch}}yes{{/scratch}}"
    for_each: storage_local
    module: raid
    params: { name: "{{item.name}}", mode: 0644, level: 0, ratio: 0.5, force: true, list: [1, two], nothing: ~ }
    verify: { module: mount }
    mandatory: false
  - name: mesh
    phase: cluster
    module: command
    stage: 2
    on: leader
    expect: { gflops: { min: 0.5, unit: GFLOP/s, fleet_min_ratio: 0.5 } }
)");
  CHECK(parsed.errors.empty());
  CHECK(parsed.playbook.name == "storage-local");
  CHECK(parsed.playbook.help == "RAID0 + XFS");
  REQUIRE(parsed.playbook.steps.size() == 2);
  const PlaybookStep& first = parsed.playbook.steps[0];
  CHECK(first.line == 4);
  CHECK(first.phase == "node");
  CHECK(first.for_each == "storage_local");
  CHECK(
      first.params ==
      Json::parse(
          R"({"name":"{{item.name}}","mode":"0644","level":0,"ratio":0.5,"force":true,"list":[1,"two"],"nothing":null})"));
  CHECK(first.verify == Json::parse(R"({"module":"mount","params":{}})"));
  CHECK(first.expect.is_null());
  CHECK_FALSE(first.mandatory);
  const PlaybookStep& second = parsed.playbook.steps[1];
  CHECK(second.phase == "cluster");
  CHECK(second.stage == 2);
  CHECK(second.on == "leader");
  CHECK(second.mandatory);
  CHECK(second.verify.is_null());
  CHECK(second.expect["gflops"]["min"] == 0.5);
}

TEST_CASE("optional variables are read in groups", "[playbook]") {
  const auto parsed = parse_playbook("playbook: x\noptional_vars:\n  - a_url a_sha256\n  - b\nsteps: []\n");
  CHECK(parsed.errors.empty());
  CHECK(parsed.playbook.optional_vars == VarGroups{{"a_url", "a_sha256"}, {"b"}});
  CHECK_FALSE(parse_playbook("playbook: x\noptional_vars: [ \"a,b\" ]\nsteps: []\n").errors.empty());
}

TEST_CASE("a bad playbook is explained", "[playbook]") {
  CHECK(errors_of("") == "p:1:1: the file is empty\n");
  CHECK(errors_of("playbook: x\n") == "p:1:1: missing key 'steps'\n");
  CHECK(errors_of(step("    modul: raid\n")) ==
        "p:5:5: steps[0].modul: unknown key, did you mean 'module'?\n");
  CHECK(errors_of(step("    phase: nodes\n")) ==
        "p:5:12: steps[0].phase: 'nodes' is not known, did you mean 'node'?\n");
  CHECK(errors_of(step("    stage: 2\n")) ==
        "p:5:12: steps[0].stage: only steps of phase cluster may have `stage`; this step has phase node\n");
  CHECK(errors_of(step("    on: leader\n")) ==
        "p:5:9: steps[0].on: only steps of phase cluster may have `on`; this step has phase node\n");
  CHECK(errors_of(step("    among: mpi\n")) ==
        "p:5:12: steps[0].among: only steps of phase cluster may have `among`; this step has phase node\n");
  CHECK(
      errors_of(step("    phase: cluster\n    among: MPI\n")) ==
      "p:6:12: steps[0].among: 'MPI' is not a playbook name: a lower-case letter, then letters, digits, '_', "
      "'.' and '-'\n");
  CHECK(errors_of(step("    otherwise: why\n")) ==
        "p:5:16: steps[0].otherwise: needs `for_each`, `among` or `when`: `otherwise` states why the list is "
        "empty, why there are too few nodes, or why the step does not apply to this node\n");
  CHECK(errors_of(step("    when: \"{{vars.a}}\"\n    otherwise: why\n")) == "");
  CHECK(errors_of(step("    phase: cluster\n    when: \"{{vars.a}}\"\n    otherwise: why\n")) == "");
  CHECK(errors_of(step("    phase: cluster\n    among: mpi\n    otherwise: why\n")) == "");
  CHECK(errors_of(step("    params: [a]\n")) == "p:5:13: steps[0].params: must be a map, found a list\n");
  CHECK(errors_of(step("    verify: { params: {} }\n")) == "p:5:13: steps[0].verify: missing key 'module'\n");
  CHECK(errors_of(step("    when: scratch\n")) ==
        "p:5:11: steps[0].when: 'scratch' contains no {{variable}}, so the condition would always be true\n");
  CHECK(errors_of(step("    for_each: \"{{list}}\"\n")) ==
        "p:5:15: steps[0].for_each: '{{list}}' is not the name of a list in the planner's context, without "
        "braces\n");
  CHECK(
      errors_of(step("    expect: { gflops: { minimum: 1 } }\n")) ==
      "p:5:25: steps[0].expect.gflops.minimum: unknown key; valid keys: degraded_above, degraded_below, "
      "derive, fail_ratio, fleet_min_ratio, history_min_ratio, max, min, of_raw_reads, otherwise_min, ratio, "
      "unit\n");
  CHECK(errors_of(step("  - name: one\n    module: file\n")) ==
        "p:5:11: steps[1].name: duplicate step name 'one'\n");
  CHECK(errors_of(step("  - name: a/b\n    module: File\n")) ==
        "p:5:11: steps[1].name: 'a/b' is not a step name: one line without '/' and '#'\n"
        "p:6:13: steps[1].module: 'File' is not a module name: lower-case letters, digits and '_'\n");
}

TEST_CASE("a step says what its agent needs", "[playbook]") {
  CHECK(parse_playbook(step("    needs: [root]\n")).playbook.steps.at(0).needs ==
        std::vector<std::string>{"root"});
  CHECK(parse_playbook(step("")).playbook.steps.at(0).needs.empty());
  CHECK(errors_of(step("    needs: [wings]\n")) ==
        "p:5:13: steps[0].needs[0]: 'wings' is not one of: root\n");
  CHECK_FALSE(errors_of(step("    needs: root\n")).empty());
}

TEST_CASE("a step is mandatory, or not, or in part", "[playbook]") {
  const auto read = [](const std::string& value) {
    return parse_playbook(step("    mandatory: " + value + "\n")).playbook.steps.at(0);
  };
  CHECK(read("true").mandatory);
  CHECK_FALSE(read("false").mandatory);
  CHECK(read("false").blocks.empty());
  CHECK_FALSE(read("[data, run]").mandatory);
  CHECK(read("[data, run]").blocks == std::vector<std::string>{"data", "run"});
  CHECK(errors_of(step("    mandatory: [speed]\n")) ==
        "p:5:17: steps[0].mandatory[0]: 'speed' is not one of: run, data, ceilings\n");
  CHECK_FALSE(errors_of(step("    mandatory: []\n")).empty());
  CHECK_FALSE(errors_of(step("    mandatory: [run, run]\n")).empty());
  CHECK_FALSE(errors_of(step("    mandatory: perhaps\n")).empty());
}

TEST_CASE("every playbook in the tree is valid", "[playbook]") {
  int seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source_dir() + "/playbooks")) {
    if (file.path().extension() != ".yaml") continue;
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    INFO(file.path().string());
    CHECK(errors_of(text.str()) == "");
    CHECK(parse_playbook(text.str()).playbook.name == file.path().stem().string());
    ++seen;
  }
  CHECK(seen > 0);
}

TEST_CASE("parameters are rendered without escaping", "[playbook]") {
  CHECK(rendered("plain") == "plain");
  CHECK(rendered("{{cluster}}-{{node.name}}") == "g-gpu01");
  CHECK(rendered("x={{html}}") == "x=<a&\"b\">");
  CHECK(rendered("x={{{html}}}") == "x=<a&\"b\">");
  CHECK(rendered("{{#users}}{{name}}:{{#keys}}{{.}},{{/keys}};{{/users}}") == "a:k1,k2,;b:;");
  CHECK(rendered("{{#users}}{{name}}@{{cluster}} {{/users}}") == "a@g b@g ");
  CHECK(rendered("{{#empty}}yes{{/empty}}{{^empty}}no{{/empty}}") == "no");
  CHECK(rendered("{{#none}}yes{{/none}}{{#no}}yes{{/no}}{{#node.sudo}}sudo{{/node.sudo}}") == "sudo");
  CHECK(rendered("n={{count}} {{empty}}.") == "n=3 .");
  CHECK(rendered("secret:bmc") == "secret:bmc");
  CHECK(rendered(Json{{"a", {"{{cluster}}", 1, nullptr}}, {"b", true}}) ==
        Json{{"a", {"g", 1, nullptr}}, {"b", true}});
}

TEST_CASE("a string that is one name keeps the type of its value", "[playbook]") {
  CHECK(rendered("{{count}}") == 3);
  CHECK(rendered("{{{users}}}") == context()["users"]);
  CHECK(rendered("{{ node.sudo }}") == true);
  CHECK(rendered("{{empty}}") == "");
  CHECK(rendered("{{cluster}}") == "g");
}

TEST_CASE("unknown names and broken templates are refused", "[playbook]") {
  CHECK(refused("{{clutser}}") == "unknown variable clutser");
  CHECK(refused("a {{node.nam}} {{x}}") == "unknown variable node.nam, x");
  CHECK(refused("{{#x}}a{{/x}}") == "unknown variable x");
  CHECK(refused("{{^x}}a{{/x}}") == "unknown variable x");
  CHECK(refused("{{#users}}{{nam}}{{/users}}") == "unknown variable nam");
  CHECK(refused(Json{{"content", {{"lines", {"ok", "{{x}}"}}}}}) ==
        "content: lines: [1]: unknown variable x");
  CHECK(refused("{{#users}}").find("{{#users}}") != std::string::npos);
  CHECK(refused("{{cluster").find("{{cluster") != std::string::npos);
}
