// Playbooks of the operator's own: carried in the spec, read with it, put beside and over the shipped ones.
#include "controller/spec/reader/own_playbooks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/core/step.h"
#include "base/json.h"
#include "cli/spec_file.h"
#include "controller/image/recipe.h"
#include "controller/spec/carry.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/yaml.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using testing::kSpec;

namespace {

const std::string kMotd = R"(# What people see.
playbook: motd
steps:
  - name: message
    module: file
    params: { path: /etc/motd, content: "this is {{node.name}}\n" }
)";

std::string errors_of(const std::vector<SpecError>& errors) {
  std::string out;
  for (const SpecError& error : errors) out += to_string(error, "cluster.yaml") + "\n";
  return out;
}

std::string with_role_motd(std::string text) {
  const std::string list = "playbooks: [ base, storage, shared ]";
  return text.replace(text.find(list), list.size(), "playbooks: [ base, storage, shared, motd ]");
}

std::string named(const std::string& playbooks) {
  return with_role_motd(kSpec) + "playbooks: " + playbooks + "\n";
}

std::string carried(const std::string& text, const std::vector<OwnPlaybook>& files) {
  const auto out = carry_playbooks(text, files);
  INFO((out.ok() ? "" : out.error().message));
  REQUIRE(out.ok());
  return *out;
}

// Its roles have nothing but what is shipped, and motd.
std::string of_shipped(const std::string& playbooks) {
  std::string text = named(playbooks);
  const std::string list = "playbooks: [ base, storage, shared, motd ]";
  return text.replace(text.find(list), list.size(),
                      "playbooks: [ base, storage-local, storage-shared, motd ]");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the controller's list of modules is the agent's", "[playbook][own]") {
  std::string agents = "{\n";
  std::map<std::string, Json> sorted;
  for (const StepModule& module : step_modules()) {
    Json& parameters = sorted[module.name] = Json::object();
    for (const auto& p : module.parameters)
      parameters[p.value("name", "")] = p.value("type", "any") +
                                        (p.value("required", false) ? " required" : "") +
                                        (p.value("secret", false) ? " secret" : "");
  }
  for (const auto& [name, parameters] : sorted)
    agents += (agents.size() > 2 ? ",\n  \"" : "  \"") + name + "\": " + parameters.dump();
  agents += "\n}\n";
  const std::string path = source_dir() + "/schema/modules.json";
  if (std::getenv("MUSTER_ACCEPT")) std::ofstream(path, std::ios::binary) << agents;
  INFO("regenerate it with MUSTER_ACCEPT=1");
  CHECK(text_of(path) == agents);
}

TEST_CASE("the names that a spec is checked by without a controller are those of playbooks/", "[own]") {
  const auto in = [](const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + folder))
      if (entry.path().extension() == ".yaml") out.push_back(entry.path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
  };
  CHECK(shipped_names().playbooks == in("/playbooks"));
  CHECK(shipped_names().profiles == in("/playbooks/acceptance"));
  const auto recipes = shipped_names().recipes, files = known_recipes(source_dir() + "/images");
  REQUIRE(recipes.size() == files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    CAPTURE(files[i].name);
    CHECK(files[i].error.empty());
    CHECK(recipes[i].name == files[i].name);
    CHECK(recipes[i].distribution == files[i].distribution);
    CHECK_FALSE(files[i].mirror);
  }
}

TEST_CASE("every shipped playbook and profile passes the checks of an own one", "[own]") {
  const std::string root = source_dir() + "/playbooks/";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string file = entry.path().lexically_relative(root).string();
    CAPTURE(file);
    CHECK(is_profile_file(file) == (file.starts_with("acceptance/")));
    CHECK(errors_of(parse_own_playbook({file, text_of(entry.path())}).errors).empty());
  }
}

