#include "controller/plan/passes.h"

#include "base/ports.h"
#include "controller/spec/own_variables.h"

namespace muster {
namespace {

std::string variable(const Planning& p, const Draft& d, const std::string& name,
                     const std::string& fallback) {
  return declared_variable(p.spec, d.spec, name, fallback);
}

void add_kernel_options(const Planning& p, const Draft& d, wire::ImageJob& job) {
  job.console = variable(p, d, own_variable::kConsole, p.spec.lab ? "ttyS0" : "");
  job.kernel_options = p.in.kernel_options;
  if (const std::string own = variable(p, d, own_variable::kKernelOptions, ""); !own.empty())
    job.kernel_options += (job.kernel_options.empty() ? "" : " ") + own;
}

}  // namespace

std::string installed_address(const Spec& spec, const NodeSpec& node) {
  return node.address + "/" + prefix_of(spec.network.provisioning.cidr);
}

std::optional<wire::ImageJob> image_order(Planning& p, const Draft& d) {
  const PlannerImage* image = p.image_of(d);
  const auto os = d.disks.groups.find("os");
  // Last safeguard: a disk that was not chosen is never written, whatever went wrong earlier in the planner.
  if (!image || os == d.disks.groups.end() || os->second.empty()) {
    p.problems.push_back(d.spec->name + ": an image would be written, but no image or OS disk is known");
    return std::nullopt;
  }
  const DiskFacts& disk = os->second.front();
  wire::ImageJob job;
  job.image = d.spec->image;
  job.digest = image->digest;
  job.manifest_path = image->manifest_path;
  job.base_url = boot_url(p.address);
  job.disk = {disk};
  job.allow_ours = d.disks.os_is_ours;
  job.content_hash = d.disks.os_is_ours ? "" : disk.content_hash;
  job.cluster = p.spec.cluster;
  job.authority = p.in.authority;
  job.hostname = d.spec->name;
  job.address_cidr = installed_address(p.spec, *d.spec);
  job.mac = d.spec->mac;
  job.gateway = p.spec.network.gateway;
  job.dns = p.spec.network.dns;
  job.search = p.spec.network.search;
  job.controller_url = tls_url(p.address);
  add_kernel_options(p, d, job);
  job.root_size = variable(p, d, own_variable::kRootSize, "");
  return job;
}

}  // namespace muster
