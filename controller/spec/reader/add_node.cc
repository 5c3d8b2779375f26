#include "controller/spec/reader/add_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/split.h"
#include "controller/spec/address.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/yaml.h"

namespace muster {
namespace {

constexpr char kByHand[] = "add the node to the file by hand, then run `muster up`";

// ---- YAML out ----

// True for text that means the same with and without quotes, also inside { }.
bool is_plain(const YamlNode& node) {
  static const char* const kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/+ ";
  const std::string& text = node.text;
  return node.plain && !text.empty() && text.find_first_not_of(kLetters) == std::string::npos &&
         text.front() != '-' && text.front() != ' ' && text.back() != ' ';
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string flow(const YamlNode& node) {
  std::string out;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return is_plain(node) ? node.text : quoted(node.text);
    case YamlNode::Kind::sequence:
      for (const YamlNode& item : node.items) out += (out.empty() ? " " : ", ") + flow(item);
      return "[" + out + " ]";
    case YamlNode::Kind::map:
      break;
  }
  for (const YamlEntry& entry : node.entries)
    out += (out.empty() ? " " : ", ") + entry.key + ": " + flow(entry.value);
  return "{" + out + " }";
}

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.plain = false;
  return node;
}

// Copied from the model, except for the address, and the pin, which belongs to one BMC.
YamlNode power_of(const YamlNode* model, const NewNode& node) {
  YamlNode power;
  power.kind = YamlNode::Kind::map;
  if (model)
    for (const YamlEntry& entry : model->entries) {
      if (entry.key == "pin") continue;
      power.entries.push_back(entry);
      if (entry.key == "address") power.entries.back().value = scalar(node.power_address);
    }
  return power;
}

std::string adopt_line(const AdoptSpec& adopt) {
  std::string out = "{ host: " + quoted(adopt.host);
  if (adopt.port != AdoptSpec{}.port) out += fmt::format(", port: {}", adopt.port);
  if (adopt.user != AdoptSpec{}.user) out += ", user: " + quoted(adopt.user);
  return out + ", host_key: " + quoted(adopt.host_key) + " }";
}

std::vector<std::string> entry_lines(const YamlNode& model, const NewNode& node, const std::string& address) {
  std::vector<std::string> lines = {"- name: " + node.name};
  const bool adopted = node.adopt.declared();
  for (const YamlEntry& entry : model.entries) {
    if (entry.key == "name" || entry.key == "mac" || entry.key == "address" || entry.key == "adopt") continue;
    if (entry.key == "rack" || entry.key == "switch") continue;  // it stands elsewhere, as far as is known
    if (adopted && (entry.key == "power" || entry.key == "image")) continue;
    if (entry.key == "power") {
      lines.push_back("  power: " + flow(power_of(&entry.value, node)));
    } else if (entry.key == "disks" && entry.value.is_map() && !entry.value.entries.empty()) {
      std::vector<std::string> groups;
      for (const YamlEntry& group : entry.value.entries)
        if (!adopted || group.key != "os") groups.push_back("    " + group.key + ": " + flow(group.value));
      if (!groups.empty()) lines.push_back("  disks:");
      lines.insert(lines.end(), groups.begin(), groups.end());
    } else {
      lines.push_back("  " + entry.key + ": " + flow(entry.value));
    }
  }
  if (adopted)
    lines.push_back("  adopt: " + adopt_line(node.adopt));
  else
    lines.push_back("  mac: " + quoted(node.mac));
  if (!address.empty()) lines.push_back("  address: " + quoted(address));
  return lines;
}

// ---- into the text ----

// The line (from 0) after the last entry of `nodes:`, and the indentation of its entries.
struct Place {
  size_t line = 0;
  std::string indent;
};
Result<Place> place_for_entry(const YamlNode& root, const std::vector<std::string>& lines) {
  const Error unclear = fail(
      Code::invalid, std::string("`nodes:` in the spec is not a list of `- name: ...` lines: ") + kByHand);
  const auto nodes = std::find_if(root.entries.begin(), root.entries.end(),
                                  [](const YamlEntry& e) { return e.key == "nodes"; });
  if (nodes == root.entries.end() || nodes->value.items.empty()) return unclear;
  const auto first = static_cast<size_t>(nodes->value.items.front().line) - 1;
  const size_t dash = first < lines.size() ? lines[first].find_first_not_of(' ') : std::string::npos;
  if (dash == std::string::npos || lines[first].compare(dash, 2, "- ") != 0) return unclear;
  size_t end = lines.size();
  for (const YamlEntry& entry : root.entries)
    if (entry.line > nodes->line) end = std::min(end, static_cast<size_t>(entry.line) - 1);
  // Comments above the next key belong to that key.
  while (end > first + 1 && (says_nothing(lines[end - 1]) || lines[end - 1].starts_with("..."))) --end;
  return Place{end, lines[first].substr(0, dash)};
}

std::string insert(const std::vector<std::string>& lines, const Place& place,
                   const std::vector<std::string>& entry) {
  const std::string end =
      !lines.empty() && !lines.front().empty() && lines.front().back() == '\r' ? "\r\n" : "\n";
  std::string out;
  for (size_t i = 0; i <= lines.size(); ++i) {
    if (i == place.line)
      for (const auto& line : entry) out += place.indent + line + end;
    if (i < lines.size()) out += lines[i] + "\n";
  }
  return out;
}

// ---- checks of the result ----

std::string own_address(const Spec& spec, const std::string& name) {
  const NodeSpec* node = spec.node(name);
  return node ? node->address : "";
}

// Nothing but the new entry may differ, neither in the tree nor in the parsed spec.
Status check_rest(const std::string& before_text, const Spec& before, const AddedNode& after,
                  const NewNode& node) {
  Json was = to_json(parse_yaml(before_text).root), is = to_json(parse_yaml(after.text).root);
  if (!is["nodes"].is_array() || is["nodes"].empty() || is["nodes"].back().value("name", "") != node.name)
    return fail(Code::invalid, std::string("the layout of the spec is not supported: ") + kByHand);
  is["nodes"].erase(is["nodes"].size() - 1);
  if (was != is)
    return fail(Code::invalid, std::string("the layout of the spec is not supported: ") + kByHand);
  for (const NodeSpec& other : before.nodes)
    if (own_address(after.spec, other.name) != other.address)
      return fail(Code::conflict, fmt::format("adding the node would change the address of {}, which is {}",
                                              other.name, other.address));
  const NodeSpec* made = after.spec.node(node.name);
  const auto same_role = [&](const NodeSpec& n) { return n.role == made->role; };
  const auto first = std::find_if(after.spec.nodes.begin(), after.spec.nodes.end(), same_role);
  if (after.spec.nodes.front().name == node.name || first->name == node.name)
    return fail(
        Code::invalid,
        fmt::format("'{}' would sort before {} and replace it as lead node (time, storage master): choose a "
                    "name that sorts later",
                    node.name, std::find_if(before.nodes.begin(), before.nodes.end(), same_role)->name));
  return Ok{};
}

// The first free host from .11 up.
std::string free_address(const Spec& spec) {
  const auto net = parse_cidr(spec.network.provisioning.cidr);
  if (!net.ok()) return "";
  std::vector<uint32_t> taken;
  const auto take = [&](const std::string& text) {
    if (const auto address = parse_ipv4(text.substr(0, text.find(':')))) taken.push_back(*address);
  };
  take(spec.network.controller);
  take(spec.network.gateway);
  for (const auto& server : spec.network.dns) take(server);
  for (const auto& server : spec.network.ntp) take(server);
  for (const NodeSpec& node : spec.nodes) {
    take(node.address);
    take(node.power.address);
  }
  for (uint32_t next = net->base + 11; net->hosts(next); ++next)
    if (std::find(taken.begin(), taken.end(), next) == taken.end()) return format_ipv4(next);
  return "";
}

// The entry of the file that declares `like`, and whether it declares its addresses explicitly.
Result<const YamlNode*> entry_of(const YamlNode& root, const std::string& like) {
  if (const YamlNode* nodes = root.find("nodes"))
    for (const YamlNode& item : nodes->items) {
      const YamlNode* name = item.is_map() ? item.find("name") : nullptr;
      const auto names =
          name ? expand_range(name->text) : Result<std::vector<std::string>>(std::vector<std::string>{});
      if (names.ok() && std::find(names->begin(), names->end(), like) != names->end()) return &item;
    }
  return fail(Code::invalid, "the entry of '" + like + "' was not found in the spec");
}

Status check_request(const Spec& spec, const NewNode& node) {
  if (spec.node(node.name))
    return fail(Code::invalid,
                fmt::format("'{}' is already in the spec: choose a different name", node.name));
  if (node.name.find_first_of("[]") != std::string::npos)
    return fail(Code::invalid, "only one node can be added at a time: give a name, not a range");
  if (!spec.node(node.like)) {
    std::vector<std::string> names;
    for (const auto& n : spec.nodes) names.push_back(n.name);
    const std::string near = nearest_spelling(node.like, names);
    return fail(Code::invalid, fmt::format("there is no node '{}' in the spec{}", node.like,
                                           near.empty() ? "" : ", did you mean '" + near + "'?"));
  }
  return Ok{};
}

}  // namespace

