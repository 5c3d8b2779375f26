// Network ports and drives of a machine's files.
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "tests/machines/description.h"
#include "tests/machines/layout.h"
#include "tests/machines/layout_parts.h"

namespace muster::machines {
namespace {

// What mlx5 shows: the InfiniBand counters of a port, and its own.
constexpr const char* kCounters[] = {"VL15_dropped",
                                     "excessive_buffer_overrun_errors",
                                     "link_downed",
                                     "link_error_recovery",
                                     "local_link_integrity_errors",
                                     "multicast_rcv_packets",
                                     "port_rcv_constraint_errors",
                                     "port_rcv_data",
                                     "port_rcv_errors",
                                     "port_rcv_packets",
                                     "port_rcv_remote_physical_errors",
                                     "port_rcv_switch_relay_errors",
                                     "port_xmit_constraint_errors",
                                     "port_xmit_data",
                                     "port_xmit_discards",
                                     "port_xmit_packets",
                                     "port_xmit_wait",
                                     "symbol_error"};
constexpr const char* kHwCounters[] = {"duplicate_request",
                                       "implied_nak_seq_err",
                                       "local_ack_timeout_err",
                                       "np_cnp_sent",
                                       "np_ecn_marked_roce_packets",
                                       "out_of_buffer",
                                       "out_of_sequence",
                                       "packet_seq_err",
                                       "req_remote_access_errors",
                                       "resp_local_length_error",
                                       "rnr_nak_retry_err",
                                       "roce_adp_retrans",
                                       "rp_cnp_handled",
                                       "rx_read_requests",
                                       "rx_write_requests"};
constexpr const char* kEfaCounters[] = {
    "rx_bytes", "rx_pkts",       "rx_drops",     "tx_bytes",
    "tx_pkts",  "retrans_bytes", "retrans_pkts", "retrans_timeout_events"};

std::string guid_text(const std::string& digits, const char* between) {
  return digits.substr(0, 4) + between + digits.substr(4, 4) + between + digits.substr(8, 4) + between +
         digits.substr(12, 4);
}

// ::ffff:10.1.3.2 as sysfs writes it; "{node}" in the address is the node's number.
std::string mapped_gid(const std::string& address) {
  unsigned bytes[4] = {};
  std::sscanf(address.c_str(), "%u.%u.%u.%u", bytes, bytes + 1, bytes + 2, bytes + 3);
  return fmt::format("0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}", bytes[0], bytes[1], bytes[2],
                     bytes[3]);
}

std::string with_node(std::string text, const Json& node) {
  if (const size_t at = text.find("{node}"); at != std::string::npos)
    text.replace(at, 6, std::to_string(whole(node, "number")));
  return text;
}

void put_gid(const Tree& tree, const std::string& port, int index, const std::vector<std::string>& gid) {
  tree.put(fmt::format("{}/gids/{}", port, index), gid[0]);
  tree.put(fmt::format("{}/gid_attrs/types/{}", port, index), gid[1]);
  if (!gid[2].empty()) tree.put(fmt::format("{}/gid_attrs/ndevs/{}", port, index), gid[2]);
}

// The kernel makes a link-local GID of each version, then two for each address, of the port and its VLANs.
void add_gids(const Tree& tree, const Json& node, const Json& rdma, const std::string& port,
              const std::string& interface) {
  const std::string local = "fe80:0000:0000:0000:" + guid_text(digits_of(node, "gid" + port, 16), ":");
  if (text(rdma, "layer") != "Ethernet") return put_gid(tree, port, 0, {local, "IB/RoCE v1", ""});
  put_gid(tree, port, 0, {local, "IB/RoCE v1", interface});
  put_gid(tree, port, 1, {local, "RoCE v2", interface});
  int index = 2;
  for (const Json& address : at(rdma, "addresses")) {
    const std::string on = text(address, "on", interface),
                      gid = mapped_gid(with_node(text(address, "ip"), node));
    put_gid(tree, port, index++, {gid, "IB/RoCE v1", on});
    put_gid(tree, port, index++, {gid, "RoCE v2", on});
  }
}

void add_rdma_port(const Tree& tree, const Json& node, const Json& rdma, const std::string& device) {
  const std::string port = device + "/ports/" + text(rdma, "port", "1");
  tree.put(port + "/state", text(rdma, "state", "4: ACTIVE"));
  tree.put(port + "/phys_state", text(rdma, "phys_state", "5: LinkUp"));
  tree.put(port + "/rate", text(rdma, "rate"));
  tree.put(port + "/link_layer", text(rdma, "layer"));
  tree.put(port + "/lid", "0x" + digits_of(node, port, 2));
  tree.put(port + "/cap_mask", "0xa751e848");
  const bool efa = text(rdma, "counts") == "efa";
  const auto start = [&](const std::string& name) { return std::to_string(whole(rdma, "counters/" + name)); };
  if (!efa)
    for (const char* name : kCounters) tree.put(port + "/counters/" + name, start(name));
  if (efa)
    for (const char* name : kEfaCounters) tree.put(port + "/hw_counters/" + name, start(name));
  if (text(rdma, "counts", "mlx5") == "mlx5")
    for (const char* name : kHwCounters) tree.put(port + "/hw_counters/" + name, start(name));
}

void add_rdma(Places& places, const Json& node, const Json& port, int number) {
  const Tree& tree = places.tree();
  const Json& rdma = at(port, "rdma");
  const std::string name = text(rdma, "name", fmt::format("mlx5_{}", number)), address = text(port, "at"),
                    folder = places.folder(address) + "/infiniband/" + name;
  tree.link_up("/sys/class/infiniband/" + name, folder);
  tree.link_up(folder + "/device", places.folder(address));
  tree.put(fmt::format("/sys/class/infiniband_verbs/uverbs{}/ibdev", number), name);
  tree.put(fmt::format("/dev/infiniband/uverbs{}", number), "");
  tree.put(folder + "/fw_ver", text(rdma, "firmware"));
  tree.put(folder + "/board_id", text(rdma, "board"));
  tree.put(folder + "/hca_type", text(rdma, "type"));
  tree.put(folder + "/node_type", "1: CA");
  tree.put(folder + "/node_guid", guid_text(digits_of(node, "guid " + address, 16), ":"));
  add_rdma_port(tree, node, rdma, folder);
  add_gids(tree, node, rdma, folder + "/ports/" + text(rdma, "port", "1"), text(port, "net/name"));
}

void put_interface(Places& places, const Json& node, const Json& net, const std::string& folder) {
  const Tree& tree = places.tree();
  const std::string name = text(net, "name");
  const bool up = net.value("up", true);
  tree.link_up("/sys/class/net/" + name, folder);
  tree.put(folder + "/address", text(net, "mac", mac_of(node, name)));
  const std::string index = std::to_string(places.next_interface());
  for (const char* file : {"ifindex", "iflink"}) tree.put(folder + "/" + file, index);
  tree.put(folder + "/type", text(net, "type", "1"));
  tree.put(folder + "/mtu", text(net, "mtu", "1500"));
  tree.put(folder + "/dev_port", text(net, "dev_port", "0"));
  tree.put(folder + "/carrier", up ? "1" : "0");
  tree.put(folder + "/operstate", up ? "up" : "down");
  tree.put(folder + "/carrier_down_count", "1");
  tree.put(folder + "/speed", up ? text(net, "speed", "-1") : "-1");
  tree.put(folder + "/duplex", up ? "full" : "unknown");
  for (const char* file : {"phys_port_name", "phys_switch_id"})
    if (net.contains(file)) tree.put(folder + "/" + file, text(net, file));
  for (const char* file : {"rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "rx_bytes", "tx_bytes"})
    tree.put(folder + "/statistics/" + file, "0");
}

// A port of a bond shows the bond's address.
void enslave(const Tree& tree, const Json& node, const Json& net, const std::string& folder) {
  const std::string bond = text(net, "bond");
  if (bond.empty()) return;
  tree.link(folder + "/master", "/sys/devices/virtual/net/" + bond);
  tree.put(folder + "/bonding_slave/perm_hwaddr", mac_of(node, text(net, "name")));
  tree.put(folder + "/address", mac_of(node, bond));
}

}  // namespace

void add_port(Places& places, const Json& node, const Json& port, int number) {
  const std::string address = text(port, "at");
  if (port.contains("net")) {
    const std::string folder = places.folder(address) + "/net/" + text(port, "net/name");
    put_interface(places, node, port["net"], folder);
    places.tree().link_up(folder + "/device", places.folder(address));
    enslave(places.tree(), node, port["net"], folder);
  }
  if (port.contains("rdma")) add_rdma(places, node, port, number);
}

void add_interface(Places& places, const Json& node, const Json& net) {
  const Tree& tree = places.tree();
  const std::string name = text(net, "name"), of = text(net, "of");
  if (!of.empty()) {  // a representor
    const std::string folder = places.folder(of) + "/net/" + name;
    put_interface(places, node, net, folder);
    return tree.link_up(folder + "/device", places.folder(of));
  }
  const std::string usb = text(net, "usb");
  if (!usb.empty()) {  // below a host controller: an interface of a device
    const std::string device = places.folder(usb) + "/usb1/1-14/1-14:2.0", folder = device + "/net/" + name;
    put_interface(places, node, net, folder);
    tree.link_up(folder + "/device", device);
    tree.folder("/sys/bus/usb/drivers/" + text(net, "driver", "cdc_ether"));
    tree.folder("/sys/bus/usb/devices");
    tree.link_up(device + "/subsystem", "/sys/bus/usb");
    return tree.link_up(device + "/driver", "/sys/bus/usb/drivers/" + text(net, "driver", "cdc_ether"));
  }
  const std::string folder = "/sys/devices/virtual/net/" + name;
  put_interface(places, node, net, folder);
  std::string members;
  for (const Json& port : devices(node, "port"))
    if (text(port, "net/bond") == name) {
      const std::string member = text(port, "net/name");
      members += (members.empty() ? "" : " ") + member;
      tree.link(folder + "/lower_" + member, "/sys/class/net/" + member);
    }
  if (!members.empty()) {
    tree.put(folder + "/bonding/slaves", members);
    tree.put(folder + "/bonding/mode", text(net, "mode", "802.3ad 4"));
  }
  if (const std::string on = text(net, "vlan_on"); !on.empty()) {
    tree.link(folder + "/lower_" + on, "/sys/class/net/" + on);
    tree.put("/proc/net/vlan/" + name, fmt::format("{}  VID: {}\nDevice: {}", name, text(net, "vlan"), on));
  }
}

void add_drive(Places& places, const Json& node, const Json& drive, int number) {
  const Tree& tree = places.tree();
  const std::string bus = text(drive, "bus"), on = text(drive, "on", text(drive, "at"));
  const bool nvme = bus == "nvme";
  const std::string serial = "S" + digits_of(node, fmt::format("drive {} {}", bus, number), 13);
  std::string name =
      text(drive, "name",
           nvme ? fmt::format("nvme{}n1", number) : fmt::format("sd{}", static_cast<char>('a' + number)));
  std::string device, block;
  if (nvme) {
    device = places.folder(on) + "/nvme/" + name.substr(0, name.find('n', 4));
    block = device + "/" + name;
    tree.link_up("/sys/class/nvme/" + name.substr(0, name.find('n', 4)), device);
    tree.put(device + "/serial", serial);
    tree.put(device + "/transport", text(drive, "transport", "pcie"));
    tree.put(device + "/firmware_rev", text(drive, "firmware", "GDC7502Q"));
    tree.put(device + "/state", "live");
    tree.put(device + "/address", on);
  } else {
    const std::string way =
        bus == "usb" ? fmt::format("/usb1/1-{}/1-{}:1.0/host{}", 2 + number, 2 + number, 10 + number)
                     : fmt::format("/ata{}/host{}", 1 + number, number);
    device = places.folder(on) + way + fmt::format("/target{0}:0:0/{0}:0:0:0", number);
    block = device + "/block/" + name;
    tree.put(device + "/vendor", text(drive, "vendor", bus == "sata" ? "ATA" : "AMI"));
    tree.put(device + "/rev", text(drive, "firmware", "XC31"));
    tree.put(device + "/type", text(drive, "type", "0"));
    tree.put_bytes(device + "/vpd_pg80", std::string("\0\x80\0\x0e", 4) + serial);
  }
  tree.put(device + "/model", text(drive, "model"));
  const uint64_t bytes = static_cast<uint64_t>(real(drive, "gb") * 1e9) / 4096 * 4096;
  tree.link_up("/sys/block/" + name, block);
  tree.link_up("/sys/class/block/" + name, block);
  tree.link_up(block + "/device", device);
  tree.put(block + "/size", std::to_string(bytes / 512));
  tree.put(block + "/ro", "0");
  tree.put(block + "/hidden", "0");
  tree.put(block + "/removable", drive.value("removable", false) ? "1" : "0");
  tree.put(block + "/dev", fmt::format("{}:{}", nvme ? 259 : 8, 16 * number));
  tree.put(block + "/queue/logical_block_size", text(drive, "block", "512"));
  tree.put(block + "/queue/zoned", text(drive, "zoned", "none"));
  tree.put(block + "/queue/rotational", text(drive, "rotational", "0"));
  if (nvme) tree.put(block + "/wwid", "eui." + digits_of(node, "wwid " + name, 16));
  if (bytes > 0 && !drive.value("no_medium", false)) tree.room("/dev/" + name, 2 << 20);
}

}  // namespace muster::machines
