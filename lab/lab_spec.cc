#include "lab/lab_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/digest.h"
#include "base/record.h"
#include "base/scan.h"
#include "controller/spec/address.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/units.h"
#include "controller/spec/yaml.h"
#include "lab/bmc_profile.h"

namespace muster::lab {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30, kSmallestDrive = int64_t{1} << 20;

// True for what a lab is built from. The rest of the spec may be unfinished.
bool concerns_lab(const SpecError& error) {
  if (error.path == "cluster" || error.path == "nodes") return true;
  for (const std::string section : {"network.provisioning", "network.controller", "lab"})
    if (error.path == section || error.path.starts_with(section + ".")) return true;
  Scan path(error.path);
  const auto skip_index = [&] { return path.skip("[") && !path.take(is_digit).empty() && path.skip("]"); };
  if (!path.skip("nodes") || !skip_index() || !path.skip(".")) return false;
  for (const char* key : {"name", "mac", "address", "power.address", "power.api"})
    if (path.skip(key)) return path.ended() || (skip_index() && path.ended());
  return false;
}

// Drives of one machine: serial = prefix + two digits of the node + two digits of the drive.
std::vector<LabDrive> make_drives(const std::vector<DriveTemplate>& templates, int number) {
  std::vector<LabDrive> out;
  for (const auto& t : templates) {
    for (int k = 1; k <= t.count; ++k) {
      LabDrive drive;
      drive.name = t.count == 1 ? t.name : fmt::format("{}{}", t.name, k);
      drive.size_bytes = t.size_bytes;
      drive.serial = fmt::format("{}{:02}{:02}", t.serial_prefix, number, k);
      drive.boot = out.empty();
      out.push_back(drive);
    }
  }
  return out;
}

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// As the spec's defaults describe it. Its identity is the same in every lab of its spec, like a chassis's.
LabNode make_machine(const LabSpec& spec, const std::string& name, int number) {
  LabNode node;
  node.name = name;
  node.number = number;
  node.profile = spec.profile;
  node.memory_mib = spec.memory_mib;
  node.smp = spec.smp;
  node.drives = make_drives(spec.drives, number);
  node.ports = make_ports(number, spec.storage_nic, spec.rails);
  node.gpus = spec.gpus;
  node.gpu_model = spec.gpu_model;
  const auto hex = sha256("muster-lab/" + spec.cluster + "/" + name).substr(7);
  node.uuid = fmt::format("{}-{}-4{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(13, 3),
                          hex.substr(17, 3), hex.substr(20, 12));
  node.serial = in_capitals(fmt::format("LAB{:02}{}", number, hex.substr(32, 6)));
  return node;
}

// Adds what only a lab has to what the controller's reader returned. That reader has also checked types,
// ranges and unknown keys of `lab:` (schema/spec.schema.json); these are the rules beyond a schema.
class LabReader {
 public:
  LabReader(const YamlNode& root, const ParsedSpec& parsed)
      : root_(root), section_(root.find("lab")), parsed_(parsed) {
    for (const auto& error : parsed.errors)
      if (concerns_lab(error)) errors_.push_back(error);
  }

  Result<LabSpec> read() {
    read_cluster();
    read_defaults();
    if (!root_.find("nodes")) error(root_, "nodes", "expected a list");
    read_nodes();
    if (errors_.empty() && out_.nodes.empty())
      error(root_, "nodes", "all nodes are adopted hosts (`adopt`), for which a lab has no machines");
    read_overrides();
    if (errors_.empty()) refuse_shared_macs();
    if (errors_.empty()) return std::move(out_);
    sort_errors(errors_);
    std::vector<std::string> lines;
    for (const auto& e : errors_)
      lines.push_back(fmt::format("line {}, column {}: {}: {}", e.line, e.column, e.path, e.message));
    return fail(Code::invalid, fmt::format("{}", fmt::join(lines, "\n")));
  }

 private:
  void error(const YamlNode& at, const std::string& path, std::string message) {
    errors_.push_back({at.line, at.column, path, std::move(message)});
  }

  void read_cluster() {
    out_.cluster = parsed_.spec.cluster;
    out_.provisioning_cidr = parsed_.spec.network.provisioning.cidr;
    out_.controller = parsed_.spec.network.controller;
    if (out_.provisioning_cidr.empty()) error(root_, "network.provisioning.cidr", "missing");
    const auto* users = yaml_child(&root_, "users");
    if (users && !users->entries.empty()) out_.user = users->entries.front().key;
  }

