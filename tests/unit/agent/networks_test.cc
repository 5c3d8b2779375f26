// networks, rail_qos, nccl_conf, sys_values and the RDMA ports of rails, over a made-up machine with ports.
#include <algorithm>

#include "agent/core/step.h"
#include "agent/steps/network/port_choice.h"
#include "host/rails.h"
#include "kernels/common/kernels.h"
#include "kernels/link/link.h"
#include "kernels/rdma/rdma.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

Json rail(int number, const std::string& port = "") {
  const std::string n = std::to_string(number);
  return {{"rail", number},
          {"address", "10.100." + n + ".11"},
          {"network", "10.100." + n + ".0/24"},
          {"mtu", 9000},
          {"port", port}};
}

// eth0 is the provisioning port; eth3 lies before eth1 and eth2 on the PCI bus.
struct Node {
  FakeMachine machine;
  StepContext context = machine.context();
  Json params = {{"mac", "52:54:00:20:00:01"}, {"rails", {rail(0), rail(1)}}, {"deadline_seconds", 0}};

  Node() {
    machine.put("/run/systemd/system/x", "");
    machine.put("/etc/systemd/network/10-muster.network",
                "[Match]\nMACAddress=52:54:00:20:00:01\n[Network]\n"
                "Address=10.20.0.11/24\n");
    machine.add_port("eth0", "0000:01:00.0", "52:54:00:20:00:01");
    machine.add_port("eth3", "0000:0a:00.0", "52:54:00:30:00:03");
    machine.add_port("eth1", "0000:1b:00.0", "52:54:00:30:00:01");
  }
  const StepModule& module(const std::string& name) const {
    const StepModule* found = find_step_module(name);
    REQUIRE(found);
    return *found;
  }
  CheckResult check(const std::string& name, const Json& with) {
    REQUIRE(check_parameters(module(name), with).ok());
    const auto out = module(name).check(context, with);
    INFO((out.ok() ? "" : out.error().message));
    REQUIRE(out.ok());
    return *out;
  }
  CheckResult check() { return check("networks", params); }
  Status apply() { return module("networks").apply(context, params); }
  Status verify() { return module("networks").verify(context, params); }
  NetworksRecord record() { return read_networks_record(machine.files()).value(); }
};

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("networks: rails are the other ports in PCI order, written for networkd, and found in the kernel",
          "[networks]") {
  Node n;
  CHECK(n.check().holds == Holds::no);
  REQUIRE(n.apply().ok());
  REQUIRE(n.verify().ok());
  CHECK(n.machine.get("/etc/systemd/network/20-muster-rail0.network") ==
        "# Written by muster: rail 0.\n[Match]\nMACAddress=52:54:00:30:00:03\nType=ether\n\n"
        "[Link]\nRequiredForOnline=no\nMTUBytes=9000\n\n"
        "[Network]\nAddress=10.100.0.11/24\nDHCP=no\nIPv6AcceptRA=no\nLLMNR=no\nLinkLocalAddressing=no\n"
        "ConfigureWithoutCarrier=yes\n\n"
        "[Route]\nDestination=10.100.0.0/24\nScope=link\nPreferredSource=10.100.0.11\nTable=1100\n\n"
        "[Route]\nDestination=0.0.0.0/0\nType=unreachable\nTable=1100\n\n"
        "[RoutingPolicyRule]\nFrom=10.100.0.11\nTable=1100\nPriority=1100\n");
  CHECK(says(n.machine.get("/etc/sysctl.d/60-muster-networks.conf"), "net/ipv4/conf/eth1/arp_ignore = 1\n"));
  CHECK(n.machine.get("/proc/sys/net/ipv4/conf/eth3/rp_filter") == "2\n");
  CHECK(n.machine.ports["eth1"].addresses == "10.100.1.11/24");
  CHECK(n.machine.ports["eth1"].mtu == 9000);
  CHECK(n.machine.ports["eth0"].addresses.empty() == false);
  const auto record = n.record();
  CHECK(record.provisioning == "eth0");
  REQUIRE(record.rails().size() == 2);
  CHECK(record.rails()[0].interface == "eth3");
  CHECK(record.rails()[0].pci == "0000:0a:00.0");
  const size_t calls = n.machine.calls.size();
  REQUIRE(n.apply().ok());
  CHECK(std::none_of(n.machine.calls.begin() + static_cast<long>(calls), n.machine.calls.end(),
                     [](const std::string& call) { return call.starts_with("networkctl"); }));
}

