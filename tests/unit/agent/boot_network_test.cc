// The way to the controller, carried into the RAM system: `ip -j` as iproute2 6.1 prints it, sysfs as the
// kernel shows it.
#include "agent/image/boot_network.h"

#include "agent/boot/ram_init.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// A running system's network: what `ip` says of it.
struct Host : Process {
  TempDir dir;
  Files files{dir.path("")};
  std::string route, links;

  Result<Output> run(const Command& command) override {
    REQUIRE(command.argv.size() > 2);
    CHECK(command.argv[0] == "ip");
    return Output{0, command.argv[2] == "route" ? route : links, ""};
  }
  void port(const std::string& name, const std::string& own_mac = "") const {
    REQUIRE(files.write("/sys/class/net/" + name + "/device/vendor", "0x15b3\n"));
    if (!own_mac.empty())
      REQUIRE(files.write("/sys/class/net/" + name + "/bonding_slave/perm_hwaddr", own_mac + "\n"));
  }
  std::string arguments(const std::string& to = "10.20.0.1") {
    const auto network = network_to(files, *this, to);
    return network.ok() ? network_arguments(*network)
                        : "refused: " + std::string(to_string(network.error().code));
  }
};

const char* kOnLink =
    R"([{"dst":"10.20.0.1","dev":"enp1s0","prefsrc":"10.20.0.12","flags":[],"uid":0,"cache":[]}])";
const char* kPlain =
    R"([{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP"],"mtu":65536,"link_type":"loopback","address":"00:00:00:00:00:00",
"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},
{"ifindex":2,"ifname":"enp1s0","flags":["BROADCAST","UP"],"mtu":1500,"link_type":"ether","address":"52:54:00:20:00:02",
"addr_info":[{"family":"inet","local":"10.20.0.99","prefixlen":32,"secondary":true},
{"family":"inet","local":"10.20.0.12","prefixlen":24},{"family":"inet6","local":"fe80::1","prefixlen":64}]},
{"ifindex":3,"ifname":"enp2s0","mtu":1500,"link_type":"ether","address":"52:54:00:30:00:02",
"addr_info":[{"family":"inet","local":"192.0.2.5","prefixlen":24}]}])";

// enp1s0 and enp2s0 -> bond0 (LACP) -> bond0.120 -> br0, which has a virtual machine's port, too.
std::string stacked(const std::string& mode = "802.3ad", const std::string& bridge = "{}") {
  return R"([{"ifname":"enp1s0","mtu":9000,"link_type":"ether","master":"bond0","address":"b8:ce:f6:00:00:01","linkinfo":{"info_slave_kind":"bond"},"addr_info":[]},
{"ifname":"enp2s0","mtu":9000,"link_type":"ether","master":"bond0","address":"b8:ce:f6:00:00:01","permaddr":"b8:ce:f6:00:00:02","addr_info":[]},
{"ifname":"bond0","mtu":9000,"link_type":"ether","address":"b8:ce:f6:00:00:01","linkinfo":{"info_kind":"bond","info_data":{"mode":")" +
         mode + R"(","miimon":100}},"addr_info":[]},
{"ifname":"bond0.120","link":"bond0","mtu":9000,"link_type":"ether","master":"br0","address":"b8:ce:f6:00:00:01",
"linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":120,"flags":["REORDER_HDR"]}},"addr_info":[]},
{"ifname":"tap0","mtu":9000,"link_type":"ether","master":"br0","address":"fe:00:00:00:00:01","linkinfo":{"info_kind":"tun"},"addr_info":[]},
{"ifname":"br0","mtu":9000,"link_type":"ether","address":"b8:ce:f6:00:00:01","linkinfo":{"info_kind":"bridge","info_data":)" +
         bridge + R"(},
"addr_info":[{"family":"inet","local":"172.16.3.7","prefixlen":22}]}])";
}
const char* kThroughRouter =
    R"([{"dst":"10.20.0.1","gateway":"172.16.0.1","dev":"br0","prefsrc":"172.16.3.7","flags":[],"uid":0,"cache":[]}])";

}  // namespace

TEST_CASE("an address on a port is carried over by the port's MAC", "[kexec]") {
  Host host;
  host.route = kOnLink;
  host.links = kPlain;
  host.port("enp1s0");
  host.port("enp2s0");
  CHECK(host.arguments() == " muster.ip=10.20.0.12/24 muster.mac=52:54:00:20:00:02");
}

TEST_CASE("bridge, VLAN, bond and router are carried over, with the ports' own MACs", "[kexec]") {
  Host host;
  host.route = kThroughRouter;
  host.links = stacked();
  host.port("enp1s0", "b8:ce:f6:00:00:01");
  host.port("enp2s0");
  const std::string line = host.arguments();
  CHECK(line ==
        " muster.ip=172.16.3.7/22 muster.mac=b8:ce:f6:00:00:01 muster.gateway=172.16.0.1 muster.vlan=120"
        " muster.bond=802.3ad:b8:ce:f6:00:00:01,b8:ce:f6:00:00:02 muster.mtu=9000");
  // And read as it was written.
  const auto read = ram_network("quiet" + line);
  REQUIRE(read.ok());
  CHECK(network_arguments(*read) == line);
  CHECK(read->ports.size() == 2);
}