  void read_defaults() {
    out_.memory_mib = yaml_int(section_, "memory_mib", 1024);
    out_.smp = yaml_int(section_, "smp", 1);
    out_.profile = yaml_text(section_, "profile", "generic");
    out_.drives = {{"os", 8 * kGiB, "LABOS", 1}, {"data", 2 * kGiB, "LABDATA", 2}};
    if (const auto* drives = yaml_child(section_, "drives")) out_.drives = read_drives(*drives, "lab.drives");
    out_.storage_nic = yaml_bool(section_, "storage_nic", false);
    out_.rails = read_rails(section_, 0);
    out_.gpus = yaml_int(section_, "gpus", 0);
    out_.gpu_model = yaml_text(section_, "gpu_model", kStandinModel);
    const auto* scale = yaml_child(section_, "time_scale");
    if (scale && yaml_is_number(*scale)) out_.time_scale = std::strtod(scale->text.c_str(), nullptr);
  }

  // Within the limits even if an error was reported, so that a wrong number costs no memory.
  static int read_rails(const YamlNode* map, int fallback) {
    return std::clamp(yaml_int(map, "rails", fallback), 0, kMaxRails);
  }

  std::vector<DriveTemplate> read_drives(const YamlNode& list, const std::string& path) {
    constexpr int kMostOfOne = 12;
    constexpr size_t kLongestPrefix = 16;
    std::vector<DriveTemplate> out;
    std::set<std::string> names;
    for (size_t i = 0; i < list.items.size(); ++i) {
      const YamlNode& item = list.items[i];
      const std::string where = fmt::format("{}[{}]", path, i);
      DriveTemplate drive;
      drive.name = yaml_text(&item, "name");
      if (drive.name.empty())
        error(item, where, "missing key 'name'");
      else if (!names.insert(drive.name).second)
        error(item, where + ".name", fmt::format("'{}' is given twice", drive.name));
      drive.serial_prefix = yaml_text(&item, "serial_prefix");
      if (drive.serial_prefix.empty()) drive.serial_prefix = "LAB" + in_capitals(drive.name);
      if (drive.serial_prefix.size() > kLongestPrefix)
        error(item, where + ".serial_prefix",
              fmt::format("'{}' is longer than {} characters", drive.serial_prefix, kLongestPrefix));
      drive.count = std::clamp(yaml_int(&item, "count", 1), 1, kMostOfOne);
      const auto size = parse_size(yaml_text(&item, "size"));
      if (!size)
        error(item, where + ".size", size.error().message);
      else if (*size < kSmallestDrive)
        error(item, where + ".size", "less than 1 MiB: write the unit, such as 8 GiB");
      else
        drive.size_bytes = *size / 512 * 512;
      out.push_back(drive);
    }
    return out;
  }

  void read_nodes() {
    std::map<std::string, const NodeSpec*> by_name;
    for (const auto& node : parsed_.spec.nodes) by_name[node.name] = &node;
    std::vector<const NodeSpec*> machines;
    for (const auto& name : parsed_.names) {
      const NodeSpec& node = *by_name.at(name);
      if (node.adopt.declared() || node.power.driver == "ssh")
        out_.adopted.push_back(name);
      else
        machines.push_back(&node);
    }
    if (machines.size() > kMaxMachines)
      return error(
          root_, "nodes",
          fmt::format("{} machines are declared, but a lab has at most {}", machines.size(), kMaxMachines));
    for (const auto* node : machines) add_node(*node);
  }

  void add_node(const NodeSpec& declared) {
    const PowerSpec& power = declared.power;
    if (!power.secret.empty() && !std::count(out_.secrets.begin(), out_.secrets.end(), power.secret))
      out_.secrets.push_back(power.secret);
    LabNode node = make_machine(out_, declared.name, static_cast<int>(out_.nodes.size()) + 1);
    node.mac = declared.mac.empty() ? derived_mac(node.number, port_number(kProvisioning)) : declared.mac;
    node.address = declared.address;
    node.ipmi = out_.ipmi = power.driver == "ipmi";
    // Switched by hand (`muster lab power`): it has no BMC, whatever location the spec declares.
    const bool by_hand = power.driver == "manual";
    if (!by_hand) node.bmc_address = power.address;
    if (power.driver == "sakura-phy") put_behind_provider(power.api, node);
    if (!by_hand && !parse_ipv4(node.bmc_address) && !power_address_reported())
      error(root_, "nodes",
            fmt::format("{}: power.address '{}' is not the IPv4 address of a BMC", node.name,
                        node.bmc_address));
    out_.nodes.push_back(std::move(node));
  }

  bool power_address_reported() const {
    return std::any_of(errors_.begin(), errors_.end(),
                       [](const SpecError& e) { return e.path.find(".power.address") != std::string::npos; });
  }

