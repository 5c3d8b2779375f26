// Drift among hosts that should be alike: which host is called different, and when none is.
#include "controller/report/drift.h"

#include "tests/catch.h"

using namespace muster;

namespace {

HostProperties host(const std::string& name, std::map<std::string, std::string> values,
                    const std::string& group = "") {
  return {name, group, std::move(values)};
}

// The property `x` of hosts h1, h2 ... with these values; "" is not looked at.
DriftProperty drift_of(const std::vector<std::string>& values) {
  std::vector<HostProperties> hosts;
  for (size_t i = 0; i < values.size(); ++i)
    hosts.push_back(host("h" + std::to_string(i + 1), {{"x", values[i]}}));
  const Drift drift = find_drift(hosts);
  REQUIRE(drift.size() == 1);
  REQUIRE(drift[0].properties.size() == 1);
  return drift[0].properties[0];
}

}  // namespace

TEST_CASE("drift: the value of more than half is the majority, the others differ", "[report][drift]") {
  const DriftProperty x = drift_of({"1.9", "2.0", "2.0", "2.0 ", "1.8"});
  CHECK(x.agreement == Agreement::outliers);
  REQUIRE(x.majority());
  CHECK(x.majority()->value == "2.0");
  CHECK(x.majority()->hosts == std::vector<std::string>{"h2", "h3", "h4"});
  REQUIRE(x.values.size() == 3);
  CHECK(x.values[1].value == "1.8");
  CHECK(x.values[2].value == "1.9");
  CHECK(x.values[2].hosts == std::vector<std::string>{"h1"});
}

TEST_CASE("drift: without a majority no host is called different", "[report][drift]") {
  const DriftProperty tie = drift_of({"a", "b", "b", "a"});
  CHECK(tie.agreement == Agreement::tie);
  CHECK(!tie.majority());
  CHECK(drift_of({"a", "b", "c"}).agreement == Agreement::tie);
  const DriftProperty split = drift_of({"a", "a", "b", "c"});
  CHECK(split.agreement == Agreement::split);
  CHECK(!split.majority());
  for (const auto& few :
       {drift_of({"a", "a"}), drift_of({"a", "b"}), drift_of({"a"}), drift_of({"a", "", "a"})}) {
    CHECK(few.agreement == Agreement::few);
    CHECK(!few.majority());
  }
  CHECK(drift_of({"a", "a", "a"}).agreement == Agreement::equal);
  CHECK(drift_of({"a", "a", "b"}).agreement == Agreement::outliers);
}

TEST_CASE("drift: what was not looked at is neither equal nor different", "[report][drift]") {
  const DriftProperty x = drift_of({"a", "", "a", " \n", "a"});
  CHECK(x.agreement == Agreement::equal);
  CHECK(x.values.size() == 1);
  CHECK(x.not_looked_at == std::vector<std::string>{"h2", "h4"});
  CHECK(drift_of({"", ""}).agreement == Agreement::unseen);
  // Half of those that were looked at counts, not of all.
  CHECK(drift_of({"a", "a", "b", "", "", ""}).agreement == Agreement::outliers);
}

TEST_CASE("drift: groups are compared by themselves, in a stable order", "[report][drift]") {
  const std::vector<HostProperties> hosts = {
      host("g3", {{"kernel", "6.1"}, {"driver", "550"}}, "gpu"), host("c1", {{"kernel", "5.15"}}, "cpu"),
      host("g1", {{"kernel", "6.1"}}, "gpu"), host("g2", {{"kernel", "6.1"}}, "gpu")};
  const Drift drift = find_drift(hosts);
  REQUIRE(drift.size() == 2);
  CHECK(drift[0].name == "cpu");
  CHECK(drift[0].properties.at(0).name == "driver");
  CHECK(drift[0].properties.at(0).agreement == Agreement::unseen);
  CHECK(drift[0].properties.at(1).agreement == Agreement::few);
  CHECK(drift[1].hosts == std::vector<std::string>{"g1", "g2", "g3"});
  CHECK(drift[1].properties.at(0).not_looked_at == std::vector<std::string>{"g1", "g2"});
  CHECK(drift[1].properties.at(1).agreement == Agreement::equal);
  std::vector<HostProperties> turned(hosts.rbegin(), hosts.rend());
  CHECK(to_json(find_drift(turned)) == to_json(drift));
  CHECK(find_drift({}).empty());
}

TEST_CASE("drift: as JSON", "[report][drift]") {
  const Json json = to_json(find_drift({host("a", {{"nccl", "2.20"}}), host("b", {{"nccl", "2.20"}}),
                                        host("c", {{"nccl", "2.19"}}), host("d", {})}));
  const Json& group = json.at("groups").at(0);
  CHECK(group.at("group") == "");
  CHECK(group.at("hosts").size() == 4);
  CHECK(group.at("properties").at(0) ==
        Json({{"name", "nccl"},
              {"agreement", "outliers"},
              {"majority", "2.20"},
              {"values", Json::array({{{"value", "2.20"}, {"count", 2}},
                                      {{"value", "2.19"}, {"count", 1}, {"hosts", Json::array({"c"})}}})},
              {"outliers", Json::array({"c"})},
              {"not_looked_at", Json::array({"d"})}}));
  const Json tie =
      to_json(find_drift({host("a", {{"x", "1"}}), host("b", {{"x", "2"}}), host("c", {{"x", "3"}})}));
  CHECK(!tie.at("groups").at(0).at("properties").at(0).contains("majority"));
  CHECK(tie.at("groups").at(0).at("properties").at(0).at("outliers").empty());
}

