// nccl_conf: writes /etc/nccl.conf on a node with declared rails: the RDMA ports, the GID index, and the
// interfaces for sockets, from the record of the step `networks` and the kernel's data on these ports.
// Afterwards every name in the file is checked against the kernel.
//
// Without this file NCCL uses any adapter that it finds, including storage adapters and the provisioning
// port. "=" before a list means exactly these names, not prefixes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "agent/steps/files/own_file.h"
#include "agent/steps/network/port_choice.h"

namespace muster::steps {
namespace {

constexpr const char* kFile = "/etc/nccl.conf";
constexpr const char* kRdma = "/sys/class/infiniband/";
constexpr int kGids = 256;

std::string folder_of(const RdmaName& rdma) {
  return fmt::format("{}{}/ports/{}", kRdma, rdma.device, rdma.port);
}

// "10.100.0.11" -> "0000:0000:0000:0000:0000:ffff:0a64:000b", as sysfs writes GIDs.
std::string gid_of_address(const std::string& address) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (std::sscanf(address.c_str(), "%u.%u.%u.%u", &a, &b, &c, &d) != 4) return "";
  return fmt::format("0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}", a, b, c, d);
}

// The index of the RoCE v2 GID of this address; -1 if there is none.
int gid_index(const Files& files, const RdmaName& rdma, const std::string& address) {
  const std::string folder = folder_of(rdma), gid = gid_of_address(address);
  for (int i = 0; i < kGids && files.exists(folder + "/gids/" + std::to_string(i)); ++i)
    if (files.read_line(folder + "/gids/" + std::to_string(i)) == gid &&
        files.read_line(folder + "/gid_attrs/types/" + std::to_string(i)) == "RoCE v2")
      return i;
  return -1;
}

struct Found {
  std::vector<std::string> hcas;  // "mlx5_0:1"
  int gid = -1;                   // -1: InfiniBand, or not the same on all ports
  std::string note;
  std::string socket;  // interfaces, separated by commas
};

Result<Found> find(const StepContext& context) {
  const Files& files = context.files;
  TRY(const auto record, record_with_rails(files));
  Found out;
  std::string without, interfaces;
  std::map<int, int> gids;
  for (const auto& port : record.rails()) {
    interfaces += (interfaces.empty() ? "" : ",") + port.interface;
    const RdmaName rdma = rdma_of_interface(files, port.interface);
    const std::string who =
        fmt::format("{} on {}: {} ({})", port.title(), context.node, port.interface, port.pci);
    if (!rdma.found()) {
      without += (without.empty() ? "" : "; ") + who + " has no RDMA device";
      continue;
    }
    out.hcas.push_back(fmt::format("{}:{}", rdma.device, rdma.port));
    if (files.read_line(folder_of(rdma) + "/link_layer") != "Ethernet") continue;
    const int gid = gid_index(files, rdma, port.address);
    if (gid < 0)
      return fail(Code::failed,
                  fmt::format("{}: {} has no RoCE v2 GID for {}", who, rdma.label(), port.address));
    ++gids[gid];
  }
  if (!out.hcas.empty() && !without.empty())
    return fail(Code::failed, "some rails have RDMA and others do not: " + without);
  if (gids.size() == 1) out.gid = gids.begin()->first;
  if (gids.size() > 1) out.note = "the rails' GIDs have different indexes, so NCCL selects the GIDs itself";
  // With RDMA, sockets are only used to start a job: the network that all nodes share is enough.
  out.socket = out.hcas.empty() || record.provisioning.empty() ? interfaces : record.provisioning;
  return out;
}

OwnFile file_of(const Found& found) {
  std::string text = "# Written by muster.\nNCCL_SOCKET_FAMILY=AF_INET\n";
  text += fmt::format("NCCL_SOCKET_IFNAME=={}\n", found.socket);
  if (!found.hcas.empty()) text += fmt::format("NCCL_IB_HCA=={}\n", join(found.hcas, ","));
  if (found.gid >= 0) text += fmt::format("NCCL_IB_GID_INDEX={}\n", found.gid);
  return {kFile, text, 0644};
}

Result<CheckResult> check_nccl_conf(StepContext& context, const Json&) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no ports; the step is checked on nodes"};
  TRY(const Found found, find(context));
  Diff diff;
  add_difference(context.files, file_of(found), diff);
  CheckResult out = diff.result();
  out.note = found.note;
  return out;
}

Status apply_nccl_conf(StepContext& context, const Json&) {
  TRY(const Found found, find(context));
  return put(context.files, file_of(found));
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
      "Writes /etc/nccl.conf on a node with declared rails: their RDMA ports, the GID index of their "
      "addresses (if it is the same on all rails), and the interfaces for sockets (the provisioning port, or "
      "the rails if they have no RDMA).";
  m.check = check_nccl_conf;
  m.apply = apply_nccl_conf;
  m.verify = verify_nccl_conf;
  return m;
}

}  // namespace muster::steps