  // The node has no BMC; its power address is that of the provider's API, which all such nodes share.
  void put_behind_provider(const std::string& api, LabNode& node) {
    if (api.empty() || (!out_.provider_api.empty() && out_.provider_api != api))
      error(root_, "nodes",
            fmt::format("{}: power.api must be the address of the lab's only provider", node.name));
    out_.provider_api = api;
    node.server = node.bmc_address;
    node.bmc_address = api.substr(0, api.find(':'));
  }

  // lab.nodes.<name or range>: settings for these machines only.
  void read_overrides() {
    const auto* overrides = yaml_child(section_, "nodes");
    if (!overrides || !overrides->is_map()) return;
    for (const YamlEntry& entry : overrides->entries) {
      const auto names = expand_range(entry.key);
      if (!names) {
        errors_.push_back({entry.line, entry.column, "lab.nodes." + entry.key, names.error().message});
        continue;
      }
      for (const auto& name : *names) {
        const auto node = std::find_if(out_.nodes.begin(), out_.nodes.end(),
                                       [&](const LabNode& one) { return one.name == name; });
        if (node != out_.nodes.end()) {
          override_node(entry.value, "lab.nodes." + name, *node);
          continue;
        }
        const bool adopted = std::count(out_.adopted.begin(), out_.adopted.end(), name) > 0;
        errors_.push_back({entry.line, entry.column, "lab.nodes." + name,
                           adopted ? "an adopted host has no machine in a lab" : "no such node"});
      }
    }
  }

  void override_node(const YamlNode& keys, const std::string& path, LabNode& node) {
    node.profile = yaml_text(&keys, "profile", node.profile);
    node.memory_mib = yaml_int(&keys, "memory_mib", node.memory_mib);
    node.smp = yaml_int(&keys, "smp", node.smp);
    if (const auto* drives = keys.find("drives"))
      node.drives = make_drives(read_drives(*drives, path + ".drives"), node.number);
    const bool storage =
        std::any_of(node.ports.begin(), node.ports.end(), [](auto& p) { return p.network == kStorage; });
    const int rails = static_cast<int>(node.ports.size()) - (storage ? 1 : 0);
    if (keys.find("storage_nic") || keys.find("rails"))
      node.ports =
          make_ports(node.number, yaml_bool(&keys, "storage_nic", storage), read_rails(&keys, rails));
    mark_ports(keys.find("uncabled"), path + ".uncabled", &LabPort::cabled, false, node);
    mark_ports(keys.find("counting"), path + ".counting", &LabPort::counting, true, node);
    node.gpus = yaml_int(&keys, "gpus", node.gpus);
    node.gpu_model = yaml_text(&keys, "gpu_model", node.gpu_model);
  }

  // Marks ports of a machine as having no cable, or an adapter that counts errors.
  void mark_ports(const YamlNode* list, const std::string& path, bool LabPort::*mark, bool value,
                  LabNode& node) {
    if (!list) return;
    for (const YamlNode& item : list->items) {
      const auto port = std::find_if(node.ports.begin(), node.ports.end(),
                                     [&](const LabPort& p) { return p.network == item.text; });
      if (port != node.ports.end()) {
        (*port).*mark = value;
      } else if (port_number(item.text) > 0) {  // the schema reports the others
        error(item, path,
              fmt::format("{} has no port '{}': set `rails` or `storage_nic`", node.name, item.text));
      }
    }
  }

  // The controller's reader compares declared MACs; these include those that the lab derives.
  void refuse_shared_macs() {
    std::map<std::string, std::string> owners;
    const auto own = [&](const std::string& mac, const std::string& node) {
      const auto [owner, fresh] = owners.emplace(mac, node);
      if (!fresh)
        error(root_, "nodes",
              fmt::format("MAC address {} of {} is already used by {}", mac, node, owner->second));
    };
    for (const auto& node : out_.nodes) {
      own(node.mac, node.name);
      for (const auto& port : node.ports) own(port.mac, node.name);
    }
  }

  const YamlNode& root_;
  const YamlNode* section_;  // of `lab:`; null without one
  const ParsedSpec& parsed_;
  LabSpec out_;
  std::vector<SpecError> errors_ = {};
};

}  // namespace

std::vector<LabPort> make_ports(int machine, bool storage_nic, int rails) {
  std::vector<LabPort> out;
  const auto add = [&](const std::string& network) {
    out.push_back({network, derived_mac(machine, port_number(network))});
  };
  if (storage_nic) add(kStorage);
  for (int i = 0; i < rails; ++i) add(fmt::format("rail{}", i));
  return out;
}

int port_number(const std::string& network) {
  if (network == kProvisioning) return 0;
  if (network == kStorage) return 1;
  for (int i = 0; i < kMaxRails; ++i)
    if (network == fmt::format("rail{}", i)) return 2 + i;
  return -1;
}

std::string derived_mac(int machine, int port) {
  return fmt::format("52:54:00:{:02x}:{:02x}:{:02x}", 0x20 + port, machine >> 8 & 0xff, machine & 0xff);
}