TEST_CASE("texts are carried in the spec, and every line of it stays where it was", "[own]") {
  const std::string middle =
      "cluster: gaggle\nplaybooks: # ours\n  - site/motd.yaml\n\n  - two.yaml\n\n# of all\n" +
      with_role_motd(kSpec).substr(std::string("cluster: gaggle\n").size());
  const std::vector<OwnPlaybook> files = {
      {"site/motd.yaml", kMotd},
      {"two.yaml", "playbook: two\nsteps: []"},           // no newline at the end
      {"three.yaml", "  \n# x\nplaybook: three\n\n\n"}};  // begins with blanks, ends with empty lines
  const std::string text = carried(middle, files);
  const ParsedSpec parsed = parse_spec(text);
  INFO(errors_of(parsed.errors));
  REQUIRE(parsed.spec.own_playbooks.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(parsed.spec.own_playbooks[i].file == files[i].file);
    CHECK(parsed.spec.own_playbooks[i].text == files[i].text);
  }
  CHECK(parsed.spec.playbook_paths.empty());
  CHECK(has(text, "# playbooks: # ours\n#   - site/motd.yaml\n\n#   - two.yaml\n\n# of all\nnetwork:\n"));
  const auto before = parse_yaml(middle), after = parse_yaml(text);
  for (const YamlEntry& entry : before.root.entries)
    if (entry.key != "playbooks")
      CHECK(std::any_of(after.root.entries.begin(), after.root.entries.end(), [&](const YamlEntry& other) {
        return other.key == entry.key && other.line == entry.line;
      }));
}

TEST_CASE("whatever form the paths have, the same spec comes out, or none", "[own]") {
  for (const char* form : {"site", "[ site/motd.yaml ]", "[\n  site/motd.yaml\n]", "\n- site/motd.yaml",
                           "\n  - \"site/motd.yaml\"  # this one"}) {
    CAPTURE(form);
    const std::string first = "playbooks: " + std::string(form) + "\n" + with_role_motd(kSpec);
    for (const std::string& text : {first, named(form)}) {
      const ParsedSpec parsed = parse_spec(carried(text, {{"site/motd.yaml", kMotd}}));
      INFO(errors_of(parsed.errors));
      CHECK(parsed.errors.empty());
      CHECK(parsed.spec.nodes.size() == 3);
      REQUIRE(parsed.spec.own_playbooks.size() == 1);
      CHECK(parsed.spec.own_playbooks[0].text == kMotd);
    }
  }
  // Flow style has no lines of its own.
  CHECK_FALSE(carry_playbooks("{ cluster: a, playbooks: [ x.yaml ] }\n", {{"x.yaml", kMotd}}).ok());
  CHECK_FALSE(carry_playbooks("cluster: a\n", {{"x.yaml", kMotd}}).ok());
  // Anchors on the entry that goes.
  CHECK_FALSE(carry_playbooks("playbooks: &a [ x.yaml ]\nvars: *a\n", {{"x.yaml", kMotd}}).ok());
}

TEST_CASE("a text that YAML cannot hold is refused by its line", "[own]") {
  const std::string text = named("x.yaml");
  const auto refused = [&](const std::string& content) {
    const auto out = carry_playbooks(text, {{"x.yaml", content}});
    return out.ok() ? std::string("taken") : out.error().message;
  };
  CHECK(has(refused("playbook: x\nhelp: \x01\n"), "x.yaml:2"));
  CHECK(has(refused("playbook: x\nhelp: a\rb\n"), "x.yaml:2"));
  CHECK(has(refused(std::string("a\0b", 3)), "x.yaml:1"));
  CHECK(has(refused("playbook: x\nhelp: \xff\xfe\n"), "x.yaml:2"));
  CHECK(has(refused("help: \xc3"), "x.yaml:1"));
  CHECK(refused("playbook: x\nhelp: caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x90\xa6\n") == "taken");
  CHECK(has(refused(std::string(kLargestPlaybook + 1, 'x')), "256 KiB"));
  CHECK(refused("") != "taken");
}

