// Rules across sections: unique names and addresses, storage and its disk groups.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/engines/engine.h"
#include "controller/power/describe/driver_description.h"
#include "controller/spec/gpu_software.h"
#include "controller/spec/reader/reader.h"

namespace muster {

void SpecReader::check_unique(const std::string& what, const std::string& value, const NodeSpec& node,
                              const ValuePlace& place) {
  if (value.empty()) return;
  const auto [other, first] = seen_.emplace(what + " " + value, node.name);
  if (first) return;
  error_once(*place.at, place.path,
             what == "name"
                 ? fmt::format("node '{}' is declared twice", value)
                 : fmt::format("{} {} is used by both {} and {}", what, value, other->second, node.name));
}

// Returns the node's own value for a key of its entry; without the key, the entry itself.
ValuePlace SpecReader::place_of(const NodeEntry& place, const char* key) {
  const YamlNode* value = child(place.entry, key);
  const std::string path = place.path + "." + key;
  return value ? own_value({value, path}, place.index) : ValuePlace{place.entry, path};
}

// For an adopted node, the address may come from its `adopt.host`.
ValuePlace SpecReader::place_of_address(const NodeEntry& place) {
  const YamlNode* host = child(child(place.entry, "adopt"), "host");
  if (!host || child(place.entry, "address")) return place_of(place, "address");
  return {host, place.path + ".adopt.host"};
}

ValuePlace SpecReader::place_of_power_address(const NodeEntry& place) {
  const YamlNode* value = child(child(place.entry, "power"), "address");
  const std::string path = place.path + ".power.address";
  return value ? own_value({value, path}, place.index) : ValuePlace{place.entry, path};
}

void SpecReader::check_address(const NodeSpec& node, const NodeEntry& place) {
  if (node.address.empty()) return;
  const auto [at, path] = place_of_address(place);
  const auto address = parse_ipv4(node.address);
  if (!address)
    return error_once(*at, path, fmt::format("'{}' is not an address such as 10.20.0.11", node.address));
  if (provisioning_ && !provisioning_->hosts(*address))
    error_once(*at, path,
               fmt::format("{} ({}) is not a host address of the provisioning network {}", node.address,
                           node.name, spec_.network.provisioning.cidr));
  // An adopted node may be the machine that the controller runs on, as it keeps its system.
  if (node.address == spec_.network.controller && !node.adopt.declared())
    error_once(*at, path, fmt::format("{} is the controller's address", node.address));
  if (node.address == spec_.network.gateway)
    error_once(*at, path, fmt::format("{} is the gateway's address", node.address));
}

// Reports an error unless `name` is a server's id, or can be the nickname that it has in its account.
void SpecReader::check_server_name(const std::string& name, const ValuePlace& place) {
  const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
  const bool plain =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
      std::string::npos;
  if (digits ? name.size() == 12 : plain && name.size() <= 64) return;
  error_once(
      *place.at, place.path,
      fmt::format("'{}' is neither a server's id (12 digits) nor a nickname (at most 64 letters, digits, "
                  "'.', '_' and '-')",
                  name));
}

void SpecReader::check_power_address(const NodeSpec& node, const NodeEntry& place) {
  const PowerAddress kind = description_of(node.power.driver).address;
  if (node.power.address.empty() || kind == PowerAddress::words || kind == PowerAddress::location) return;
  const ValuePlace own = place_of_power_address(place);
  const YamlNode& at = *own.at;
  const std::string& path = own.path;
  if (kind == PowerAddress::server) {
    // Declared both by its id and by its nickname, it would count as two nodes, one installed over the other.
    const bool one_is_installed = std::any_of(spec_.nodes.begin(), spec_.nodes.end(), [](const NodeSpec& n) {
      return description_of(n.power.driver).address == PowerAddress::server && !n.power.install_image.empty();
    });
    if (one_is_installed && node.power.address.find_first_not_of("0123456789") != std::string::npos)
      return error_once(at, path,
                        fmt::format("'{}': if any node has `install`, all servers of the provider must be "
                                    "named by their ids (12 digits)",
                                    node.power.address));
    return check_server_name(node.power.address, own);
  }
  const size_t colon = node.power.address.find(':');
  const std::string host = node.power.address.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string port = node.power.address.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(port) > 65535 || std::stoi(port) == 0)
      return error_once(at, path, fmt::format("'{}': '{}' is not a port", node.power.address, port));
  }
  const auto address = parse_ipv4(host);
  const bool looks_numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  // A name would be resolved before each power call, and could then mean a different machine.
  if (!address && kind == PowerAddress::bmc)
    return error_once(
        at, path,
        fmt::format("'{}' is not an address such as 10.20.1.11 (the {} driver takes no host names)",
                    node.power.address, node.power.driver));
  if (!address && (looks_numeric || host.find_first_not_of(
                                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") !=
                                        std::string::npos))
    return error_once(
        at, path,
        fmt::format("'{}' is neither an address such as 10.20.1.11 nor a host name", node.power.address));
  if (!address || kind == PowerAddress::none || !bmc_ || bmc_->hosts(*address)) return;
  error_once(at, path,
             fmt::format("{} ({}) is not a host address of the bmc network {}", host, node.name,
                         spec_.network.bmc.cidr));
}

