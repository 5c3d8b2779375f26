// What the two ends of a PCI Express link report, held to the model, to siblings and to like nodes.
#include "controller/report/pcie_links.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

constexpr const char *kH100 = "10de:2330", *kNic = "15b3:1021 15b3:0041";

struct Fleet {
  std::vector<MeasuredStep> steps = {};
  std::map<std::string, HardwareFacts> machines = {};

  // Lanes of the device and of its slot, both at 32 GT/s.
  MeasuredStep& add(const std::string& node, const std::string& kind, const std::string& model,
                    const std::string& place, int device, int slot) {
    steps.push_back(step(node, "pcie", "", place, nullptr,
                         measured("pcie", {{"width", {1, "lanes"}}},
                                  {{"part", "PCIe link of " + kind + " " + place},
                                   {"model", model},
                                   {"device", {{"width", device}, {"speed", 32}}},
                                   {"port", {{"width", slot}, {"speed", 32}}}})));
    steps.back().like = "0x" + model.substr(0, 4) + ":0x" + model.substr(5, 4);
    machines[node].system.product = "PowerEdge XE9680";
    return steps.back();
  }
  std::map<std::string, std::vector<Check>> judged() const {
    std::map<std::string, const HardwareFacts*> facts;
    for (const auto& [node, machine] : machines) facts[node] = &machine;
    std::map<std::string, std::vector<Check>> out;
    judge_pcie_links(steps, facts, out);
    return out;
  }
  std::vector<std::string> with(Verdict verdict) const {
    std::vector<std::string> out;
    for (const auto& [node, checks] : judged())
      for (const auto& check : checks)
        if (check.verdict == verdict) out.push_back(node + " " + check.subject);
    return out;
  }
};
using List = std::vector<std::string>;

}  // namespace

TEST_CASE("links of a known model are held to what it can do: all equal and all low is found", "[pcie]") {
  Fleet f;
  for (const char* node : {"n1", "n2"})
    for (const char* place : {"18", "2a"}) f.add(node, "GPU", kH100, place, 8, 16);
  CHECK(f.with(Verdict::degraded) == List{"n1 18", "n1 2a", "n2 18", "n2 2a"});
  const Check check = f.judged().at("n1").front();
  CHECK(check.expected == 512);
  CHECK(check.measured == 256);
  CHECK(check.source.find("MLPerf") == 0);
  CHECK(check.faulty_parts == List{"PCIe link of GPU 18"});
  // A board is made for its GPUs, a card may be newer than its slot.
  Fleet slots;
  slots.add("n1", "GPU", kH100, "18", 16, 8);
  slots.add("n1", "GPU", "10de:27b8", "2a", 16, 8);  // L4
  CHECK(slots.with(Verdict::degraded) == List{"n1 18"});
  CHECK(slots.with(Verdict::pass) == List{"n1 2a"});
  // Lanes that the slot lacks are not made good by its speed, which the card does not have.
  Fleet fast;
  fast.add("n1", "GPU", "10de:27b8", "18", 16, 8).result["detail"]["device"]["speed"] = 16;
  CHECK(fast.with(Verdict::pass) == List{"n1 18"});
}

TEST_CASE("of an unknown model its siblings and the same place on like nodes count", "[pcie]") {
  Fleet f;
  f.add("n1", "NIC", kNic, "18", 16, 16);
  f.add("n1", "NIC", kNic, "2a", 8, 16);                   // reports half of what its sibling does
  f.add("n1", "NIC", "15b3:1021 15b3:0099", "3b", 8, 16);  // another board with that chip
  f.add("n1", "NIC", kNic, "4c", 16, 8);                   // in a shorter slot
  CHECK(f.with(Verdict::degraded) == List{"n1 2a"});
  CHECK(f.with(Verdict::not_judged) == List{"n1 4c"});
  CHECK(f.judged().at("n1").back().no_figure_for == std::string("slot of NIC ") + kNic);
  f.add("n2", "NIC", kNic, "4c", 16, 8);
  CHECK(f.with(Verdict::not_judged) == List{"n1 4c", "n2 4c"});
  f.add("n3", "NIC", kNic, "4c", 16, 16);
  CHECK(f.with(Verdict::degraded) == List{"n1 2a", "n1 4c", "n2 4c"});
  f.machines["n3"].system.product = "another machine";
  CHECK(f.with(Verdict::degraded) == List{"n1 2a"});
  // GPUs of one model are wired alike in a node; switches have the lanes that their place needs.
  Fleet g;
  g.add("n1", "GPU", "10de:ffff", "18", 16, 16);
  g.add("n1", "GPU", "10de:ffff", "2a", 16, 8);
  g.add("n1", "switch", "1000:c030", "01", 16, 16);
  g.add("n1", "switch", "1000:c030", "02", 4, 4);
  CHECK(g.with(Verdict::degraded) == List{"n1 2a"});
  CHECK(g.with(Verdict::pass).size() == 3);
}

TEST_CASE("what a hypervisor emulates, a lab and a dead device have no link to judge", "[pcie]") {
  Fleet f;
  f.add("n1", "GPU", kH100, "18", 16, 8).result["detail"]["emulated_slot"] = true;
  f.add("n1", "GPU", kH100, "2a", 8, 8).lab = true;
  f.add("n1", "GPU", kH100, "3b", 0, 8);
  CHECK(f.judged().empty());
  // By the rules of a run, and not in a single node's own order.
  f.add("n1", "GPU", kH100, "4c", 8, 16);
  const auto found = [&](bool own_only) {
    Comparison with;
    with.own_only = own_only;
    const auto checks = judge_measurements({f.steps.back()}, with).at("n1");
    return std::any_of(checks.begin(), checks.end(),
                       [](const Check& check) { return check.name == "pcie/link_rate"; });
  };
  CHECK(found(false));
  CHECK_FALSE(found(true));
}
