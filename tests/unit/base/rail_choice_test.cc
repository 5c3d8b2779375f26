// Rails by the GPUs they are nearest to: recorded PCI trees (tests/golden/topology) and trees made by hand.
#include "base/rail_choice.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;
using Indexes = std::vector<size_t>;

namespace {

struct Tree {
  std::vector<std::string> gpus, nics;  // addresses, in their order
  std::map<std::string, std::string> parent;
  std::string path(const std::string& address) const {
    const auto up = parent.find(address);
    return up == parent.end() || up->second == "-"
               ? ""
               : path(up->second) + (path(up->second).empty() ? "" : "/") + up->second;
  }
  RailQuestion question(size_t count) const {
    RailQuestion q;
    for (const auto& nic : nics) q.ports.push_back({nic, path(nic)});
    for (const auto& gpu : gpus) q.gpus.push_back(path(gpu));
    q.count = count;
    return q;
  }
};

// "ADDRESS PARENT CLASS VENDOR:DEVICE"
Tree recorded(const std::string& name) {
  std::ifstream in(source_dir() + "/tests/golden/topology/" + name + ".txt");
  REQUIRE(in.good());
  Tree out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string address, parent, kind;
    words >> address >> parent >> kind;
    out.parent[address] = parent;
    if (kind.starts_with("0302")) out.gpus.push_back(address);
    if (kind.starts_with("02")) out.nics.push_back(address);
  }
  std::sort(out.gpus.begin(), out.gpus.end());
  std::sort(out.nics.begin(), out.nics.end());
  return out;
}

RailPort port(const std::string& said, const std::string& path, bool link = false, int64_t speed = 0) {
  return {said, path, link, speed};
}