TEST_CASE("networks: what the kernel has counts, not the files", "[networks]") {
  const std::vector<std::pair<std::function<void(FakeMachine&)>, std::string>> changes = {
      {[](FakeMachine& m) { m.ports["eth1"].addresses = "10.100.1.12/24"; },
       "10.100.1.12/24 -> 10.100.1.11/24"},
      {[](FakeMachine& m) { m.ports["eth1"].addresses += " 10.7.0.1/24"; }, "10.7.0.1/24"},
      {[](FakeMachine& m) { m.ports["eth1"].mtu = 1500; }, "MTU 1500 -> 9000"},
      {[](FakeMachine& m) { m.ports["eth1"].rules = Json::array(); }, "no routing rule for 10.100.1.11"},
      {[](FakeMachine& m) { m.ports["eth1"].routes.erase(0); }, "no route to 10.100.1.0/24 in table 1101"},
      {[](FakeMachine& m) { m.ports["eth1"].routes[1]["type"] = "blackhole"; },
       "table 1101 has no `unreachable` default route"},
      {[](FakeMachine& m) { m.put("/proc/sys/net/ipv4/conf/eth1/arp_announce", ""); },
       "arp_announce unknown -> 2"},
  };
  for (const auto& [change, wanted] : changes) {
    INFO(wanted);
    Node n;
    REQUIRE(n.apply().ok());
    change(n.machine);
    const CheckResult seen = n.check();
    CHECK(seen.holds == Holds::no);
    CHECK(says(seen.diff, wanted));
    CHECK(says(seen.diff, "rail 1 on node01: eth1 (0000:1b:00.0)"));
    REQUIRE(n.apply().ok());
    CHECK(n.verify().ok());
  }
}

TEST_CASE("networks: a rail without a link, or without its port, is named", "[networks]") {
  Node n;
  REQUIRE(n.apply().ok());
  n.machine.ports["eth1"].cable = false;
  CHECK(n.apply().ok());
  const Status failed = n.verify();
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().message == "rail 1 on node01: eth1 (0000:1b:00.0) has no link");

  Node named;
  named.params["rails"] = {rail(0, "0000:0a:00.0"), rail(1, "0000:99:00.0")};
  const Status missing = named.apply();
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Code::not_found);
  CHECK(says(missing.error().message, "rail 1 on node01: port 0000:99:00.0 not found"));
  CHECK(named.check().holds == Holds::no);
  CHECK_FALSE(named.machine.files().exists("/etc/systemd/network/20-muster-rail0.network"));
}

TEST_CASE("networks: a port without a cable does not matter; a doubt is not settled by a guess",
          "[networks]") {
  Node n;
  n.machine.add_port("eth2", "0000:05:00.0", "52:54:00:30:00:02", false);
  REQUIRE(n.apply().ok());
  REQUIRE(n.verify().ok());
  CHECK(n.record().rails()[0].interface == "eth3");
  CHECK_FALSE(n.machine.ports["eth2"].up);  // as it was before the look

  Node three;
  three.machine.add_port("eth2", "0000:05:00.0", "52:54:00:30:00:02");
  const Status doubt = three.apply();
  REQUIRE_FALSE(doubt.ok());
  CHECK(doubt.error().code == Code::conflict);
  for (const char* port : {"eth1 (0000:1b:00.0)", "eth2 (0000:05:00.0)", "eth3 (0000:0a:00.0)"})
    CHECK(says(doubt.error().message, port));
  CHECK_FALSE(three.machine.files().exists(kNetworksRecord));

  Node few;
  few.params["rails"].push_back(rail(2));
  CHECK(few.apply().error().code == Code::not_found);
}

TEST_CASE("networks: what was found stays, so a dead adapter moves no other rail", "[networks]") {
  Node n;
  n.machine.add_port("eth2", "0000:05:00.0", "52:54:00:30:00:02", false);
  REQUIRE(n.apply().ok());
  n.machine.ports["eth2"].cable = true;  // now it has a cable, and rail 0's adapter is gone
  n.machine.ports.erase("eth3");
  REQUIRE(n.machine.files().remove("/sys/class/net/eth3/device").ok());
  const Status gone = n.apply();
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().code == Code::not_found);
  CHECK(says(gone.error().message, "rail 0 on node01: its port eth3 (0000:0a:00.0) is missing"));
  CHECK(n.machine.ports["eth1"].addresses == "10.100.1.11/24");
}