TEST_CASE("drift: what was written is read back, also who the majority is", "[report][drift]") {
  const Drift drift = find_drift({host("a", {{"x", "1"}, {"y", "1"}}), host("b", {{"x", "1"}, {"y", "2"}}),
                                  host("c", {{"x", "2"}, {"y", "3"}}), host("d", {{"x", "1"}})});
  const auto read = drift_from_json(to_json(drift));
  REQUIRE(read.ok());
  CHECK(to_json(*read) == to_json(drift));
  REQUIRE(read->size() == 1);
  CHECK((*read)[0].properties[0].majority()->hosts == std::vector<std::string>{"a", "b", "d"});
  CHECK(render_drift(*read) == render_drift(drift));
  Json other = to_json(drift);
  other["groups"][0]["properties"][0]["agreement"] = "fine";
  CHECK(drift_from_json(other).error().code == Code::invalid);
  Json more = to_json(drift);
  more["groups"][0]["surprise"] = 1;
  CHECK_FALSE(drift_from_json(more).ok());
  Json none = to_json(drift);
  none["groups"][0]["properties"][0]["values"] = Json::array();
  CHECK(drift_from_json(none).ok());  // and nothing reads a majority of nothing
  CHECK_FALSE((*drift_from_json(none))[0].properties[0].majority());
}

TEST_CASE("drift: a run compares nodes of one role and product, three at least", "[report][drift]") {
  HardwareFacts big, small;
  big.system = {"ACME", "Big", "", ""};
  small.system = {"ACME", "Small", "", ""};
  big.kernel = small.kernel = "6.1";
  HardwareFacts other = big;
  other.kernel = "6.5";
  other.properties = {{"CPU governor", "powersave"}};
  const Drift drift =
      drift_of_run({drift_host("a", "gpu", big), drift_host("b", "gpu", big), drift_host("c", "gpu", other),
                    drift_host("d", "gpu", small), drift_host("e", "login", big)});
  REQUIRE(drift.size() == 1);
  CHECK(drift[0].name == "gpu, ACME Big");
  CHECK(drift[0].hosts.size() == 3);
  for (const auto& property : drift[0].properties) {
    if (property.name == "kernel") CHECK(property.values.back().hosts == std::vector<std::string>{"c"});
    if (property.name == "CPU governor") CHECK(property.not_looked_at.size() == 2);
  }
}

TEST_CASE("drift: as text, which no host's words can steer", "[report][drift]") {
  std::vector<HostProperties> hosts;
  for (int i = 0; i < 9; ++i)
    hosts.push_back(
        host("h" + std::to_string(i), {{"kernel", "6.1"}, {"BIOS version", i == 4 ? "1.9" : "2.1"}}));
  CHECK(render_drift(find_drift(hosts)) ==
        "all hosts (9 hosts): 1 of 2 properties are equal on all hosts\n"
        "  BIOS version: 2.1 on 8 hosts, but 1.9 on h4\n");
  hosts.resize(2);
  hosts[0].values["evil"] = "\x1b[2J" + std::string(500, 'x');
  const std::string text = render_drift(find_drift(hosts));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("2 of 3 properties are equal on all hosts") != std::string::npos);
  CHECK(text.find("6.1") == std::string::npos);
  hosts[1].values["kernel"] = "6.2";
  CHECK(
      render_drift(find_drift(hosts)).find("fewer than three hosts, so no majority: 6.1 on h0; 6.2 on h1") !=
      std::string::npos);
  CHECK(text.find("not looked at on h1") != std::string::npos);
  CHECK(text.size() < 700);
  CHECK(render_drift({}) == "no hosts\n");
}

TEST_CASE("drift: properties of an inventory; what it lacks is not among them", "[report][drift]") {
  CHECK(drift_properties(HardwareFacts()).empty());
  HardwareFacts facts;
  facts.kernel = "6.1.0-25-amd64";
  facts.firmware = "2.1";
  facts.cpus.count = 224;
  facts.gpus.resize(8);
  for (GpuFacts& gpu : facts.gpus) gpu.model = "NVIDIA H100 80GB HBM3";
  facts.nics.resize(3);
  facts.nics[0].driver = facts.nics[1].driver = "mlx5_core";
  facts.nics[0].link_up = true;
  facts.nics[0].speed_mbps = 400000;
  facts.nics[2].driver = "igb";
  DiskFacts disk;
  disk.model = "SAMSUNG MZQL23T8HCLS-00A07";
  disk.transport = "nvme";
  facts.disks = {disk, disk, disk};
  facts.disks[2].transport = "usb";
  const auto properties = drift_properties(facts);
  CHECK(properties == std::map<std::string, std::string>{{"kernel", "6.1.0-25-amd64"},
                                                         {"BIOS version", "2.1"},
                                                         {"boot mode", "legacy BIOS"},
                                                         {"logical processors", "224"},
                                                         {"GPU models", "8 x NVIDIA H100 80GB HBM3"},
                                                         {"port drivers", "1 x igb, 2 x mlx5_core"},
                                                         {"port speeds", "1 x 400000 Mbit/s"},
                                                         {"drive models", "2 x SAMSUNG MZQL23T8HCLS-00A07"}});
  CHECK(of_all_parts({"28.39.1002", " ", "28.39.1002", "28.36.1010"}) == "28.36.1010, 28.39.1002");
  CHECK(of_all_parts({"GDC5902Q", "GDC5902Q"}) == "GDC5902Q");
  CHECK(of_all_parts({}) == "");
}