Indexes chosen(const RailQuestion& q) {
  const auto answer = choose_rails(q);
  INFO((answer.ok() ? "" : answer.error().message));
  REQUIRE(answer.ok());
  return answer->ports;
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("rails: on recorded machines each GPU's rail is an adapter below its own bridge", "[rails]") {
  for (const char* name : {"azure-ndv4", "azure-ndv5"}) {
    INFO(name);
    const Tree tree = recorded(name);
    REQUIRE(tree.gpus.size() == 8);
    REQUIRE(tree.nics.size() == 8);
    const auto answer = choose_rails(tree.question(8));
    REQUIRE(answer.ok());
    CHECK(answer->by_gpu);
    std::vector<bool> used(8);
    for (size_t i = 0; i < 8; ++i) {
      const size_t nic = answer->ports[i];
      CHECK(tree.parent.at(tree.nics[nic]) == tree.parent.at(tree.gpus[i]));
      CHECK_FALSE(used[nic]);
      used[nic] = true;
    }
  }
}

TEST_CASE("rails: the order is the GPUs', whatever the adapters' addresses are", "[rails]") {
  Tree tree = recorded("azure-ndv5");
  std::reverse(tree.gpus.begin(), tree.gpus.end());  // a board that is wired the other way round
  CHECK(chosen(tree.question(8)) == Indexes{7, 6, 5, 4, 3, 2, 1, 0});
  tree = recorded("azure-ndv4");  // two of each below a bridge: equally near, so in their own order
  std::reverse(tree.gpus.begin(), tree.gpus.end());
  const auto pairs = chosen(tree.question(8));
  for (size_t i = 0; i < 8; ++i) CHECK(tree.parent.at(tree.nics[pairs[i]]) == tree.parent.at(tree.gpus[i]));
  CHECK(pairs[0] < pairs[1]);
}

TEST_CASE("rails: adapters beside GPUs are chosen before others, cabled or not", "[rails]") {
  Tree tree = recorded("azure-ndv5");
  tree.nics.insert(tree.nics.begin(), "0000:01:00.0");  // for storage, below a bridge of its own
  tree.parent["0000:01:00.0"] = "0000:00:01.0";
  auto q = tree.question(8);
  for (size_t i = 0; i < q.ports.size(); ++i)
    q.ports[i].link = i != 4;  // eight links, one of them not a rail's
  CHECK(chosen(q) == Indexes{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("rails: of a double port beside each GPU those with a link, or it is an error that lists all",
          "[rails]") {
  RailQuestion q;
  q.count = 2;
  q.gpus = {"pci0000:10/0000:10:01.0", "pci0000:20/0000:20:01.0"};
  q.ports = {port("a0", "pci0000:10/0000:10:01.0"), port("a1", "pci0000:10/0000:10:01.0"),
             port("b0", "pci0000:20/0000:20:01.0"), port("b1", "pci0000:20/0000:20:01.0")};
  const auto open = choose_rails(q);
  REQUIRE_FALSE(open.ok());
  CHECK(open.error().code == Code::conflict);
  for (const char* name : {"a0", "a1", "b0", "b1"}) CHECK(says(open.error().message, name));
  q.ports[1].link = q.ports[2].link = true;
  CHECK(chosen(q) == Indexes{1, 2});
  q.ports[0].link = true;
  CHECK_FALSE(choose_rails(q).ok());
  q.ports[1].speed_mbps = q.ports[2].speed_mbps = 400000;
  q.ports[0].speed_mbps = 25000;
  CHECK(chosen(q) == Indexes{1, 2});
}

TEST_CASE("rails: fewer rails than GPUs follow the first GPU that each is nearest to", "[rails]") {
  RailQuestion q;
  q.count = 2;
  q.gpus = {"pci0000:20/0000:20:01.0", "pci0000:20/0000:20:01.0", "pci0000:10/0000:10:01.0",
            "pci0000:10/0000:10:01.0"};
  q.ports = {port("a", "pci0000:10/0000:10:01.0"), port("b", "pci0000:20/0000:20:01.0")};
  CHECK(chosen(q) == Indexes{1, 0});
}

TEST_CASE("rails: a GPU with one adapter gets it, though another GPU could take it, too", "[rails]") {
  RailQuestion q;
  q.count = 2;
  q.gpus = {"pci0000:10", "pci0000:10/0000:10:01.0"};  // the first one hangs beside the switch
  q.ports = {port("below the switch", "pci0000:10/0000:10:01.0"), port("beside it", "pci0000:10")};
  CHECK(chosen(q) == Indexes{1, 0});
}

TEST_CASE("rails: two GPUs at one adapter and none at the other is not guessed about", "[rails]") {
  RailQuestion q;
  q.count = 2;
  q.gpus = {"pci0000:10/0000:10:01.0", "pci0000:10/0000:10:01.0"};
  q.ports = {port("near", "pci0000:10/0000:10:01.0"), port("far", "pci0000:20/0000:20:01.0")};
  const auto open = choose_rails(q);
  REQUIRE_FALSE(open.ok());
  CHECK(open.error().code == Code::conflict);
  CHECK(says(open.error().message, "near"));
  CHECK(says(open.error().message, "far"));
}

TEST_CASE("rails: a dead GPU moves no rail", "[rails]") {
  Tree tree = recorded("azure-ndv5");
  tree.gpus.erase(tree.gpus.begin() + 2);
  auto q = tree.question(8);
  q.gpus_declared = 8;
  const auto short_of_one = choose_rails(q);
  REQUIRE_FALSE(short_of_one.ok());
  CHECK(short_of_one.error().code == Code::conflict);
  CHECK(says(short_of_one.error().message, "there are 7 GPUs instead of 8"));
}

TEST_CASE("rails: without GPUs, or with nothing in common with them, by PCI address", "[rails]") {
  Tree tree = recorded("azure-ndv5");
  const auto gpus = std::exchange(tree.gpus, {});
  auto q = tree.question(8);
  q.gpus_declared = 8;  // made-up GPUs have no PCI device
  const auto alone = choose_rails(q);
  REQUIRE(alone.ok());
  CHECK(alone->ports == Indexes{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_FALSE(alone->by_gpu);
  q.gpus = std::vector<std::string>(8, "pci0000:99/0000:99:01.0");
  CHECK(chosen(q) == Indexes{0, 1, 2, 3, 4, 5, 6, 7});

  RailQuestion linked;
  linked.count = 1;
  linked.ports = {port("slow", "pci0000:00", true, 1000), port("fast", "pci0000:00", true, 400000)};
  CHECK(chosen(linked) == Indexes{1});
  linked.ports.pop_back();
  linked.count = 2;
  CHECK(choose_rails(linked).error().code == Code::not_found);
}

TEST_CASE("rails: the way to a device is what its link passes, without itself", "[rails]") {
  CHECK(pci_path("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0") ==
        "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0");
  CHECK(pci_path("../../../0000:00:02.0/virtio0") == "");  // a link that is relative to its bus
  CHECK(pci_path("../../devices/pci0000:00/0000:00:02.0/virtio0") == "pci0000:00");
  CHECK(pci_path("../../devices/pci10000:e0/10000:e0:01.0/10000:e1:00.0") == "pci10000:e0/10000:e0:01.0");
  CHECK(pci_path("../../devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0") == "");
  CHECK(pci_path("../../devices/platform/serial8250") == "");
  CHECK(pci_path("") == "");
}
