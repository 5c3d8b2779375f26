// What ports can do, and which of their GIDs belong together.
#include "host/port_ability.h"

#include "host/gids.h"
#include "host/rails.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

struct Machine {
  TempDir dir = {};
  Files files{dir.path("")};
  void put(const std::string& path, const std::string& text) const { REQUIRE(files.write(path, text).ok()); }
  void link(const std::string& target, const std::string& path) const {
    REQUIRE(files.make_directories(path.substr(0, path.rfind('/'))).ok());
    REQUIRE(files.symlink(target, path).ok());
  }
};

std::vector<uint32_t> bits(std::initializer_list<int> set) {
  std::vector<uint32_t> out(4);
  for (const int bit : set) out[static_cast<size_t>(bit) / 32] |= 1u << (bit % 32);
  return out;
}

}  // namespace

TEST_CASE("the most that link modes and product names state", "[rails]") {
  CHECK(gbps_of_link_modes({}) == 0);
  CHECK(gbps_of_link_modes(bits({5, 6, 7, 12, 13})) == 10);  // 10GBASE-T, with what is no speed
  CHECK(gbps_of_link_modes(bits({31, 38, 49, 50, 74})) == 100);
  CHECK(gbps_of_link_modes(bits({62, 85})) == 400);
  CHECK(gbps_of_link_modes(bits({20, 51})) == 0);
  CHECK(gbps_of_product(
            "NVIDIA ConnectX-7 HHHL Adapter Card; 400GbE / NDR IB (default mode); PCIe 5.0 x16") == 400);
  CHECK(gbps_of_product("ConnectX-7 Adapter Card; 200GbE / NDR200 IB; Dual-port QSFP112; PCIe 5.0 x16") ==
        200);
  CHECK(gbps_of_product("ConnectX-6 VPI adapter card, 100Gb/s (HDR100, EDR InfiniBand and 100GbE)") == 100);
  CHECK(gbps_of_product("ConnectX-6 VPI adapter card, HDR InfiniBand (200Gb/s) and 200GbE") == 200);
  CHECK(gbps_of_product("BlueField-3 DPU; NDR200 IB; 16GB on-board DDR; integrated BMC") == 200);
  CHECK(gbps_of_product("ConnectX-4 Lx EN network interface card, 10/25GbE dual-port SFP28") == 25);
  CHECK(gbps_of_product("Intel(R) Ethernet Network Adapter E810-CQDA2") == 0);
  CHECK(gbps_of_product("") == 0);
}

TEST_CASE("without a driver's answer the adapter's vital product data count", "[rails]") {
  const Machine m;
  const std::string device = "/sys/class/infiniband/mlx5_0/device";
  CHECK(port_ability(m.files, "", device).gbps == 0);
  const std::string name = "Adapter; 200GbE / HDR IB";
  m.put(device + "/vpd", std::string("\x82") + static_cast<char>(name.size()) + '\0' + name + "\x90...");
  CHECK(port_ability(m.files, "", device).gbps == 200);
  m.put(device + "/vpd", "\x82");
  CHECK(port_ability(m.files, "", device).gbps == 0);
}

TEST_CASE("the ports below a VLAN on a bond are its members", "[rails]") {
  const Machine m;
  for (const char* port : {"eno1", "eno2"})
    m.put(std::string("/sys/class/net/") + port + "/device/vendor", "0x15b3");
  m.put("/sys/class/net/bond0/lower_eno1/x", "");
  m.put("/sys/class/net/bond0/lower_eno2/x", "");
  m.put("/sys/class/net/bond0.5/lower_bond0/x", "");
  m.put("/sys/class/net/veth1/address", "");
  CHECK(ports_below(m.files, "bond0.5") == std::vector<std::string>{"eno1", "eno2"});
  CHECK(ports_below(m.files, "eno1") == std::vector<std::string>{"eno1"});
  CHECK(ports_below(m.files, "veth1").empty());
  m.put("/sys/class/net/eno1/speed", "25000");
  m.put("/sys/class/net/eno2/speed", "-1");
  CHECK(interface_gbps(m.files, "eno1") == 25);
  CHECK(interface_gbps(m.files, "eno2") == 0);
}

TEST_CASE("two ports in one slot share its lanes; what was trained does not matter", "[rails]") {
  const Machine m;
  const auto device = [&](const std::string& way, const std::string& width, const std::string& speed) {
    const std::string folder = "/sys/devices/pci0000:00/" + way, address = way.substr(way.rfind('/') + 1);
    m.put(folder + "/max_link_width", width);
    m.put(folder + "/max_link_speed", speed + " GT/s PCIe");
    m.put(folder + "/current_link_width", "1");
    m.link("../../../devices/pci0000:00/" + way, "/sys/bus/pci/devices/" + address);
  };
  device("0000:00:01.0", "16", "8.0");
  device("0000:00:01.0/0000:18:00.0", "16", "16.0");
  device("0000:00:01.0/0000:18:00.1", "16", "16.0");
  const auto both = pcie_shares(m.files, {"0000:18:00.0", "0000:18:00.1"});
  CHECK(both.at("0000:18:00.0").gbps == Approx(16 * 8 * 128.0 / 130 * 0.9 / 2));
  CHECK(both.at("0000:18:00.1").ports == 2);
  CHECK(both.at("0000:18:00.1").link == "x16 at 8 GT/s");
  CHECK(pcie_shares(m.files, {"0000:18:00.0"}).at("0000:18:00.0").ports == 1);
  CHECK(pcie_shares(m.files, {"0000:99:00.0"}).empty());
  // Behind a switch the ports share its link upwards.
  device("0000:00:02.0", "16", "16.0");
  device("0000:00:02.0/0000:20:00.0", "16", "16.0");
  for (const char* n : {"1", "2"}) {
    const std::string down = std::string("0000:00:02.0/0000:20:00.0/0000:21:0") + n + ".0";
    device(down, "16", "16.0");
    device(down + "/0000:2" + (n[0] == '1' ? "2" : "3") + ":00.0", "16", "16.0");
  }
  const auto shared = pcie_shares(m.files, {"0000:22:00.0", "0000:23:00.0"});
  CHECK(shared.at("0000:22:00.0").gbps == Approx(16 * 16 * 128.0 / 130 * 0.9 / 2));
  // Each has its own slot to itself; the two functions of one adapter share theirs.
  CHECK(shared.at("0000:22:00.0").slot_gbps == Approx(16 * 16 * 128.0 / 130 * 0.9));
  CHECK(both.at("0000:18:00.1").slot_gbps == Approx(16 * 8 * 128.0 / 130 * 0.9 / 2));
}

