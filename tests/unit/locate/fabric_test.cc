// Cables and switches: the cover covers, flows do not disturb each other, and what cannot be told apart is
// named together.
#include "controller/locate/fabric.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"
#include "tests/fakes/planted.h"

using namespace muster::locate;

namespace {
size_t z(int number) { return static_cast<size_t>(number); }
}  // namespace

TEST_CASE("fabric: a fat tree's parts, and which of them the hosts can tell apart", "[locate]") {
  const Fabric fabric = fat_tree({4, 4, 4});
  CHECK(fabric.hosts == 16);
  CHECK(fabric.parts.size() == 8 + 16 * 3 + 16 * 3);
  CHECK(fabric.flows.size() == 16 * 15);
  const Cover cover = edge_cover(fabric, 3, 1);
  for (size_t p = 8; p < fabric.parts.size(); ++p)  // a port, its cable and the other end
    CHECK(cover.class_of[p] == static_cast<int>(8 + (p - 8) / 3 * 3));
  for (int s = 0; s < 8; ++s) CHECK(cover.class_of[z(s)] == s);  // switches are apart from their ports
}

TEST_CASE("fabric: the cover uses every part three times and no host or cable twice in a round", "[locate]") {
  for (const FatTree& shape : {FatTree{2, 4, 4}, FatTree{8, 8, 8}, FatTree{3, 5, 2}}) {
    const Fabric fabric = fat_tree(shape);
    const Cover cover = edge_cover(fabric, 3, 1);
    std::vector<size_t> used(fabric.parts.size());
    for (const auto& round : cover.rounds) {
      std::set<int> hosts;
      std::set<Part> cables;
      for (const size_t flow : round) {
        CHECK(hosts.insert(fabric.flows[flow].from).second);
        CHECK(hosts.insert(fabric.flows[flow].to).second);
        for (const Part p : cover.path[flow]) {
          if (!cover.shared[z(p)]) CHECK(cables.insert(p).second);
        }
        for (const Part p : fabric.flows[flow].path) ++used[z(p)];
      }
    }
    CHECK(*std::min_element(used.begin(), used.end()) >= 3);
    CHECK(cover.rounds.size() <= 12);
  }
}

TEST_CASE("fabric: planted cables and switches are named, nobody else", "[locate]") {
  const Fabric fabric = fat_tree({8, 8, 8});
  const Cover cover = edge_cover(fabric, 3, 1);
  Tally t;
  for (uint64_t seed = 1; seed <= 60; ++seed)
    t.add(search_fabric(fabric, cover, {.n = 64, .bad = 2}, 6, seed));
  CHECK(t.missed == 0);
  CHECK(t.false_blame == 0);
  CHECK(t.named == t.faults);
  CHECK(t.rounds_max() <= static_cast<int>(cover.rounds.size()) + 6);
}

TEST_CASE("fabric: a bad port is named with its cable, which nobody can tell apart", "[locate]") {
  const Fabric fabric = fat_tree({4, 4, 4});
  const Cover cover = edge_cover(fabric, 3, 1);
  const auto bad =
      std::find(fabric.parts.begin(), fabric.parts.end(), "cable leaf2 - spine3") - fabric.parts.begin();
  std::vector<FabricTested> tested;
  FabricProgress progress = proceed(fabric, cover, tested, 6, 1);
  for (int round = 0; !progress.next.empty(); ++round, progress = proceed(fabric, cover, tested, 6, 1))
    for (const size_t flow : progress.next) {
      const auto& path = fabric.flows[flow].path;
      tested.push_back(
          {flow, round, std::find(path.begin(), path.end(), static_cast<Part>(bad)) != path.end()});
    }
  REQUIRE(progress.guilty.size() == 1);
  std::vector<std::string> names;
  for (const Part p : progress.guilty[0]) names.push_back(fabric.parts[z(p)]);
  CHECK(names == std::vector<std::string>{"leaf2 port 7", "cable leaf2 - spine3", "spine3 port 2"});
  CHECK(progress.unexplained.empty());
}

namespace {
// Searches with parts that always fail; one of each class.
FabricProgress search_with(const Fabric& fabric, const Cover& cover, const std::set<Part>& dead, int extra) {
  std::vector<FabricTested> tested;
  FabricProgress progress = proceed(fabric, cover, tested, extra, 1);
  for (int round = 0; !progress.next.empty(); ++round, progress = proceed(fabric, cover, tested, extra, 1))
    for (const size_t flow : progress.next) {
      const auto& path = cover.path[flow];
      tested.push_back(
          {flow, round, std::any_of(path.begin(), path.end(), [&](Part p) { return dead.count(p) > 0; })});
    }
  return progress;
}
std::set<Part> named(const FabricProgress& progress) {
  std::set<Part> out;
  for (const auto& set : progress.guilty) out.insert(set.front());
  return out;
}
}  // namespace

TEST_CASE("fabric: a bad part that only met other bad ones is tested again past them", "[locate]") {
  const Fabric fabric = fat_tree({8, 8, 8});
  const Cover cover = edge_cover(fabric, 3, 1);
  // A host's link, and the links of all hosts that the cover tests it with: others explain each of its
  // failures.
  for (const char* name : {"host1 nic", "host10 nic", "host37 nic", "host64 nic"}) {
    CAPTURE(name);
    const auto accused =
        static_cast<Part>(std::find(fabric.parts.begin(), fabric.parts.end(), name) - fabric.parts.begin());
    std::set<Part> dead = {accused};
    for (const auto& round : cover.rounds)
      for (const size_t flow : round) {
        const auto& path = cover.path[flow];
        if (path.front() == accused) dead.insert(path.back());
        if (path.back() == accused) dead.insert(path.front());
      }
    REQUIRE(dead.size() >= 3);
    const FabricProgress progress = search_with(fabric, cover, dead, 6);
    CHECK(named(progress) == dead);
    CHECK(progress.hidden.empty());
  }
}

TEST_CASE("fabric: what lies behind a dead switch is neither accused nor cleared", "[locate]") {
  const Fabric fabric = fat_tree({4, 4, 4});
  const Cover cover = edge_cover(fabric, 3, 1);
  const FabricProgress progress = search_with(fabric, cover, {1}, 6);  // leaf2
  CHECK(named(progress) == std::set<Part>{1});
  std::set<std::string> hidden;
  for (const Part p : progress.hidden) hidden.insert(fabric.parts[z(p)]);
  CHECK(hidden == std::set<std::string>{"host5 nic", "host6 nic", "host7 nic", "host8 nic", "leaf2 port 5",
                                        "leaf2 port 6", "leaf2 port 7", "leaf2 port 8"});
}
