// Steps are rendered once for all nodes to which they say the same, and each node gets what is rendered for
// it alone.
#include "controller/plan/rendered_steps.h"

#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/plan/plan_steps.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

// Three nodes with the playbook x, of which nothing was seen.
struct Three {
  Spec spec = parsed(replaced(kSpec, "base, storage, shared", "x"));
  NodeDisks disks;
  std::map<std::string, std::string> values;
  std::map<std::string, const HardwareFacts*> machines;
  ClusterContext cluster{spec, machines};
  Playbook playbook{"x", "", {}};

  std::vector<PlannedStep> steps_of(const NodeSpec& node, const std::string& phase = "node") {
    NodeContext context({spec, node, disks, "10.20.0.1", values, cluster, true});
    context.enter("x");
    std::vector<std::string> problems;
    auto out = plan_steps(playbook, phase, context, problems);
    problems_of[node.name] = problems;
    return out;
  }
  std::map<std::string, std::vector<std::string>> problems_of;
};

std::string text_of_params(const PlannedStep& step) {
  return dump_json(parse_json(step.text().text()).value()["params"]);
}

}  // namespace

TEST_CASE("templates render as they do alone, also when they were read before", "[plan][playbook]") {
  const Json value = {{"text", "{{a.b}} and {{#list}}<{{x}}{{a.c}}>{{/list}}{{^list}}none{{/list}}"},
                      {"whole", "{{list}}"},
                      {"in", Json::array({"{{{ list }}}", "{{a.b}}", 3})},
                      {"plain", "no braces"}};
  Templates templates;
  for (const char* text :
       {R"({"a":{"b":"one","c":7},"list":[{"x":1},{"x":"<&>"}]})", R"({"a":{"b":"","c":true},"list":[]})",
        R"({"a":{"b":"one"},"list":[{"x":1}]})", R"({"a":{"b":2,"c":3},"list":[{"x":1}]})"}) {
    const Json context = Json::parse(text);
    const auto find = [&](const std::string& name) { return find_name(context, name); };
    const auto alone = render_params(value, context), shared = templates.render(value, find);
    REQUIRE(alone.ok() == shared.ok());
    if (alone.ok())
      CHECK(*alone == *shared);
    else
      CHECK(alone.error().message == shared.error().message);
  }
  CHECK(names_in(value) == std::set<std::string>{"a.b", "a.c", "list", "x"});
  CHECK(names_in(7).empty());
  CHECK(whole_name("{{ a.b }}") == "a.b");
  CHECK(whole_name("{{a}} ").empty());
}

TEST_CASE("what is not among the names of a template as it was read is unknown to it", "[plan][playbook]") {
  const auto hidden = render_params("{{=<% %>=}}<%a%>", Json{{"a", 1}});
  REQUIRE_FALSE(hidden.ok());
  CHECK(hidden.error().message == "unknown variable a");
}

TEST_CASE("values are distinguished, and the last of them recognized", "[plan]") {
  KnownValues values;
  const Json one = {{"x", 1}}, two = {{"x", 2}}, same = one;
  const auto number = values.number_of("a", &one);
  CHECK(values.number_of("a", nullptr) == 0);
  CHECK(number != 0);
  CHECK(values.number_of("a", &same) == number);
  CHECK(values.number_of("a", &two) != number);
  CHECK(values.number_of("b", &one) != number);
  for (int i = 0; i < 100; ++i) {
    const Json other = i;
    values.number_of("a", &other);
  }
  CHECK(values.number_of("a", &one) != number);  // rendered once more, and never wrongly the same
}

TEST_CASE("nodes share a step where every name it uses is the same to them", "[plan]") {
  Three t;
  t.spec.nodes[1].vars["rack"] = "r2";
  for (auto& node : t.spec.nodes) node.vars.insert({"rack", "r1"});
  PlaybookStep own = step("own", "node", {{"text", "{{node.name}} of {{cluster}}"}});
  PlaybookStep hosts = step("hosts", "node", {{"text", "{{hosts}}"}, {"all", "{{nodes}}"}});
  PlaybookStep rack = step("rack", "node", {{"text", "in {{vars.rack}}"}});
  PlaybookStep some = step("some", "node", {{"text", "x"}});
  some.when = "{{#is_leader}}yes{{/is_leader}}";
  PlaybookStep others =
      step("others", "node", {{"text", "{{#peers}}{{name}} {{/peers}}"}, {"any", "{{has_peers}}"}});
  t.playbook.steps = {own, hosts, rack, some, others};
  std::vector<std::vector<PlannedStep>> all;
  for (const auto& node : t.spec.nodes) all.push_back(t.steps_of(node));
  REQUIRE(all[0].size() == 5);
  REQUIRE(all[1].size() == 4);  // without `some`
  CHECK(all[0][0].rendered != all[1][0].rendered);
  CHECK(all[0][1].rendered == all[1][1].rendered);
  CHECK(all[0][1].rendered == all[2][1].rendered);
  CHECK(all[0][2].rendered == all[2][2].rendered);
  CHECK(all[0][2].rendered != all[1][2].rendered);
  CHECK(all[2][0].step().params["text"] == "node03 of gaggle");
  CHECK(all[1][2].step().params["text"] == "in r2");
  CHECK(all[1][3].step().params["text"] == "node01 node03 ");
  CHECK(all[2][3].step().params["text"] == "node01 node02 ");
  CHECK(all[2][3].step().params["any"] == true);
  // The same node again, as the configuration digest does it.
  CHECK(t.steps_of(t.spec.nodes[0])[0].rendered == all[0][0].rendered);
  CHECK(t.steps_of(t.spec.nodes[0])[4].rendered == all[0][4].rendered);
}

