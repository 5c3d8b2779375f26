// PCIe ACS: which bridges, on recorded trees (tests/golden/topology) and, for Grace, on trees made by hand
// from the published description of the rule; and the registers themselves on configuration spaces as sysfs
// gives them.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "agent/core/step.h"
#include "agent/steps/gpu/acs.h"
#include "tests/catch.h"
#include "tests/fakes/acs_config.h"
#include "tests/fakes/fake_machine.h"
#include "tests/source_dir.h"

namespace muster {
namespace {

using steps::AcsSetting;
using steps::PciNode;
using tests::FakeMachine;

std::vector<PciNode> parse_tree(std::istream& in) {
  std::vector<PciNode> out;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string address, parent, kind, id;
    words >> address >> parent >> kind >> id;
    const auto hex = [](const std::string& text) {
      return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 16));
    };
    out.push_back({address, parent == "-" ? "" : parent, hex(kind),
                   static_cast<uint16_t>(hex(id.substr(0, 4))), static_cast<uint16_t>(hex(id.substr(5)))});
  }
  return out;
}

std::vector<PciNode> recorded(const std::string& name) {
  std::ifstream in(source_dir() + "/tests/golden/topology/" + name + ".txt");
  REQUIRE(in.good());
  return parse_tree(in);
}

std::vector<PciNode> made(const char* text) {
  std::istringstream in(text);
  return parse_tree(in);
}

std::vector<std::string> bridges(const std::vector<AcsSetting>& settings) {
  std::vector<std::string> out;
  for (const auto& s : settings) out.push_back(s.bridge);
  return out;
}

bool all_classic(const std::vector<AcsSetting>& settings) {
  for (const auto& s : settings)
    if (s.clear != 0x1d || s.set != 0) return false;
  return true;
}

using Names = std::vector<std::string>;

TEST_CASE("acs: an 8 x H100 machine: the bridge that each GPU shares with its NIC") {
  const auto chosen = steps::choose_acs(recorded("azure-ndv5"));
  CHECK(bridges(chosen) == Names{"ffff:ff:01.0", "ffff:ff:02.0", "ffff:ff:03.0", "ffff:ff:04.0",
                                 "ffff:ff:05.0", "ffff:ff:06.0", "ffff:ff:07.0", "ffff:ff:08.0"});
  CHECK(all_classic(chosen));
}

TEST_CASE("acs: an 8 x A100 machine: one bridge for two GPUs and two NICs, four times") {
  const auto chosen = steps::choose_acs(recorded("azure-ndv4"));
  CHECK(bridges(chosen) == Names{"ffff:ff:01.0", "ffff:ff:02.0", "ffff:ff:03.0", "ffff:ff:04.0"});
  CHECK(all_classic(chosen));
}

TEST_CASE("acs: an 8 x V100 machine without common bridges is left alone") {
  CHECK(steps::choose_acs(recorded("azure-ndv2")).empty());
}

TEST_CASE(
    "acs: a DGX-2: every bridge between its GPUs and their root ports, none of those above NVSwitches") {
  const auto chosen = steps::choose_acs(recorded("dgx2"));
  CHECK(bridges(chosen) ==
        Names{"0000:2b:00.0", "0000:2c:00.0", "0000:2d:04.0", "0000:2d:0c.0", "0000:32:00.0", "0000:33:00.0",
              "0000:33:10.0", "0000:37:00.0", "0000:38:00.0", "0000:38:10.0", "0000:4e:00.0", "0000:4f:00.0",
              "0000:50:04.0", "0000:50:0c.0", "0000:55:00.0", "0000:56:00.0", "0000:56:10.0", "0000:5a:00.0",
              "0000:5b:00.0", "0000:5b:10.0", "0000:ae:00.0", "0000:af:00.0", "0000:b0:04.0", "0000:b0:0c.0",
              "0000:b5:00.0", "0000:b6:00.0", "0000:b6:10.0", "0000:ba:00.0", "0000:bb:00.0", "0000:bb:10.0",
              "0000:d7:00.0", "0000:d8:00.0", "0000:d9:04.0", "0000:d9:0c.0", "0000:de:00.0", "0000:df:00.0",
              "0000:df:10.0", "0000:e3:00.0", "0000:e4:00.0", "0000:e4:10.0"});
  CHECK(all_classic(chosen));
}

