// The nodes section: ranges, numbers, hardware, disk groups.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/mac.h"
#include "base/placeholders.h"
#include "base/scan.h"
#include "controller/power/describe/driver_description.h"
#include "controller/spec/host_name.h"
#include "controller/spec/reader/reader.h"

namespace muster {

namespace {

// "rack", "racks", "MAC addresses"
std::string counted(std::string_view what, size_t count) {
  const bool hisses = what.ends_with("s") || what.ends_with("ch");
  return std::string(what) + (count == 1 ? "" : hisses ? "es" : "s");
}

bool is_label(const std::string& text) {
  constexpr size_t kLongest = 63;
  const auto inner = [](char c) {
    return is_alphanumeric(c) || std::string_view("._/:+-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kLongest && is_alphanumeric(text.front()) &&
         std::all_of(text.begin(), text.end(), inner);
}

bool same_selector(const DiskMatch& a, const DiskMatch& b) {
  return a.serial == b.serial && a.wwid == b.wwid && a.model == b.model && a.transport == b.transport &&
         a.serials == b.serials && a.size_bytes == b.size_bytes;
}

}  // namespace

void SpecReader::read_nodes() {
  const YamlNode* nodes = child(&root_, "nodes");
  if (!nodes || !nodes->is_list()) return;
  for (size_t i = 0; i < nodes->items.size(); ++i)
    if (nodes->items[i].is_map()) read_node_entry(nodes->items[i], fmt::format("nodes[{}]", i));
}

void SpecReader::read_node_entry(const YamlNode& entry, const std::string& path) {
  const YamlNode* name = child(&entry, "name");
  NodeSpec common = read_common(entry, path);
  const size_t before = spec_.nodes.size();
  expand_node(entry, path, name, common);
  if (spec_.nodes.size() == before) nodes_incomplete_ = true;
}

void SpecReader::expand_node(const YamlNode& entry, const std::string& path, const YamlNode* name,
                             const NodeSpec& common) {
  if (!name || !name->is_text()) return;
  const auto range = expand_numbered_range(name->text);
  if (!range.ok()) return error(*name, path + ".name", range.error().message);
  for (const RangedName& one : *range)
    if (const std::string wrong = wrong_host_name(one.name); !wrong.empty())
      return error(*name, path + ".name", wrong);
  if (spec_.nodes.size() + range->size() > kMostSpecNodes)
    return error(*name, path + ".name", fmt::format("more than {} nodes", kMostSpecNodes));
  for (size_t i = 0; i < range->size(); ++i) {
    NodeSpec node = common;
    node.name = NodeName((*range)[i].name);
    number_node(entry, path, {(*range)[i].number, i, range->size()}, node);
    if (node.adopt.declared()) check_adopted(entry, path, range->size(), node);
    spec_.nodes.push_back(std::move(node));
    places_.push_back({&entry, path, i});
  }
}

// Reads everything that is the same for each name in the range.
NodeSpec SpecReader::read_common(const YamlNode& entry, const std::string& path) {
  NodeSpec node;
  std::vector<std::string> roles, images;
  for (const auto& [name, playbooks] : spec_.roles) roles.push_back(name);
  for (const auto& [name, image] : spec_.images) images.push_back(name);
  node.role = text(&entry, "role");
  if (!node.role.empty()) must_be_known(*child(&entry, "role"), path + ".role", "role", node.role, roles);
  node.image = text(&entry, "image");
  if (!node.image.empty())
    must_be_known(*child(&entry, "image"), path + ".image", "image", node.image, images);
  else if (child(&entry, "adopt"))
    node.image.clear();  // an adopted node keeps its system
  else if (images.size() == 1)
    node.image = images.front();
  else if (images.size() > 1)
    error(entry, path, fmt::format("missing key 'image': {} images are declared", images.size()));

  read_adopt(entry, path, node);
  if (!entry.find("power") && !entry.find("adopt")) error(entry, path, "missing key 'power'");
  if (const YamlNode* power = child(&entry, "power"); power && power->is_map())
    read_power(*power, path + ".power", node.power);
  read_hardware(child(&entry, "hardware"), path + ".hardware", node.hardware);
  read_disks(child(&entry, "disks"), path + ".disks", !node.image.empty(), node.disks);
  node.vars = read_vars(child(&entry, "vars"), path + ".vars");
  if (!node.image.empty() && !node.disks.count("os"))
    error(entry, path,
          fmt::format("missing disk group 'os': it selects the disk for image '{}'", node.image));
  if (!node.image.empty() && !child(&entry, "mac"))
    error(entry, path, "missing key 'mac': a node that netboots is recognised by its MAC address");
  return node;
}

// A person takes the place of a BMC: reads the machine's location and the time limit.
void SpecReader::read_person(const YamlNode& power, const std::string& path, PowerSpec& out) {
  constexpr size_t kLongest = 120;
  out.within = 8 * 60 * kMinute;
  if (const YamlNode* within = child(&power, "within")) {
    const auto parsed = parse_duration(within->text);
    if (!parsed.ok())
      error(*within, path + ".within", parsed.error().message);
    else if (*parsed < 5 * kMinute || *parsed > 168 * 60 * kMinute)
      error(*within, path + ".within", "must be between 5 min and 168 h");
    else
      out.within = *parsed;
  }
  const YamlNode* where = child(&power, "address");
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  for (size_t i = 0; where && i < std::max<size_t>(1, where->items.size()); ++i) {
    const ValuePlace own = own_value({where, path + ".address"}, i);
    const std::string& words = own.at->text;
    if (words.size() > kLongest || std::any_of(words.begin(), words.end(), control))
      error(*own.at, own.path,
            fmt::format("must give the machine's location in one line of at most {} characters", kLongest));
  }
}

void SpecReader::check_power_keys(const YamlNode& power, const std::string& path, const std::string& name) {
  constexpr std::string_view kKeys[] = {"sol",     "within",       "address",   "secret", "pin",
                                        "program", "cipher_suite", "privilege", "api",    "install"};
  const DriverDescription& driver = description_of(name);
  for (const auto& [key, value] : driver.needs)
    if (!key.empty() && !name.empty() && !power.find(std::string(key)))
      error(power, path, fmt::format("missing key '{}'{}{}", key, value.empty() ? "" : ": ", value));
  for (const std::string_view key : kKeys) {
    const YamlNode* given = power.find(std::string(key));
    const bool of_one_driver = key == "sol" || key == "within";
    if (!given || driver.takes(key) || (driver.name.empty() && !of_one_driver)) continue;
    std::string owners;
    for (const DriverDescription& other : driver_descriptions())
      if (other.takes(key)) owners += (owners.empty() ? "" : " or ") + std::string(other.name);
    error(*given, fmt::format("{}.{}", path, key),
          of_one_driver || driver.refusal.empty()
              ? fmt::format("applies only to driver '{}', not to '{}'", owners, name)
              : std::string(driver.refusal));
  }
}

void SpecReader::read_power(const YamlNode& power, const std::string& path, PowerSpec& out) {
  out.driver = text(&power, "driver");
  out.secret = text(&power, "secret");
  out.pin = text(&power, "pin");
  out.program = text(&power, "program");
  out.cipher_suite = static_cast<int>(integer(&power, "cipher_suite", 0));
  out.privilege = text(&power, "privilege");
  const YamlNode* sol = child(&power, "sol");
  out.sol = sol && yaml_is_boolean(*sol) && yaml_boolean(*sol);
  out.api = text(&power, "api");
  out.install_image = text(child(&power, "install"), "image");
  out.install_os = text(child(&power, "install"), "os");
  check_power_keys(power, path, out.driver);
  const DriverDescription& driver = description_of(out.driver);
  if (driver.by == Switch::person) return read_person(power, path, out);
  const int suite = out.cipher_suite;
  // Suite 12 also authenticates and encrypts, but ipmitool 1.8.19 fails an assertion at its first command.
  if (driver.takes("cipher_suite") && suite && suite != 3 && suite != 8 && suite != 17)
    error(*child(&power, "cipher_suite"), path + ".cipher_suite",
          fmt::format("cipher suite {} does not authenticate and encrypt, or ipmitool does not support it: "
                      "use 17, 3 or 8",
                      suite));
  if (!out.pin.empty() && !out.pin.starts_with(driver.pin_prefix))
    error(*child(&power, "pin"), path + ".pin",
          fmt::format("the {} driver identifies a BMC by its {} ({}...)", out.driver, driver.identity,
                      driver.pin_prefix));
}

// An adopted node: muster does not manage its operating system, its address and its OS disk, so the spec must
// not describe them.
void SpecReader::read_adopt(const YamlNode& entry, const std::string& path, NodeSpec& node) {
  const YamlNode* adopt = child(&entry, "adopt");
  if (!adopt || !adopt->is_map()) return;
  node.adopt.host = text(adopt, "host");
  node.adopt.port = static_cast<int>(integer(adopt, "port", 22));
  if (const std::string user = text(adopt, "user"); !user.empty()) node.adopt.user = user;
  node.adopt.host_key = text(adopt, "host_key");
  if (const YamlNode* image = child(&entry, "image"))
    error(*image, path + ".image",
          "an adopted node keeps its operating system: remove 'image', or remove 'adopt' to have the node "
          "re-imaged");
  node.image.clear();
  if (const YamlNode* os = child(child(&entry, "disks"), "os"))
    error(*os, path + ".disks.os", "the OS disk of an adopted node is never touched: remove the group 'os'");
}

// An entry with a range covers several nodes, but each host has its own key.
void SpecReader::check_adopted(const YamlNode& entry, const std::string& path, size_t count, NodeSpec& node) {
  const YamlNode& adopt = *child(&entry, "adopt");
  if (count > 1)
    return error_once(adopt, path + ".adopt",
                      "an entry with `adopt` describes one host, not a range: each host has its own key");
  if (!node.address.empty()) return;
  if (parse_ipv4(node.adopt.host))
    node.address = node.adopt.host;
  else
    error_once(entry, path,
               "missing key 'address': muster assigns no address to an adopted node; give the one it has in "
               "the provisioning network");
}

void SpecReader::read_hardware(const YamlNode* hardware, const std::string& path, HardwareSpec& out) {
  if (!hardware || !hardware->is_map()) return;
  if (child(hardware, "gpus")) out.gpus = static_cast<int>(integer(hardware, "gpus", 0));
  if (child(hardware, "cpus")) out.cpus = static_cast<int>(integer(hardware, "cpus", 0));
  out.gpu_model = text(hardware, "gpu_model");
  out.cpu_model = text(hardware, "cpu_model");
  if (!out.gpu_model.empty() && !child(hardware, "gpus"))
    error(*child(hardware, "gpu_model"), path + ".gpu_model", "requires `gpus`, the number of GPUs");
  if (const YamlNode* nics = child(hardware, "nics"); nics && nics->is_map() && nics->find("any"))
    out.nics["any"] = static_cast<int>(integer(nics, "any", 0));
  std::string memory = text(hardware, "memory");
  if (memory.empty()) return;
  if (memory.starts_with(">=")) memory.erase(0, std::min(memory.size(), memory.find_first_not_of("= >", 2)));
  if (const size_t size = memory.find_first_not_of("<>= "); size != 0 && size != std::string::npos)
    return error(*child(hardware, "memory"), path + ".memory",
                 fmt::format("'{}': only `>=` is possible: write \">= {}\"", memory, memory.substr(size)));
  const Result<int64_t> bytes = parse_size(memory);
  if (bytes.ok())
    out.memory_bytes_min = *bytes;
  else
    error(*child(hardware, "memory"), path + ".memory", bytes.error().message);
}

void SpecReader::read_disks(const YamlNode* disks, const std::string& path, bool imaged,
                            std::map<std::string, DiskGroup>& out) {
  if (!disks || !disks->is_map()) return;
  for (const YamlEntry& entry : disks->entries)
    if (entry.value.is_map()) out[entry.key] = read_disk_group(entry, path + "." + entry.key, imaged);
  check_disk_overlap(disks, path, out);
}

// A selector of disks to be written must be specific: the empty text of an unset variable, and a bare
// wildcard, would match any disk; text with spaces around it would match none, since disks' own texts are
// trimmed.
bool SpecReader::check_selector_text(const YamlNode& at, const std::string& path) {
  const std::string& text = at.text;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    error(at, path, "is empty: name a disk or remove the key");
  else if (text.find_first_not_of("*?") == std::string::npos)
    error(at, path, fmt::format("'{}' would match any disk: make it more specific", text));
  else if (isspace(static_cast<unsigned char>(text.front())) ||
           isspace(static_cast<unsigned char>(text.back())))
    error(at, path, fmt::format("'{}' begins or ends with a space: it would match no disk", text));
  else
    return true;
  return false;
}

std::optional<std::string> SpecReader::selector_text(const YamlNode* match, const char* key,
                                                     const std::string& path) {
  const YamlNode* value = child(match, key);
  if (!value || !value->is_text()) return {};
  check_selector_text(*value, path + ".match." + key);
  return value->text;
}

void SpecReader::read_serials(const YamlNode& serials, const std::string& path,
                              std::vector<std::string>& out) {
  for (size_t i = 0; i < serials.items.size(); ++i) {
    const YamlNode& item = serials.items[i];
    const std::string where = fmt::format("{}[{}]", path, i);
    if (item.is_text() && check_selector_text(item, where) &&
        std::find(out.begin(), out.end(), item.text) != out.end())
      error(item, where, fmt::format("'{}' is listed twice", item.text));
    out.push_back(item.text);
  }
}

DiskGroup SpecReader::read_disk_group(const YamlEntry& entry, const std::string& path, bool imaged) {
  DiskGroup group;
  group.name = entry.key;
  const YamlNode* match = child(&entry.value, "match");
  DiskMatch& m = group.match;
  m.serial = selector_text(match, "serial", path);
  m.wwid = selector_text(match, "wwid", path);
  m.model = selector_text(match, "model", path);
  m.transport = selector_text(match, "transport", path);
  const YamlNode* serials = child(match, "serials");
  if (serials) read_serials(*serials, path + ".match.serials", m.serials);
  m.count = static_cast<int>(
      integer(match, "count", m.serials.empty() ? 1 : static_cast<int64_t>(m.serials.size())));
  if (!m.serials.empty() && child(match, "count") && m.count != static_cast<int>(m.serials.size()))
    error(*child(match, "count"), path + ".match.count",
          fmt::format("{} serials are listed, but `count` is {}", m.serials.size(), m.count));
  if (const YamlNode* size = child(match, "size"); size && size->is_text()) {
    const Result<int64_t> bytes = parse_size(size->text);
    if (!bytes.ok())
      error(*size, path + ".match.size", bytes.error().message);
    else if (*bytes <= 0)
      error(*size, path + ".match.size", fmt::format("'{}' is not a disk size", size->text));
    else
      m.size_bytes = *bytes;
  }
  if (match && match->is_map() &&
      std::all_of(match->entries.begin(), match->entries.end(),
                  [](const auto& e) { return e.key == "count"; }))
    error(*match, path + ".match",
          "would match any disk: give `serial`, `serials`, `wwid`, `model`, `size` or `transport`");
  if (entry.key == "os" && m.count != 1 && child(match, "count"))
    error(*child(match, "count"), path + ".match.count",
          "the operating system is installed on exactly one disk");

  const std::string policy = text(&entry.value, "policy");
  // A disk group `os` on a node with an image is an order to install on that disk, but not to destroy data
  // that belongs to something else.
  if (policy.empty())
    group.policy = entry.key == "os" && imaged ? DiskPolicy::format_if_blank : DiskPolicy::keep;
  else
    group.policy = DiskPolicy::format_if_blank;
  if (policy == "keep") group.policy = DiskPolicy::keep;
  if (policy == "format") group.policy = DiskPolicy::format;
  if (policy == "keep" && entry.key == "os" && imaged)
    error(*child(&entry.value, "policy"), path + ".policy",
          "'keep' would prevent the image from being installed; use format-if-blank or format");
  return group;
}

void SpecReader::check_disk_overlap(const YamlNode* disks, const std::string& path,
                                    const std::map<std::string, DiskGroup>& groups) {
  for (size_t i = 0; i < disks->entries.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const YamlEntry &later = disks->entries[i], &earlier = disks->entries[j];
      const auto a = groups.find(later.key), b = groups.find(earlier.key);
      if (later.key == earlier.key || a == groups.end() || b == groups.end() ||
          !same_selector(a->second.match, b->second.match))
        continue;
      errors_.push_back({later.line, later.column, path + "." + later.key,
                         fmt::format("selects the same disks as group '{}'", earlier.key)});
    }
}

// Sets what differs between the names in a range: MAC, address, power address.
void SpecReader::number_node(const YamlNode& entry, const std::string& path, const InRange& name,
                             NodeSpec& node) {
  const auto fill = [&](const YamlNode* value, const char* key, const char* what, std::string& out) {
    if (value) out = value_of({value, path + key}, name, what, NumberForm::decimal).value_or("");
  };
  fill(child(&entry, "address"), ".address", "address", node.address);
  fill(child(child(&entry, "power"), "address"), ".power.address", "power address", node.power.address);
  if (const YamlNode* mac = child(&entry, "mac")) read_mac({mac, path + ".mac"}, name, node.mac);
  read_label(entry, path, name, "rack", node.rack);
  read_label(entry, path, name, "switch", node.network_switch);
}

// If the value is a list, returns the item for this node, if any; else the value itself.
ValuePlace SpecReader::own_value(const ValuePlace& value, size_t index) {
  if (!value.at->is_list() || index >= value.at->items.size()) return value;
  return {&value.at->items[index], fmt::format("{}[{}]", value.path, index)};
}

// The value for one name in a range: from one text for all, in which {n} is the number, or from a list with
// one text per name, in order. nullopt: an error was reported.
std::optional<std::string> SpecReader::value_of(const ValuePlace& value, const InRange& name,
                                                const char* what, NumberForm form) {
  const size_t given = value.at->items.size();
  if (value.at->is_list() && given != name.count) {
    if (given > 0)  // the schema reports an empty list
      error_once(*value.at, value.path,
                 fmt::format("{} {} for {} node{}", given, counted(what, given), name.count,
                             name.count == 1 ? "" : "s"));
    return {};
  }
  const ValuePlace own = own_value(value, name.index);
  if (!own.at->is_text() || own.at->text.empty()) return {};
  if (own.at->text.find_first_not_of(" \t\r\n") == std::string::npos) {
    error_once(*own.at, own.path, "is blank");
    return {};
  }
  Result<std::string> out =
      value.at->is_list() ? listed_value(own.at->text) : expand_number(own.at->text, name.number, form);
  if (out.ok()) return std::move(out).value();
  error_once(*own.at, own.path, out.error().message);
  return {};
}

// Only a label: no plan and no configuration contains it.
void SpecReader::read_label(const YamlNode& entry, const std::string& path, const InRange& name,
                            const char* key, std::string& out) {
  const YamlNode* label = child(&entry, key);
  if (!label) return;
  const ValuePlace place{label, path + "." + key};
  const auto text = value_of(place, name, key, NumberForm::decimal);
  if (!text) return;
  const ValuePlace own = own_value(place, name.index);
  if (!is_label(*text))
    return error_once(*own.at, own.path,
                      fmt::format("'{}' is not a label such as r7 or leaf3: at most 63 letters, digits and "
                                  "'.', '_', '/', ':', '+', '-', a letter or digit first",
                                  *text));
  out = *text;
}

void SpecReader::read_mac(const ValuePlace& mac, const InRange& name, std::string& out) {
  const auto text = value_of(mac, name, "MAC address", NumberForm::hex2);
  if (!text) return;
  const ValuePlace own = own_value(mac, name.index);
  out = normal_mac(*text);
  if (!is_mac(out)) out.clear();
  if (out.empty())
    error_once(*own.at, own.path, fmt::format("'{}' is not a MAC address such as 52:54:00:20:00:01", *text));
  else if (!is_station_address(out))
    error_once(*own.at, own.path,
               fmt::format("{} is {} address and cannot belong to a port: see the machine's label or the BMC",
                           out, out == "00:00:00:00:00:00" ? "the zero" : "a multicast"));
}

}  // namespace muster