void SpecReader::check_nodes() {
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    const NodeSpec& node = spec_.nodes[i];
    const NodeEntry& place = places_[i];
    check_unique("name", node.name, node, place_of(place, "name"));
    check_unique("MAC", node.mac, node, place_of(place, "mac"));
    check_unique("address", node.address, node, place_of(place, "address"));
    const std::string& program = node.power.program;  // each program has its own addresses
    if (description_of(node.power.driver).address != PowerAddress::location)
      check_unique("power address", (program.empty() ? "" : program + " ") + node.power.address, node,
                   place_of_power_address(place));
    check_address(node, place);
    check_power_address(node, place);
  }
}

// Sites use the names of these variables in playbooks of their own, with other meanings.
void SpecReader::check_driver_variables() {
  const auto installs = [](const std::vector<std::string>& playbooks) {
    return std::any_of(playbooks.begin(), playbooks.end(), installs_gpu_driver);
  };
  const bool installed = std::any_of(spec_.roles.begin(), spec_.roles.end(),
                                     [&](const auto& r) { return installs(r.second); }) ||
                         std::any_of(spec_.images.begin(), spec_.images.end(),
                                     [&](const auto& image) { return installs(image.second.bake); });
  if (installed) errors_.insert(errors_.end(), of_driver_.begin(), of_driver_.end());
}

// A node gets what its image bakes and what its role's playbooks install: never two drivers.
void SpecReader::check_gpu_software() {
  check_driver_variables();
  const YamlNode* roles = child(&root_, "roles");
  if (!roles || !roles->is_map()) return;
  const auto clash = [&](const std::string& role, const std::string& playbook) {
    for (const NodeSpec& node : spec_.nodes) {
      const auto image = node.role == role ? spec_.images.find(node.image) : spec_.images.end();
      if (image == spec_.images.end()) continue;
      for (const std::string& baked : image->second.bake)
        if (const std::string both = both_install(baked, playbook); baked != playbook && !both.empty())
          return fmt::format("image '{}' of {} bakes '{}', which installs {} too: keep one of them in both",
                             image->first, node.name, baked, both);
    }
    return std::string();
  };
  for (const YamlEntry& entry : roles->entries) {
    const YamlNode* list = child(&entry.value, "playbooks");
    if (!list || !list->is_list()) continue;
    for (size_t i = 0; i < list->items.size(); ++i)
      if (const std::string wrong = clash(entry.key, list->items[i].text); !wrong.empty())
        error(list->items[i], fmt::format("roles.{}.playbooks[{}]", entry.key, i), wrong);
  }
}

// A role that leads a playbook must have at least one node.
void SpecReader::check_leads() {
  const YamlNode* roles = child(&root_, "roles");
  if (nodes_incomplete_ || !roles || !roles->is_map()) return;
  for (const YamlEntry& entry : roles->entries) {
    const YamlNode* leads = child(&entry.value, "leads");
    if (!leads || !leads->is_list() || leads->items.empty() || has_nodes(entry.key)) continue;
    std::vector<std::string> playbooks;
    for (const YamlNode& item : leads->items) playbooks.push_back(item.text);
    error(*leads, fmt::format("roles.{}.leads", entry.key),
          fmt::format("no node has role '{}', so no node would lead {}", entry.key,
                      fmt::join(playbooks, ", ")));
  }
  check_accounting(*roles);
}

bool SpecReader::has_nodes(const std::string& role) const {
  return std::any_of(spec_.nodes.begin(), spec_.nodes.end(),
                     [&](const NodeSpec& n) { return n.role == role; });
}