TEST_CASE("networks: rail i is the port beside GPU i, and a GPU too few chooses nothing", "[networks]") {
  // The board numbers its adapters the other way round: eth1 (0000:1b) hangs beside the first GPU.
  const auto wired = [](Node& n, int gpus) {
    const auto place = [&](const std::string& link, const std::string& way) {
      (void)n.machine.files().remove(link);
      REQUIRE(n.machine.files().symlink("../../../../devices/" + way, link).ok());
    };
    place("/sys/class/net/eth1/device", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:1b:00.0");
    place("/sys/class/net/eth3/device", "pci0000:20/0000:20:01.0/0000:21:00.0/0000:0a:00.0");
    const std::vector<std::string> ways = {"pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0",
                                           "pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0"};
    for (int i = 0; i < gpus; ++i) {
      const std::string way = ways[static_cast<size_t>(i)], address = way.substr(way.rfind('/') + 1);
      n.machine.put("/sys/devices/" + way + "/vendor", "0x10de\n");
      n.machine.put("/sys/devices/" + way + "/class", "0x030200\n");
      (void)n.machine.files().make_directories("/sys/bus/pci/devices");
      REQUIRE(n.machine.files().symlink("../../../devices/" + way, "/sys/bus/pci/devices/" + address).ok());
    }
    n.params["gpus"] = 2;
  };
  Node n;
  wired(n, 2);
  REQUIRE(n.apply().ok());
  REQUIRE(n.verify().ok());
  CHECK(n.record().rails()[0].interface == "eth1");
  CHECK(n.record().rails()[1].interface == "eth3");
  CHECK(n.machine.ports["eth1"].addresses == "10.100.0.11/24");
  // What was found stays when a GPU dies later.
  REQUIRE(n.machine.files().remove("/sys/bus/pci/devices/0000:12:00.0").ok());
  CHECK(n.check().holds == Holds::yes);

  Node one;
  wired(one, 1);
  const Status refused = one.apply();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::conflict);
  CHECK(says(refused.error().message, "there are 1 GPUs instead of 2"));
  CHECK_FALSE(one.machine.files().exists(kNetworksRecord));

  Node none;  // GPUs that no PCI device stands for: by PCI address
  wired(none, 0);
  REQUIRE(none.apply().ok());
  CHECK(none.record().rails()[0].interface == "eth3");
}

TEST_CASE("networks: a port on USB, as a BMC shows its host one, is no rail", "[networks]") {
  Node n;
  n.machine.add_port("usb0", "0000:00:14.0", "52:54:00:30:00:09");
  (void)n.machine.files().remove("/sys/class/net/usb0/device");
  REQUIRE(
      n.machine.files()
          .symlink("../../../devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0", "/sys/class/net/usb0/device")
          .ok());
  REQUIRE(n.apply().ok());
  CHECK(n.record().rails()[0].interface == "eth3");
}

TEST_CASE("networks: the provisioning port is never a rail", "[networks]") {
  for (const char* port : {"eth0", "0000:01:00.0", "52:54:00:20:00:01"}) {
    Node n;
    n.params["rails"] = {rail(0, port)};
    CHECK(n.apply().error().code == Code::conflict);
    CHECK(n.machine.ports["eth0"].addresses.empty());
  }
  Node unknown;
  unknown.params["mac"] = "52:54:00:99:99:99";
  CHECK(unknown.apply().error().code == Code::not_found);
}

TEST_CASE("networks: a storage port, a gateway, and rails that are fewer than before", "[networks]") {
  Node n;
  n.params["rails"][0]["gateway"] = "10.100.0.254";
  n.params["rails"].erase(1);
  n.params["storage"] = {
      {{"address", "10.30.0.11"}, {"network", "10.30.0.0/24"}, {"port", "52:54:00:30:00:01"}}};
  REQUIRE(n.apply().ok());
  REQUIRE(n.verify().ok());
  CHECK(n.machine.ports["eth1"].addresses == "10.30.0.11/24");
  CHECK(n.machine.ports["eth1"].rules.empty());
  CHECK(n.machine.ports["eth3"].routes[1]["gateway"] == "10.100.0.254");
  CHECK(says(n.machine.get("/etc/systemd/network/20-muster-rail0.network"), "\nGateway=10.100.0.254\n"));
  REQUIRE(n.record().find(-1));
  CHECK(n.record().find(-1)->interface == "eth1");

  n.params["rails"] = Json::array();
  CHECK(n.check().holds == Holds::no);
  REQUIRE(n.apply().ok());
  CHECK_FALSE(n.machine.files().exists("/etc/systemd/network/20-muster-rail0.network"));
  CHECK(n.machine.files().exists("/etc/systemd/network/10-muster.network"));
  n.params.erase("storage");
  REQUIRE(n.apply().ok());
  CHECK(n.check().holds == Holds::yes);
  CHECK_FALSE(n.machine.files().exists(kNetworksRecord));
}