TEST_CASE("a step that cannot be rendered is a problem of each node", "[plan]") {
  Three t;
  t.playbook.steps = {step("bad", "node", {{"text", "{{no_such_name}}"}})};
  for (const auto& node : t.spec.nodes) {
    CHECK(t.steps_of(node).empty());
    REQUIRE(t.problems_of[node.name].size() == 1);
    CHECK(t.problems_of[node.name][0].find("on " + node.name + ": text: unknown variable no_such_name") !=
          std::string::npos);
  }
}

TEST_CASE("a step about all peers shares all of its text but the list", "[plan]") {
  Three t;
  t.playbook.steps = {
      step("links", "cluster", {{"address", "here"}, {"peers", "{{peers}}"}, {"z", "{{cluster}}"}}),
      step("named", "cluster", {{"peers", "{{{ rdma_peers }}}"}}),
      step("text", "cluster", {{"peers", "{{#peers}}{{name}}{{/peers}}"}})};
  const auto first = t.steps_of(t.spec.nodes[0], "cluster"), last = t.steps_of(t.spec.nodes[2], "cluster");
  REQUIRE(first.size() == 3);
  CHECK(first[0].rendered == last[0].rendered);
  Json wanted = {{"address", "here"}, {"peers", Json::array()}, {"z", "gaggle"}};
  for (const size_t i : {1, 2})
    wanted["peers"].push_back(
        {{"name", t.spec.nodes[i].name}, {"address", t.spec.nodes[i].address}, {"role", "cpu"}});
  CHECK(text_of_params(first[0]) == dump_json(wanted));
  CHECK(text_of_params(last[0]).find("node03") == std::string::npos);
  CHECK(text_of_params(first[1]) == R"({"peers":[]})");  // no node has the playbook interconnect
  CHECK(text_of_params(last[2]) == R"({"peers":"node01node02"})");
}

TEST_CASE("has_peers and has_rdma_peers say whether the lists have anybody in them", "[plan]") {
  const auto said = [](const std::string& playbooks, int nodes) {
    Three t;
    t.spec.roles["cpu"] =
        playbooks == "x" ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "interconnect"};
    while (static_cast<int>(t.spec.nodes.size()) > nodes) t.spec.nodes.pop_back();
    PlaybookStep all =
        step("all", "node",
             {{"text",
               "{{#has_peers}}p{{/has_peers}}{{^has_peers}}-{{/has_peers}}"
               "{{#has_rdma_peers}}r{{/has_rdma_peers}}{{^has_rdma_peers}}-{{/has_rdma_peers}}"}});
    t.playbook.steps = {all};
    ClusterContext cluster(t.spec, t.machines);
    NodeContext context({t.spec, t.spec.nodes[0], t.disks, "10.20.0.1", t.values, cluster, true});
    context.enter("x");
    std::vector<std::string> problems;
    CHECK((*context.find("has_peers") == !context.find("peers")->empty()));
    CHECK((*context.find("has_rdma_peers") == !context.find("rdma_peers")->empty()));
    return plan_steps(t.playbook, "node", context, problems).at(0).step().params["text"].get<std::string>();
  };
  CHECK(said("x", 1) == "--");
  CHECK(said("x", 3) == "p-");
  CHECK(said("interconnect", 1) == "--");
  CHECK(said("interconnect", 2) == "pr");
}

TEST_CASE("every node sees all members of a section, in both of its lists, however often it is rendered",
          "[plan]") {
  Three t;
  PlaybookStep all =
      step("all", "node",
           {{"whole", "{{storage_shared}}"},
            {"text", "{{#storage_moosefs}}{{#members}}{{name}} {{/members}}{{/storage_moosefs}}"}});
  PlaybookStep each = step("each", "node", {{"members", "{{item.members}}"}, {"me", "{{node.name}}"}});
  each.for_each = "storage_shared";
  t.spec.roles["cpu"] = {"x", "storage-shared"};
  t.playbook.steps = {all, each};
  const auto check = [&](NodeContext& context) {
    context.enter("x");
    std::vector<std::string> problems;
    const auto steps = plan_steps(t.playbook, "node", context, problems);
    REQUIRE(problems.empty());
    REQUIRE(steps.size() == 2);
    const Json members = steps[1].step().params["members"];
    REQUIRE(members.size() == 3);
    CHECK(members[2] == Json{{"name", "node03"}, {"address", t.spec.nodes[2].address}});
    CHECK(steps[0].step().params["whole"][0]["members"] == members);
    CHECK(steps[0].step().params["text"] == "node01 node02 node03 ");
  };
  for (int turn = 0; turn < 2; ++turn)
    for (const auto& node : t.spec.nodes) {
      NodeContext context({t.spec, node, t.disks, "10.20.0.1", t.values, t.cluster, true});
      check(context);
      context.forget_content();
      check(context);
    }
}

TEST_CASE("what is on disks is forgotten, and nothing else", "[plan]") {
  Three t;
  const std::set<std::string> pausing = {"node02"};
  NodeContext context({t.spec, t.spec.nodes[1], t.disks, "10.20.0.1", t.values, t.cluster, true,
                       ContextInput::kNobody, pausing, "", true});
  CHECK(*context.find("in_rollout") == true);
  CHECK(*context.find("paused") == true);
  CHECK(*context.find("pausing") == true);
  const Json address = *context.find("node.address");
  context.forget_content();
  CHECK(*context.find("paused") == false);
  CHECK(*context.find("pausing") == false);
  CHECK(*context.find("in_rollout") == false);
  CHECK(*context.find("node.by_label") == false);
  CHECK(*context.find("node.address") == address);
  CHECK(context.find("node.nothing") == nullptr);
  CHECK(context.find("nothing") == nullptr);
}
