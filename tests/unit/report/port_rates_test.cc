// What a port's negotiated rate is held to, and what a path can carry.
#include "controller/report/port_rates.h"

#include "controller/report/expected.h"
#include "controller/report/network_bounds.h"
#include "controller/spec/units.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

struct Ports {
  std::vector<MeasuredStep> steps = {};
  DeclaredRates declared = {};

  // An InfiniBand port, measured at its rate.
  void add(const std::string& node, const std::string& place, double rate, const Json& more) {
    Json detail = {{"device", "mlx5_" + place}, {"place", place},      {"link_layer", "InfiniBand"},
                   {"rate_gbps", rate},         {"rate_text", "text"}, {"mtu", 4096}};
    detail.update(more);
    steps.push_back(step(node, "rdma", "peer", "", nullptr,
                         measured("rdma-link", {{"send_gbps", {rate * 0.95, "Gb/s"}}}, std::move(detail))));
  }
  std::map<std::string, std::vector<Check>> judged() const {
    std::map<std::string, std::vector<Check>> out;
    judge_port_rates(steps, declared, out);
    return out;
  }
  // Places of the ports with this verdict, with their node.
  std::vector<std::string> with(Verdict verdict) const {
    std::vector<std::string> out;
    for (const auto& [node, checks] : judged())
      for (const auto& check : checks)
        if (check.verdict == verdict) out.push_back(node + " " + check.subject.substr(5));
    return out;
  }
};
using List = std::vector<std::string>;

const Json kHdr = {{"ability_gbps", 200}, {"model", "15b3:101b"}};

}  // namespace

TEST_CASE("a port is held to what it can do, all equal and all slow too", "[rails]") {
  Ports p;
  for (const char* node : {"n1", "n2"})
    for (const char* place : {"18", "2a"}) p.add(node, place, 100, kHdr);
  CHECK(p.with(Verdict::degraded) == List{"n1 18", "n1 2a", "n2 18", "n2 2a"});
  // HDR100 on a split cable: 2X by design.
  p.declared.rails = 100;
  CHECK(p.with(Verdict::pass).size() == 4);
  p.declared.rails = 200;
  CHECK(p.with(Verdict::degraded).size() == 4);
  p.declared.provisioning = 10;  // another network
  CHECK(p.with(Verdict::degraded).size() == 4);
}

TEST_CASE("of a port whose ability is unknown its siblings and the same place on like nodes count",
          "[rails]") {
  const Json card = {{"model", "15b3:1021 15b3:0041"}}, other = {{"model", "15b3:101f"}};
  Ports p;
  p.add("n1", "18", 400, card);
  p.add("n1", "2a", 200, card);
  p.add("n1", "3b", 25, other);  // another network's adapter
  CHECK(p.with(Verdict::degraded) == List{"n1 2a"});
  CHECK(p.with(Verdict::not_judged) == List{"n1 18", "n1 3b"});
  Ports q;
  q.add("n1", "18", 400, card);
  q.add("n2", "18", 200, card);
  q.add("n3", "2a", 200, card);  // elsewhere in the machine
  q.add("n4", "18", 200, other);
  CHECK(q.with(Verdict::degraded) == List{"n2 18"});
}

TEST_CASE("ports without hardware have no rate to judge, nor has one whose speed the kernel does not know",
          "[rails]") {
  Ports p;
  p.add("n1", "18", 10, {{"place", ""}, {"rate_text", "2.5 Gb/sec (1X SDR)"}});  // in software
  p.add("n1", "2a", 0, Json::object());
  CHECK(p.judged().empty());
  p.steps.front() =
      step("n1", "links", "peer", "", nullptr,
           measured("link", {{"send_mbps", {900, "MB/s"}}},
                    {{"own_port", {{"interface", "eth0"}, {"ports", {{{"interface", "eth0"}}}}}}}));
  CHECK(p.judged().empty());  // virtio, ena
  // Half of what was measured is not its rate.
  p.add("n1", "3b", 10, kHdr);
  p.steps.back().result["metrics"]["send_gbps"]["value"] = 180;
  REQUIRE(p.with(Verdict::not_judged) == List{"n1 3b"});
  CHECK(p.judged().at("n1").front().derivation.find("does not know the port's speed") != std::string::npos);
  // At 10 Gb/s it has trained at the lowest speed.
  p.steps.back().result["metrics"]["send_gbps"]["value"] = 9;
  CHECK(p.with(Verdict::degraded) == List{"n1 3b"});
}