TEST_CASE("networks: InfiniBand ports are matched by where they are", "[networks]") {
  Node n;
  n.machine.add_port("ib0", "0000:41:00.0", "00:00:10:49:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:00:00:01",
                     true, "mlx5_0");
  n.params["rails"] = {rail(0)};
  n.params["rails"][0]["kind"] = "infiniband";
  n.params["rails"][0]["mtu"] = 4092;
  REQUIRE(n.apply().ok());
  REQUIRE(n.verify().ok());
  CHECK(says(n.machine.get("/etc/systemd/network/20-muster-rail0.network"),
             "[Match]\nPath=pci-0000:41:00.0\nType=infiniband\n\n"));
  CHECK(rdma_of_interface(n.machine.files(), "ib0").label() == "mlx5_0");
  n.machine.units["muster-nccl-conf.service"] = {};
  REQUIRE(n.module("nccl_conf").apply(n.context, Json::object()).ok());
  CHECK(
      n.machine.get("/etc/nccl.conf") ==
      "# Written by muster.\nNCCL_SOCKET_FAMILY=AF_INET\nNCCL_SOCKET_IFNAME==eth0\nNCCL_IB_HCA==mlx5_0:1\n");
  // At every boot the names follow the PCI addresses.
  CHECK(says(n.machine.get("/usr/local/sbin/muster-nccl-conf"), "\nfor rail in 0000:41:00.0:1; do\n"));
  CHECK(says(n.machine.get("/etc/systemd/system/muster-nccl-conf.service"),
             "\nExecStart=/usr/local/sbin/muster-nccl-conf\n"));
  CHECK(n.machine.units["muster-nccl-conf.service"].enabled);
  CHECK(n.check("nccl_conf", Json::object()).holds == Holds::yes);
  n.params["rails"] = {rail(0, "eth1")};
  n.params["rails"][0]["kind"] = "infiniband";
  CHECK(n.apply().error().code == Code::conflict);
}

TEST_CASE("networks: not in an image", "[networks]") {
  FakeMachine machine;
  StepContext context = machine.context();
  for (const char* name : {"networks", "nccl_conf"})
    CHECK(find_step_module(name)->check(context, Json{{"mac", "x"}})->holds == Holds::not_applicable);
}

TEST_CASE("rail_qos: set by dcb on each rail, read back, and put right", "[networks]") {
  Node n;
  REQUIRE(n.apply().ok());
  n.machine.units["muster-rail-qos.service"] = {};
  const Json qos = {{"pfc", {3}}, {"dscp", {{"26", 3}, {"48", 6}}}, {"ets", {{"3", 60}}}};
  CHECK(n.check("rail_qos", qos).holds == Holds::no);
  REQUIRE(n.module("rail_qos").apply(n.context, qos).ok());
  CHECK(n.check("rail_qos", qos).holds == Holds::yes);
  CHECK(n.machine.called("dcb pfc set dev eth3 prio-pfc all:off 3:on"));
  CHECK(n.machine.called("dcb app replace dev eth1 dscp-prio 26:3 48:6"));
  CHECK(n.machine.called(
      "dcb ets set dev eth1 tc-tsa all:strict 0:ets 3:ets tc-bw all:0 0:40 3:60 prio-tc all:0 3:3"));
  const std::string unit = n.machine.get("/etc/systemd/system/muster-rail-qos.service");
  CHECK(says(unit, "\nExecStart=/sbin/dcb pfc set dev eth3 prio-pfc all:off 3:on\n"));
  CHECK(n.machine.units["muster-rail-qos.service"].enabled);
  CHECK(n.machine.ports["eth0"].dcb_tables.empty());  // the provisioning port is none of ours

  n.machine.ports["eth1"].dcb_tables["prio-pfc 4"] = "on";
  n.machine.ports["eth1"].dcb_tables["dscp-prio 10"] = "1";
  const CheckResult seen = n.check("rail_qos", qos);
  CHECK(seen.holds == Holds::no);
  CHECK(says(seen.diff, "rail 1 on node01: eth1 (0000:1b:00.0)"));
  CHECK_FALSE(says(seen.diff, "rail 0"));
  REQUIRE(n.module("rail_qos").apply(n.context, qos).ok());
  CHECK(n.check("rail_qos", qos).holds == Holds::yes);
  CHECK(n.machine.called("dcb app del dev eth1 dscp-prio 10:1"));
}

