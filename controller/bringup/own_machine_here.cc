#include "controller/bringup/own_machine_here.h"

#include <algorithm>
#include <sstream>

#include "base/port_address.h"

namespace muster {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The kernel's table of its own IPv4 addresses: a line "|-- 10.20.0.1", and below it "/32 host LOCAL".
std::set<std::string> local_addresses(const std::string& fib_trie) {
  std::set<std::string> out;
  std::istringstream lines(fib_trie);
  std::string address;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t leaf = line.find("|-- "); leaf != std::string::npos) address = line.substr(leaf + 4);
    const bool own = line.find("/32 host LOCAL") != std::string::npos;
    if (own && !address.empty() && address.rfind("127.", 0) != 0) out.insert(address);
  }
  return out;
}

// Not a port of this machine alone: a BMC's USB network (makers give all of them one address), or a
// virtual function.
bool is_borrowed_port(const Files& files, const std::string& port) {
  const std::string bus = files.read_link(port + "/device/subsystem").value_or("");
  return bus.substr(bus.rfind('/') + 1) == "usb" || files.exists(port + "/device/physfn");
}

}  // namespace

OwnMachine read_own_machine(const std::string& sys, const std::string& proc) {
  const Files files(sys);
  OwnMachine own;
  own.uuid = lower(files.read_line("/class/dmi/id/product_uuid"));
  for (const auto& name : files.list("/class/net")) {
    const std::string port = "/class/net/" + name;
    if (!files.exists(port + "/device") || is_borrowed_port(files, port)) continue;
    // A port of a bond shows the bond's address, and keeps its own beside it.
    std::string mac = lower(files.read_line(port + "/bonding_slave/perm_hwaddr"));
    if (!is_port_address(mac)) mac = lower(files.read_line(port + "/address"));
    if (is_port_address(mac)) own.macs.insert(mac);
  }
  own.names = local_addresses(Files(proc).read("/net/fib_trie").value_or(""));
  const std::string host = lower(Files(proc).read_line("/sys/kernel/hostname"));
  // Names that many machines have tell none apart.
  if (const std::string first = host.substr(0, host.find('.'));
      !first.empty() && first != "localhost" && first != "debian" && first != "ubuntu" && first != "(none)")
    own.names.insert({host, first});
  return own;
}

}  // namespace muster