TEST_CASE("an own playbook's errors name its file, line and column", "[own]") {
  std::string broken = kMotd;
  broken.replace(broken.find("module: file"), 12, "module: filee");
  const auto errors = parse_spec(carried(named("site/motd.yaml"), {{"site/motd.yaml", broken}})).errors;
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].file == "site/motd.yaml");
  CHECK(errors[0].line == 5);
  CHECK(errors[0].column == 13);
  CHECK(errors[0].path == "steps[0].module");
  CHECK(has(to_string(errors[0], "cluster.yaml"), "site/motd.yaml:5:13: steps[0].module"));
  CHECK(has(errors[0].message, "'file'"));

  const auto error_of = [&](const std::string& text) {
    return errors_of(parse_spec(carried(named("motd.yaml"), {{"motd.yaml", text}})).errors);
  };
  CHECK(error_of(kMotd).empty());
  CHECK(has(error_of("playbook: motd\nsteps: [\n"), "motd.yaml:"));                      // syntax
  CHECK(has(error_of("playbook: motd\nstep: []\nsteps: []\n"), "motd.yaml:2:1: step"));  // schema
  CHECK(has(error_of("playbook: other\nsteps: []\n"), "motd.yaml:1:11: playbook"));      // name
  CHECK(
      has(error_of("playbook: motd\nsteps: []\nremoves: [ a ]\n"), "motd.yaml:3:10: removes"));  // no overlay
  CHECK(has(error_of("playbook: motd\nsteps:\n  - name: a\n    module: file\n    verify: { module: nope }\n"),
            "motd.yaml:5:23: steps[0].verify.module"));
}

TEST_CASE("two files of one playbook, and names that are no files, are errors of the spec", "[own]") {
  const auto two = parse_spec(
      carried(named("[ a/motd.yaml, b/motd.yaml ]"), {{"a/motd.yaml", kMotd}, {"b/motd.yaml", kMotd}}));
  REQUIRE(two.errors.size() == 1);
  CHECK(two.errors[0].path == "playbooks.b/motd.yaml");
  const std::string inline_bad = with_role_motd(kSpec) + "playbooks:\n  motd: |\n    playbook: motd\n";
  CHECK(has(errors_of(parse_spec(inline_bad).errors), "playbooks.motd"));
  CHECK_FALSE(parse_spec(named("[]")).errors.empty());
}

TEST_CASE("an own playbook beside the shipped ones; its name cannot be a shipped one by accident", "[own]") {
  auto all = testing::playbooks();
  REQUIRE(add_own_playbooks({{"site/motd.yaml", kMotd}}, all).empty());
  REQUIRE(all.count("motd") == 1);
  CHECK_FALSE(all["motd"].origin.empty());
  CHECK(all["base"].origin.empty());

  auto other = testing::playbooks();
  const auto errors = add_own_playbooks({{"base.yaml", "playbook: base\nsteps: []\n"}}, other);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].file == "base.yaml");
  CHECK(errors[0].path == "playbook");
  CHECK(other["base"].steps.size() == 2);

  const auto nothing =
      add_own_playbooks({{"motd.yaml", "playbook: motd\noverlay: true\nsteps: []\n"}}, other);
  REQUIRE(nothing.size() == 1);
  CHECK(nothing[0].path == "overlay");
}

TEST_CASE("an overlay replaces, removes and adds, and says so", "[own]") {
  const auto overlay = [](const std::string& rest) {
    return OwnPlaybook{"base.yaml", "playbook: base\noverlay: true\n" + rest};
  };
  auto all = testing::playbooks();
  const auto errors = add_own_playbooks({overlay(R"(replaces: [ packages ]
removes: [ hostname ]
steps:
  - name: packages
    phase: image
    module: package
    params: { names: [ chrony, tmux ] }
  - name: more
    module: file
    params: { path: /etc/more }
)")},
                                        all);
  INFO(errors_of(errors));
  REQUIRE(errors.empty());
  const auto& steps = all["base"].steps;
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].name == "packages");
  CHECK(steps[0].module == "package");
  CHECK(steps[1].name == "more");
  CHECK(has(all["base"].origin, "replaces 'packages', removes 'hostname', adds 'more'"));

  const auto error_of = [&](const std::string& rest) {
    auto shipped = testing::playbooks();
    return errors_of(add_own_playbooks({overlay(rest)}, shipped));
  };
  const std::string step = "steps:\n  - name: packages\n    module: file\n    params: { path: /x }\n";
  // What it is about has gone with an upgrade, or would be there twice.
  CHECK(has(error_of("removes: [ hostnam ]\nsteps: []\n"), "base.yaml:3:12: removes"));
  CHECK(
      has(error_of("replaces: [ package ]\nsteps:\n  - name: package\n    module: file\n    params: { path: "
                   "/x }\n"),
          "base.yaml:3:13: replaces"));
  CHECK(has(error_of(step), "base.yaml:4:5: steps"));
  CHECK(has(error_of("removes: [ packages ]\n" + step), "base.yaml:5:5: steps"));
  CHECK(has(error_of("replaces: [ packages ]\nsteps: []\n"), "base.yaml:3:13: replaces"));
  CHECK(has(error_of("replaces: [ packages ]\nremoves: [ packages ]\n" + step), "base.yaml:3:13: replaces"));
  CHECK(error_of("replaces: [ packages ]\n" + step).empty());
}