TEST_CASE("rail_qos: an adapter without DCB is refused before another is changed", "[networks]") {
  Node n;
  REQUIRE(n.apply().ok());
  n.machine.ports["eth1"].dcb = false;
  const Status refused = n.module("rail_qos").apply(n.context, {{"pfc", {3}}});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(says(refused.error().message, "rail 1 on node01: eth1 (0000:1b:00.0)"));
  CHECK(n.machine.ports["eth3"].dcb_tables.empty());
}

TEST_CASE("nccl_conf: RDMA ports, the range of the rails' addresses, interfaces for sockets", "[networks]") {
  Node n;
  REQUIRE(n.apply().ok());
  const auto& nccl = n.module("nccl_conf");
  REQUIRE(nccl.apply(n.context, Json::object()).ok());
  CHECK(n.machine.get("/etc/nccl.conf") ==
        "# Written by muster.\nNCCL_SOCKET_FAMILY=AF_INET\nNCCL_SOCKET_IFNAME==eth3,eth1\n");

  const auto roce = [&](const std::string& device, const std::string& interface, const std::string& gid,
                        const std::string& index) {
    const std::string at = "/sys/class/infiniband/" + device + "/ports/1/";
    n.machine.put(at + "link_layer", "Ethernet\n");
    n.machine.put(at + "state", "4: ACTIVE\n");
    n.machine.put(at + "rate", "400 Gb/sec\n");
    n.machine.put(at + "gid_attrs/ndevs/0", interface + "\n");
    for (const char* i : {"0", "1", "2", "3"}) n.machine.put(at + "gids/" + i, "fe80::" + interface + "\n");
    n.machine.put(at + "gids/" + index, gid + "\n");
    n.machine.put(at + "gid_attrs/types/" + index, "RoCE v2\n");
  };
  roce("mlx5_7", "eth3", "0000:0000:0000:0000:0000:ffff:0a64:000b", "3");
  CHECK_FALSE(nccl.check(n.context, Json::object()).ok());  // one rail with, one without
  roce("mlx5_2", "eth1", "0000:0000:0000:0000:0000:ffff:0a64:010b", "3");
  roce("mlx5_0", "eth0", "0000:0000:0000:0000:0000:ffff:0a14:000b", "3");  // no rail
  CHECK(nccl.check(n.context, Json::object())->holds == Holds::no);
  REQUIRE(nccl.apply(n.context, Json::object()).ok());
  REQUIRE(nccl.verify(n.context, Json::object()).ok());
  CHECK(n.machine.get("/etc/nccl.conf") ==
        "# Written by muster.\nNCCL_SOCKET_FAMILY=AF_INET\nNCCL_SOCKET_IFNAME==eth0\n"
        "NCCL_IB_HCA==mlx5_7:1,mlx5_2:1\n"
        "NCCL_IB_ADDR_FAMILY=AF_INET\nNCCL_IB_ADDR_RANGE=10.100.0.0/23\nNCCL_IB_ROCE_VERSION_NUM=2\n");
  CHECK_FALSE(n.machine.files().exists("/etc/ucx/ucx.conf"));
  CHECK(n.check("rdma_ports", {{"rails", true}, {"deadline_seconds", 0}}).holds == Holds::yes);
  // What acceptance measures and what bounds its numbers: the rails, in their order, and no other port.
  const auto ports = kernels::rail_ports(n.machine.files());
  REQUIRE(ports.size() == 2);
  CHECK(ports[0].device == "mlx5_7");
  CHECK(ports[1].rail == 1);
  CHECK(kernels::active_rails(n.machine.files()).size() == 2);
  REQUIRE(ports[1].gids.size() == 1);
  CHECK(ports[1].gids[0].address == "10.100.1.11");

  n.machine.put("/sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN\n");
  const CheckResult down = n.check("rdma_ports", {{"rails", true}, {"deadline_seconds", 0}});
  CHECK(down.holds == Holds::no);
  CHECK(says(down.diff, "mlx5_2"));
  // A second address of a port in the same range is noted, and the class of the declared priority is used.
  n.machine.put("/sys/class/infiniband/mlx5_2/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a64:0163\n");
  n.machine.put("/sys/class/infiniband/mlx5_2/ports/1/gid_attrs/types/2", "RoCE v2\n");
  CHECK(says(nccl.check(n.context, Json::object())->note, "eth1 has 10.100.1.99 beside 10.100.1.11"));
  n.params["traffic_class"] = 106;
  REQUIRE(n.apply().ok());
  REQUIRE(nccl.apply(n.context, Json::object()).ok());
  CHECK(says(n.machine.get("/etc/nccl.conf"), "\nNCCL_IB_TC=106\n"));
  CHECK(says(n.machine.get("/etc/ucx/ucx.conf"), "\nUCX_IB_TRAFFIC_CLASS=106\n"));
  n.params.erase("traffic_class");
  REQUIRE(n.apply().ok());
  REQUIRE(nccl.apply(n.context, Json::object()).ok());
  CHECK_FALSE(says(n.machine.get("/etc/nccl.conf"), "NCCL_IB_TC"));
  CHECK_FALSE(n.machine.files().exists("/etc/ucx/ucx.conf"));
}