// Made by hand: root port -> ConnectX-8 switch -> {DMA function, inner switch -> GPU}, and an ordinary NIC
// and drive elsewhere.
constexpr const char* kGraceMadeByHand = R"(
0002:00:00.0 - 060400 10de:22b8
0002:01:00.0 0002:00:00.0 060400 15b3:197c
0002:02:00.0 0002:01:00.0 060400 15b3:197c
0002:03:00.0 0002:02:00.0 010000 15b3:2100
0002:02:01.0 0002:01:00.0 060400 15b3:197c
0002:04:00.0 0002:02:01.0 060400 15b3:197c
0002:05:00.0 0002:04:00.0 060400 15b3:197c
0002:06:00.0 0002:05:00.0 030200 10de:2941
0000:00:00.0 - 060400 10de:22b1
0000:01:00.0 0000:00:00.0 060400 15b3:197c
0000:02:00.0 0000:01:00.0 060400 15b3:197c
0000:03:00.0 0000:02:00.0 020700 15b3:1023
0006:00:00.0 - 060400 10de:22b2
0006:01:00.0 0006:00:00.0 010802 144d:a80a
)";

TEST_CASE("acs: Grace with ConnectX-8, tree made by hand: three ports, each with bits of its own") {
  const auto chosen = steps::choose_acs(made(kGraceMadeByHand));
  REQUIRE(bridges(chosen) == Names{"0002:00:00.0", "0002:02:00.0", "0002:02:01.0"});
  // From all bits on (0x1f) and from all off to what the rule says: xx111x0, xx110x1, xx101x1.
  const auto becomes = [&](size_t i, unsigned before) {
    return (before & ~unsigned{chosen[i].clear}) | chosen[i].set;
  };
  CHECK(becomes(0, 0x1f) == 0x1e);
  CHECK(becomes(1, 0x1f) == 0x1b);
  CHECK(becomes(2, 0x1f) == 0x17);
  CHECK(becomes(0, 0) == 0x1c);
  CHECK(becomes(1, 0) == 0x19);
  CHECK(becomes(2, 0) == 0x15);
}

TEST_CASE(
    "acs: the same tree below a root port that is not Grace's, made by hand: nothing is set, the GPU has no "
    "partner") {
  std::string text = kGraceMadeByHand;
  text.replace(text.find("10de:22b8"), 9, "8086:2030");
  CHECK(steps::choose_acs(made(text.c_str())).empty());
}

TEST_CASE("acs: two functions of one card are no pair; a card and a drive below one root port are") {
  const char* alone =
      "0000:00:01.0 - 060400 8086:1\n0000:01:00.0 0000:00:01.0 030200 10de:1\n0000:01:00.1 0000:00:01.0 "
      "030200 10de:1\n";
  CHECK(steps::choose_acs(made(alone)).empty());
  const std::string pair =
      std::string(alone) + "0000:02:00.0 0000:00:01.0 010802 144d:1\n0000:03:00.0 - 020700 15b3:1\n";
  CHECK(bridges(steps::choose_acs(made(pair.c_str()))) == Names{"0000:00:01.0"});
}

// ---- registers

struct Node {
  FakeMachine machine;
  StepContext context = machine.context();
  Node() {
    machine.put("/run/systemd/system/x", "");
    machine.units["muster-acs.service"] = {}, machine.units["muster-acs.timer"] = {};
  }
  // A device where the kernel would show it, and the link to it.
  void device(const std::string& path, const char* kind, const char* vendor, const std::string& config) {
    const std::string address = path.substr(path.rfind('/') + 1), folder = "/sys/devices/" + path;
    machine.put(folder + "/class", kind);
    machine.put(folder + "/vendor", vendor);
    machine.put(folder + "/device", "0x1\n");
    machine.put(folder + "/config", config);
    std::filesystem::create_directories(machine.files().real("/sys/bus/pci/devices"));
    std::filesystem::create_symlink("../../../devices/" + path,
                                    machine.files().real("/sys/bus/pci/devices/" + address));
  }
  uint16_t control(const std::string& path) {
    return tests::acs_control(machine.get("/sys/devices/" + path + "/config"));
  }
  const StepModule& module() { return *find_step_module("acs"); }
};