TEST_CASE("a changed text changes the plan, of the nodes that have the playbook", "[own][plan]") {
  PlannerInput in = testing::with_nodes(testing::installed);
  const auto with = [&](const std::string& text) {
    in.playbooks = testing::playbooks();
    const ParsedSpec parsed = parse_spec(carried(named("motd.yaml"), {{"motd.yaml", text}}));
    REQUIRE(parsed.errors.empty());
    in.spec = parsed.spec;
    REQUIRE(add_own_playbooks(in.spec.own_playbooks, in.playbooks).empty());
    return make_plan(in).value().plan;
  };
  const Plan first = with(kMotd);
  CHECK(std::any_of(first.notes.begin(), first.notes.end(),
                    [](const std::string& note) { return has(note, "motd.yaml"); }));
  for (auto& [name, seen] : in.nodes) {
    seen.config_digest = first.config_digests.at(name);
    seen.state = NodeState::accepted;
  }
  CHECK(with(kMotd).empty());
  CHECK(with("# a comment\n" + kMotd).empty());
  std::string changed = kMotd;
  changed.replace(changed.find("this is"), 7, "here is");
  const Plan second = with(changed);
  CHECK(second.kind == PlanKind::apply);
  CHECK(plan_digest(second) != plan_digest(first));
}

TEST_CASE("the command reads the files, and says what is wrong with a path", "[own][cli]") {
  const TempDir dir;
  std::filesystem::create_directories(dir.path("site"));
  dir.write("site/motd.yaml", kMotd);
  dir.write("cluster.yaml", named("site"));
  auto file = cli::read_spec_file(dir.path("cluster.yaml"));
  REQUIRE(file.ok());
  CHECK(file->errors.empty());
  REQUIRE(parse_spec(file->text).spec.own_playbooks.size() == 1);
  CHECK(parse_spec(file->text).spec.own_playbooks[0].file == "site/motd.yaml");
  // What `muster spec show` gives back is a spec that needs no file beside it.
  dir.write("shown.yaml", file->text);
  std::filesystem::remove_all(dir.path("site"));
  CHECK(cli::read_spec_file(dir.path("shown.yaml"))->text == file->text);

  const auto error_of = [&](const std::string& paths) {
    dir.write("cluster.yaml", named(paths));
    const auto read = cli::read_spec_file(dir.path("cluster.yaml"));
    REQUIRE(read.ok());
    return errors_of(read->errors);
  };
  CHECK(has(error_of("site"), "playbooks: site"));
  CHECK(has(error_of("[ motd.yaml ]"), "playbooks[0]: motd.yaml: no such file"));
  std::filesystem::create_directories(dir.path("site"));
  CHECK(has(error_of("site"), "contains no playbook"));
  dir.write("site/motd.yml", kMotd);
  CHECK(has(error_of("site"), "motd.yml"));
  CHECK(has(error_of("[ site/motd.yml ]"), "NAME.yaml"));
  std::filesystem::remove(dir.path("site/motd.yml"));
  dir.write("site/motd.yaml", std::string(kLargestPlaybook + 1, '#'));
  CHECK(has(error_of("site"), "256 KiB"));
  dir.write("site/motd.yaml", "playbook: motd\r\nsteps: []\r\n");
  CHECK(error_of("[ site/motd.yaml, ./site/motd.yaml ]").find("listed twice") != std::string::npos);
  CHECK(error_of("site").empty());

  dir.write("cluster.yaml", of_shipped("site"));
  const auto checked = testing::muster_command({"spec", "check", dir.path("cluster.yaml")});
  CHECK(checked.exit == 0);
  dir.write("site/motd.yaml", "playbook: motd\nsteps:\n  - name: a\n    module: filee\n");
  const auto refused = testing::muster_command({"spec", "check", dir.path("cluster.yaml")});
  CHECK(refused.exit == 2);
  CHECK(has(refused.err, "site/motd.yaml:4:13: steps[0].module"));
}

