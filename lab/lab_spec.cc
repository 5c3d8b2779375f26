#include "lab/lab_spec.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/digest.h"
#include "base/lower.h"
#include "base/mac.h"
#include "base/scan.h"
#include "controller/spec/units.h"
#include "lab/bmc_profile.h"
#include "lab/spec_values.h"

namespace muster::lab {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr size_t kLongestName = 31;

// "node[01-03]" -> node01, node02, node03 with their numbers; a plain name gets the number -1.
std::vector<RangedName> expand_names(const YAML::Node& pattern, Problems& problems) {
  if (!pattern || !pattern.IsScalar()) {
    problems.push_back("nodes: each entry needs a name");
    return {};
  }
  const auto text = pattern.Scalar();
  auto names = expand_numbered_range(text);
  if (!names) {
    problems.push_back(fmt::format("{}: node name: {}", at(pattern), names.error().message));
    return {};
  }
  if (names->size() <= kMaxMachines) return *names;
  problems.push_back(
      fmt::format("{}: node range '{}': a lab has at most {} machines", at(pattern), text, kMaxMachines));
  return {};
}

Result<int64_t> size_from(const std::string& text) {
  static const std::map<std::string, double> units = {
      {"B", 1},           {"KB", 1e3},           {"MB", 1e6},
      {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
      {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
  Scan scan(text);
  bool good = !scan.take(is_digit).empty();
  if (good && scan.skip(".")) good = !scan.take(is_digit).empty();
  scan.take([](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  const auto unit = units.find(std::string(scan.rest()));
  if (!good || unit == units.end()) return fail(Code::invalid, "'" + text + "' is not a size such as 8 GiB");
  const auto bytes = static_cast<int64_t>(std::stod(text) * unit->second);
  return bytes / 512 * 512;
}

// Lower-case letters, digits and '-', the first not a '-'.
bool is_name(const std::string& text, size_t longest) {
  Scan scan(text);
  if (text.size() > longest || !scan.skip(1, is_lower_or_digit)) return false;
  scan.take([](char c) { return is_lower_or_digit(c) || c == '-'; });
  return scan.ended();
}

void refuse_unknown_keys(const YAML::Node& map, const std::string& where, const std::set<std::string>& known,
                         Problems& problems) {
  for (const auto& entry : map) {
    const auto key = entry.first.Scalar();
    if (known.count(key)) continue;
    problems.push_back(fmt::format("{}: {}: unknown key '{}' (known: {})", at(entry.first), where, key,
                                   fmt::join(known, ", ")));
  }
}

int integer(const YAML::Node& node, int fallback, int low, int high, const std::string& where,
            Problems& problems) {
  if (!node) return fallback;
  const auto text = scalar(node);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    problems.push_back(fmt::format("{}: {}: expected a number from {} to {}", at(node), where, low, high));
    return fallback;
  }
  return value;
}

bool boolean(const YAML::Node& node, bool fallback, const std::string& where, Problems& problems) {
  if (!node) return fallback;
  static const std::set<std::string> yes = {"true", "yes", "on"}, no = {"false", "no", "off"};
  const auto text = scalar(node);
  if (!yes.count(text) && !no.count(text))
    problems.push_back(fmt::format("{}: {}: expected true or false", at(node), where));
  return yes.count(text) > 0;
}

double time_scale(const YAML::Node& node, Problems& problems) {
  if (!node) return 1;
  const auto text = scalar(node);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0.001 && value <= 1) return value;
  problems.push_back(
      fmt::format("{}: lab.time_scale: expected a number from 0.001 to 1, such as 0.1", at(node)));
  return 1;
}

// Marks ports of a machine as having no cable, or an adapter that counts errors.
void mark_ports(const YAML::Node& list, const std::string& where, bool LabPort::*mark, bool value,
                LabNode& node, Problems& problems) {
  if (!list) return;
  if (!list.IsSequence()) {
    problems.push_back(fmt::format("{}: {}: expected a list such as [ rail1 ]", at(list), where));
    return;
  }
  for (const auto& item : list) {
    const auto name = scalar(item);
    const auto port =
        std::find_if(node.ports.begin(), node.ports.end(), [&](auto& p) { return p.network == name; });
    if (port != node.ports.end()) {
      (*port).*mark = value;
      continue;
    }
    std::vector<std::string> has;
    for (const auto& p : node.ports) has.push_back(p.network);
    problems.push_back(fmt::format(
        "{}: {}: {} has no port '{}' ({})", at(item), where, node.name, name,
        has.empty()
            ? "it has only the provisioning port: set `rails` or `storage_nic`"
            : fmt::format("ports: {}; the provisioning port cannot be changed", fmt::join(has, ", "))));
  }
}

// Reads the model of the simulated GPUs.
std::string gpu_model(const YAML::Node& node, const std::string& fallback, const std::string& where,
                      Problems& problems) {
  if (!node) return fallback;
  const auto wrong = wrong_standin_model(scalar(node));
  if (!wrong.empty()) problems.push_back(fmt::format("{}: {}: expected {}", at(node), where, wrong));
  return wrong.empty() ? scalar(node) : fallback;
}

std::string profile_name(const YAML::Node& node, const std::string& fallback, Problems& problems) {
  if (!node) return fallback;
  const auto name = scalar(node);
  if (find_profile(name)) return name;
  std::vector<std::string> known;
  for (const auto& p : bmc_profiles()) known.push_back(p.name);
  problems.push_back(
      fmt::format("{}: lab profile '{}' does not exist (known: {})", at(node), name, fmt::join(known, ", ")));
  return fallback;
}

std::vector<DriveTemplate> drives_from(const YAML::Node& list, Problems& problems) {
  if (!list) return {{"os", 8 * kGiB, "LABOS", 1}, {"data", 2 * kGiB, "LABDATA", 2}};
  std::vector<DriveTemplate> out;
  std::set<std::string> names;
  for (const auto& item : list) {
    if (!item.IsMap()) {
      problems.push_back(fmt::format("{}: lab.drives: expected {{name, size, ...}}", at(item)));
      continue;
    }
    refuse_unknown_keys(item, "lab.drives", {"name", "size", "serial_prefix", "count"}, problems);
    DriveTemplate drive;
    drive.name = scalar(item["name"]);
    if (!names.insert(drive.name).second || !is_name(drive.name, 16) || is_digit(drive.name[0]))
      problems.push_back(
          fmt::format("{}: lab.drives: name '{}' is missing, taken or malformed", at(item), drive.name));
    drive.serial_prefix = scalar(item["serial_prefix"]);
    if (drive.serial_prefix.empty()) {
      drive.serial_prefix = "LAB" + drive.name;
      for (auto& c : drive.serial_prefix) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    if (drive.serial_prefix.size() > 16)
      problems.push_back(
          fmt::format("{}: serial_prefix '{}' is longer than 16 characters", at(item), drive.serial_prefix));
    drive.count = integer(item["count"], 1, 1, 12, "lab.drives.count", problems);
    auto size = size_from(scalar(item["size"]));
    if (size)
      drive.size_bytes = *size;
    else
      problems.push_back(fmt::format("{}: lab.drives.size: {}", at(item), size.error().message));
    out.push_back(drive);
  }
  if (out.empty())
    problems.push_back("lab.drives: expected at least one drive (machines boot from the first one)");
  return out;
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

// The same machine has the same identity in every lab of its spec, as a chassis would.
void set_identity(LabNode& node, const std::string& cluster) {
  const auto hex = sha256("muster-lab/" + cluster + "/" + node.name).substr(7);
  node.uuid = fmt::format("{}-{}-4{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(13, 3),
                          hex.substr(17, 3), hex.substr(20, 12));
  node.serial = fmt::format("LAB{:02}{}", node.number, hex.substr(32, 6));
  std::transform(node.serial.begin(), node.serial.end(), node.serial.begin(),
                 [](unsigned char c) { return std::toupper(c); });
}

// True for an existing host: adopted, or to be installed through the system with which it was adopted.
bool exists_already(const YAML::Node& group) {
  const auto power = group["power"];
  return group["adopt"] || (power && power.IsMap() && scalar(power["driver"]) == "ssh");
}

// The node has no BMC; its power address is that of the provider's API, which all such nodes share.
void put_behind_provider(const std::string& api, LabNode& node, LabSpec& spec, Problems& problems) {
  if (api.empty() || (!spec.provider_api.empty() && spec.provider_api != api))
    problems.push_back(
        fmt::format("node {}: power.api must be the address of the lab's only provider", node.name));
  spec.provider_api = api;
  node.server = node.bmc_address;
  node.bmc_address = api.substr(0, api.find(':'));
}

void add_nodes(const YAML::Node& group, LabSpec& spec, Problems& problems) {
  const auto names = expand_names(group["name"], problems);
  if (exists_already(group)) {
    for (const auto& name : names) spec.adopted.push_back(name.name);
    return;
  }
  const auto power = group["power"];
  const auto power_address = power && power.IsMap() ? power["address"] : YAML::Node();
  const std::string secret = power && power.IsMap() ? scalar(power["secret"]) : "";
  if (!secret.empty() && std::find(spec.secrets.begin(), spec.secrets.end(), secret) == spec.secrets.end())
    spec.secrets.push_back(secret);
  for (size_t i = 0; i < names.size(); ++i) {
    LabNode node;
    node.name = names[i].name;
    node.number = static_cast<int>(spec.nodes.size()) + 1;
    const int n = names[i].number < 0 ? node.number : names[i].number;
    const GroupMember member{i, names.size(), n};
    node.mac = declared_mac(group["mac"], member, problems);
    if (node.mac.empty()) node.mac = derived_mac(node.number, port_number(kProvisioning));
    if (!is_mac(node.mac) || node.mac != lower(node.mac))
      problems.push_back(fmt::format("node {}: '{}' is not a MAC address", node.name, node.mac));
    node.address = declared_address(group["address"], "address", member, problems);
    node.bmc_address = declared_address(power_address, "power.address", member, problems);
    node.ipmi = spec.ipmi = power && power.IsMap() && scalar(power["driver"]) == "ipmi";
    // Switched by hand (`muster lab power`): it has no BMC, whatever location the spec declares.
    const bool by_hand = power && power.IsMap() && scalar(power["driver"]) == "manual";
    if (by_hand) node.bmc_address.clear();
    if (power && power.IsMap() && scalar(power["driver"]) == "sakura-phy")
      put_behind_provider(scalar(power["api"]), node, spec, problems);
    in_addr parsed{};
    if (!by_hand && inet_pton(AF_INET, node.bmc_address.c_str(), &parsed) != 1)
      problems.push_back(fmt::format("node {}: power.address '{}' is not a valid IPv4 address of a BMC",
                                     node.name, node.bmc_address));
    if (find_node(spec, node.name)) problems.push_back(fmt::format("node {} is declared twice", node.name));
    node.profile = spec.profile;
    node.memory_mib = spec.memory_mib;
    node.smp = spec.smp;
    node.drives = make_drives(spec.drives, node.number);
    node.ports = make_ports(node.number, spec.storage_nic, spec.rails);
    node.gpus = spec.gpus;
    node.gpu_model = spec.gpu_model;
    set_identity(node, spec.cluster);
    spec.nodes.push_back(std::move(node));
  }
}

// Returns the addresses in use, which must not be assigned to machines that declare none.
std::set<std::string> taken_addresses(const YAML::Node& network, const YAML::Node& nodes,
                                      const LabSpec& spec) {
  std::set<std::string> out = {spec.controller};
  const auto take = [&](const YAML::Node& value) {
    if (value && value.IsScalar()) out.insert(value.Scalar());
    if (value && value.IsSequence())
      for (const auto& item : value) out.insert(scalar(item));
  };
  if (network && network.IsMap())
    for (const auto* key : {"gateway", "dns", "ntp"}) take(network[key]);
  for (const auto& group : nodes) {
    if (!group.IsMap() || !exists_already(group)) continue;
    take(group["address"]);
    if (group["adopt"] && group["adopt"].IsMap()) take(group["adopt"]["host"]);
  }
  return out;
}

void override_node(const YAML::Node& keys, const std::string& where, LabNode& node, Problems& problems) {
  node.profile = profile_name(keys["profile"], node.profile, problems);
  node.memory_mib = integer(keys["memory_mib"], node.memory_mib, 128, 65536, where, problems);
  node.smp = integer(keys["smp"], node.smp, 1, 16, where, problems);
  if (keys["drives"]) node.drives = make_drives(drives_from(keys["drives"], problems), node.number);
  const bool storage =
      std::any_of(node.ports.begin(), node.ports.end(), [](auto& p) { return p.network == kStorage; });
  const int rails = static_cast<int>(node.ports.size()) - (storage ? 1 : 0);
  if (keys["storage_nic"] || keys["rails"])
    node.ports =
        make_ports(node.number, boolean(keys["storage_nic"], storage, where + ".storage_nic", problems),
                   integer(keys["rails"], rails, 0, kMaxRails, where + ".rails", problems));
  mark_ports(keys["uncabled"], where + ".uncabled", &LabPort::cabled, false, node, problems);
  mark_ports(keys["counting"], where + ".counting", &LabPort::counting, true, node, problems);
  node.gpus = integer(keys["gpus"], node.gpus, 0, kMostStandinGpus, where + ".gpus", problems);
  node.gpu_model = gpu_model(keys["gpu_model"], node.gpu_model, where + ".gpu_model", problems);
}

// Reads lab.nodes.<name or range>: settings for these machines only.
void apply_overrides(const YAML::Node& overrides, LabSpec& spec, Problems& problems) {
  if (!overrides) return;
  for (const auto& entry : overrides) {
    if (!entry.second.IsMap() && !entry.second.IsNull()) {
      problems.push_back(
          fmt::format("{}: lab.nodes.{}: expected a map", at(entry.second), scalar(entry.first)));
      continue;
    }
    const auto names = expand_names(entry.first, problems);
    for (const auto& [name, number] : names) {
      const auto where = "lab.nodes." + name;
      const auto node =
          std::find_if(spec.nodes.begin(), spec.nodes.end(), [&, n = name](auto& o) { return o.name == n; });
      if (node == spec.nodes.end()) {
        const bool adopted = std::count(spec.adopted.begin(), spec.adopted.end(), name) > 0;
        problems.push_back(fmt::format("{}: {}: {}", at(entry.first), where,
                                       adopted ? "an adopted host has no machine in a lab" : "no such node"));
        continue;
      }
      if (name == names.front().name)
        refuse_unknown_keys(entry.second, where,
                            {"profile", "memory_mib", "smp", "drives", "storage_nic", "rails", "uncabled",
                             "counting", "gpus", "gpu_model"},
                            problems);
      override_node(entry.second, where, *node, problems);
    }
  }
}

// Checks for values that two machines on one network cannot share.
void refuse_twins(const LabSpec& spec, Problems& problems) {
  if (spec.nodes.size() > kMaxMachines)
    problems.push_back(fmt::format("nodes: {} machines are declared, but a lab has at most {}",
                                   spec.nodes.size(), kMaxMachines));
  std::map<std::string, std::string> owners;
  const auto own = [&](const std::string& what, const std::string& value, const std::string& node) {
    const auto [owner, fresh] = owners.emplace(value, node);
    if (!fresh && !value.empty())
      problems.push_back(
          fmt::format("node {}: {} {} is already used by {}", node, what, value, owner->second));
  };
  for (const auto& node : spec.nodes) {
    own("MAC address", node.mac, node.name);
    for (const auto& port : node.ports) own("MAC address", port.mac, node.name);
    if (node.server.empty()) own("the BMC's address", node.bmc_address, node.name);
  }
}

void read_spec(const YAML::Node& root, LabSpec& spec, Problems& problems) {
  spec.cluster = scalar(root["cluster"]);
  if (!is_name(spec.cluster, kLongestName))
    problems.push_back("cluster: expected a name of lower-case letters, digits and '-'");
  const auto network = root["network"];
  const auto provisioning = network && network.IsMap() ? network["provisioning"] : YAML::Node();
  if (provisioning && provisioning.IsMap()) spec.provisioning_cidr = scalar(provisioning["cidr"]);
  if (network && network.IsMap()) spec.controller = scalar(network["controller"]);
  auto first = address_in(spec.provisioning_cidr, 1);
  if (!first)
    problems.push_back("network.provisioning.cidr: " + first.error().message);
  else if (spec.controller.empty())
    spec.controller = *first;
  const auto users = root["users"];
  if (users && users.IsMap() && users.size() > 0) spec.user = users.begin()->first.Scalar();

  const auto lab = root["lab"];
  if (lab && !lab.IsMap()) {
    problems.push_back(fmt::format("{}: lab: expected a map", at(lab)));
    return;
  }
  const auto section = lab ? lab : YAML::Node(YAML::NodeType::Map);
  refuse_unknown_keys(section, "lab",
                      {"memory_mib", "smp", "profile", "drives", "nodes", "storage_nic", "rails",
                       "time_scale", "acceptance", "gpus", "gpu_model"},
                      problems);
  spec.memory_mib = integer(section["memory_mib"], 1024, 128, 65536, "lab.memory_mib", problems);
  spec.smp = integer(section["smp"], 1, 1, 16, "lab.smp", problems);
  spec.profile = profile_name(section["profile"], "generic", problems);
  spec.drives = drives_from(section["drives"], problems);
  spec.storage_nic = boolean(section["storage_nic"], false, "lab.storage_nic", problems);
  spec.rails = integer(section["rails"], 0, 0, kMaxRails, "lab.rails", problems);
  spec.gpus = integer(section["gpus"], 0, 0, kMostStandinGpus, "lab.gpus", problems);
  spec.gpu_model = gpu_model(section["gpu_model"], kStandinModel, "lab.gpu_model", problems);
  spec.time_scale = time_scale(section["time_scale"], problems);
  const auto nodes = root["nodes"];
  if (!nodes || !nodes.IsSequence() || nodes.size() == 0)
    problems.push_back("nodes: expected a list");
  else
    for (const auto& group : nodes)
      if (group.IsMap()) add_nodes(group, spec, problems);
  if (problems.empty() && spec.nodes.empty())
    problems.push_back("nodes: all nodes are adopted hosts (`adopt`), for which a lab has no machines");
  assign_addresses(spec, taken_addresses(network, nodes, spec));
  apply_overrides(section["nodes"], spec, problems);
  refuse_twins(spec, problems);
}

}  // namespace

Result<LabSpec> lab_spec_from_yaml(const std::string& text) {
  LabSpec spec;
  Problems problems;
  try {  // yaml-cpp reports by exception
    const auto root = YAML::Load(text);
    if (!root.IsMap()) return fail(Code::invalid, "the spec is not a YAML map");
    read_spec(root, spec, problems);
  } catch (const YAML::Exception& e) {
    return fail(Code::invalid,
                fmt::format("line {}, column {}: {}", e.mark.line + 1, e.mark.column + 1, e.msg));
  }
  if (!problems.empty()) return fail(Code::invalid, fmt::format("{}", fmt::join(problems, "\n")));
  return spec;
}

Result<LabNode> make_extra_node(const LabSpec& spec, const std::string& name) {
  if (!is_name(name, kLongestName)) return fail(Code::invalid, "'" + name + "' is not a node name");
  if (find_node(spec, name)) return fail(Code::conflict, "the lab already has a machine named " + name);
  if (spec.nodes.empty())
    return fail(Code::invalid, "the lab has no machine whose settings a new one could copy");
  LabNode node;
  node.name = name;
  node.in_spec = false;
  for (const auto& other : spec.nodes) node.number = std::max(node.number, other.number);
  ++node.number;
  // A free number does not imply a free MAC: the spec may have given it to another machine.
  const auto used = [&](const std::string& mac) {
    return std::any_of(spec.nodes.begin(), spec.nodes.end(), [&](auto& n) { return n.mac == mac; });
  };
  for (int i = node.number; node.mac.empty() || used(node.mac); i += 0x100)
    node.mac = derived_mac(i, port_number(kProvisioning));
  TRY(node.address, address_in(spec.provisioning_cidr, 10 + static_cast<uint32_t>(node.number)));
  std::string address = spec.nodes.back().bmc_address;
  const auto taken = [&](const std::string& a) {
    return std::any_of(spec.nodes.begin(), spec.nodes.end(), [&](auto& n) { return n.bmc_address == a; });
  };
  while (!address.empty() && taken(address)) {
    TRY(address, address_after(address));
  }
  node.bmc_address = address;
  node.profile = spec.profile;
  node.ipmi = spec.ipmi;
  node.memory_mib = spec.memory_mib;
  node.smp = spec.smp;
  node.drives = make_drives(spec.drives, node.number);
  node.ports = make_ports(node.number, spec.storage_nic, spec.rails);
  node.gpus = spec.gpus;
  node.gpu_model = spec.gpu_model;
  set_identity(node, spec.cluster);
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

}  // namespace muster::lab