TEST_CASE(
    "acs: the bridges of the node's own topology are cleared, others keep their bits, and a bridge without "
    "ACS is reported") {
  Node n;
  const std::string root = "pci0000:00/0000:00:01.0", sw = root + "/0000:01:00.0",
                    other = "pci0000:00/0000:00:02.0";
  n.device(root, "0x060400\n", "0x8086\n", tests::acs_config(0x005d));
  n.device(sw, "0x060400\n", "0x10b5\n", tests::acs_config(0, false));
  n.device(sw + "/0000:02:00.0", "0x030200\n", "0x10de\n", tests::acs_config(0x1d));
  n.device(sw + "/0000:02:01.0", "0x020700\n", "0x15b3\n", tests::acs_config(0x1d));
  n.device(other, "0x060400\n", "0x8086\n", tests::acs_config(0x001d));
  const auto before = n.module().check(n.context, Json::object());
  REQUIRE(before.ok());
  CHECK(before->holds == Holds::no);
  CHECK(before->diff.find("0000:00:01.0 (classic): 005d -> 0040") != std::string::npos);
  CHECK(before->note ==
        "these bridges have no ACS capability, so there is nothing to turn off: 0000:01:00.0");
  REQUIRE(n.module().apply(n.context, Json::object()).ok());
  CHECK(n.control(root) == 0x0040);  // direct translated stays
  CHECK(n.control(other) == 0x001d);
  CHECK(n.control(sw + "/0000:02:00.0") == 0x1d);  // an endpoint redirects nothing
  CHECK(n.module().verify(n.context, Json::object()).ok());
  CHECK(n.module().check(n.context, Json::object())->note ==
        before->note);  // as long as it lacks it, not only once
}

TEST_CASE(
    "acs: after a reset put the bits back, verify says which bridge, and the agent's own verb clears them "
    "again") {
  Node n;
  const std::string bridge = "pci0000:00/0000:00:03.0";
  n.device(bridge, "0x060400\n", "0x8086\n", tests::acs_config(0x001d));
  const Json params = {{"bridges", {"0000:00:03.0"}}};
  REQUIRE(n.module().apply(n.context, params).ok());
  CHECK(n.control(bridge) == 0);
  n.machine.put("/sys/devices/" + bridge + "/config", tests::acs_config(0x0004));
  const Status drifted = n.module().verify(n.context, params);
  REQUIRE(!drifted.ok());
  CHECK(drifted.error().message.find("0000:00:03.0") != std::string::npos);
  const auto fixed = steps::reapply_acs(n.machine.files());
  REQUIRE(fixed.ok());
  CHECK(*fixed == 1);
  CHECK(n.control(bridge) == 0);
  CHECK(*steps::reapply_acs(n.machine.files()) == 0);
}

TEST_CASE("acs: refused where a device is passed through to a guest, and for a bridge that is not there") {
  Node n;
  n.device("pci0000:00/0000:00:03.0", "0x060400\n", "0x8086\n", tests::acs_config(0x001d));
  CHECK(n.module().check(n.context, {{"bridges", {"0000:00:09.0"}}}).error().code == Code::not_found);
  CHECK(n.module().check(n.context, {{"bridges", {"root port 1"}}}).error().code == Code::invalid);
  n.machine.put("/sys/bus/pci/drivers/vfio-pci/0000:65:00.0/x", "");
  const Status refused = n.module().apply(n.context, {{"bridges", {"0000:00:03.0"}}});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(n.control("pci0000:00/0000:00:03.0") == 0x001d);
}

TEST_CASE("acs: not applicable without GPUs, and in an image") {
  Node n;
  n.device("pci0000:00/0000:00:03.0", "0x060400\n", "0x8086\n", tests::acs_config(0x001d));
  CHECK(n.module().check(n.context, Json::object())->holds == Holds::not_applicable);
  std::filesystem::remove_all(n.machine.files().real("/run"));
  CHECK(n.module().check(n.context, {{"bridges", {"0000:00:03.0"}}})->holds == Holds::not_applicable);
}

TEST_CASE("acs: a broken capability list ends") {
  Node n;
  std::string config = tests::acs_config(0x001d, false);
  config[0x103] = 0x10;  // the first capability points to itself
  config[0x102] = 0x02;
  n.device("pci0000:00/0000:00:03.0", "0x060400\n", "0x8086\n", config);
  const auto value = steps::read_acs(n.machine.files(), "0000:00:03.0");
  REQUIRE(value.ok());
  CHECK(!value->has_value());
}

}  // namespace
}  // namespace muster