Result<AddedNode> add_node(const std::string& text, const NewNode& node,
                           const std::vector<KnownRecipe>& recipes) {
  const ParsedSpec before = parse_spec(text);
  if (!before.errors.empty()) return fail(Code::invalid, to_string(before.errors.front(), "the stored spec"));
  TRY_(check_request(before.spec, node));
  const NodeSpec& like = *before.spec.node(node.like);
  const bool adopted = node.adopt.declared();
  if (!adopted && like.adopt.declared())
    return fail(Code::invalid,
                fmt::format("{} was adopted and has no image: name a node that muster installs", node.like));
  const bool has_bmc = !like.power.driver.empty() && switched_by(like) != Switch::agent;
  if (!adopted && node.power_address.empty() && has_bmc)
    return fail(Code::invalid, fmt::format("{} is powered on by the driver {}: give the address of the new "
                                           "machine's BMC with --power-address",
                                           node.like, like.power.driver));
  const ParsedYaml tree = parse_yaml(text);
  TRY(const YamlNode* model, entry_of(tree.root, node.like));
  if (!adopted && node.address.empty() && model->find("address"))
    return fail(Code::invalid,
                fmt::format("{} has an explicitly declared address: give one for the new node with --address",
                            node.like));
  const std::vector<std::string> lines = split_lines(text);
  TRY(const Place place, place_for_entry(tree.root, lines));
  const auto with = [&](const std::string& address) -> Result<AddedNode> {
    AddedNode made;
    made.text = insert(lines, place, entry_lines(*model, node, address));
    ParsedSpec after = parse_spec(made.text);
    if (!after.errors.empty()) return fail(Code::invalid, after.errors.front().message);
    made.spec = std::move(after.spec);
    TRY_(check_rest(text, before.spec, made, node));
    use_recipes(made.spec, recipes);
    return made;
  };
  auto made = with(node.address);
  // Without an address the node gets the next free one in the order of names, which may change the addresses
  // of other nodes: then a free address is written into its entry.
  const bool moves = !made.ok() && made.error().code == Code::conflict;
  if (moves && !adopted && node.address.empty()) return with(free_address(before.spec));
  return made;
}

}  // namespace muster
