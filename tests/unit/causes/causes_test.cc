// From problems to causes: planted ones, alone and mixed, at sizes from none to thousands.
#include "controller/causes/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/catch.h"

using namespace muster;

namespace {

using Places = std::map<NodeName, NodePlace>;

NodeName node(int i) { return NodeName(fmt::format("gpu{:03}", i)); }

// 248 nodes, 31 behind each of 8 switches, in racks across them, with one image, firmware and model.
Places cluster() {
  Places out;
  for (int i = 0; i < 248; ++i)
    out[node(i)] = {fmt::format("r{}", i % 13), fmt::format("leaf{}", i / 31), "R760", "2.1", "node"};
  return out;
}

Problem silent(int i, TimeMs since = 0) {
  return {.kind = CauseKind::node_silent, .node = node(i), .since = since};
}
Problem failed(int i, const std::string& reason, const std::string& step = "") {
  return {.kind = CauseKind::node_failed, .node = node(i), .reason = reason, .step = step};
}

std::vector<Problem> behind_leaf3() {
  std::vector<Problem> out;
  for (int i = 93; i < 124; ++i) out.push_back(silent(i, 1000 + i));
  return out;
}

std::vector<Problem> joined(std::vector<Problem> a, const std::vector<Problem>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Cause* with_common(const std::vector<Cause>& causes, const std::string& common,
                         const std::string& value) {
  for (const Cause& cause : causes)
    if (cause.common == common && cause.common_value == value) return &cause;
  return nullptr;
}

// What holds for all causes, whatever they are.
void must_be_sound(const std::vector<Problem>& problems, const std::vector<Cause>& causes) {
  std::set<std::string> ids;
  std::set<std::pair<CauseKind, NodeName>> named;
  size_t last = SIZE_MAX;
  for (const Cause& cause : causes) {
    CAPTURE(cause.what);
    CHECK(ids.insert(cause.id).second);
    CHECK(cause.id.size() == 12);
    CHECK(cause.id.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(!cause.what.empty());
    CHECK(!cause.next.empty());
    for (const std::string& line : {cause.what, cause.detail, cause.next, cause.common_value})
      CHECK(line.find_first_of("\n\x9b") == std::string::npos);
    CHECK(cause.nodes.size() <= last);
    last = cause.nodes.size();
    CHECK(std::is_sorted(cause.nodes.begin(), cause.nodes.end()));
    for (const NodeName& one : cause.nodes) named.insert({cause.kind, one});
  }
  for (const Problem& problem : problems)
    if (!problem.node.empty()) CHECK(named.count({problem.kind, problem.node}) == 1);
}

std::vector<Cause> causes_of(const std::vector<Problem>& problems, const Places& places,
                             const std::vector<Cause>& before = {}) {
  auto causes = find_causes(problems, places, before);
  must_be_sound(problems, causes);
  return causes;
}

}  // namespace

TEST_CASE("causes: no problem has none", "[causes]") {
  CHECK(causes_of({}, cluster()).empty());
  CHECK(causes_of({}, {}).empty());
}

TEST_CASE("causes: 31 silent nodes behind one switch are one cause", "[causes]") {
  const auto causes = causes_of(behind_leaf3(), cluster());
  REQUIRE(causes.size() == 1);
  const Cause& cause = causes.front();
  CHECK(cause.kind == CauseKind::node_silent);
  CHECK(cause.common == "switch");
  CHECK(cause.common_value == "leaf3");
  CHECK(cause.nodes.size() == 31);
  CHECK(cause.since == 1093);
  CHECK(cause.next == "muster power state gpu[093-123]");

  // Names that do not fold into ranges are too long to be read.
  Places scattered = cluster();
  std::vector<Problem> many;
  for (int i = 0; i < 248; i += 8) {
    scattered[node(i)].network_switch = "leaf9";
    many.push_back(silent(i));
  }
  const auto found = causes_of(many, scattered);
  REQUIRE(found.size() == 1);
  CHECK(found.front().nodes.size() == 31);
  CHECK(found.front().next == "muster status --state silent");
}

TEST_CASE("causes: sick nodes here and there are a cause each", "[causes]") {
  const auto one = causes_of({silent(100)}, cluster());
  REQUIRE(one.size() == 1);
  CHECK(one.front().common.empty());
  CHECK(one.front().next == "muster power state gpu100");
  CHECK(causes_of({silent(1), silent(40), silent(77), silent(200)}, cluster()).size() == 4);
}

TEST_CASE("causes: one image, one firmware, one model", "[causes]") {
  Places places = cluster();
  std::vector<Problem> problems;
  for (const int i : {5, 44, 90, 130, 171, 222})
    problems.push_back(failed(i, "a reason of its own: " + node(i)));
  const std::pair<const char*, std::string NodePlace::*> properties[] = {
      {"image", &NodePlace::image}, {"firmware", &NodePlace::firmware}, {"model", &NodePlace::model}};
  for (const auto& [name, member] : properties) {
    CAPTURE(name);
    Places other = places;
    for (const Problem& problem : problems) other[problem.node].*member = "newer";
    const auto causes = causes_of(problems, other);
    REQUIRE(causes.size() == 1);
    CHECK(causes.front().common == name);
    CHECK(causes.front().common_value == "newer");
    CHECK(causes.front().nodes.size() == 6);
  }
}

TEST_CASE("causes: nodes with one reason are one cause, wherever they are", "[causes]") {
  std::vector<Problem> problems;
  for (const int i : {5, 44, 90, 130, 171, 222})
    problems.push_back(failed(i, fmt::format("{}: 10.20.0.{} refused the login", node(i), i), "ssh/harden"));
  problems.push_back(failed(17, "the disk is full"));
  const auto causes = causes_of(problems, cluster());
  REQUIRE(causes.size() == 2);
  CHECK(causes.front().common == "reason");
  CHECK(causes.front().nodes.size() == 6);
  CHECK(causes.front().detail == "gpu005: 10.20.0.5 refused the login");
  CHECK(causes.back().nodes == std::vector<NodeName>{node(17)});
}

TEST_CASE("causes: different reasons at one step are one cause", "[causes]") {
  const std::vector<Problem> problems = {failed(5, "refused", "image"), failed(44, "no space", "image"),
                                         failed(90, "wrong digest", "image"),
                                         failed(17, "no lease", "netboot")};
  const auto causes = causes_of(problems, cluster());
  REQUIRE(causes.size() == 2);
  CHECK(causes.front().common == "step");
  CHECK(causes.front().common_value == "image");
  CHECK(causes.front().nodes.size() == 3);
}

TEST_CASE("causes: a part that acceptance located between nodes is their cause", "[causes]") {
  std::vector<Problem> problems;
  for (const int i : {5, 44, 90})
    problems.push_back({.kind = CauseKind::node_degraded, .node = node(i), .reason = "links/located: slow"});
  problems[0].part = problems[1].part = "link of gpu005, sending or link of gpu044, receiving";
  problems[2].part = "link of gpu090, sending";  // its own
  const auto causes = causes_of(problems, cluster());
  REQUIRE(causes.size() == 2);
  CHECK(causes.front().common == "part");
  CHECK(causes.front().nodes == std::vector<NodeName>{node(5), node(44)});
  // One end is measured again and well: the same cause, until the other is, too.
  problems.erase(problems.begin());
  const auto later = find_causes(problems, cluster(), causes);
  REQUIRE(later.size() == 2);
  const Cause* lasts = cause_of(later, node(44));
  REQUIRE(lasts);
  CHECK(lasts->id == causes.front().id);
  CHECK(lasts->common == "part");
  CHECK(cause_of(find_causes(problems, cluster()), node(44))->common != "part");
}

TEST_CASE("causes: several at once keep apart", "[causes]") {
  Places places = cluster();
  std::vector<Problem> problems = behind_leaf3();
  for (int i = 155; i < 186; ++i) problems.push_back(silent(i));  // leaf5
  problems.push_back(silent(7));
  for (const int i : {8, 70, 200}) problems.push_back(failed(i, "no space left on " + node(i)));
  problems.push_back({.kind = CauseKind::controller, .reason = "dhcp: dnsmasq ended"});
  problems.push_back({.kind = CauseKind::image_build, .reason = "mirror refused", .image = "node"});
  problems.push_back({.kind = CauseKind::image_build, .reason = "mirror refused", .image = "login"});
  const auto causes = causes_of(problems, places);
  REQUIRE(with_common(causes, "switch", "leaf3"));
  REQUIRE(with_common(causes, "switch", "leaf5"));
  CHECK(with_common(causes, "switch", "leaf3")->nodes.size() == 31);
  CHECK(with_common(causes, "switch", "leaf5")->nodes.size() == 31);
  CHECK(causes.size() == 7);
  CHECK(std::count_if(causes.begin(), causes.end(), [](const Cause& c) { return c.nodes.empty(); }) == 3);
  CHECK(std::count_if(causes.begin(), causes.end(),
                      [](const Cause& c) { return c.next == "muster image build node --rebuild"; }) == 1);
}

TEST_CASE("causes: half of all nodes that are silent are one cause", "[causes]") {
  std::vector<Problem> problems;
  for (int i = 0; i < 248; ++i) problems.push_back(silent(i));
  const auto all = causes_of(problems, cluster());
  REQUIRE(all.size() == 1);
  CHECK(all.front().common == "cluster");
  CHECK(all.front().nodes.size() == 248);
  // Also where nothing is known of them.
  const auto unknown = causes_of(problems, {});
  REQUIRE(unknown.size() == 1);
  CHECK(unknown.front().id == all.front().id);
}

TEST_CASE("causes: thousands of problems, each its own, stay apart", "[causes]") {
  Places places;
  std::vector<Problem> problems;
  for (int i = 0; i < 7000; ++i) {
    places[node(i)] = {fmt::format("r{}", i % 100), fmt::format("leaf{}", i % 130), "R760", "2.1", "node"};
    // In letters: numbers in a reason do not count.
    if (i % 7 == 0) {
      std::string letters;
      for (int left = i / 7; letters.size() < 3; left /= 26) letters += static_cast<char>('a' + left % 26);
      problems.push_back(failed(i, "fault " + letters));
    }
  }
  CHECK(causes_of(problems, places).size() == 1000);
  for (Problem& problem : problems) problem.reason = "the mirror refused " + problem.node;
  CHECK(causes_of(problems, places).size() == 1);
}

TEST_CASE("causes: unknown values have nothing in common", "[causes]") {
  Places places;
  for (int i = 0; i < 100; ++i) places[node(i)] = {};
  CHECK(causes_of({silent(1), silent(2), silent(3)}, places).size() == 3);
  for (int i = 50; i < 100; ++i) places[node(i)].network_switch = "leaf1";
  CHECK(causes_of({silent(1), silent(2), silent(3)}, places).size() == 3);
  // Nodes that only a problem names count, too.
  CHECK(causes_of({silent(1), silent(2)}, {}).size() == 2);
}

TEST_CASE("causes: what nodes report cannot break the lines", "[causes]") {
  Places places = cluster();
  for (int i = 93; i < 124; ++i) places[node(i)].firmware = "2.1\nroot: # rm";
  causes_of(joined(behind_leaf3(), {failed(1, "one\ntwo\x1b[2J\xc2\x9b[2J", "a\nb")}), places);
  causes_of({failed(1, "x", "a\nb"), failed(2, "y", "a\nb"), failed(3, "z", "a\nb")}, places);
}

TEST_CASE("causes: ids last while nodes join and leave", "[causes]") {
  const Places places = cluster();
  const std::string id = find_causes(behind_leaf3(), places).front().id;
  std::vector<Problem> problems = behind_leaf3();
  std::vector<Cause> before;
  while (!problems.empty()) {
    CAPTURE(problems.size());
    const auto causes = causes_of(problems, places, before);
    REQUIRE(causes.size() == 1);
    CHECK(causes.front().id == id);
    CHECK(causes.front().since == 1093);  // when it began, although the first node is well again
    before = causes;
    problems.erase(problems.begin());
  }
  CHECK(find_causes({}, places, before).empty());
}

TEST_CASE("causes: a restart, which remembers nothing, finds the same ids", "[causes]") {
  const Places places = cluster();
  const auto all = find_causes(behind_leaf3(), places);
  std::vector<Problem> fewer = behind_leaf3();
  fewer.resize(12);
  CHECK(find_causes(fewer, places).front().id == all.front().id);
  CHECK(find_causes({failed(1, "no space on gpu001")}, places).front().id ==
        find_causes({failed(1, "no space on gpu001"), failed(90, "no space on gpu090")}, places).front().id);
  CHECK(find_causes({silent(1)}, places).front().id != find_causes({silent(2)}, places).front().id);
  const Problem dhcp{.kind = CauseKind::controller, .reason = "the disk is 91 % full"};
  Problem later = dhcp;
  later.reason = "the disk is 92 % full";
  CHECK(find_causes({dhcp}, places).front().id == find_causes({later}, places).front().id);
}

TEST_CASE("causes: what is not about nodes keeps its id, whatever it says", "[causes]") {
  const auto id_of = [](const Problem& problem) { return causes_of({problem}, {}).front().id; };
  Problem night{.kind = CauseKind::window_bad, .reason = "rollout: no node was updated (nodes)"};
  Problem dhcp{.kind = CauseKind::controller, .reason = "dhcp: dnsmasq ended", .part = "dhcp"};
  Problem held{.kind = CauseKind::rollout_stopped, .node = node(1), .reason = "no link", .image = "node"};
  const std::string of_night = id_of(night), of_dhcp = id_of(dhcp), of_held = id_of(held);
  night.reason = "rollout: no node was updated (healing), twice in a row";
  dhcp.reason = "dhcp: exit 2, no interface";
  held.node = node(2);
  held.reason = "no disk";
  CHECK(id_of(night) == of_night);
  CHECK(id_of(dhcp) == of_dhcp);
  CHECK(id_of(held) == of_held);
  held.image = "login";
  dhcp.part = "store";
  CHECK(id_of(held) != of_held);
  CHECK(id_of(dhcp) != of_dhcp);
}

TEST_CASE("causes: what explains more takes the place of what explained the first nodes", "[causes]") {
  // Behind leaf1: both nodes of rack r1, and one of r2, which has another one behind leaf2.
  Places places;
  places[node(1)] = {.rack = "r1", .network_switch = "leaf1"};
  places[node(2)] = {.rack = "r1", .network_switch = "leaf1"};
  places[node(3)] = {.rack = "r2", .network_switch = "leaf1"};
  places[node(4)] = {.rack = "r2", .network_switch = "leaf2"};
  for (int i = 5; i < 30; ++i) places[node(i)] = {.rack = "r3", .network_switch = "leaf3"};
  const auto first = causes_of({silent(1), silent(2)}, places);
  REQUIRE(with_common(first, "rack", "r1") != nullptr);
  const auto second = causes_of({silent(1), silent(2), silent(3)}, places, first);
  REQUIRE(second.size() == 1);
  CHECK(with_common(second, "switch", "leaf1") != nullptr);
  // One by one they come back: it stays the switch.
  const auto third = causes_of({silent(1), silent(2)}, places, second);
  REQUIRE(third.size() == 1);
  CHECK(third.front().id == second.front().id);
  CHECK(causes_of({silent(2)}, places, third).front().id == second.front().id);
}

TEST_CASE("causes: the order of problems changes nothing", "[causes]") {
  const Places places = cluster();
  std::vector<Problem> problems = joined(
      behind_leaf3(), {silent(3), failed(1, "no space"), failed(2, "no space"), failed(9, "refused", "ssh")});
  const Json forth = causes_json(find_causes(problems, places));
  std::reverse(problems.begin(), problems.end());
  CHECK(causes_json(find_causes(problems, places)).size() == forth.size());
  for (size_t i = 0; i < forth.size(); ++i)
    CHECK(causes_json(find_causes(problems, places))[i]["id"] == forth[i]["id"]);
}

TEST_CASE("causes: a node finds the cause that it is part of", "[causes]") {
  const auto causes = find_causes(joined(behind_leaf3(), {silent(7)}), cluster());
  REQUIRE(cause_of(causes, node(100)));
  CHECK(cause_of(causes, node(100))->common_value == "leaf3");
  REQUIRE(cause_of(causes, node(7)));
  CHECK(cause_of(causes, node(7))->nodes.size() == 1);
  CHECK(!cause_of(causes, node(8)));
}

TEST_CASE("causes: a command of the problem's own comes before the usual one", "[causes]") {
  const Problem by_hand{.kind = CauseKind::node_waits,
                        .node = node(5),
                        .reason = "restart it",
                        .next = "muster power done gpu005"};
  CHECK(find_causes({by_hand}, cluster()).front().next == "muster power done gpu005");
  for (const auto& [kind, word] : kCauseKinds) {
    CAPTURE(word);
    CHECK(cause_kind_word(kind) == word);
    CHECK(!find_causes({{.kind = kind}}, {}).front().next.empty());
  }
}
