#include "controller/bringup/own_machine_here.h"

#include "base/distribution.h"
#include "base/lower.h"
#include "base/placeholders.h"
#include "base/split.h"
#include "host/net_ports.h"

namespace muster {
namespace {

// The kernel's table of its own IPv4 addresses: a line "|-- 10.20.0.1", and below it "/32 host LOCAL".
std::set<std::string> local_addresses(const std::string& fib_trie) {
  std::set<std::string> out;
  std::string address;
  for (const std::string& line : split_lines(fib_trie)) {
    if (const size_t leaf = line.find("|-- "); leaf != std::string::npos) address = line.substr(leaf + 4);
    const bool own = line.find("/32 host LOCAL") != std::string::npos;
    if (own && !address.empty() && !address.starts_with("127.")) out.insert(address);
  }
  return out;
}

}  // namespace

OwnMachine read_own_machine(const std::string& sys, const std::string& proc) {
  const Files files(sys);
  OwnMachine own;
  own.uuid = lower(files.read_line("/class/dmi/id/product_uuid"));
  for (const NetPort& port : net_ports(files, ""))
    if (is_station_address(port.mac)) own.macs.insert(port.mac);
  own.names = local_addresses(Files(proc).read("/net/fib_trie").value_or(""));
  const std::string host = lower(Files(proc).read_line("/sys/kernel/hostname"));
  // Default host names, which many machines have, do not identify a machine: installers propose the
  // distribution's.
  if (const std::string first = host.substr(0, host.find('.'));
      !first.empty() && first != "localhost" && !find_distribution(first) && first != "(none)")
    own.names.insert({host, first});
  return own;
}

std::shared_ptr<const Machines> MachinesWithOwn::of(const std::shared_ptr<const Machines>& known) {
  if (known == known_ && with_own_) return with_own_;
  auto made = std::make_shared<Machines>(*known);
  made->remark(own_uuid_, "the controller's own machine (own-machine)");
  known_ = known;
  return with_own_ = std::move(made);
}

}  // namespace muster
