#include "cli/host_look_up.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/split.h"
#include "cli/destination.h"
#include "cli/host_words.h"
#include "controller/hosts/host_address.h"
#include "controller/spec/address.h"
#include "sys/clock.h"
#include "sys/os.h"

namespace muster::cli {
namespace {

constexpr size_t kAtOnce = 16;
constexpr DurationMs kSilent = 10 * kSecond, kEach = 10;

void for_each(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(count, kAtOnce); ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < count; i = next++) work(i);
    });
  for (auto& thread : threads) thread.join();
}

// Programs that look something up, all of them until one moment. Thread-safe.
class LookUps {
 public:
  LookUps(const HostLookUp& how, DurationMs limit) : how_(how), end_(steady_now() + limit) {}

  // Returns the host that ssh would connect to according to its configuration; nothing: too late.
  std::optional<std::string> connected_to(const std::string& destination) const;
  // Returns an IPv4 address, if possible one that other hosts could use, or ""; nothing: too late.
  std::optional<std::string> address_of(const ListedHost& host) const;

 private:
  std::optional<std::string> address_of_name(const std::string& name) const;
  // Returns the standard output, "" of a program that fails; nothing: too late.
  std::optional<std::string> run(std::vector<std::string> argv) const;

  const HostLookUp& how_;
  SteadyMs end_;
};

std::optional<std::string> LookUps::run(std::vector<std::string> argv) const {
  Command look;
  look.argv = std::move(argv);
  look.deadline = end_ - steady_now();
  if (look.deadline <= 0) return {};
  const auto done = make_process()->run(look);
  if (!done.ok() && done.error().code == Code::timeout) return {};
  return done.ok() && done->ok() ? done->out : "";
}

std::optional<std::string> LookUps::address_of_name(const std::string& name) const {
  if (parse_ipv4(name)) return name;
  const auto found = run({"getent", "ahostsv4", name});
  if (!found) return {};
  std::string first;
  for (const std::string& line : split_lines(*found)) {
    const std::string address = line.substr(0, line.find(' '));
    if (reaches_one_host(address)) return address;
    if (first.empty() && parse_ipv4(address)) first = address;
  }
  return first;
}

std::optional<std::string> LookUps::connected_to(const std::string& destination) const {
  std::vector<std::string> argv = {"ssh"};
  if (!how_.ssh_config.empty()) argv.insert(argv.end(), {"-F", how_.ssh_config});
  argv.insert(argv.end(), {"-G", "--", ssh_argument(destination)});
  const auto found = run(std::move(argv));
  if (!found) return {};
  const std::string key = "hostname ";
  for (const std::string& line : split_lines(*found))
    if (line.starts_with(key)) return line.substr(key.size());
  return destination_host(destination);
}

std::optional<std::string> LookUps::address_of(const ListedHost& host) const {
  const std::string named = destination_host(host.destination);
  if (parse_ipv4(named)) return named;
  if (!how_.by_ssh) return address_of_name(named);
  const auto to = connected_to(host.destination);
  return to ? address_of_name(*to) : std::nullopt;
}

}  // namespace

DurationMs look_up_limit(size_t words) { return kSilent + static_cast<DurationMs>(words) * kEach; }

LookedUp look_up_addresses(const HostLookUp& how, const std::vector<ListedHost>& hosts, DurationMs limit) {
  LookedUp out;
  const LookUps look_ups(how, limit);
  std::mutex guard;
  for_each(hosts.size(), [&](size_t i) {
    if (!hosts[i].address.empty()) return;  // where the list has one, no other is needed
    const auto address = look_ups.address_of(hosts[i]);
    const std::lock_guard lock(guard);
    if (!address)
      ++out.too_late;
    else if (!address->empty())
      out.addresses[hosts[i].name] = *address;
  });
  return out;
}

std::set<std::string> known_aliases(const HostLookUp& how, const std::set<std::string>& words) {
  if (!how.by_ssh) return {};
  const std::vector<std::string> all(words.begin(), words.end());
  const LookUps look_ups(how, look_up_limit(all.size()));
  std::set<std::string> out;
  std::mutex guard;
  for_each(all.size(), [&](size_t i) {
    const auto to = look_ups.connected_to(all[i]);
    if (!to || !leads_elsewhere(all[i], *to)) return;
    const std::lock_guard lock(guard);
    out.insert(all[i]);
  });
  return out;
}

}  // namespace muster::cli
