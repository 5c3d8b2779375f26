#include "cli/host_addresses.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/split.h"
#include "cli/destination.h"
#include "controller/spec/address.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

constexpr size_t kAtOnce = 16;  // programs and name look-ups
constexpr DurationMs kLookUp = 10 * kSecond;

// Returns the first IPv4 address of a name; "" if there is none.
std::string address_of_name(const std::string& name) {
  if (parse_ipv4(name)) return name;
  Command look;
  look.argv = {"getent", "ahostsv4", name};
  look.deadline = kLookUp;
  const auto found = make_process()->run(look);
  if (!found.ok() || !found->ok()) return "";
  const std::string first = found->out.substr(0, found->out.find_first_of(" \n"));
  return parse_ipv4(first) ? first : "";
}

// Returns the host in a destination, without user and port.
std::string host_of(const std::string& destination) {
  const std::string key = destination_key(destination);
  const size_t colon = key.find(':');
  return colon != std::string::npos && key.find(':', colon + 1) == std::string::npos ? key.substr(0, colon)
                                                                                     : key;
}

// Returns the host that ssh would connect to according to its configuration.
std::string connected_to(const AddressLookUp& how, const std::string& destination) {
  Command look;
  look.argv = {"ssh"};
  if (!how.ssh_config.empty()) look.argv.insert(look.argv.end(), {"-F", how.ssh_config});
  look.argv.insert(look.argv.end(), {"-G", "--", destination});
  look.deadline = kLookUp;
  const auto found = make_process()->run(look);
  if (!found.ok() || !found->ok()) return host_of(destination);
  const std::string key = "hostname ";
  for (const std::string& line : split_lines(found->out))
    if (line.starts_with(key)) return line.substr(key.size());
  return host_of(destination);
}

std::string address_of(const AddressLookUp& how, const ListedHost& host) {
  if (!host.address.empty()) return host.address;
  const std::string named = host_of(host.destination);
  if (parse_ipv4(named)) return named;
  return address_of_name(how.by_ssh ? connected_to(how, host.destination) : named);
}

}  // namespace

std::map<std::string, std::string> addresses_of(const AddressLookUp& how,
                                                const std::vector<ListedHost>& hosts) {
  std::map<std::string, std::string> out;
  std::mutex guard;
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < hosts.size(); i = next++) {
      const std::string address = address_of(how, hosts[i]);
      if (address.empty()) continue;
      const std::lock_guard lock(guard);
      out[hosts[i].name] = address;
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(hosts.size(), kAtOnce); ++i) threads.emplace_back(take);
  for (auto& thread : threads) thread.join();
  return out;
}

}  // namespace muster::cli