TEST_CASE("GIDs of addresses, and the range that NCCL searches", "[rails]") {
  const Machine m;
  const std::string folder = "/sys/class/infiniband/mlx5_0/ports/1";
  const auto gid = [&](int index, const char* text, const char* type, const char* interface) {
    m.put(folder + "/gids/" + std::to_string(index), text);
    m.put(folder + "/gid_attrs/types/" + std::to_string(index), type);
    m.put(folder + "/gid_attrs/ndevs/" + std::to_string(index), interface);
  };
  gid(0, "fe80:0000:0000:0000:0ac0:ebff:feda:1cfb", "RoCE v2", "eth1");
  gid(1, "fd00:0100:0000:0000:0000:0000:0000:000b", "RoCE v2", "eth1.100");
  gid(2, "0000:0000:0000:0000:0000:ffff:0a64:000b", "IB/RoCE v1", "eth1");
  gid(3, "0000:0000:0000:0000:0000:ffff:0a64:000b", "RoCE v2", "eth1");
  gid(4, "0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2", "eth1");
  const auto found = roce_gids(m.files, folder);
  REQUIRE(found.size() == 2);
  CHECK((found[0].address == "10.100.0.11" && found[0].index == 3));
  CHECK((found[1].address == "fd00:100::b" && found[1].interface == "eth1.100"));

  CHECK(range_of_addresses({}) == "");
  CHECK(range_of_addresses({"10.100.0.11"}) == "10.100.0.11/32");
  CHECK(range_of_addresses({"10.100.0.11", "10.100.7.11"}) == "10.100.0.0/21");
  CHECK(range_of_addresses({"fd00:100::b", "fd00:101::b"}) == "fd00:100::/31");
  CHECK(range_of_addresses({"10.100.0.11", "fd00::1"}) == "");
  CHECK(range_of_addresses({"nonsense"}) == "");
  CHECK(is_in_range("10.100.5.9", "10.100.0.0/21"));
  CHECK_FALSE(is_in_range("10.100.9.9", "10.100.0.0/21"));
  CHECK_FALSE(is_in_range("fd00::1", "10.100.0.0/21"));
}

TEST_CASE("RDMA ports of a fabric: not those of an ordinary network", "[rails]") {
  const Machine m;
  CHECK(fabric_ports(m.files) == 0);
  m.put("/proc/net/route",
        "Iface\tDestination\tGateway\neno1\t00000000\t0100000A\nens18\t0064640A\t00000000\n");
  const auto port = [&](const std::string& device, const std::string& layer, const std::string& interface) {
    const std::string at = "/sys/class/infiniband/" + device + "/ports/1/";
    m.put(at + "state", "4: ACTIVE");
    m.put(at + "link_layer", layer);
    if (interface.empty()) return;
    m.put("/sys/class/net/" + interface + "/device/vendor", "0x15b3");
    m.put(at + "gid_attrs/ndevs/0", interface);
    m.put(at + "gid_attrs/types/0", "RoCE v2");
    m.put(at + "gids/0", "0000:0000:0000:0000:0000:ffff:0a64:000b");
  };
  port("mlx5_0", "Ethernet", "eno1");
  CHECK(fabric_ports(m.files) == 0);
  port("mlx5_1", "Ethernet", "ens18");
  CHECK(fabric_ports(m.files) == 1);
  port("mlx5_2", "InfiniBand", "");
  CHECK(fabric_ports(m.files) == 2);
  m.put("/sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN");
  CHECK(fabric_ports(m.files) == 1);
  // By IPv6, and on a VLAN of a bond below which the port is.
  const std::string zeros(32, '0');
  m.put("/proc/net/ipv6_route",
        "fe80" + std::string(28, '0') + " 40 " + zeros + " 00 " + zeros +
            " 00000100 00000001 00000000 00000001 eno1\n" + zeros + " 00 " + zeros +
            " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 "
            "bond0.7\n");
  m.put("/sys/class/net/bond0.7/lower_bond0/x", "");
  CHECK(fabric_ports(m.files) == 1);
  m.put("/sys/class/net/bond0/lower_ens18/x", "");
  CHECK(fabric_ports(m.files) == 1);  // IPv4 has one: rails have IPv6 routes by themselves
  m.put("/proc/net/route", "Iface\tDestination\tGateway\tFlags\n");
  CHECK(fabric_ports(m.files) == 1);
  CHECK(is_ordinary(m.files, "ens18"));
  CHECK_FALSE(is_ordinary(m.files, "eno1"));
  CHECK(is_ordinary(m.files, "bond0"));
  CHECK_FALSE(is_ordinary(m.files, "lo"));
}
