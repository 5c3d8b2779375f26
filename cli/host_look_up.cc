#include "cli/host_look_up.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "base/lower.h"
#include "base/split.h"
#include "cli/destination.h"
#include "controller/hosts/host_address.h"
#include "controller/spec/address.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

constexpr size_t kAtOnce = 16;
constexpr DurationMs kLookUp = 10 * kSecond;

void for_each(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(count, kAtOnce); ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < count; i = next++) work(i);
    });
  for (auto& thread : threads) thread.join();
}

// IPv4; "" if there is none. The first one that other hosts could use, if there is such a one.
std::string address_of_name(const std::string& name) {
  if (parse_ipv4(name)) return name;
  Command look;
  look.argv = {"getent", "ahostsv4", name};
  look.deadline = kLookUp;
  const auto found = make_process()->run(look);
  if (!found.ok() || !found->ok()) return "";
  std::string first;
  for (const std::string& line : split_lines(found->out)) {
    const std::string address = line.substr(0, line.find(' '));
    if (reaches_one_host(address)) return address;
    if (first.empty() && parse_ipv4(address)) first = address;
  }
  return first;
}

// Returns the host that ssh would connect to according to its configuration.
std::string connected_to(const HostLookUp& how, const std::string& destination) {
  const std::string named = destination_host(destination);
  Command look;
  look.argv = {"ssh"};
  if (!how.ssh_config.empty()) look.argv.insert(look.argv.end(), {"-F", how.ssh_config});
  look.argv.insert(look.argv.end(), {"-G", "--", ssh_argument(destination)});
  look.deadline = kLookUp;
  const auto found = make_process()->run(look);
  if (!found.ok() || !found->ok()) return named;
  const std::string key = "hostname ";
  for (const std::string& line : split_lines(found->out))
    if (line.starts_with(key)) return line.substr(key.size());
  return named;
}

std::string address_of(const HostLookUp& how, const ListedHost& host) {
  const std::string named = destination_host(host.destination);
  if (parse_ipv4(named)) return named;
  return address_of_name(how.by_ssh ? connected_to(how, host.destination) : named);
}

}  // namespace

std::map<std::string, std::string> looked_up_addresses(const HostLookUp& how,
                                                       const std::vector<ListedHost>& hosts) {
  std::map<std::string, std::string> out;
  std::mutex guard;
  for_each(hosts.size(), [&](size_t i) {
    // Where the list has one, no other is needed.
    const std::string address = hosts[i].address.empty() ? address_of(how, hosts[i]) : "";
    if (address.empty()) return;
    const std::lock_guard lock(guard);
    out[hosts[i].name] = address;
  });
  return out;
}

std::set<std::string> known_aliases(const HostLookUp& how, const std::set<std::string>& words) {
  if (!how.by_ssh) return {};
  const std::vector<std::string> all(words.begin(), words.end());
  std::set<std::string> out;
  std::mutex guard;
  for_each(all.size(), [&](size_t i) {
    if (lower(connected_to(how, all[i])) == lower(all[i])) return;
    const std::lock_guard lock(guard);
    out.insert(all[i]);
  });
  return out;
}

}  // namespace muster::cli