TEST_CASE("each port of a bond is judged, and TCP is held to one of them", "[rails]") {
  const Json ports = {{{"interface", "eno1"}, {"speed_mbps", 25000}, {"place", "18"}, {"ability_gbps", 25}},
                      {{"interface", "eno2"}, {"speed_mbps", 10000}, {"place", "2a"}, {"ability_gbps", 25}}};
  const Json own = {{"interface", "bond0"}, {"speed_mbps", 35000}, {"ports", ports}};
  Ports p;
  p.steps.push_back(
      step("n1", "links", "peer", "", nullptr,
           measured("link", {{"send_mbps", {900, "MB/s"}}}, {{"own_port", own}, {"streams", 4}})));
  CHECK(p.with(Verdict::degraded) == List{"n1 2a"});
  CHECK(p.with(Verdict::pass) == List{"n1 18"});
  const auto of = [](const Json& port, int streams) {
    return *nic_payload({{"detail", {{"own_port", port}, {"streams", streams}}}}, nullptr).value;
  };
  CHECK(of(own, 4) == Approx(10000.0 / 8 * 1448 / 1538));
  const Json fast = {{"interface", "eth0"}, {"speed_mbps", 400000}};
  CHECK(of(fast, 1) == 3750);
  CHECK(of(fast, 8) == 30000);
  // A VLAN whose driver reports no speed of its own.
  CHECK(of({{"interface", "eth0.5"}, {"ports", {{{"interface", "eth0"}, {"speed_mbps", 10000}}}}}, 1) ==
        Approx(10000.0 / 8 * 1448 / 1538));
}

TEST_CASE("RDMA is held to the slower end, and to what PCI Express leaves", "[rails]") {
  Json result = measured("rdma-link", {{"send_gbps", {97, "Gb/s"}}},
                         {{"rate_gbps", 200}, {"mtu", 4096}, {"link_layer", "InfiniBand"}});
  const double share = 4096.0 / 4122;
  CHECK(*rdma_payload(result).value == Approx(200 * share));
  result["detail"]["peer_rate_gbps"] = 100;
  CHECK(*rdma_payload(result).value == Approx(100 * share));
  result["detail"]["pcie_gbps"] = 56;
  result["detail"]["pcie"] = "x16 at 8 GT/s, shared by 2 ports";
  CHECK(*rdma_payload(result).value == 56);
  CHECK(rdma_payload(result).text.find("shared by 2 ports") != std::string::npos);
  result["detail"]["peer_pcie_gbps"] = 28;
  CHECK(*rdma_payload(result).value == 28);
}

TEST_CASE("NCCL's ports are those of one speed, or those nearest to the GPUs", "[rails]") {
  Json rails = Json::array();
  for (int i = 0; i < 4; ++i) rails.push_back({{"rate_gbps", 400}, {"rate_text", "400 Gb/sec (4X NDR)"}});
  CHECK(nccl_rails(rails).count == 4);
  rails.push_back({{"rate_gbps", 200}, {"rate_text", "200 Gb/sec (4X HDR)"}});
  CHECK_FALSE(nccl_rails(rails).unknown.empty());
  for (int i = 0; i < 4; ++i) rails[static_cast<size_t>(i)]["near_gpu"] = true;
  CHECK(nccl_rails(rails).count == 4);
  CHECK(nccl_rails(rails).gbps == 400);
  rails[4]["near_gpu"] = true;
  CHECK_FALSE(nccl_rails(rails).unknown.empty());
  CHECK(nccl_rails({{{"rate_gbps", 10}, {"rate_text", "10 Gb/sec (1X QDR)"}}}).gbps ==
        10);  // 10 Gb/s Ethernet
  CHECK_FALSE(nccl_rails({{{"rate_gbps", 10}, {"rate_text", "10 Gb/sec (4X SDR)"}}}).unknown.empty());
  CHECK_FALSE(nccl_rails(nullptr).unknown.empty());
  // Two ports in one slot: less than their rate. Wider slots change nothing.
  const auto slots = [](double first, double others) {
    Json out = Json::array();
    for (int i = 0; i < 4; ++i) out.push_back({{"rate_gbps", 200}, {"slot_gbps", i == 0 ? first : others}});
    return nccl_rails(out);
  };
  CHECK(slots(113, 226).gbps == 113);
  CHECK(slots(113, 226).count == 4);
  CHECK_FALSE(slots(113, 226).which.empty());
  CHECK(slots(226, 226).gbps == 200);
  CHECK(slots(226, 226).which.empty());
  // A100: rings, as NCCL has no reductions in their switches.
  HardwareFacts facts;
  facts.gpus.resize(8);
  for (auto& gpu : facts.gpus) gpu.model = "NVIDIA A100-SXM4-80GB";
  const Json result = measured("nccl", {{"ranks", {2, "ranks"}}, {"gpus", {16, "ranks"}}},
                               {{"algorithm", "NCCL's choice"}, {"rails", std::vector<double>(8, 200)}});
  CHECK(*derive("nccl_bus", result, &facts).value == Approx(194));
}

TEST_CASE("the declared rates of a spec", "[rails][spec]") {
  CHECK(parse_link_rate("200 Gb/s").value() == 200);
  CHECK(parse_link_rate("2.5 Gb/s").value() == 2.5);
  CHECK(parse_link_rate("100 Mb/s").value() == Approx(0.1));
  for (const char* wrong : {"200", "200 GB/s", "0 Gb/s", "fast", ""})
    CHECK_FALSE(parse_link_rate(wrong).ok());
  Spec spec;
  spec.vars = {{"rail_rate", "100 Gb/s"}};
  CHECK(declared_rates(spec).rails == 100);
  spec.network.rails.rate_gbps = 200;
  CHECK(declared_rates(spec).rails == 200);
  CHECK(declared_rates(spec).provisioning == 0);
}