// Slurm's accounting database must be led by the node that leads Slurm, or the cluster is silently without
// accounting.
void SpecReader::check_accounting(const YamlNode& roles) {
  const NodeSpec* slurm = spec_.leader_of("scheduler");
  const auto each = [&](const YamlEntry& role, const char* key, const auto& complain) {
    const YamlNode* list = child(&role.value, key);
    if (!list || !list->is_list() || !has_nodes(role.key)) return;
    for (size_t i = 0; i < list->items.size(); ++i)
      if (list->items[i].text == "accounting")
        complain(list->items[i], fmt::format("roles.{}.{}[{}]", role.key, key, i));
  };
  for (const YamlEntry& role : roles.entries) {
    each(role, "playbooks", [&](const YamlNode& at, const std::string& path) {
      if (!slurm)
        error(at, path, "accounting is part of Slurm and requires the playbook `scheduler`");
      else if (!spec_.plays(*slurm, "accounting"))
        error(
            at, path,
            fmt::format("Slurm is led by {}, but its role '{}' does not have the playbook `accounting`: add "
                        "it to that role, or list `scheduler` under `leads` in a role that has both",
                        slurm->name, slurm->role));
    });
    each(role, "leads", [&](const YamlNode& at, const std::string& path) {
      if (slurm && slurm->role != role.key)
        error(at, path,
              fmt::format(
                  "`accounting` must be led by the same node as `scheduler`, {} of role '{}': make this "
                  "role lead `scheduler` as well, or remove `accounting` here",
                  slurm->name, slurm->role));
    });
  }
}

// Nodes without an address get .11 and upwards, in the order of their names.
void SpecReader::assign_addresses() {
  if (!provisioning_) return;
  std::set<uint32_t> taken;
  std::vector<std::string> others = {spec_.network.controller, spec_.network.gateway};
  others.insert(others.end(), spec_.network.dns.begin(), spec_.network.dns.end());
  others.insert(others.end(), spec_.network.ntp.begin(), spec_.network.ntp.end());
  for (const std::string& used : others)
    if (const auto address = parse_ipv4(used)) taken.insert(*address);
  std::vector<size_t> order;
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    const NodeSpec& node = spec_.nodes[i];
    if (const auto address = parse_ipv4(node.address)) taken.insert(*address);
    // A BMC on the provisioning network uses one of its addresses, too.
    if (const auto address = parse_ipv4(node.power.address.substr(0, node.power.address.find(':'))))
      taken.insert(*address);
    if (!child(places_[i].entry, "address") && !node.adopt.declared()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return spec_.nodes[a].name < spec_.nodes[b].name; });
  uint32_t next = provisioning_->base + 11;
  for (const size_t i : order) {
    while (taken.count(next)) ++next;
    if (!provisioning_->hosts(next)) {
      const YamlNode* at = child(places_[i].entry, "name");
      error(at ? *at : *places_[i].entry, places_[i].path + ".name",
            fmt::format("{} has no free address left for {}", spec_.network.provisioning.cidr,
                        spec_.nodes[i].name));
      return;
    }
    spec_.nodes[i].address = format_ipv4(next++);
    spec_.nodes[i].address_chosen = true;
  }
}

void SpecReader::read_storage() {
  const YamlNode* storage = child(&root_, "storage");
  if (!storage || !storage->is_map()) return;
  for (const YamlEntry& entry : storage->entries) {
    if (!entry.value.is_map()) continue;
    const std::string path = "storage." + entry.key;
    StorageSpec one = read_one_storage(entry, path);
    for (const auto& [role, playbooks] : spec_.roles)
      if (std::count(playbooks.begin(), playbooks.end(), engine_playbook(one.engine))) one.roles.insert(role);
    check_mount(entry, path, one);
    if (engine_of(one).reach == Reach::of_a_site)
      check_external(entry, path, one);
    else
      check_storage(entry, path, one);
    spec_.storage.push_back(one);
  }
}

StorageSpec SpecReader::read_one_storage(const YamlEntry& entry, const std::string& path) {
  StorageSpec out;
  const YamlNode* map = &entry.value;
  out.name = entry.key;
  out.engine = text(map, "engine");
  out.disks = text(map, "disks");
  out.mount = text(map, "mount");
  if (const std::string level = text(map, "level"); !level.empty()) out.level = level;
  if (const std::string fs = text(map, "fs"); !fs.empty()) out.fs = fs;
  out.server = text(map, "server");
  out.role = text(child(map, "nodes"), "role");
  out.copies = static_cast<int>(integer(map, "copies", 2));
  read_external(entry, path, out);
  check_keys(entry, path, out);
  return out;
}