TEST_CASE("the controller takes texts only, and checks them against what it ships", "[own][api]") {
  testing::Controller c(source_dir() + "/playbooks");
  const auto put = [&](const std::string& text) {
    return c.call(api::Listener::local, "PUT", "/v1/spec?file=cluster.yaml", text);
  };
  const auto paths = put(of_shipped("site"));
  CHECK(paths.status == 422);
  CHECK(has(paths.body, "the controller does not read"));
  CHECK(put(carried(of_shipped("motd.yaml"), {{"motd.yaml", kMotd}})).status == 200);
  const auto refused = put(carried(of_shipped("[ motd.yaml, ssh.yaml ]"),
                                   {{"motd.yaml", kMotd}, {"ssh.yaml", "playbook: ssh\nsteps: []\n"}}));
  CHECK(refused.status == 422);
  const Json errors = parse_json(refused.body).value()["errors"];
  REQUIRE(errors.size() == 1);
  CHECK(errors[0]["file"] == "ssh.yaml");
  CHECK(errors[0]["line"] == 1);
  CHECK(parse_json(c.call(api::Listener::local, "GET", "/v1/spec").body).value()["revision"] == 1);
}

TEST_CASE("a wrong call of a module is found with the spec: unknown, missing and mistyped parameters",
          "[own]") {
  const auto error_of = [&](const std::string& step) {
    return errors_of(parse_own_playbook({"x.yaml", "playbook: x\nsteps:\n  - name: a\n" + step}).errors);
  };
  CHECK(error_of("    module: package\n    params: { names: [ tree ] }\n").empty());
  CHECK(error_of("    module: file\n    params: { path: \"{{item}}\", content: \"{{{x}}}\" }\n").empty());
  // What a template becomes is for the plan to say; which words there are is not.
  CHECK(error_of("    module: package\n    params: { names: \"{{packages}}\" }\n").empty());
  const std::string unknown = error_of("    module: package\n    params: { nmaes: [ tree ] }\n");
  CHECK(has(unknown, "x.yaml:5:15: steps[0].params.nmaes"));
  CHECK(has(unknown, "did you mean 'names'?"));
  CHECK(
      has(error_of("    module: package\n    params: { names: 7 }\n"), "x.yaml:5:22: steps[0].params.names"));
  CHECK(has(error_of("    module: file\n"), "x.yaml:4:13: steps[0].params: module 'file' needs"));
  CHECK(has(error_of("    module: file\n    params: { path: /x, content: [ a ] }\n"),
            "steps[0].params.content"));
  CHECK(has(
      error_of(
          "    module: file\n    params: { path: /x }\n    verify: { module: mount, params: { pat: 1 } }\n"),
      "steps[0].verify.params.pat"));
  // The executor's own words are no module's.
  CHECK(error_of(
            "    module: accept_links\n    params: { peers: \"{{peers}}\", peers_live: true, peers_in_plan: "
            "true, address: \"{{node.address}}\" }\n")
            .empty());
  CHECK(error_of("    module: file\n    params: [ path ]\n").find("needs") ==
        std::string::npos);  // the schema's
}

TEST_CASE("limits that cannot be judged are an error of their playbook, each once and with its place",
          "[own]") {
  const auto errors = [&](const std::string& expect) {
    return parse_own_playbook(
               {"acceptance/ours.yaml",
                "playbook: ours\nsteps:\n  - name: a\n    module: accept\n    params: { kernel: dgemm "
                "}\n    expect: { gflops: " +
                    expect + " }\n"})
        .errors;
  };
  CHECK(errors("{ min: 1, derive: cpu_peak, ratio: 0.5 }").empty());
  for (const char* bad :
       {"{ min: 2, max: 1 }", "{ derive: cpu_peek, ratio: 0.5 }", "{ derive: cpu_peak }", "{ ratio: 0.5 }",
        "{ fleet_min_ratio: 0 }", "{ of_raw_reads: 0.5 }", "{ derive: drive_models, ratio: 0.5 }",
        "{ fleet_min_ratio: 2 }", "{ mni: 1 }", "{ min: one }"}) {
    CAPTURE(bad);
    const auto found = errors(bad);
    REQUIRE(found.size() == 1);
    CHECK(found[0].file == "acceptance/ours.yaml");
    CHECK(found[0].line == 6);
    CHECK(found[0].path.starts_with("steps[0].expect.gflops"));
  }
  CHECK(has(errors("{ derive: cpu_peek, ratio: 0.5 }")[0].message, "did you mean 'cpu_peak'?"));
  // A shipped one, too: parse_playbook() is how the controller loads them.
  CHECK_FALSE(
      parse_playbook("playbook: p\nsteps:\n  - { name: a, module: accept, expect: { x: { ratio: 0.5 } } }\n")
          .errors.empty());
}

