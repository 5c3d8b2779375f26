// What a screen shows of a thousand nodes.
#include "cli/shown_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"

using namespace muster;
using namespace muster::cli;

namespace {

Json accepted(size_t count) {
  Json nodes = Json::array();
  for (size_t i = 0; i < count; ++i)
    nodes.push_back(
        {{"name", fmt::format("n{:04}", i)}, {"state", "accepted"}, {"role", i % 2 ? "gpu" : "cpu"}});
  return nodes;
}

// A thousand, some of which need attention.
Json large() {
  Json nodes = accepted(1000);
  nodes[100]["state"] = "degraded";
  nodes[200]["run_state"] = "running";
  nodes[300] = {
      {"name", "n0300"}, {"state", "installing"}, {"run_state", "running"}, {"waiting", "its agent"}};
  nodes[400] = {{"name", "n0400"}, {"state", "discovered"}, {"run_state", "waiting"}, {"waiting", "a place"}};
  nodes[500] = {{"name", "n0500"}, {"state", "installing"}, {"by_hand", true}, {"waiting", "power it on"}};
  nodes[600]["silent_since"] = 1;
  nodes[700]["returning"] = true;
  nodes[800]["run_state"] = "returned";
  nodes[900]["state"] = "quarantined";
  return {{"cluster", "heron"}, {"time", 2}, {"problems", {{"dhcp", "no interface"}}}, {"nodes", nodes}};
}

std::vector<std::string> names_of(const ShownNodes& shown) {
  std::vector<std::string> out;
  for (const Json* node : shown.nodes) out.push_back(node->value("name", ""));
  return out;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("of very many nodes those that matter are shown, the most urgent first", "[cli]") {
  const Json status = large();
  const auto shown = shown_nodes(status["nodes"], 10);
  CHECK(names_of(shown) == std::vector<std::string>{"n0900", "n0700", "n0800", "n0600", "n0500", "n0300",
                                                    "n0100", "n0200", "n0000", "n0001"});
  CHECK(shown.left_out == 990);
  CHECK(urgency_of(status["nodes"][400]) == Urgency::calm);
}

TEST_CASE("as many as there is room for are shown as they come", "[cli]") {
  const Json nodes = large()["nodes"];
  for (const size_t most : {size_t{0}, size_t{1000}, size_t{2000}}) {
    const auto shown = shown_nodes(nodes, most);
    CHECK(shown.left_out == 0);
    CHECK(names_of(shown).at(900) == "n0900");
  }
}

TEST_CASE("how many there are is said by state, the most first, with those that are silent or went back",
          "[cli]") {
  CHECK(node_counts(large()["nodes"]) ==
        "1000 nodes: 995 accepted, 2 installing, 1 degraded, 1 discovered, 1 quarantined; 1 silent; 2 back "
        "in the "
        "previous system");
}

TEST_CASE("a filter takes names, states and roles together", "[cli]") {
  const auto count = [](const std::string& names, const std::string& states, const std::string& roles) {
    const auto filter = node_filter(names, states, roles);
    REQUIRE(filter.ok());
    return only(large(), *filter)["nodes"].size();
  };
  CHECK(count("", "", "") == 1000);
  CHECK(count("n[0000-0009],n0900", "", "") == 11);
  CHECK(count("", "quarantined", "") == 1);
  CHECK(count("", "quarantined,degraded", "") == 2);
  CHECK(count("", "silent", "") == 1);
  CHECK(count("", "returned", "") == 2);
  CHECK(count("", "waiting", "") == 3);
  CHECK(count("", "", "gpu") == 500);
  CHECK(count("n[0000-0009]", "accepted", "gpu") == 5);
  CHECK(count("", "quarantined", "gpu") == 0);
  CHECK(only(large(), {})["cluster"] == "heron");
  CHECK(node_filter("", "broken", "").error().code == Code::invalid);
  CHECK_FALSE(node_filter("n[3-1]", "", "").ok());
}

TEST_CASE("each word for a node finds it, and no other word is taken", "[cli]") {
  const Json nodes = large()["nodes"];
  const auto words = [&](size_t at) { return words_of_node(nodes[at]); };
  CHECK(words(0) == std::vector<std::string>{"accepted"});
  CHECK(words(300) == std::vector<std::string>{"installing", "waiting"});
  CHECK(words(500) == std::vector<std::string>{"installing", "by-hand", "waiting"});
  CHECK(words(600) == std::vector<std::string>{"accepted", "silent"});
  CHECK(words(700) == std::vector<std::string>{"accepted", "returned"});
  for (const std::string& word : node_words()) {
    CAPTURE(word);
    CHECK(node_filter("", word, "").ok());
  }
  CHECK_FALSE(node_filter("", "by_hand", "").ok());
}

TEST_CASE("a name that is nearly a node's leads to it", "[cli]") {
  const Json status = {{"nodes", {{{"name", "gpu03"}, {"state", "accepted"}}}}};
  const auto fits = names_nodes(node_filter("gpo03", "", "").value(), status);
  REQUIRE_FALSE(fits.ok());
  CHECK(fits.error().code == Code::invalid);
  CHECK(fits.error().message.find("'gpu03'") != std::string::npos);
  const auto far = names_nodes(node_filter("storage-7", "", "").value(), status);
  CHECK(far.error().message.find("gpu03") == std::string::npos);
}

TEST_CASE("status is cut on a terminal only, and not where nodes were named", "[cli]") {
  const NodeFilter any = {}, named = node_filter("n[0000-0063]", "", "").value();
  CHECK(shown_at_most(kManyNodes, any, true) == 0);
  CHECK(shown_at_most(kManyNodes + 1, any, true) == kShownNodes);
  CHECK(shown_at_most(1000, any, false) == 0);  // muster status | grep n0312
  CHECK(shown_at_most(64, named, true) == 0);
  CHECK(shown_at_most(990, node_filter("", "accepted", "").value(), true) == 0);
  CHECK(shown_at_most(500, node_filter("", "", "gpu").value(), true) == 0);
}

TEST_CASE("a filter that names what is not there is no empty cluster", "[cli]") {
  const auto said = [](const std::string& names, const std::string& states, const std::string& roles) {
    const Status fits = names_nodes(node_filter(names, states, roles).value(), large());
    if (fits.ok()) return std::string();
    CHECK(fits.error().code == Code::invalid);
    return fits.error().message;
  };
  CHECK(said("", "", "").empty());
  CHECK(said("n0000,n0999", "installing", "gpu,cpu").empty());
  CHECK(said("n[0998-1001]", "", "") == "no node is called n1000, n1001");
  CHECK(said("", "", "cpu,gpuu") == "no node has the role gpuu");
  CHECK(said("", "drained", "").empty());  // none is, which is an answer
  CHECK(node_filter("n[0001-0002]", "silent", "").value().options == "--limit n[0001-0002] --state silent");
}

TEST_CASE("a table of very many has counts above and what is left out below", "[cli]") {
  Look look{200, false, false};
  look.nodes = kShownNodes;
  const std::string table = render_status(large(), look);
  CHECK(lines_of(table) == 1 + 1 + 1 + 1 + kShownNodes + 1);
  CHECK(table.find("\n1000 nodes: 995 accepted") != std::string::npos);
  CHECK(table.find("\nand 980 more: --all\n") != std::string::npos);
  CHECK(table.find("n0900") < table.find("n0600"));
  look.width = 12;
  CHECK(render_status(large(), look).find("\nand 980 m...\n") != std::string::npos);
  look.width = 200;
  look.nodes = 0;
  const std::string all = render_status(large(), look);
  CHECK(lines_of(all) == 1 + 1 + 1 + 1000);
  CHECK(all.find("1000 nodes") == std::string::npos);
}

TEST_CASE("the live table is no longer than its terminal, and a small cluster's is whole", "[cli]") {
  for (const int height : {3, 10, 24, 50}) {
    CAPTURE(height);
    Look look{200, false, false};
    look.nodes = nodes_that_fit(large(), height);
    CHECK(look.nodes > 0);
    if (height > 6) CHECK(lines_of(render_status(large(), look)) + 1 == static_cast<size_t>(height));
  }
  Json small = large();
  small["nodes"] = accepted(20);
  CHECK(nodes_that_fit(small, 24) == 0);
  CHECK(nodes_that_fit(small, 23) == 17);
  CHECK(nodes_that_fit(small, 0) == 0);  // its height is unknown
}

TEST_CASE("nodes behind one dead switch are one line, others keep theirs", "[cli]") {
  Json status = {{"cluster", "heron"}, {"time", 2}, {"nodes", accepted(60)}};
  Json behind = Json::array();
  for (size_t i = 10; i < 41; ++i) {
    status["nodes"][i]["silent_since"] = 1;
    behind.push_back(fmt::format("n{:04}", i));
  }
  const auto cause = [](const Json& nodes, const char* what, const char* next) {
    return Json{{"what", what}, {"detail", ""}, {"next", next}, {"nodes", nodes}};
  };
  status["causes"] = {cause(behind, "31 of 31 nodes behind switch leaf3 are silent", "muster power state X"),
                      cause(Json::array({"n0050", "n0051"}), "2 nodes failed", "muster logs n0050"),
                      cause(Json::array({"n0052"}), "n0052 is degraded", "muster report")};
  CHECK(shown_causes(status).size() == 2);
  CHECK(folded_nodes(status).size() == 31);

  Look look{200, false, false};
  look.fold = true;
  const std::string folded = render_status(status, look);
  for (const char* text :
       {"switch leaf3", "n[0010-0040]", "muster power state X", "n0050", "n0052", "and 31 more"})
    CHECK(folded.find(text) != std::string::npos);
  for (const char* text : {"\nn0010", "\nn0040", "n0052 is degraded"})
    CHECK(folded.find(text) == std::string::npos);
  for (const int height : {20, 36, 50}) {
    CAPTURE(height);
    look.nodes = nodes_that_fit(status, height, true);
    const size_t lines = lines_of(render_status(status, look)) + 1;
    CHECK(lines == std::min<size_t>(static_cast<size_t>(height), 38));
  }

  // All of them, and those that were named.
  look = {200, false, false};
  CHECK(render_status(status, look).find("\nn0010") != std::string::npos);
  const auto of_names = [&](const char* names) {
    const auto filter = node_filter(names, "", "");
    REQUIRE(filter.ok());
    return only(status, *filter)["causes"].size();
  };
  CHECK(of_names("") == 3);
  CHECK(of_names("n0010") == 1);
  CHECK(of_names("n0001") == 0);
  // That of the cluster as a whole concerns each node.
  status["causes"].push_back(cause(Json::array(), "dhcp: no interface", "journalctl -u musterd"));
  CHECK(of_names("n0001") == 1);
}

TEST_CASE("without a terminal very many nodes begin with counts, and then each change is a line", "[cli]") {
  ChangeLines changes;
  Json status = large();
  const std::string first = changes.next(status);
  CHECK(first.starts_with("1000 nodes: "));
  CHECK(lines_of(first) == 1 + 5);
  CHECK(changes.next(status).empty());
  status["nodes"][3]["state"] = "quarantined";
  const std::string next = changes.next(status);
  CHECK(lines_of(next) == 1);
  CHECK(next.find("n0003") != std::string::npos);
  ChangeLines few;
  status["nodes"] = accepted(kManyNodes);
  CHECK(lines_of(few.next(status)) == kManyNodes);
}

TEST_CASE("status and watch refuse states that cannot be, and ranges", "[cli]") {
  for (const char* verb : {"status", "watch"}) {
    CAPTURE(verb);
    const std::string socket = "/tmp/no-such-muster.sock";
    CHECK(testing::muster_command({verb, "--state", "broken", "--socket", socket}).exit == 2);
    CHECK(testing::muster_command({verb, "--limit", "n[3-1]", "--socket", socket}).exit == 2);
  }
  CHECK(testing::muster_command(
            {"status", "--state", "silent", "--role", "gpu", "--all", "--socket", "/tmp/no-such-muster.sock"})
            .exit == 1);
}
