// muster spec explain: what a key of the spec means, and what a file declares once its ranges, patterns and
// chosen addresses are written out. Needs no controller.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_at.h"
#include "base/name_ranges.h"
#include "base/split.h"
#include "base/wrapped.h"
#include "cli/cli_context.h"
#include "cli/shown_preview.h"
#include "cli/spec_request.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/schema.h"

namespace muster::cli {
namespace {

// "[the rails](operations.md#rails)" -> "the rails"
std::string without_links(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t middle = text[at] == '[' ? text.find("](", at) : text.npos;
    const size_t end = middle == text.npos ? text.npos : text.find(')', middle);
    if (end == text.npos || text.find('[', at + 1) < middle) {
      out += text[at++];
      continue;
    }
    out += text.substr(at + 1, middle - at - 1);
    at = end + 1;
  }
  return out;
}

class SchemaWalk {
 public:
  SchemaWalk() : schema_(Json::parse(embedded::spec_schema)) {}

  struct Found {
    Json schema;  // without references
    bool required = false;
  };
  // "nodes.power.driver", also with indexes, and with names of the operator's such as "nodes.disks.os".
  Result<Found> find(const std::string& path) const {
    Found at{schema_};
    std::string so_far;
    for (const std::string& part : split(path, '.')) {
      const std::string name = part.substr(0, part.find('['));
      const Json map = map_in(at.schema);
      const Json& keys = map.is_object() && map.contains("properties") ? map["properties"] : kNoKeys;
      if (const auto key = keys.find(name); key != keys.end()) {
        at.required = is_listed(map, name);
        at.schema = resolved(*key);
      } else if (const Json named = named_in(map); named.is_object()) {
        at = {resolved(named)};
      } else {
        return unknown(name, so_far, keys);
      }
      so_far += (so_far.empty() ? "" : ".") + name;
    }
    return at;
  }
  // The map of keys in a value, or in each element of a list; null: it has none.
  Json map_in(const Json& schema) const {
    Json at = schema;
    while (at.is_object() && at.contains("items")) at = resolved(at["items"]);
    return at;
  }
  // The keys below: of a map with names of the operator's those that each name has.
  Json keys_in(const Json& schema) const {
    Json map = map_in(schema);
    while (!map.contains("properties")) {
      const Json named = named_in(map);
      if (!named.is_object()) return kNoKeys;
      map = map_in(resolved(named));
    }
    return map["properties"];
  }
  Json resolved(const Json& schema) const {
    if (!schema.is_object() || !schema.contains("$ref")) return schema;
    Json out =
        schema_["$defs"].value(schema["$ref"].get<std::string>().substr(sizeof("#/$defs/") - 1), Json());
    out.update(schema);
    out.erase("$ref");
    return out;
  }

 private:
  static bool is_listed(const Json& map, const std::string& name) {
    for (const Json& one : list_at(map, "required"))
      if (one == name) return true;
    return false;
  }
  // The schema of values under names of the operator's; null: the map has none.
  static Json named_in(const Json& map) {
    if (!map.is_object()) return Json();
    if (map.contains("patternProperties")) return *map["patternProperties"].begin();
    return map.contains("additionalProperties") && map["additionalProperties"].is_object()
               ? map["additionalProperties"]
               : Json();
  }
  static Error unknown(const std::string& name, const std::string& above, const Json& keys) {
    std::vector<std::string> names;
    for (const auto& [key, value] : keys.items()) names.push_back(key);
    const std::string near = nearest_spelling(name, names);
    return fail(Code::not_found,
                fmt::format("no key '{}' {}{}", name, above.empty() ? "in the spec" : "in '" + above + "'",
                            near.empty() ? "" : ", did you mean '" + near + "'?"));
  }