// A key of a different engine is reported at that key, a missing key at the section.
void SpecReader::check_keys(const YamlEntry& entry, const std::string& path, const StorageSpec& storage) {
  static const std::set<std::string> of_external = {"fstype", "source", "options", "writable"};
  const StorageEngine& engine = engine_of(storage);
  const bool external = engine.reach == Reach::of_a_site;
  for (const YamlEntry& e : entry.value.entries)
    if (!engine.name.empty() && (std::count(engine.without.begin(), engine.without.end(), e.key) ||
                                 (!external && of_external.count(e.key))))
      errors_.push_back({e.line, e.column, path + "." + e.key,
                         fmt::format("has no effect for engine '{}'", storage.engine)});
  for (const char* key : {"disks", "fstype", "source"})
    if (external == (of_external.count(key) > 0) && !child(&entry.value, key))
      error(entry.value, path, fmt::format("missing key '{}'", key));
}

void SpecReader::check_mount(const YamlEntry& entry, const std::string& path, const StorageSpec& storage) {
  static const std::vector<std::string> system = {"/bin",   "/boot", "/dev",  "/efi", "/etc",  "/lib",
                                                  "/lib64", "/proc", "/root", "/run", "/sbin", "/state",
                                                  "/sys",   "/tmp",  "/usr",  "/var"};
  if (storage.mount.empty()) return;
  const YamlNode& at = *child(&entry.value, "mount");
  if (storage.mount == "/") return error(at, path + ".mount", "must not be /, which is the operating system");
  const auto inside = [&](const std::string& outer) {
    return storage.mount == outer || storage.mount.starts_with(outer + "/");
  };
  for (const std::string& folder : system)
    if (inside(folder))
      error(at, path + ".mount", fmt::format("{} is a folder of the operating system", folder));
  for (const StorageSpec& other : spec_.storage)
    if (!other.mount.empty() && (inside(other.mount) || other.mount.starts_with(storage.mount + "/")))
      error(at, path + ".mount",
            fmt::format("{} and {} of storage '{}' overlap", storage.mount, other.mount, other.name));
}

std::vector<const NodeSpec*> SpecReader::members(const YamlEntry& entry, const std::string& path,
                                                 const StorageSpec& storage) {
  std::vector<const NodeSpec*> out;
  std::vector<std::string> lacking;
  const bool one_server = engine_of(storage).one_server;
  for (const NodeSpec& node : spec_.nodes) {
    const bool has_group = node.disks.count(storage.disks) > 0;
    if (one_server             ? node.name != storage.server
        : storage.role.empty() ? !has_group
                               : node.role != storage.role)
      continue;
    out.push_back(&node);
    if (!has_group) lacking.push_back(node.name);
  }
  if (!lacking.empty()) {
    const size_t more = lacking.size() > 4 ? lacking.size() - 4 : 0;
    lacking.resize(lacking.size() - more);
    error(*child(&entry.value, "disks"), path + ".disks",
          fmt::format("{}{} {} no disk group '{}'", fmt::join(lacking, ", "),
                      one_server ? "" : " of role '" + storage.role + "'",
                      more                 ? fmt::format("and {} more have", more)
                      : lacking.size() > 1 ? "have"
                                           : "has",
                      storage.disks));
  }
  return out;
}

// With engine nfs one node serves everything: the operator must choose which node's failure makes the file
// system unavailable. With other engines it may be named; metadata is copied to nodes that hold data.
bool SpecReader::check_server(const YamlEntry& entry, const std::string& path, const StorageSpec& storage) {
  const YamlNode* at = child(&entry.value, "server");
  const bool one_server = engine_of(storage).one_server;
  if (!at && !one_server) return true;
  if (!at) {
    error(entry.value, path, "missing key 'server': the node that serves this storage");
    return false;
  }
  std::vector<std::string> names;
  for (const NodeSpec& node : spec_.nodes) names.push_back(node.name);
  if (const NodeSpec* node = spec_.node(storage.server)) {
    if (one_server || is_member(storage, *node)) return true;
    error(*at, path + ".server",
          fmt::format("{} holds no data of this storage, so it cannot be the storage's master", node->name));
    return false;
  }
  must_be_known(*at, path + ".server", "node", storage.server, names);
  return false;
}

