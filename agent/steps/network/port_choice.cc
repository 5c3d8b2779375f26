#include "agent/steps/network/port_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "agent/steps/step_modules.h"
#include "base/rail_choice.h"
#include "host/pci_parts.h"

namespace muster::steps {
namespace {

std::vector<RailPort> as_rail_ports(const std::vector<NetPort>& ports) {
  std::vector<RailPort> out;
  for (const auto& port : ports) out.push_back({port.said(), port.path, port.link, port.speed_mbps});
  return out;
}

// Returns the PCI paths of the GPUs, in the order of their PCI addresses.
std::vector<std::string> paths_of_gpus(const Files& files) {
  std::vector<std::string> out;
  for (const PciPart& gpu : gpu_parts(files))
    if (gpu.why == Why::real) out.push_back(pci_path(files.read_link(gpu.folder).value_or("")));
  return out;
}

// Assigns ports, each at most once.
class PortAssigner {
 public:
  PortAssigner(const PortsRequested& requested, const std::vector<WantedPort>& wanted)
      : requested_(requested),
        wanted_(wanted),
        ports_(physical_ports(requested.files)),
        given_(wanted.size()) {}

  Status exclude_provisioning() {
    if (wanted_.empty()) return Ok{};
    for (const auto& port : ports_)
      if (!requested_.mac.empty() && port.mac == requested_.mac) return used_.insert(port.name), Ok{};
    return fail(Code::not_found, fmt::format("{} has no port with the MAC address {}, which is its "
                                             "provisioning port: the other ports cannot be identified",
                                             requested_.node, requested_.mac));
  }

  Status give_named() {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const WantedPort& want = wanted_[i];
      if (want.port.empty()) continue;
      std::vector<const NetPort*> meant;
      for (const auto& port : ports_)
        if (want.port == port.name || want.port == port.mac || want.port == port.pci) meant.push_back(&port);
      const std::string who = fmt::format("{} on {}: ", want.title(), requested_.node);
      if (meant.empty())
        return fail(Code::not_found, fmt::format("{}port {} not found; this machine has {}", who, want.port,
                                                 list_of_ports(as_rail_ports(ports_))));
      if (meant.size() > 1)
        return fail(Code::conflict, fmt::format("{}{} has {} ports: name one by interface or MAC address",
                                                who, want.port, meant.size()));
      if (meant[0]->ethernet != want.is_ethernet())
        return fail(Code::conflict, fmt::format("{}{} is an {} port", who, meant[0]->said(),
                                                meant[0]->ethernet ? "Ethernet" : "InfiniBand"));
      if (!used_.insert(meant[0]->name).second)
        return fail(Code::conflict,
                    fmt::format("{}{} is the provisioning port or is already used by another entry", who,
                                meant[0]->said()));
      given_[i] = *meant[0];
    }
    return Ok{};
  }

  // Assigns the ports that the spec does not name: those of the rails or, if `rails` is false, the storage
  // port.
  Status give_found(bool rails, std::vector<NetPort>& open) {
    std::vector<size_t> places;
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i].port.empty() && (wanted_[i].rail >= 0) == rails) places.push_back(i);
    if (places.empty()) return Ok{};
    const bool known = std::all_of(places.begin(), places.end(), [&](size_t i) {
      return requested_.before.find(wanted_[i].rail) != nullptr;
    });
    if (known) return give_as_before(places);
    std::vector<NetPort> fit;
    for (const auto& port : ports_)
      if (!used_.count(port.name) && port.ethernet == wanted_[places[0]].is_ethernet()) fit.push_back(port);
    RailQuestion question{as_rail_ports(fit), {}, places.size()};
    if (rails) {
      question.gpus = paths_of_gpus(requested_.files);
      question.gpus_declared = requested_.gpus_declared;
    }
    const auto answer = choose_rails(question);
    if (!answer) {
      if (fit.size() > places.size()) open = fit;
      const std::string what =
          rails ? fmt::format("{} rail{}", places.size(), places.size() == 1 ? "" : "s") : "storage port";
      return Error(answer.error()).with(what + " on " + requested_.node);
    }
    for (size_t i = 0; i < places.size(); ++i) take(places[i], fit[answer->ports[i]]);
    return Ok{};
  }

  std::vector<GivenPort> result() const {
    std::vector<GivenPort> out;
    for (size_t i = 0; i < wanted_.size(); ++i) out.push_back({wanted_[i], given_[i]});
    return out;
  }

 private:
  void take(size_t place, const NetPort& port) {
    given_[place] = port;
    used_.insert(port.name);
  }

  Status give_as_before(const std::vector<size_t>& places) {
    for (const size_t place : places) {
      const PortRecord& was = *requested_.before.find(wanted_[place].rail);
      const NetPort* found = nullptr;
      for (const auto& port : ports_) {
        const bool same = was.pci.empty() ? port.name == was.interface : port.pci == was.pci;
        if (same && !used_.count(port.name) && port.ethernet == wanted_[place].is_ethernet() &&
            (!found || port.name == was.interface))
          found = &port;
      }
      if (!found)
        return fail(
            Code::not_found,
            fmt::format("{} on {}: its port {} ({}) is missing. If the hardware was changed, remove {} "
                        "on the node so that ports are selected again, or name the ports in the spec",
                        wanted_[place].title(), requested_.node, was.interface,
                        was.pci.empty() ? "no PCI address" : was.pci, kNetworksRecord));
      take(place, *found);
    }
    return Ok{};
  }

  const PortsRequested& requested_;
  const std::vector<WantedPort>& wanted_;
  const std::vector<NetPort> ports_;
  std::vector<NetPort> given_;
  std::set<std::string> used_;
};

}  // namespace

int WantedPort::prefix() const {
  const size_t slash = network.find('/');
  return slash == std::string::npos ? 32 : std::atoi(network.c_str() + slash + 1);
}

std::vector<NetPort> physical_ports(const Files& files) {
  std::vector<NetPort> out = net_ports(files);
  std::erase_if(out, [](const NetPort& port) { return port.joined; });
  return out;
}

Result<std::vector<GivenPort>> give_ports(const PortsRequested& requested,
                                          const std::vector<WantedPort>& wanted, std::vector<NetPort>& open) {
  PortAssigner assigner(requested, wanted);
  TRY_(assigner.exclude_provisioning());
  TRY_(assigner.give_named());
  TRY_(assigner.give_found(true, open));
  TRY_(assigner.give_found(false, open));
  return assigner.result();
}

Result<NetworksRecord> record_with_rails(const Files& files) {
  TRY(auto record, read_networks_record(files));
  if (!record.rails().empty()) return record;
  return fail(Code::not_found,
              fmt::format("{} lists no rails: run the playbook `networks` first", kNetworksRecord));
}

}  // namespace muster::steps