  inline static const Json kNoKeys = Json::object();
  const Json schema_;
};

std::string shown_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

std::string default_of(const Json& schema) {
  if (schema.contains("x-default")) return without_links(text_at(schema, "x-default"));
  return schema.contains("default") ? shown_value(schema["default"]) : "";
}

bool is_implemented(const Json& schema) { return !is_true_at(schema, "x-not-implemented"); }

Json explained_key(const SchemaWalk& walk, const std::string& path, const SchemaWalk::Found& found) {
  Json keys = Json::array(), words = Json::array();
  const Json inside = walk.keys_in(found.schema);
  for (const auto& [name, schema] : inside.items())
    if (const Json key = walk.resolved(schema); is_implemented(key))
      keys.push_back({{"key", name}, {"description", without_links(text_at(key, "description"))}});
  for (const Json& word : list_at(found.schema, "enum"))
    if (!word.is_null()) words.push_back(shown_value(word));
  const Json& examples = list_at(found.schema, "examples");
  return {{"key", path},
          {"required", found.required},
          {"implemented", is_implemented(found.schema)},
          {"description", without_links(text_at(found.schema, "description"))},
          {"words", words},
          {"default", default_of(found.schema)},
          {"example", examples.empty() ? "" : shown_value(examples[0])},
          {"keys", keys}};
}

void print_wrapped(const std::string& text) {
  for (const std::string& line : wrapped(text, text_width())) fmt::print("{}\n", line);
}

void print_key(const Json& key) {
  if (const std::string path = text_at(key, "key"); !path.empty())
    print_wrapped(fmt::format("{}{}", path, is_true_at(key, "required") ? " (required)" : ""));
  if (!is_true_at(key, "implemented")) return print_wrapped("  not implemented");
  print_wrapped("  " + text_at(key, "description"));
  std::string words;
  for (const Json& word : list_at(key, "words"))
    words += (words.empty() ? "  one of: " : ", ") + word.get<std::string>();
  print_wrapped(words);
  for (const char* what : {"default", "example"})
    if (const std::string value = text_at(key, what); !value.empty())
      print_wrapped(fmt::format("  {}: {}", what, value));
  const Json& keys = list_at(key, "keys");
  if (keys.empty()) return;
  fmt::print("keys:\n");
  for (const Json& below : keys)
    print_wrapped(fmt::format("  {}: {}", text_at(below, "key"), text_at(below, "description")));
}

void explain_key(Context& context, const std::string& path) {
  const SchemaWalk walk;
  const auto found = walk.find(path);
  if (!found.ok()) return complain(context, found.error());
  const Json key = explained_key(walk, path, *found);
  show(context, key, [&] { print_key(key); });
}

std::string match_text(const DiskMatch& match) {
  std::string out =
      fmt::format("{} with", match.count == 1 ? "1 disk" : fmt::format("{} disks", match.count));
  const auto add = [&](const char* what, const std::optional<std::string>& value) {
    if (value) out += fmt::format(" {} {}", what, *value);
  };
  add("serial", match.serial);
  add("wwid", match.wwid);
  add("model", match.model);
  add("transport", match.transport);
  if (!match.serials.empty()) out += " serial " + some_of(match.serials);
  if (match.size_bytes) out += " size " + human_bytes(static_cast<double>(*match.size_bytes));
  return out;
}

const char* policy_text(DiskPolicy policy) {
  if (policy == DiskPolicy::keep) return "keep";
  return policy == DiskPolicy::format ? "format" : "format-if-blank";
}

Json explained_node(const NodeSpec& node) {
  Json disks = Json::object(), ports = Json::object();
  for (const auto& [name, group] : node.disks)
    disks[name] = {{"match", match_text(group.match)}, {"policy", policy_text(group.policy)}};
  for (size_t i = 0; i < node.rails.size(); ++i)
    if (node.rails[i].declared()) ports[fmt::format("rail{}", i)] = node.rails[i].address;
  if (node.storage.declared()) ports["storage"] = node.storage.address;
  return {{"name", node.name},
          {"role", node.role},
          {"image", node.image},
          {"address", node.address},
          {"address_chosen", node.address_chosen},
          {"mac", node.mac},
          {"power", {{"driver", node.power.driver}, {"address", node.power.address}}},
          {"ports", ports},
          {"disks", disks}};
}

// Lines that several nodes have are one line with their names.
class SharedLines {
 public:
  void add(const std::string& line, const std::string& node) {
    const auto [place, fresh] = places_.emplace(line, lines_.size());
    if (fresh) lines_.push_back({line, {}});
    lines_[place->second].second.push_back(node);
  }
  void print(const char* title) const {
    if (lines_.empty()) return;
    fmt::print("\n{}:\n", title);
    for (const auto& [line, nodes] : lines_)
      print_wrapped(fmt::format("  {}: {}", names_in_ranges(nodes), line));
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> lines_;
  std::map<std::string, size_t> places_;
};

void print_declared_nodes(const Json& nodes) {
  SharedLines roles, disks;
  size_t width = 4;
  for (const Json& node : nodes) width = std::max(width, text_at(node, "name").size());
  fmt::print("{:<{}}  {:<16}  {:<17}  {}\n", "NODE", width, "ADDRESS", "MAC", "BMC");
  bool chosen = false;
  for (const Json& node : nodes) {
    const std::string name = text_at(node, "name"), bmc = text_at(node["power"], "address");
    const bool star = is_true_at(node, "address_chosen");
    chosen = chosen || star;
    fmt::print("{:<{}}  {:<16}  {:<17}  {}\n", name, width, text_at(node, "address") + (star ? "*" : ""),
               text_at(node, "mac").empty() ? "-" : text_at(node, "mac"),
               bmc.empty() ? text_at(node["power"], "driver") : bmc);
    const std::string image = text_at(node, "image");
    roles.add(fmt::format("{}, {}", text_at(node, "role"), image.empty() ? "adopted" : "image " + image),
              name);
    for (const auto& [group, disk] : node["disks"].items())
      disks.add(fmt::format("{}: {}, {}", group, text_at(disk, "match"), text_at(disk, "policy")), name);
  }
  if (chosen) fmt::print("* not declared: the next free address, in the order of names\n");
  roles.print("Roles");
  disks.print("Disks");
  bool titled = false;
  for (const Json& node : nodes) {
    if (node["ports"].empty()) continue;
    if (!std::exchange(titled, true)) fmt::print("\nOther ports:\n");
    std::string ports;
    for (const auto& [port, address] : node["ports"].items())
      ports += fmt::format(" {} {}", port, address.get<std::string>());
    print_wrapped(fmt::format("  {}:{}", text_at(node, "name"), ports));
  }
}

void explain_file(Context& context, const std::string& path) {
  const auto text = spec_to_send(context, path);
  if (!text) return;
  const ParsedSpec parsed = parse_spec(*text);
  if (!parsed.errors.empty()) {
    fmt::print(stderr, "{}\n", to_string(parsed.errors, path));
    return complain(context, fail(Code::invalid, path + ": not a valid spec: see `muster spec check`"));
  }
  Json nodes = Json::array();
  for (const auto& node : parsed.spec.nodes) nodes.push_back(explained_node(node));
  show(context, {{"cluster", parsed.spec.cluster}, {"nodes", nodes}}, [&] { print_declared_nodes(nodes); });
}

}  // namespace

void add_spec_explain(Verb& spec, Context& context) {
  auto what = std::make_shared<std::string>();
  Verb& verb = spec.add_verb(
      "explain", "explain a key, or list what a file declares for each node; needs no controller");
  verb.add_option("KEY|FILE", what.get(),
                  "a key such as nodes.power.driver, or a spec file, whose names, addresses, MACs, BMCs and "
                  "disk groups are written out; default: all keys of the top level");
  verb.example("muster spec explain nodes.power").example("muster spec explain cluster.yaml");
  verb.runs([what, &context] {
    std::error_code error;
    const bool file = what->find('/') != what->npos || std::filesystem::is_regular_file(*what, error);
    file ? explain_file(context, *what) : explain_key(context, *what);
  });
}

}  // namespace muster::cli