// If only some roles have the engine's playbook, a section whose nodes all have other roles would never be
// created. If no role has it, the user's own playbook may create the section.
bool SpecReader::check_engine_playbook(const YamlEntry& entry, const std::string& path,
                                       const StorageSpec& storage) {
  if (std::any_of(spec_.nodes.begin(), spec_.nodes.end(),
                  [&](const NodeSpec& node) { return is_member(storage, node); }))
    return true;
  const auto holder = std::find_if(spec_.nodes.begin(), spec_.nodes.end(),
                                   [&](const NodeSpec& node) { return holds_data(storage, node); });
  if (holder == spec_.nodes.end()) return true;  // reported elsewhere
  const char* key = engine_of(storage).one_server ? "server" : "disks";
  error(*child(&entry.value, key), fmt::format("{}.{}", path, key),
        fmt::format("no node would create this storage: role '{}' of {} does not have the playbook '{}'",
                    holder->role, holder->name, engine_playbook(storage.engine)));
  return false;
}

void SpecReader::check_level(const YamlEntry& entry, const std::string& path, const StorageSpec& storage,
                             const std::vector<const NodeSpec*>& nodes) {
  const YamlNode* at = child(&entry.value, "level");
  if (!at) return;
  for (const NodeSpec* node : nodes) {
    const auto group = node->disks.find(storage.disks);
    if (group == node->disks.end() || group->second.match.count >= fewest_drives(storage.level)) continue;
    return error(
        *at, path + ".level",
        fmt::format("{} needs at least {} drives, but group '{}' of {} has {}", storage.level,
                    fewest_drives(storage.level), storage.disks, node->name, group->second.match.count));
  }
}

void SpecReader::check_storage(const YamlEntry& entry, const std::string& path, const StorageSpec& storage) {
  if (storage.disks.empty() || nodes_incomplete_) return;
  const YamlNode& at = *child(&entry.value, "disks");
  std::set<std::string> groups, roles;
  for (const NodeSpec& node : spec_.nodes) {
    if (!node.role.empty()) roles.insert(node.role);
    for (const auto& [name, group] : node.disks) groups.insert(name);
  }
  if (storage.disks == "os") return error(at, path + ".disks", "group 'os' holds the operating system");
  groups.erase("os");
  if (!groups.count(storage.disks))
    return must_be_known(at, path + ".disks", "disk group", storage.disks, {groups.begin(), groups.end()});
  if (!storage.role.empty() && !roles.count(storage.role))
    return must_be_known(*child(child(&entry.value, "nodes"), "role"), path + ".nodes.role", "role",
                         storage.role, {roles.begin(), roles.end()});

  const StorageEngine& engine = engine_of(storage);
  if (engine.one_server && !check_server(entry, path, storage)) return;
  if (!check_engine_playbook(entry, path, storage)) return;
  if (engine.may_name_leader && !check_server(entry, path, storage)) return;
  auto nodes = members(entry, path, storage);
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const NodeSpec* node) { return !takes_part(storage, *node); }),
              nodes.end());
  for (const NodeSpec* node : nodes) {
    const auto group = node->disks.find(storage.disks);
    if (group == node->disks.end()) continue;
    if (group->second.policy == DiskPolicy::keep && !storage.engine.empty()) {
      error(at, path + ".disks",
            fmt::format("engine '{}' has to format disks, but group '{}' of {} has policy 'keep'; use "
                        "'format-if-blank' or 'format'",
                        storage.engine, storage.disks, node->name));
      break;
    }
    const auto [other, first] =
        seen_.emplace(fmt::format("group {} {}", node->name, storage.disks), storage.name);
    if (!first) {
      error(at, path + ".disks",
            fmt::format("group '{}' of {} is already used by storage '{}'", storage.disks, node->name,
                        other->second));
      break;
    }
  }
  check_level(entry, path, storage, nodes);
  const YamlNode* declared = child(&entry.value, "copies");
  const YamlNode& copies = declared ? *declared : at;
  if (engine.copies_on_nodes && storage.copies > static_cast<int>(nodes.size()))
    error(copies, path + ".copies",
          fmt::format("{} copies require as many nodes, but only {} hold data of this storage",
                      storage.copies, nodes.size()));
  if (storage.copies < engine.fewest_copies)
    error(copies, path + ".copies",
          fmt::format(
              "engine '{}' needs at least {} copies; for data that may be lost with its node, use engine "
              "'moosefs' or 'local'",
              storage.engine, engine.fewest_copies));
  if (!engine.once) return;
  if (const auto [other, first] = seen_.emplace("engine " + storage.engine, storage.name); !first)
    error(*child(&entry.value, "engine"), path + ".engine",
          fmt::format("storage '{}' already has engine '{}'; only one section may have it", other->second,
                      storage.engine));
}

}  // namespace muster
