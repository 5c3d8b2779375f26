#include "controller/hosts/host_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/split.h"
#include "controller/spec/address.h"

namespace muster {
namespace {

constexpr int kWidest = 8, kNarrowest = 30;  // prefixes of a spec's network

struct Own {
  std::string address;
  Cidr network;
};
struct Host {
  const HostAddresses* given = nullptr;
  std::vector<Own> own;  // of which no other host has the same
  std::string chosen;
  bool has(const std::string& address) const {
    return std::any_of(own.begin(), own.end(), [&](const Own& one) { return one.address == address; });
  }
};

std::optional<Own> own_of(const std::string& text) {
  const size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  const std::string prefix = slash == std::string::npos ? "" : text.substr(slash + 1);
  if (!reaches_one_host(address) || prefix.empty() || prefix.size() > 2 ||
      prefix.find_first_not_of("0123456789") != std::string::npos)
    return {};
  Cidr network{*parse_ipv4(address), std::stoi(prefix)};
  if (network.prefix > 32) return {};
  network.base &= network.mask();
  return Own{address, network};
}

std::vector<Host> hosts_of(const std::vector<HostAddresses>& given) {
  std::vector<Host> out(given.size());
  std::map<std::string, std::set<size_t>> owners;
  for (size_t i = 0; i < given.size(); ++i) {
    out[i].given = &given[i];
    for (const std::string& text : given[i].own)
      if (const auto own = own_of(text)) {
        owners[own->address].insert(i);
        out[i].own.push_back(*own);
      }
  }
  for (Host& host : out)
    std::erase_if(host.own, [&](const Own& one) { return owners[one.address].size() > 1; });
  return out;
}

// What is known of one host by itself; "" if that is nothing.
std::string first_choice(const Host& host) {
  const HostAddresses& given = *host.given;
  if (!given.listed.empty()) return given.listed;
  const bool of_host = host.given->own.empty() || host.has(given.looked_up);
  if (reaches_one_host(given.looked_up) && of_host) return given.looked_up;
  const bool server_of_host = host.given->own.empty() || host.has(given.server);
  return reaches_one_host(given.server) && server_of_host ? given.server : "";
}

std::string in_network(const Host& host, const Cidr& network) {
  for (const Own& one : host.own)
    if (network.hosts(*parse_ipv4(one.address))) return one.address;
  return "";
}

// The network in which most hosts have an address; of several, the one with most that were chosen already.
std::optional<Cidr> shared_network(const std::vector<Host>& hosts) {
  std::map<std::pair<uint32_t, int>, std::pair<size_t, size_t>> counts;
  for (const Host& host : hosts)
    for (const Own& one : host.own)
      if (one.network.prefix >= kWidest && one.network.prefix <= kNarrowest)
        counts[{one.network.base, one.network.prefix}] = {0, 0};
  for (auto& [key, count] : counts) {
    const Cidr network{key.first, key.second};
    for (const Host& host : hosts) {
      const auto chosen = parse_ipv4(host.chosen);
      const bool in = chosen && network.hosts(*chosen);
      count.first += in || !in_network(host, network).empty();
      count.second += in;
    }
  }
  const auto best = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == counts.end() || best->second.first < 2) return {};
  return Cidr{best->first.first, best->first.second};
}

// Addresses that two hosts have: neither is known by it. One from the list stays.
void drop_shared(std::vector<Host>& hosts) {
  std::map<std::string, size_t> count;
  for (const Host& host : hosts)
    if (!host.chosen.empty()) ++count[host.chosen];
  for (Host& host : hosts)
    if (count[host.chosen] > 1 && host.given->listed.empty()) host.chosen.clear();
}

uint32_t widest_network_of(const std::string& address) {
  return parse_ipv4(address).value_or(0) >> (32 - kWidest);
}

// The widest network that a spec can have with most of the addresses in it.
uint32_t main_network(const std::vector<Host>& hosts) {
  std::map<uint32_t, size_t> count;
  for (const Host& host : hosts)
    if (!host.chosen.empty()) ++count[widest_network_of(host.chosen)];
  const auto most = std::max_element(count.begin(), count.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count.end() ? 0 : most->first;
}

std::string unknown_address(const HostAddresses& host) {
  if (!host.looked_up.empty() && !reaches_one_host(host.looked_up))
    return fmt::format(
        "{} is {} on this machine, which is no address for other hosts: add `address=` in the list",
        host.name, host.looked_up);
  return "the address at which other hosts reach this host is unknown: add `address=` in the list";
}

void refuse_the_same(const std::vector<Host>& hosts, ChosenAddresses& out) {
  std::map<std::string, std::vector<std::string>> at;
  for (const Host& host : hosts)
    if (!host.chosen.empty()) at[host.chosen].push_back(host.given->name);
  for (const auto& [address, names] : at)
    if (names.size() > 1)
      for (const std::string& name : names)
        out.refused[name] =
            fmt::format("{} have the same address, {}: add `address=` in the list", some_of(names), address);
}

ChosenAddresses decided(const std::vector<Host>& hosts) {
  ChosenAddresses out;
  refuse_the_same(hosts, out);
  const uint32_t main = main_network(hosts);
  for (const Host& host : hosts) {
    const std::string& name = host.given->name;
    if (out.refused.count(name)) continue;
    if (host.chosen.empty())
      out.refused[name] = unknown_address(*host.given);
    else if (widest_network_of(host.chosen) != main)
      out.refused[name] = fmt::format(
          "its address {} and those of the other hosts are in no network of /{} or "
          "narrower: add `address=` in the list, or measure it in another run",
          host.chosen, kWidest);
    else
      out.address[name] = host.chosen;
  }
  return out;
}

// 127.0.0.1 and on, in the order of the names: only for hosts that never reach one another.
ChosenAddresses placeholders(const std::vector<HostAddresses>& hosts) {
  std::set<std::string> names;
  for (const HostAddresses& host : hosts) names.insert(host.name);
  ChosenAddresses out;
  uint32_t next = *parse_ipv4("127.0.0.1");
  for (const std::string& name : names) out.address[name] = format_ipv4(next++);
  return out;
}

}  // namespace

bool reaches_one_host(const std::string& address) {
  const auto ipv4 = parse_ipv4(address);
  if (!ipv4) return false;
  const uint32_t first = *ipv4 >> 24;
  constexpr uint32_t kLinkLocal = 0xa9fe;  // 169.254
  return first != 0 && first != 127 && first < 224 && *ipv4 >> 16 != kLinkLocal;
}

ChosenAddresses choose_addresses(const std::vector<HostAddresses>& given, bool needed) {
  std::vector<Host> hosts = hosts_of(given);
  for (Host& host : hosts) host.chosen = first_choice(host);
  drop_shared(hosts);
  const uint32_t main = main_network(hosts);
  const auto fits = [main](const Host& host) {
    return !host.chosen.empty() && widest_network_of(host.chosen) == main;
  };
  if (!std::all_of(hosts.begin(), hosts.end(), fits))
    if (const auto network = shared_network(hosts)) {
      // A network apart from the first choices decides for all that are in it.
      const bool apart = network->base >> (32 - kWidest) != main;
      for (Host& host : hosts)
        if (const std::string own = in_network(host, *network);
            !own.empty() && host.given->listed.empty() && (apart || !fits(host)))
          host.chosen = own;
    }
  // What only this machine says is better than nothing: a cloud's outer address may be reachable.
  for (Host& host : hosts)
    if (host.chosen.empty() && reaches_one_host(host.given->looked_up)) host.chosen = host.given->looked_up;
  ChosenAddresses out = decided(hosts);
  if (out.refused.empty() || (needed && given.size() > 1)) return out;
  return placeholders(given);
}

}  // namespace muster