TEST_CASE("declared rails are paired by number, whatever their devices are called", "[networks][rdma]") {
  const auto pairs = kernels::pair_declared({{0, "mlx5_7"}, {1, "mlx5_2"}}, {{1, "mlx5_7"}, {3, "mlx5_3"}});
  REQUIRE(pairs.size() == 3);
  CHECK((pairs[1].number == 1 && pairs[1].here == "mlx5_2" && pairs[1].there == "mlx5_7"));
  CHECK((pairs[0].here == "mlx5_7" && pairs[0].there.empty()));
  CHECK((pairs[2].number == 3 && pairs[2].here.empty() && pairs[2].there == "mlx5_3"));
}

TEST_CASE("sys_values: every file that matches, and the kernel's choice among several", "[networks]") {
  Node n;
  n.machine.units["muster-sys-x.service"] = {};
  const std::string thp = "/sys/kernel/mm/transparent_hugepage/enabled";
  const Json params = {
      {"name", "x"},
      {"values",
       {{"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance"}, {thp, "madvise"}}}};
  CHECK(n.check("sys_values", params).holds == Holds::not_applicable);
  n.machine.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  n.machine.put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "");  // no value yet
  n.machine.put("/sys/devices/system/cpu/cpuidle/x", "");
  n.machine.put(thp, "always [madvise] never\n");
  const CheckResult seen = n.check("sys_values", params);
  CHECK(seen.holds == Holds::no);
  CHECK(says(seen.diff, "(in 1 of the files): none -> performance"));
  CHECK_FALSE(says(seen.diff, "madvise"));
  REQUIRE(n.module("sys_values").apply(n.context, params).ok());
  CHECK(n.check("sys_values", params).holds == Holds::yes);
  CHECK(n.machine.get("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor") == "performance\n");
  CHECK(n.machine.get(thp) == "always [madvise] never\n");  // was right
  CHECK(says(n.machine.get("/etc/tmpfiles.d/60-muster-x.conf"), "w " + thp + " - - - - madvise\n"));
  for (const char* path : {"/etc/passwd", "/sys/../etc/passwd", "/sys/a b"})
    CHECK_FALSE(n.module("sys_values").check(n.context, {{"name", "x"}, {"values", {{path, "1"}}}}).ok());
}

TEST_CASE("sysctl: optional leaves out what the kernel does not have", "[networks]") {
  Node n;
  Json params = {{"name", "t"}, {"optional", true}, {"values", {{"kernel.numa_balancing", 0}}}};
  CHECK(n.check("sysctl", params).holds == Holds::not_applicable);
  n.machine.put("/proc/sys/kernel/numa_balancing", "");
  CHECK(n.check("sysctl", params).holds == Holds::no);
  REQUIRE(n.module("sysctl").apply(n.context, params).ok());
  CHECK(n.check("sysctl", params).holds == Holds::yes);
  params["optional"] = false;
  params["values"]["kernel.no_such"] = 1;
  CHECK_FALSE(n.module("sysctl").check(n.context, params).ok());
}

}  // namespace muster