TEST_CASE("names of playbooks and profiles are those that are shipped and the spec's own", "[own][spec]") {
  const SpecNames names = shipped_names();
  const std::string ours =
      "playbook: ours\nsteps:\n  - name: a\n    module: accept\n    params: { kernel: dgemm }\n";
  const auto error_of = [&](std::string text, const std::vector<OwnPlaybook>& own) {
    return errors_of(parse_spec(carried(text, own), names).errors);
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = of_shipped("[ x.yaml ]");
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  const std::vector<OwnPlaybook> motd = {{"site/motd.yaml", kMotd}};
  CHECK(error_of(with("x.yaml", "y.yaml"), motd).empty());
  const std::string playbook = error_of(with("storage-shared, motd ]", "storage-shred, motd ]"), motd);
  CHECK(has(playbook, "roles.cpu.playbooks[2]"));
  CHECK(has(playbook, "did you mean 'storage-shared'?"));
  CHECK(
      has(error_of(with("storage-shared, motd ]", "storage-shared, modt ]"), motd), "did you mean 'motd'?"));
  const std::string profile = error_of(with("profile: lab }", "profile: standrad }"), motd);
  CHECK(has(profile, "acceptance.profile"));
  CHECK(has(profile, "did you mean 'standard'?"));
  // A profile is one by its folder, and neither kind stands in for the other.
  std::vector<OwnPlaybook> both = motd;
  both.push_back({"acceptance/ours.yaml", ours});
  CHECK(error_of(with("profile: lab }", "profile: ours }"), both).empty());
  CHECK(has(error_of(with("profile: lab }", "profile: motd }"), both), "acceptance.profile"));
  CHECK(has(error_of(with("storage-shared, motd ]", "storage-shared, motd, ours ]"), both), "playbooks[4]"));
  // Which nodes a step is among.
  std::string among = kMotd;
  among.replace(among.find("    module: file"), 0, "    phase: cluster\n    among: schedulr\n");
  const std::string whom = error_of(with("x.yaml", "y.yaml"), {{"site/motd.yaml", among}});
  CHECK(has(whom, "site/motd.yaml:4"));
  CHECK(has(whom, "did you mean 'scheduler'?"));
  // While the own ones are paths it is unknown; that they are is another error.
  CHECK(errors_of(parse_spec(of_shipped("site"), names).errors).empty());
  // Without names nothing is said: what was stored once stays what it is.
  CHECK(parse_spec(carried(with("profile: lab }", "profile: standrad }"), motd)).errors.empty());
}

TEST_CASE("a profile of the spec's own: beside the shipped ones, over one, and never one that changes a node",
          "[own]") {
  const auto with = [](const std::string& file, const std::string& text) {
    auto all = testing::playbooks();
    const auto errors = add_own_playbooks({{file, text}}, all);
    return std::make_pair(errors_of(errors), all);
  };
  const std::string step = "steps:\n  - name: a\n    module: accept\n    params: { kernel: dgemm }\n";
  const auto [fine, all] = with("site/acceptance/ours.yaml", "playbook: ours\n" + step);
  CHECK(fine.empty());
  CHECK(all.count("acceptance/ours") == 1);
  CHECK(all.count("ours") == 0);
  const auto [over, changed] =
      with("acceptance/lab.yaml",
           "playbook: lab\noverlay: true\nreplaces: [ dgemm ]\nsteps:\n  - name: dgemm\n    "
           "module: accept\n    params: { kernel: dgemm }\n    expect: { gflops: { min: 9 } }\n");
  CHECK(over.empty());
  CHECK(changed.at("acceptance/lab").steps[0].expect["gflops"]["min"] == 9);
  CHECK_FALSE(changed.at("acceptance/lab").origin.empty());
  CHECK(has(with("acceptance/lab.yaml", "playbook: lab\n" + step).first, "overlay"));
  CHECK(has(with("acceptance/x.yaml",
                 "playbook: x\nsteps:\n  - name: a\n    module: file\n    params: { path: /x }\n")
                .first,
            "acceptance/x.yaml:4:13: steps[0].module"));
  CHECK(has(with("acceptance/x.yaml",
                 "playbook: x\nsteps:\n  - name: a\n    phase: drain\n    module: accept\n    "
                 "params: { kernel: dgemm }\n")
                .first,
            "steps[0].phase"));
  // A folder is meant, not a word in a name.
  CHECK_FALSE(is_profile_file("acceptance.yaml"));
  CHECK_FALSE(is_profile_file("my-acceptance/x.yaml"));
  CHECK_FALSE(is_profile_file("acceptance/more/x.yaml"));
  CHECK(is_profile_file("acceptance/x.yaml"));
  CHECK(is_profile_file("/srv/acceptance/x.yaml"));
}

TEST_CASE("`spec check` knows what is shipped, and what a folder of the controller's has beside",
          "[own][cli]") {
  const TempDir dir;
  std::string text = of_shipped("motd.yaml");
  dir.write("motd.yaml", kMotd);
  text.replace(text.find("profile: lab }"), 14, "profile: ours }");
  dir.write("cluster.yaml", text);
  const auto refused = testing::muster_command({"spec", "check", dir.path("cluster.yaml")});
  CHECK(refused.exit == 2);
  CHECK(has(refused.err, "acceptance.profile"));
  std::filesystem::create_directories(dir.path("theirs/acceptance"));
  dir.write("theirs/acceptance/ours.yaml", "");
  CHECK(
      testing::muster_command({"spec", "check", dir.path("cluster.yaml"), "--playbooks", dir.path("theirs")})
          .exit == 0);
}

TEST_CASE("`spec check` knows the recipes that are shipped, and those of the controller's folder",
          "[own][cli]") {
  const TempDir dir;
  const auto check = [&](const std::string& recipe, const std::vector<std::string>& more = {}) {
    std::string text = of_shipped("[ motd.yaml ]");
    const size_t at = text.find("recipe: "), end = text.find_first_of(" ,}\n", at + 8);
    dir.write("motd.yaml", kMotd);
    dir.write("cluster.yaml", text.replace(at, end - at, "recipe: " + recipe));
    std::vector<std::string> words = {"spec", "check", dir.path("cluster.yaml")};
    words.insert(words.end(), more.begin(), more.end());
    return testing::muster_command(words);
  };
  CHECK(check("ubuntu-24.04").exit == 0);
  const auto unknown = check("ubuntu-2404");
  CHECK(unknown.exit == 2);
  CHECK(has(unknown.err, "did you mean 'ubuntu-24.04'?"));
  const auto own = check("site");
  CHECK(own.exit == 2);
  CHECK(has(own.err, "--images"));
  dir.write("recipes/site.yaml", "suite: trixie\nkernel: { full: k }\n");
  dir.write("recipes/broken.yaml", "suite: noble\nkernel: { full: k }\n");
  const std::vector<std::string> images = {"--images", dir.path("recipes")};
  CHECK(check("site", images).exit == 0);
  CHECK(check("debian-13", images).exit == 0);
  const auto broken = check("broken", images);
  CHECK(broken.exit == 2);
  CHECK(has(broken.err, "broken.yaml:1:8: suite: "));
  CHECK_FALSE(has(check("sites-other", images).err, "--images"));
}

TEST_CASE("the controller refuses names that its folder does not have", "[own][api]") {
  testing::Controller c(source_dir() + "/playbooks");
  const auto put = [&](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return c.call(api::Listener::local, "PUT", "/v1/spec?file=cluster.yaml", text);
  };
  const std::string text = carried(of_shipped("motd.yaml"), {{"motd.yaml", kMotd}});
  CHECK(put(text, "profile: lab }", "profile: lba }").status == 422);
  CHECK(put(text, "storage-local, storage-shared", "storage-locl, storage-shared").status == 422);
  CHECK(put(text, "profile: lab }", "profile: quick }").status == 200);
}
