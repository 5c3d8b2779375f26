#include "controller/hosts/hosts_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/json_dump.h"
#include "base/lower.h"
#include "base/split.h"
#include "controller/spec/address.h"
#include "controller/spec/hardware.h"
#include "controller/spec/host_name.h"
#include "controller/spec/reader/parse_spec.h"

namespace muster {
namespace {

constexpr size_t kFewestForMajority = 3;
// The memory that firmware and kernel reserve varies a little. One missing module of 32 would be 3 %.
constexpr double kSameMemory = 0.02;
constexpr uint64_t kMiB = 1 << 20;
constexpr size_t kLongestCluster = 30;
// What the spec's schema accepts.
constexpr int kMostGpus = 64, kMostCpus = 8192, kMostPorts = 256;

using Hosts = std::vector<const AcceptHost*>;

// Quoted JSON text is valid YAML, whatever the hardware's name contains.
std::string quoted(const std::string& text) { return dump_json(Json(text)); }

// ---- groups

std::string product_of(const AcceptHost& host) {
  if (!host.facts) return "";
  const std::string& vendor = host.facts->system.vendor;
  return vendor.empty() ? host.facts->system.product : vendor + " " + host.facts->system.product;
}

std::string free_name(const std::string& wanted, const std::set<std::string>& taken) {
  std::string out = wanted;
  for (int i = 2; taken.count(out); ++i) out = fmt::format("{}-{}", wanted, i);
  return out;
}

struct Group {
  std::string name, product;  // product: set only for generated groups
  Hosts hosts;                // by name
};

// Sorted by name. Names from users are reserved first, so that generated names differ from them.
std::vector<Group> make_groups(const std::vector<AcceptHost>& hosts) {
  std::map<std::string, Hosts> named, made;
  std::set<std::string> taken;
  for (const AcceptHost& host : hosts) {
    if (host.group.empty())
      made[product_of(host)].push_back(&host);
    else
      named[host.group].push_back(&host);
    taken.insert(host.group);
  }
  std::vector<Group> out;
  for (auto& [name, members] : named) out.push_back({name, "", std::move(members)});
  int number = 0;
  for (auto& [product, members] : made) {
    ++number;
    const std::string wanted = made.size() == 1 ? "hosts" : fmt::format("hosts-{}", number);
    const std::string name = free_name(wanted, taken);
    taken.insert(name);
    out.push_back({name, product, std::move(members)});
  }
  for (Group& group : out)
    std::sort(group.hosts.begin(), group.hosts.end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
  std::sort(out.begin(), out.end(), [](const Group& a, const Group& b) { return a.name < b.name; });
  return out;
}

void note_groups(const std::vector<Group>& groups, std::vector<std::string>& notes) {
  std::vector<std::string> made;
  for (const Group& group : groups)
    if (!group.product.empty())
      made.push_back(fmt::format("{} is {} ({})", group.name, group.product, group.hosts.size()));
  if (made.size() > 1)
    notes.push_back(fmt::format("hosts without a group are compared with hosts of the same product: {}",
                                fmt::join(made, ", ")));
}

// ---- hardware of the majority

// Returns the value that more than half of the hosts share; none if fewer than three values are known.
template <typename T>
std::optional<T> majority(const std::vector<T>& values) {
  if (values.size() < kFewestForMajority) return {};
  std::map<T, size_t> counts;
  for (const T& value : values)
    if (2 * ++counts[value] > values.size()) return value;
  return {};
}

// Returns the smallest value of the largest set of nearly equal values, if that set is a majority.
std::optional<uint64_t> nearly_equal(std::vector<uint64_t> values) {
  if (values.size() < kFewestForMajority) return {};
  std::sort(values.begin(), values.end());
  size_t best = 0, best_count = 0;
  for (size_t first = 0, last = 0; first < values.size(); ++first) {
    const double most = static_cast<double>(values[first]) * (1 + kSameMemory);
    while (last < values.size() && static_cast<double>(values[last]) <= most) ++last;
    if (last - first <= best_count) continue;
    best = first;
    best_count = last - first;
  }
  if (2 * best_count <= values.size()) return {};
  return values[best];
}

// The models of a host's GPUs; "" for one whose model no driver reported.
std::set<std::string> gpu_models_of(const HardwareFacts& facts) {
  std::set<std::string> models;
  for (const GpuFacts& gpu : facts.gpus) models.insert(is_named(gpu) ? gpu.model : "");
  return models;
}

struct Seen {
  std::vector<int> gpus, cpus, ports;
  std::vector<std::string> gpu_models, cpu_models;
  std::vector<std::string> mixed;  // hosts with GPUs of several models, which have no vote
  std::vector<uint64_t> memory;
};

Seen seen_of(const Hosts& hosts) {
  Seen out;
  for (const AcceptHost* host : hosts) {
    if (!host->facts) continue;
    const HardwareFacts& facts = *host->facts;
    out.gpus.push_back(static_cast<int>(compute_gpus(facts)));
    out.ports.push_back(static_cast<int>(std::count_if(facts.nics.begin(), facts.nics.end(),
                                                       [](const NicFacts& nic) { return nic.link_up; })));
    if (facts.cpus.count > 0) out.cpus.push_back(facts.cpus.count);
    if (!facts.cpus.model.empty()) out.cpu_models.push_back(facts.cpus.model);
    if (facts.memory_bytes > 0) out.memory.push_back(facts.memory_bytes);
    const auto models = gpu_models_of(facts);
    if (models.size() > 1)
      out.mixed.push_back(fmt::format("{} ({})", host->name, fmt::join(models, ", ")));
    else if (!models.empty() && !models.begin()->empty())
      out.gpu_models.push_back(*models.begin());
  }
  return out;
}

// "{ gpus: 8, memory: \">= 1031798 MiB\" }"; names of values without a majority are added to `without`.
std::string hardware_text(const Seen& seen, std::vector<std::string>& without) {
  std::vector<std::string> keys;
  const auto count = [&](const char* key, const char* what, const std::vector<int>& values, int most) {
    const auto value = majority(values);
    if (!value)
      without.push_back(what);
    else if (*value <= most)
      keys.push_back(fmt::format("{}: {}", key, *value));
    return value.value_or(0);
  };
  const int gpus = count("gpus", "number of GPUs", seen.gpus, kMostGpus);
  const auto gpu = majority(seen.gpu_models);
  if (gpus > 0 && gpus <= kMostGpus && gpu) keys.push_back("gpu_model: " + quoted(*gpu));
  if (gpus > 0 && !gpu) without.push_back("GPU model");
  count("cpus", "number of processors", seen.cpus, kMostCpus);
  if (const auto model = majority(seen.cpu_models))
    keys.push_back("cpu_model: " + quoted(*model));
  else
    without.push_back("processor model");
  if (const auto memory = nearly_equal(seen.memory); memory && *memory >= kMiB)
    keys.push_back(fmt::format("memory: \">= {} MiB\"", *memory / kMiB));
  else
    without.push_back("memory");
  if (const auto ports = majority(seen.ports); !ports)
    without.push_back("number of ports with a link");
  else if (*ports > 0 && *ports <= kMostPorts)
    keys.push_back(fmt::format("nics: {{ any: {} }}", *ports));
  return keys.empty() ? "" : fmt::format("{{ {} }}", fmt::join(keys, ", "));
}

std::string hardware_of(const Group& group, std::vector<std::string>& notes) {
  const Seen seen = seen_of(group.hosts);
  if (seen.gpus.size() < kFewestForMajority) {
    notes.push_back(
        fmt::format("group {}: fewer than three hosts have an inventory, which is too few for a majority; no "
                    "hardware is declared, and each host is compared only with its own history",
                    group.name));
    return "";
  }
  if (!seen.mixed.empty())
    notes.push_back(
        fmt::format("group {}: hosts with GPUs of several models do not count for the majority of "
                    "GPU models: {}",
                    group.name, some_of(seen.mixed)));
  std::vector<std::string> without;
  const std::string text = hardware_text(seen, without);
  if (!without.empty())
    notes.push_back(fmt::format(
        "group {}: no majority of hosts agrees on these values, so they were left out of the spec: {}",
        group.name, fmt::join(without, ", ")));
  return text;
}

// ---- the parts of the spec

// At least half of the hosts have an active RDMA port: a host without one stands out in the results.
bool has_rdma(const Group& group) {
  size_t known = 0, active = 0;
  for (const AcceptHost* host : group.hosts) {
    if (!host->rdma_ports) continue;
    ++known;
    if (*host->rdma_ports > 0) ++active;
  }
  return active > 0 && 2 * active >= known;
}

// Returns the smallest network in which each address is a host address.
std::optional<Cidr> network_of(const std::vector<uint32_t>& addresses) {
  for (int prefix = 30; prefix >= 8; --prefix) {
    Cidr network{addresses.front(), prefix};
    network.base &= network.mask();
    if (std::all_of(addresses.begin(), addresses.end(), [&](uint32_t one) { return network.hosts(one); }))
      return network;
  }
  return {};
}

// Returns all errors in the list of hosts, as text, and adds the hosts' addresses to `addresses`.
std::vector<std::string> wrong_in(const std::vector<AcceptHost>& hosts, std::vector<uint32_t>& addresses) {
  std::vector<std::string> wrong, missing, twice;
  std::set<std::string> names;
  std::map<uint32_t, std::string> at;
  for (const AcceptHost& host : hosts) {
    if (const std::string why = wrong_host_name(host.name); !why.empty()) wrong.push_back(why);
    if (!names.insert(host.name).second) twice.push_back(host.name);
    if (host.address.empty()) {
      missing.push_back(host.name);
      continue;
    }
    const auto address = parse_ipv4(host.address);
    if (!address) {
      wrong.push_back(fmt::format("{}: {} is not an IPv4 address", host.name, quoted(host.address)));
      continue;
    }
    addresses.push_back(*address);
    if (const auto [other, fresh] = at.emplace(*address, host.name); !fresh)
      wrong.push_back(
          fmt::format("{} and {} have the same address, {}", other->second, host.name, host.address));
  }
  if (!twice.empty()) wrong.push_back("listed twice: " + some_of(twice));
  if (!missing.empty())
    wrong.push_back(
        fmt::format("no address is known for {}: add `address=` in the list of hosts", some_of(missing)));
  if (hosts.empty()) wrong.push_back("the list has no hosts");
  return wrong;
}

std::string node_text(const AcceptHost& host, const std::string& role, const std::string& hardware) {
  const std::string key = host.host_key.empty() ? no_host_key() : host.host_key;
  return fmt::format("  - {{ name: {}, role: {}, address: {}, adopt: {{ host: {}, host_key: {} }}{} }}\n",
                     quoted(host.name), quoted(role), quoted(host.address), quoted(host.name), quoted(key),
                     hardware.empty() ? "" : ", hardware: " + hardware);
}

std::string spec_text(const std::vector<Group>& groups, const Cidr& network, HostsSpec& out) {
  std::string roles, nodes;
  std::set<std::string> taken;
  for (const Group& group : groups) {
    const bool rdma = has_rdma(group);
    const std::string role = free_name(group.name + (rdma ? "-rdma" : ""), taken);
    taken.insert(role);
    // `interconnect` makes acceptance measure RDMA between the nodes of its role.
    roles += fmt::format("  {}: {{ playbooks: [{}] }}\n", quoted(role), rdma ? " interconnect " : "");
    const std::string hardware = hardware_of(group, out.notes);
    for (const AcceptHost* host : group.hosts) nodes += node_text(*host, role, hardware);
  }
  return fmt::format("network: {{ provisioning: {{ cidr: {}/{} }} }}\nroles:\n{}nodes:\n{}",
                     format_ipv4(network.base), network.prefix, roles, nodes);
}

}  // namespace

std::map<std::string, std::string> groups_of(const std::vector<AcceptHost>& hosts) {
  std::map<std::string, std::string> out;
  for (const Group& group : make_groups(hosts))
    for (const AcceptHost* host : group.hosts) out[host->name] = group.name;
  return out;
}

std::string cluster_name_of(const std::string& file) {
  std::string name = lower(file.substr(file.rfind('/') + 1));
  if (const size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  std::string out;
  for (const char c : name) {
    const bool letter = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
    if (letter || (digit && !out.empty()))
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  out.resize(std::min(out.size(), kLongestCluster));
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "hosts" : out;
}

Result<HostsSpec> hosts_spec(const std::string& cluster, const std::string& profile,
                             const std::vector<AcceptHost>& hosts,
                             const std::map<std::string, std::string>& vars) {
  std::vector<uint32_t> addresses;
  const std::vector<std::string> wrong = wrong_in(hosts, addresses);
  if (!wrong.empty()) return fail(Code::invalid, fmt::format("{}", fmt::join(wrong, "; ")));
  const auto network = network_of(addresses);
  if (!network)
    return fail(
        Code::invalid,
        "no network of /8 to /30 contains the addresses of all hosts: measure the hosts in several runs");
  const std::vector<Group> groups = make_groups(hosts);
  HostsSpec out;
  note_groups(groups, out.notes);
  std::string named;
  for (const auto& [name, value] : vars)
    named += fmt::format("{}{}: {}", named.empty() ? "" : ", ", name, quoted(value));
  out.text = fmt::format(
      "# Generated from a list of hosts. `hardware` is what a majority of the hosts in a group has.\n"
      "cluster: {}\n{}{}acceptance: {{ profile: {} }}\n",
      quoted(cluster), named.empty() ? "" : fmt::format("vars: {{ {} }}\n", named),
      spec_text(groups, *network, out), quoted(profile));
  ParsedSpec parsed = parse_spec(out.text);
  if (!parsed.errors.empty())
    return fail(Code::invalid, to_string(parsed.errors.front(), "the generated spec"));
  out.spec = std::move(parsed.spec);
  return out;
}

}  // namespace muster