std::string bridge_name(const std::string& network) {
  return network == kProvisioning ? "br0" : "br-" + network;
}

Result<LabSpec> lab_spec_from_yaml(const std::string& text) {
  const ParsedYaml yaml = parse_yaml(text);
  if (!yaml.errors.empty()) {
    const SpecError& first = yaml.errors.front();
    return fail(Code::invalid,
                fmt::format("line {}, column {}: {}", first.line, first.column, first.message));
  }
  if (!yaml.root.is_map()) return fail(Code::invalid, "the spec is not a YAML map");
  const ParsedSpec parsed = parse_spec(text);
  return LabReader(yaml.root, parsed).read();
}

Result<LabNode> make_extra_node(const LabSpec& spec, const std::string& name) {
  if (name.empty() || name.size() > 31 || name.front() == '-' ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
    return fail(Code::invalid, "'" + name + "' is not a node name");
  if (find_node(spec, name)) return fail(Code::conflict, "the lab already has a machine named " + name);
  if (spec.nodes.empty())
    return fail(Code::invalid, "the lab has no machine whose settings a new one could copy");
  int number = 1;
  for (const auto& other : spec.nodes) number = std::max(number, other.number + 1);
  LabNode node = make_machine(spec, name, number);
  node.in_spec = false;
  node.ipmi = spec.ipmi;
  // A free number does not imply a free MAC: the spec may have given it to another machine.
  const auto used = [&](const std::string& mac) {
    return std::any_of(spec.nodes.begin(), spec.nodes.end(), [&](auto& n) { return n.mac == mac; });
  };
  for (int i = number; node.mac.empty() || used(node.mac); i += 0x100)
    node.mac = derived_mac(i, port_number(kProvisioning));
  TRY(const Cidr network, parse_cidr(spec.provisioning_cidr));
  const uint32_t address = network.base + 10 + static_cast<uint32_t>(number);
  if (!network.hosts(address))
    return fail(Code::invalid,
                fmt::format("network {} has no address for machine {}", spec.provisioning_cidr, number));
  node.address = format_ipv4(address);
  const auto taken = [&](const std::string& a) {
    return std::any_of(spec.nodes.begin(), spec.nodes.end(), [&](auto& n) { return n.bmc_address == a; });
  };
  node.bmc_address = spec.nodes.back().bmc_address;
  while (!node.bmc_address.empty() && taken(node.bmc_address)) {
    const auto last = parse_ipv4(node.bmc_address);
    if (!last) return fail(Code::invalid, "'" + node.bmc_address + "' is not an IPv4 address");
    node.bmc_address = format_ipv4(*last + 1);
  }
  return node;
}

const LabNode* find_node(const LabSpec& spec, const std::string& name) {
  for (const auto& node : spec.nodes)
    if (node.name == name) return &node;
  return nullptr;
}

std::vector<std::string> fast_networks(const LabSpec& spec) {
  std::map<int, std::string> found;  // in the order of their ports
  const auto take = [&](const std::vector<LabPort>& ports) {
    for (const auto& port : ports) found[port_number(port.network)] = port.network;
  };
  take(make_ports(0, spec.storage_nic, spec.rails));
  for (const auto& node : spec.nodes) take(node.ports);
  std::vector<std::string> out;
  for (const auto& [number, name] : found) out.push_back(name);
  return out;
}

// DIR/lab.json. What is optional is missing in the file of a lab that an older version started.
MUSTER_RECORD(LabPort, lenient, network, mac, cabled, opt(counting))
MUSTER_RECORD(LabDrive, lenient, name, size_bytes, serial, boot)
MUSTER_RECORD(LabNode, lenient, name, number, mac, address, bmc_address, profile, opt(ipmi), opt(server),
              memory_mib, smp, in_spec, uuid, serial, drives, opt(ports), opt(gpus), opt(gpu_model))
MUSTER_RECORD(DriveTemplate, lenient, name, size_bytes, serial_prefix, count)
MUSTER_RECORD(LabSpec, lenient, cluster, provisioning_cidr, controller, user, secrets, nodes, drives, profile,
              opt(ipmi), opt(provider_api), memory_mib, smp, opt(storage_nic), opt(rails), opt(gpus),
              opt(gpu_model), opt(time_scale))

Json ports_json(const std::vector<LabPort>& ports) { return record::written(ports); }

Json to_json(const LabSpec& spec) { return record_json(spec); }

Result<LabSpec> lab_spec_from_json(const Json& json) {
  auto spec = read_record<LabSpec>(json, "lab.json");
  if (!spec.ok()) return fail(Code::corrupt, spec.error().message);
  return spec;
}

}  // namespace muster::lab
