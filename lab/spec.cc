#include "lab/spec.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>

#include "base/digest.h"
#include "lab/bmc_profile.h"

namespace muster::lab {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

using Problems = std::vector<std::string>;

struct NamedNumber {
  std::string name;
  int n = 0;
};

// "node[01-03]" -> node01, node02, node03 with their numbers; a plain name gets the number 0.
std::vector<NamedNumber> expand_names(const std::string& pattern, Problems& problems) {
  static const std::regex range(R"(^([A-Za-z0-9.-]*)\[(\d+)-(\d+)\]$)");
  std::smatch m;
  if (!std::regex_match(pattern, m, range)) {
    if (pattern.find_first_of("[]") == std::string::npos && !pattern.empty()) return {{pattern, 0}};
    problems.push_back(fmt::format("node name '{}': expected name or name[01-03]", pattern));
    return {};
  }
  const int first = std::stoi(m[2]), last = std::stoi(m[3]);
  if (first > last || last - first >= 64) {
    problems.push_back(fmt::format("node range '{}': reversed, or more than 64 machines in a lab", pattern));
    return {};
  }
  std::vector<NamedNumber> out;
  for (int n = first; n <= last; ++n)
    out.push_back({fmt::format("{}{:0{}}", m[1].str(), n, m[2].length()), n});
  return out;
}

Result<int64_t> size_from(const std::string& text) {
  static const std::regex form(R"(^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$)");
  static const std::map<std::string, double> units = {
      {"B", 1},           {"KB", 1e3},           {"MB", 1e6},
      {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
      {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
  std::smatch m;
  if (!std::regex_match(text, m, form)) return fail(Code::invalid, "'" + text + "' is no size such as 8 GiB");
  const auto bytes = static_cast<int64_t>(std::stod(m[1]) * units.at(m[2]));
  return bytes / 512 * 512;
}

std::string replace_all(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string scalar(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : std::string(); }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

void refuse_unknown_keys(const YAML::Node& map, const std::string& where, const std::set<std::string>& known,
                         Problems& problems) {
  for (const auto& entry : map) {
    const auto key = entry.first.Scalar();
    if (known.count(key)) continue;
    problems.push_back(fmt::format("line {}: {}: unknown key '{}' (known: {})", entry.first.Mark().line + 1,
                                   where, key, fmt::join(known, ", ")));
  }
}

int integer(const YAML::Node& node, int fallback, int low, int high, const std::string& where,
            Problems& problems) {
  if (!node) return fallback;
  const auto text = scalar(node);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    problems.push_back(
        fmt::format("line {}: {}: expected a number from {} to {}", node.Mark().line + 1, where, low, high));
    return fallback;
  }
  return value;
}

std::string profile_name(const YAML::Node& node, const std::string& fallback, Problems& problems) {
  if (!node) return fallback;
  const auto name = scalar(node);
  if (find_profile(name)) return name;
  std::vector<std::string> known;
  for (const auto& p : bmc_profiles()) known.push_back(p.name);
  problems.push_back(fmt::format("line {}: lab profile '{}' does not exist (known: {})", node.Mark().line + 1,
                                 name, fmt::join(known, ", ")));
  return fallback;
}

std::vector<DriveTemplate> drives_from(const YAML::Node& list, Problems& problems) {
  if (!list) return {{"os", 8 * kGiB, "LABOS", 1}, {"data", 2 * kGiB, "LABDATA", 2}};
  std::vector<DriveTemplate> out;
  std::set<std::string> names;
  for (const auto& item : list) {
    if (!item.IsMap()) {
      problems.push_back(
          fmt::format("line {}: lab.drives: expected {{name, size, ...}}", item.Mark().line + 1));
      continue;
    }
    refuse_unknown_keys(item, "lab.drives", {"name", "size", "serial_prefix", "count"}, problems);
    DriveTemplate drive;
    drive.name = scalar(item["name"]);
    if (!names.insert(drive.name).second || !std::regex_match(drive.name, std::regex("[a-z][a-z0-9-]{0,15}")))
      problems.push_back(fmt::format("line {}: lab.drives: name '{}' is missing, taken or malformed",
                                     item.Mark().line + 1, drive.name));
    drive.serial_prefix = scalar(item["serial_prefix"]);
    if (drive.serial_prefix.empty()) {
      drive.serial_prefix = "LAB" + drive.name;
      for (auto& c : drive.serial_prefix) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    if (drive.serial_prefix.size() > 16)
      problems.push_back(fmt::format("line {}: serial_prefix '{}' is longer than 16", item.Mark().line + 1,
                                     drive.serial_prefix));
    drive.count = integer(item["count"], 1, 1, 12, "lab.drives.count", problems);
    auto size = size_from(scalar(item["size"]));
    if (size)
      drive.size_bytes = *size;
    else
      problems.push_back(
          fmt::format("line {}: lab.drives.size: {}", item.Mark().line + 1, size.error().message));
    out.push_back(drive);
  }
  if (out.empty()) problems.push_back("lab.drives: at least one drive (the first one boots)");
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

void add_nodes(const YAML::Node& group, LabSpec& spec, Problems& problems) {
  const auto pattern = scalar(group["name"]);
  const auto names = expand_names(pattern, problems);
  if (group["adopt"]) {
    for (const auto& name : names) spec.adopted.push_back(name.name);
    return;
  }
  const auto power = group["power"];
  const auto macs = group["mac"];
  const std::string power_address = power && power.IsMap() ? scalar(power["address"]) : "";
  const std::string own_address = scalar(group["address"]);
  const std::string secret = power && power.IsMap() ? scalar(power["secret"]) : "";
  if (!secret.empty() && std::find(spec.secrets.begin(), spec.secrets.end(), secret) == spec.secrets.end())
    spec.secrets.push_back(secret);
  for (size_t i = 0; i < names.size(); ++i) {
    LabNode node;
    node.name = names[i].name;
    node.number = static_cast<int>(spec.nodes.size()) + 1;
    const int n = names[i].n ? names[i].n : node.number;
    const auto with_n = [&](const std::string& text) { return replace_all(text, "{n}", std::to_string(n)); };
    if (macs && macs.IsSequence() && i < macs.size())
      node.mac = lower(scalar(macs[i]));
    else if (macs && macs.IsScalar() && names.size() == 1)
      node.mac = lower(scalar(macs));
    else
      node.mac = fmt::format("52:54:00:20:00:{:02x}", node.number);
    if (!std::regex_match(node.mac, std::regex("([0-9a-f]{2}:){5}[0-9a-f]{2}")))
      problems.push_back(fmt::format("node {}: '{}' is no MAC address", node.name, node.mac));
    node.address =
        own_address.empty()
            ? address_in(spec.provisioning_cidr, 10 + static_cast<uint32_t>(node.number)).value_or("")
            : with_n(own_address);
    node.bmc_address = with_n(power_address);
    in_addr parsed{};
    if (inet_pton(AF_INET, node.bmc_address.c_str(), &parsed) != 1)
      problems.push_back(
          fmt::format("node {}: power.address '{}' is no IPv4 address: its BMC has no place to live",
                      node.name, node.bmc_address));
    if (find_node(spec, node.name)) problems.push_back(fmt::format("node {} is there twice", node.name));
    node.profile = spec.profile;
    node.memory_mib = spec.memory_mib;
    node.smp = spec.smp;
    node.drives = make_drives(spec.drives, node.number);
    set_identity(node, spec.cluster);
    spec.nodes.push_back(std::move(node));
  }
}

// lab.nodes.<name>: what one machine has differently.
void apply_overrides(const YAML::Node& overrides, LabSpec& spec, Problems& problems) {
  if (!overrides) return;
  for (const auto& entry : overrides) {
    const auto name = entry.first.Scalar();
    const auto where = "lab.nodes." + name;
    const auto node =
        std::find_if(spec.nodes.begin(), spec.nodes.end(), [&](auto& n) { return n.name == name; });
    if (node == spec.nodes.end()) {
      const bool adopted = std::count(spec.adopted.begin(), spec.adopted.end(), name) > 0;
      problems.push_back(fmt::format("line {}: {}: {}", entry.first.Mark().line + 1, where,
                                     adopted ? "an adopted host has no machine in a lab" : "no such node"));
      continue;
    }
    refuse_unknown_keys(entry.second, where, {"profile", "memory_mib", "smp", "drives"}, problems);
    node->profile = profile_name(entry.second["profile"], node->profile, problems);
    node->memory_mib = integer(entry.second["memory_mib"], node->memory_mib, 128, 65536, where, problems);
    node->smp = integer(entry.second["smp"], node->smp, 1, 16, where, problems);
    if (entry.second["drives"])
      node->drives = make_drives(drives_from(entry.second["drives"], problems), node->number);
  }
}

void read_spec(const YAML::Node& root, LabSpec& spec, Problems& problems) {
  spec.cluster = scalar(root["cluster"]);
  if (!std::regex_match(spec.cluster, std::regex("[a-z0-9][a-z0-9-]{0,30}")))
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
    problems.push_back(fmt::format("line {}: lab: expected a map", lab.Mark().line + 1));
    return;
  }
  const auto section = lab ? lab : YAML::Node(YAML::NodeType::Map);
  refuse_unknown_keys(section, "lab", {"memory_mib", "smp", "profile", "drives", "nodes", "acceptance"},
                      problems);
  spec.memory_mib = integer(section["memory_mib"], 1024, 128, 65536, "lab.memory_mib", problems);
  spec.smp = integer(section["smp"], 1, 1, 16, "lab.smp", problems);
  spec.profile = profile_name(section["profile"], "generic", problems);
  spec.drives = drives_from(section["drives"], problems);
  const auto nodes = root["nodes"];
  if (!nodes || !nodes.IsSequence() || nodes.size() == 0)
    problems.push_back("nodes: expected a list");
  else
    for (const auto& group : nodes)
      if (group.IsMap()) add_nodes(group, spec, problems);
  if (problems.empty() && spec.nodes.empty())
    problems.push_back(
        "nodes: all are adopted hosts (`adopt`), which a lab does not have: no machine is left to make");
  apply_overrides(section["nodes"], spec, problems);
}

Json drive_json(const LabDrive& d) {
  return {{"name", d.name}, {"size_bytes", d.size_bytes}, {"serial", d.serial}, {"boot", d.boot}};
}

}  // namespace

Result<LabSpec> lab_spec_from_yaml(const std::string& text) {
  LabSpec spec;
  Problems problems;
  try {  // yaml-cpp reports by exception
    const auto root = YAML::Load(text);
    if (!root.IsMap()) return fail(Code::invalid, "the spec is no YAML map");
    read_spec(root, spec, problems);
  } catch (const YAML::Exception& e) {
    return fail(Code::invalid, fmt::format("line {}: {}", e.mark.line + 1, e.msg));
  }
  if (!problems.empty()) return fail(Code::invalid, fmt::format("{}", fmt::join(problems, "\n")));
  return spec;
}

Result<LabNode> make_extra_node(const LabSpec& spec, const std::string& name) {
  if (!std::regex_match(name, std::regex("[a-z0-9][a-z0-9-]{0,30}")))
    return fail(Code::invalid, "'" + name + "' is no node name");
  if (find_node(spec, name)) return fail(Code::conflict, "the lab has a machine named " + name + " already");
  if (spec.nodes.empty()) return fail(Code::invalid, "the lab has no machine to take the pattern from");
  LabNode node;
  node.name = name;
  node.in_spec = false;
  for (const auto& other : spec.nodes) node.number = std::max(node.number, other.number);
  ++node.number;
  node.mac = fmt::format("52:54:00:20:00:{:02x}", node.number);
  TRY(node.address, address_in(spec.provisioning_cidr, 10 + static_cast<uint32_t>(node.number)));
  std::string address = spec.nodes.back().bmc_address;
  const auto taken = [&](const std::string& a) {
    return std::any_of(spec.nodes.begin(), spec.nodes.end(), [&](auto& n) { return n.bmc_address == a; });
  };
  while (taken(address)) {
    TRY(address, address_after(address));
  }
  node.bmc_address = address;
  node.profile = spec.profile;
  node.memory_mib = spec.memory_mib;
  node.smp = spec.smp;
  node.drives = make_drives(spec.drives, node.number);
  set_identity(node, spec.cluster);
  return node;
}

Json to_json(const LabSpec& spec) {
  Json nodes = Json::array(), templates = Json::array();
  for (const auto& n : spec.nodes) {
    Json drives = Json::array();
    for (const auto& d : n.drives) drives.push_back(drive_json(d));
    nodes.push_back({{"name", n.name},
                     {"number", n.number},
                     {"mac", n.mac},
                     {"address", n.address},
                     {"bmc_address", n.bmc_address},
                     {"profile", n.profile},
                     {"memory_mib", n.memory_mib},
                     {"smp", n.smp},
                     {"in_spec", n.in_spec},
                     {"uuid", n.uuid},
                     {"serial", n.serial},
                     {"drives", drives}});
  }
  for (const auto& t : spec.drives)
    templates.push_back({{"name", t.name},
                         {"size_bytes", t.size_bytes},
                         {"serial_prefix", t.serial_prefix},
                         {"count", t.count}});
  return {{"cluster", spec.cluster},       {"provisioning_cidr", spec.provisioning_cidr},
          {"controller", spec.controller}, {"user", spec.user},
          {"secrets", spec.secrets},       {"nodes", nodes},
          {"drives", templates},           {"profile", spec.profile},
          {"memory_mib", spec.memory_mib}, {"smp", spec.smp}};
}

Result<LabSpec> lab_spec_from_json(const Json& json) {
  try {  // our own file; anything odd in it is corruption, one message is enough
    LabSpec spec;
    json.at("cluster").get_to(spec.cluster);
    json.at("provisioning_cidr").get_to(spec.provisioning_cidr);
    json.at("controller").get_to(spec.controller);
    json.at("user").get_to(spec.user);
    json.at("secrets").get_to(spec.secrets);
    json.at("profile").get_to(spec.profile);
    json.at("memory_mib").get_to(spec.memory_mib);
    json.at("smp").get_to(spec.smp);
    for (const auto& t : json.at("drives"))
      spec.drives.push_back({t.at("name"), t.at("size_bytes"), t.at("serial_prefix"), t.at("count")});
    for (const auto& n : json.at("nodes")) {
      LabNode node;
      n.at("name").get_to(node.name);
      n.at("number").get_to(node.number);
      n.at("mac").get_to(node.mac);
      n.at("address").get_to(node.address);
      n.at("bmc_address").get_to(node.bmc_address);
      n.at("profile").get_to(node.profile);
      n.at("memory_mib").get_to(node.memory_mib);
      n.at("smp").get_to(node.smp);
      n.at("in_spec").get_to(node.in_spec);
      n.at("uuid").get_to(node.uuid);
      n.at("serial").get_to(node.serial);
      for (const auto& d : n.at("drives"))
        node.drives.push_back({d.at("name"), d.at("size_bytes"), d.at("serial"), d.at("boot")});
      spec.nodes.push_back(std::move(node));
    }
    return spec;
  } catch (const Json::exception& e) {
    return fail(Code::corrupt, std::string("lab.json: ") + e.what());
  }
}

const LabNode* find_node(const LabSpec& spec, const std::string& name) {
  for (const auto& node : spec.nodes)
    if (node.name == name) return &node;
  return nullptr;
}

Result<std::string> address_in(const std::string& cidr, uint32_t offset) {
  const auto slash = cidr.find('/');
  in_addr net{};
  if (slash == std::string::npos || inet_pton(AF_INET, cidr.substr(0, slash).c_str(), &net) != 1)
    return fail(Code::invalid, "'" + cidr + "' is no IPv4 network such as 10.20.0.0/24");
  const int bits = prefix_length(cidr);
  if (bits < 8 || bits > 30 || offset >= (uint64_t{1} << (32 - bits)))
    return fail(Code::invalid, fmt::format("network {} has no address number {}", cidr, offset));
  const uint32_t mask = ~uint32_t{0} << (32 - bits);
  net.s_addr = htonl((ntohl(net.s_addr) & mask) + offset);
  char text[INET_ADDRSTRLEN];
  return std::string(inet_ntop(AF_INET, &net, text, sizeof text));
}

Result<std::string> address_after(const std::string& address) {
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1)
    return fail(Code::invalid, "'" + address + "' is no address");
  parsed.s_addr = htonl(ntohl(parsed.s_addr) + 1);
  char text[INET_ADDRSTRLEN];
  return std::string(inet_ntop(AF_INET, &parsed, text, sizeof text));
}

int prefix_length(const std::string& cidr) {
  const auto slash = cidr.find('/');
  int bits = 0;
  if (slash != std::string::npos) std::from_chars(cidr.data() + slash + 1, cidr.data() + cidr.size(), bits);
  return bits;
}

}  // namespace muster::lab