TEST_CASE("a network that the RAM system could not find again is refused", "[kexec]") {
  Host host;
  host.route = kOnLink;
  host.links = kPlain;
  host.port("enp1s0");
  REQUIRE(host.arguments().find("muster.ip") != std::string::npos);
  SECTION("IPv6 alone") { CHECK(host.arguments("2001:db8::1") == "refused: denied"); }
  SECTION("the controller's own machine") {
    host.route =
        R"([{"type":"local","dst":"10.20.0.12","dev":"lo","prefsrc":"10.20.0.12","flags":["local"]}])";
    CHECK(host.arguments("10.20.0.12") == "refused: denied");
  }
  SECTION("a port without hardware") {
    Host bare;
    bare.route = kOnLink;
    bare.links = kPlain;
    CHECK(bare.arguments() == "refused: denied");
  }
  SECTION("a tunnel") {
    host.links = R"([{"ifname":"enp1s0","link_type":"none","mtu":1420,"linkinfo":{"info_kind":"wireguard"},
      "addr_info":[{"family":"inet","local":"10.20.0.12","prefixlen":24}]}])";
    CHECK(host.arguments() == "refused: denied");
  }
  SECTION("the next hop has an IPv6 address") {
    host.route =
        R"([{"dst":"10.20.0.1","via":{"family":"inet6","host":"fe80::1"},"dev":"enp1s0","prefsrc":"10.20.0.12"}])";
    CHECK(host.arguments() == "refused: denied");
  }
  SECTION("a gateway that is not on the network") {
    host.route = R"([{"dst":"10.20.0.1","gateway":"169.254.1.1","dev":"enp1s0","prefsrc":"10.20.0.12"}])";
    CHECK(host.arguments() == "refused: denied");
  }
  SECTION("a bridge of two ways out, and one that tells VLANs apart") {
    Host bridged;
    bridged.route = kThroughRouter;
    bridged.port("enp1s0", "b8:ce:f6:00:00:01");
    bridged.port("enp2s0");
    bridged.links = stacked();
    REQUIRE(bridged.arguments().find("muster.vlan=120") != std::string::npos);
    bridged.port("tap0");
    CHECK(bridged.arguments() == "refused: denied");
    Host filtering;
    filtering.route = kThroughRouter;
    filtering.port("enp1s0");
    filtering.port("enp2s0");
    filtering.links = stacked("802.3ad", R"({"vlan_filtering":1})");
    CHECK(filtering.arguments() == "refused: denied");
  }
  SECTION("a VLAN in a VLAN") {
    host.links =
        R"([{"ifname":"enp1s0","link":"a.1","link_type":"ether","mtu":1500,"linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1Q","id":5}},
      "addr_info":[{"family":"inet","local":"10.20.0.12","prefixlen":24}]},
      {"ifname":"a.1","link":"a","link_type":"ether","mtu":1500,"linkinfo":{"info_kind":"vlan","info_data":{"protocol":"802.1ad","id":1}},"addr_info":[]}])";
    CHECK(host.arguments() == "refused: denied");
  }
  SECTION("a bond of a kind that is none") {
    Host bonded;
    bonded.route = kThroughRouter;
    bonded.port("enp1s0");
    bonded.port("enp2s0");
    bonded.links = stacked("active");
    CHECK(bonded.arguments() == "refused: denied");
  }
}

TEST_CASE("a network argument that is none is refused by the RAM system", "[kexec]") {
  const std::string fine = "muster.ip=10.20.0.12/24 muster.mac=52:54:00:20:00:02";
  REQUIRE(ram_network(fine).ok());
  for (const char* wrong :
       {"muster.gateway=router", "muster.vlan=0", "muster.vlan=4095", "muster.vlan=1x", "muster.mtu=9",
        "muster.bond=802.3ad", "muster.bond=lacp:52:54:00:20:00:02", "muster.bond=802.3ad:eth0"}) {
    CAPTURE(wrong);
    const auto read = ram_network(fine + " " + wrong);
    CHECK((!read.ok() && read.error().code == Code::invalid));
  }
}

TEST_CASE("a bond is made of the ports that are there", "[kexec]") {
  TempDir dir;
  const Files files(dir.path(""));
  const auto port = [&](const std::string& name, const std::string& mac) {
    REQUIRE(files.write("/sys/class/net/" + name + "/address", mac + "\n"));
    REQUIRE(files.write("/sys/class/net/" + name + "/device/vendor", "0x15b3\n"));
  };
  REQUIRE(files.write("/sys/class/net/mbond/bonding/slaves", ""));
  for (const char* file : {"mode", "miimon"})
    REQUIRE(files.write(std::string("/sys/class/net/mbond/bonding/") + file, ""));
  RamNetwork network{"b8:ce:f6:00:00:01", "172.16.3.7/22"};
  network.bond_mode = "active-backup";
  network.ports = {"b8:ce:f6:00:00:01", "b8:ce:f6:00:00:02"};
  std::vector<std::string> loaded;
  const auto load = [&](const std::string& name) -> Status {
    loaded.push_back(name);
    return Ok{};
  };
  const auto none = make_bond(files, network, load);
  CHECK((!none.ok() && none.error().code == Code::not_found));
  for (const char* file : {"mode", "miimon"})  // a folder keeps all that was written, sysfs the last
    REQUIRE(files.write(std::string("/sys/class/net/mbond/bonding/") + file, ""));
  port("eth1", "b8:ce:f6:00:00:02");
  const auto made = make_bond(files, network, load);
  REQUIRE(made.ok());
  CHECK(*made == "mbond");
  CHECK(loaded.front() == "bonding");
  CHECK(files.read("/sys/class/net/mbond/bonding/mode").value_or("") == "active-backup");
  CHECK(files.read("/sys/class/net/mbond/bonding/slaves").value_or("") == "+eth1");
}
