#include "controller/boot/service/dhcp_service.h"

#include "base/digest.h"
#include "controller/boot/dnsmasq.h"
#include "sys/log.h"

namespace muster {

DhcpService::DhcpService(RealReactor& reactor, const DaemonOptions& options,
                         std::map<std::string, std::string>& problems)
    : reactor_(reactor), options_(options), problems_(problems), dnsmasq_(std::make_shared<Dnsmasq>()) {}

DhcpService::~DhcpService() { stop(); }

std::string dhcp_folder(const std::string& state) {
  return "/run/muster-dhcp/" + short_digest(sha256(state));
}

BootNetwork boot_network(const Spec& spec, const std::string& address, const DaemonOptions& options,
                         bool unknown_machines) {
  BootNetwork network;
  network.mode = spec.network.dhcp;
  network.address = address;
  network.cidr = spec.network.provisioning.cidr;
  network.gateway = spec.network.gateway;
  network.http_port = options.boot_port;
  network.run_dir = dhcp_folder(options.state);
  network.unknown_machines = unknown_machines;
  network.taken = spec.network.dns;
  network.taken.insert(network.taken.end(), spec.network.ntp.begin(), spec.network.ntp.end());
  for (const auto& node : spec.nodes) {
    if (!node.mac.empty())
      network.hosts.push_back({node.mac, node.address, node.name});
    else
      network.taken.push_back(
          node.address);  // an adopted host's address is assigned elsewhere: never give it to a machine
    network.taken.push_back(node.power.address.substr(0, node.power.address.find(':')));
  }
  return network;
}

void DhcpService::apply(const Spec& spec, const std::string& address, bool unknown_machines) {
  wanted_ = boot_network(spec, address, options_, unknown_machines);
  work();
}

void DhcpService::work() {
  if (!wanted_) return;
  again_ = working_;
  if (working_) return;
  working_ = true;
  auto result = std::make_shared<Status>(fail(Code::failed, "dnsmasq was not set up: see musterd's log"));
  reactor_.offload([dnsmasq = dnsmasq_, network = *wanted_, result] { *result = dnsmasq->apply(network); },
                   [this, result] {
                     working_ = false;
                     const std::string problem = result->ok() ? "" : result->error().message;
                     if (!problem.empty() && problems_["dhcp"] != problem)
                       log::error("no DHCP", {{"error", problem}});
                     if (problem.empty())
                       problems_.erase("dhcp");
                     else
                       problems_["dhcp"] = problem;
                     if (again_) return work();
                     reactor_.cancel(timer_);
                     timer_ = reactor_.after(kLookAgain, [this] { work(); });
                   });
}

void DhcpService::stop() {
  reactor_.cancel(timer_);
  wanted_.reset();
  if (!working_) dnsmasq_->stop();  // else a worker uses it, and dnsmasq ends with this process
}

}  // namespace muster
