// nccl_conf: writes /etc/nccl.conf on a node with declared rails: the RDMA ports, the addresses of their
// GIDs, the traffic class, and the interfaces for sockets; and /etc/ucx/ucx.conf with the same traffic
// class. From the record of the step `networks` and the kernel's data on these ports. Afterwards every
// name in the file is checked against the kernel.
//
// Without this file NCCL uses any adapter that it finds, including storage adapters and the provisioning
// port. "=" before a list means exactly these names, not prefixes. NCCL cannot be given PCI addresses, and
// mlx5_N is a number in the order of probing: a unit writes the names again at every boot. The index of a
// GID depends on the order in which addresses were configured, so none is written: NCCL (from 2.21)
// searches by address itself.
#include <fmt/format.h>

#include <algorithm>

#include "agent/steps/files/own_file.h"
#include "agent/steps/network/boot_unit.h"
#include "agent/steps/network/port_choice.h"
#include "host/gids.h"

namespace muster::steps {
namespace {

constexpr const char* kFile = "/etc/nccl.conf";
constexpr const char* kUcxFile = "/etc/ucx/ucx.conf";
constexpr const char* kScript = "/usr/local/sbin/muster-nccl-conf";
constexpr const char* kRdma = "/sys/class/infiniband/";

std::string folder_of(const RdmaName& rdma) {
  return fmt::format("{}{}/ports/{}", kRdma, rdma.device, rdma.port);
}

struct Found {
  std::vector<PortRecord> rails;
  std::vector<std::string> hcas;    // "mlx5_0:1"
  std::vector<std::string> places;  // "0000:18:00.0:1", of those that have one
  std::string range;                // that contains the GIDs' addresses; empty: InfiniBand
  bool ipv6 = false;
  int traffic_class = -1;
  std::string note;
  std::string socket;  // interfaces, separated by commas
  bool has_class() const { return traffic_class >= 0 && !range.empty(); }
};

// Adds a note for each further address of a rail's port that NCCL could take for the rail's.
Status find_gids(const std::vector<std::pair<PortRecord, RdmaName>>& ethernet, const Files& files,
                 const std::string& node, Found& out) {
  std::vector<std::string> addresses;
  for (const auto& one : ethernet) {
    const auto& [port, rdma] = one;
    const auto gids = roce_gids(files, folder_of(rdma));
    const std::string& own = one.first.address;
    if (std::none_of(gids.begin(), gids.end(), [&](const Gid& gid) { return gid.address == own; }))
      return fail(Code::failed, fmt::format("{} on {}: {} ({}): {} has no RoCE v2 GID for {}", port.title(),
                                            node, port.interface, port.pci, rdma.label(), own));
    addresses.push_back(own);
  }
  out.range = range_of_addresses(addresses);
  out.ipv6 = out.range.find(':') != std::string::npos;
  for (const auto& [port, rdma] : ethernet)
    for (const auto& gid : roce_gids(files, folder_of(rdma)))
      if (gid.address != port.address && is_in_range(gid.address, out.range))
        out.note += fmt::format("{}{} has {} beside {}, and NCCL may choose either",
                                out.note.empty() ? "" : "; ", port.interface, gid.address, port.address);
  return Ok{};
}

Result<Found> find(const StepContext& context) {
  const Files& files = context.files;
  TRY(const auto record, record_with_rails(files));
  Found out;
  out.rails = record.rails();
  out.traffic_class = record.traffic_class;
  std::string without, interfaces;
  std::vector<std::pair<PortRecord, RdmaName>> ethernet;
  for (const auto& port : out.rails) {
    interfaces += (interfaces.empty() ? "" : ",") + port.interface;
    const RdmaName rdma = rdma_of_interface(files, port.interface);
    if (!rdma.found()) {
      without += fmt::format("{}{} on {}: {} ({}) has no RDMA device", without.empty() ? "" : "; ",
                             port.title(), context.node, port.interface, port.pci);
      continue;
    }
    out.hcas.push_back(fmt::format("{}:{}", rdma.device, rdma.port));
    if (last_component(files.read_link(kRdma + rdma.device + "/device").value_or("")) == port.pci)
      out.places.push_back(fmt::format("{}:{}", port.pci, rdma.port));
    if (files.read_line(folder_of(rdma) + "/link_layer") == "Ethernet") ethernet.emplace_back(port, rdma);
  }
  if (!out.hcas.empty() && !without.empty())
    return fail(Code::failed, "some rails have RDMA and others do not: " + without);
  TRY_(find_gids(ethernet, files, context.node, out));
  // With RDMA, sockets are only used to start a job: the network that all nodes share is enough.
  out.socket = out.hcas.empty() || record.provisioning.empty() ? interfaces : record.provisioning;
  return out;
}

OwnFile file_of(const Found& found) {
  std::string text = "# Written by muster.\nNCCL_SOCKET_FAMILY=AF_INET\n";
  text += fmt::format("NCCL_SOCKET_IFNAME=={}\n", found.socket);
  if (!found.hcas.empty()) text += fmt::format("NCCL_IB_HCA=={}\n", join(found.hcas, ","));
  if (!found.range.empty())
    text += fmt::format("NCCL_IB_ADDR_FAMILY={}\nNCCL_IB_ADDR_RANGE={}\nNCCL_IB_ROCE_VERSION_NUM=2\n",
                        found.ipv6 ? "AF_INET6" : "AF_INET", found.range);
  if (found.has_class()) text += fmt::format("NCCL_IB_TC={}\n", found.traffic_class);
  return {kFile, text, 0644};
}

// UCX's file may have settings of others: without a class it is removed only if it is muster's.
std::vector<OwnFile> files_of(const Files& files, const Found& found) {
  constexpr const char* kMark = "# Written by muster.\n";
  std::vector<OwnFile> out = {file_of(found)};
  if (found.has_class())
    out.push_back({kUcxFile, fmt::format("{}UCX_IB_TRAFFIC_CLASS={}\n", kMark, found.traffic_class), 0644});
  else if (files.read(kUcxFile).value_or("").starts_with(kMark))
    out.push_back({kUcxFile, "", 0644});
  std::string script =
      "#!/bin/sh\n"
      "# Written by muster. mlx5_N is a number in the order of probing: writes the names of the rails'\n"
      "# RDMA devices into /etc/nccl.conf, by PCI address and port.\n"
      "found() { set -- \"/sys/bus/pci/devices/${1%:*}/infiniband/\"*; [ -e \"$1\" ] && echo \"${1##*/}\"; "
      "}\n"
      "n=0 list=\n";
  script += fmt::format("for rail in {}; do\n", join(found.places, " "));
  script +=
      "  while ! name=$(found \"$rail\") && [ $((n += 1)) -le 30 ]; do sleep 1; done\n"
      "  [ -z \"$name\" ] || list=$list${list:+,}$name:${rail##*:}\n"
      "done\n"
      "[ -z \"$list\" ] || sed -i \"s/^NCCL_IB_HCA=.*/NCCL_IB_HCA==$list/\" /etc/nccl.conf\n";
  out.push_back({kScript, found.places.empty() ? "" : script, 0755});
  return out;
}

BootUnit boot_unit(const Found& found) {
  return {"muster-nccl-conf.service",
          "Names of the rails' RDMA devices in NCCL's settings",
          found.rails,
          {kScript}};
}

Result<CheckResult> check_nccl_conf(StepContext& context, const Json&) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no ports; the step is checked on nodes"};
  TRY(const Found found, find(context));
  Diff diff;
  for (const auto& file : files_of(context.files, found)) add_difference(context.files, file, diff);
  auto out = diff.result();
  if (!found.places.empty()) {
    TRY(out, check_boot_unit(context, boot_unit(found), diff));
  }
  out.note = found.note;
  return out;
}

Status apply_nccl_conf(StepContext& context, const Json&) {
  TRY(const Found found, find(context));
  for (const auto& file : files_of(context.files, found)) TRY_(put(context.files, file));
  return found.places.empty() ? Status(Ok{}) : apply_boot_unit(context, boot_unit(found));
}

// Every device and interface named in the file must exist.
Status verify_nccl_conf(StepContext& context, const Json& params) {
  TRY(const auto seen, check_nccl_conf(context, params));
  if (seen.holds == Holds::no) return fail(Code::failed, seen.diff);
  if (seen.holds == Holds::not_applicable) return Ok{};
  TRY(const std::string text, context.files.read(kFile));
  for (const auto& line : split_lines(text)) {
    const size_t equals = line.find("==");
    if (equals == std::string::npos) continue;
    for (const auto& name : split(line.substr(equals + 2), ',')) {
      const bool hca = line.starts_with("NCCL_IB_HCA");
      const std::string path = hca ? fmt::format("{}{}/ports/{}", kRdma, name.substr(0, name.find(':')),
                                                 name.substr(name.find(':') + 1))
                                   : "/sys/class/net/" + name;
      if (!context.files.exists(path))
        return fail(Code::failed, fmt::format("{} names {}, which does not exist on this node", kFile, name));
    }
  }
  return Ok{};
}

}  // namespace

StepModule nccl_conf_module() {
  StepModule m;
  m.name = "nccl_conf";
  m.help =
      "Writes /etc/nccl.conf on a node with declared rails: their RDMA ports, the range of their addresses "
      "by "
      "which NCCL (from 2.21) finds the GIDs, the traffic class of the declared lossless priority, and the "
      "interfaces for sockets (the provisioning port, or the rails if they have no RDMA). A unit writes the "
      "names of the ports again at every boot. /etc/ucx/ucx.conf gets the same traffic class.";
  m.check = check_nccl_conf;
  m.apply = apply_nccl_conf;
  m.verify = verify_nccl_conf;
  return m;
}

}  // namespace muster::steps
