#include "controller/spec/reader/parse_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/digest.h"
#include "base/split.h"
#include "controller/spec/gpu_software.h"
#include "controller/spec/reader/own_playbooks.h"
#include "controller/spec/reader/reader.h"
#include "controller/spec/schema.h"
#include "controller/spec/units.h"

namespace muster {
namespace {

// A time below `least` is probably a wrong unit; one above `most` would have no effect.
constexpr DurationMs kShortestDeadline = kMinute, kLongestLimit = kDay, kLongestKept = 3650 * kDay;

}  // namespace

ParsedSpec parse_spec(const std::string& text, const SpecNames& names) {
  ParsedYaml yaml = parse_yaml(text);
  ParsedSpec out;
  if (!yaml.errors.empty()) {
    out.errors = std::move(yaml.errors);
    return out;
  }
  std::vector<SpecError> errors;
  check_schema(yaml.root, Json::parse(embedded::spec_schema), errors);
  if (yaml.root.is_map()) out = SpecReader(yaml.root, names).read();
  // If both report an error, the reader's message is more specific than the schema's.
  const auto said = out.errors;
  std::copy_if(errors.begin(), errors.end(), std::back_inserter(out.errors), [&](const SpecError& error) {
    return std::none_of(said.begin(), said.end(), [&](const SpecError& other) {
      return other.path == error.path && other.line == error.line && other.column == error.column;
    });
  });
  sort_errors(out.errors);
  return out;
}

// ---- access ----

void SpecReader::error(const YamlNode& at, const std::string& path, std::string message) {
  errors_.push_back({at.line, at.column, path, std::move(message)});
}

void SpecReader::error_once(const YamlNode& at, const std::string& path, std::string message) {
  if (complained_.insert(&at).second) error(at, path, std::move(message));
}

void SpecReader::must_be_known(const YamlNode& at, const std::string& path, const std::string& what,
                               const std::string& name, const std::vector<std::string>& known,
                               const std::string& more) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string near = nearest_spelling(name, known);
  const std::string rest = !near.empty()   ? fmt::format(", did you mean '{}'?", near)
                           : known.empty() ? fmt::format(": no {} is declared", what)
                                           : fmt::format("; known: {}", fmt::join(known, ", "));
  error(at, path,
        fmt::format("unknown {} '{}'{}{}", what, name, rest, more.empty() ? "" : " (" + more + ")"));
}

// ---- sections ----

ParsedSpec SpecReader::read() {
  spec_.cluster = text(&root_, "cluster");
  spec_.acceptance_profile = text(child(&root_, "acceptance"), "profile");
  if (const YamlNode* profile = child(child(&root_, "acceptance"), "profile"))
    spec_.profile_at = {profile->line, profile->column};
  spec_.vars = read_vars(child(&root_, "vars"), "vars");
  read_network();
  read_users();
  read_playbooks();
  read_images();
  read_roles();
  read_rails();
  read_limits();
  read_lab();
  read_acceptance();
  read_services();
  read_nodes();
  check_nodes();
  check_optional_vars();
  check_only_for();
  check_gpu_software();
  check_order();
  check_leads();
  check_services();
  assign_addresses();
  assign_rails();
  read_storage();
  std::vector<std::string> in_file;
  for (const NodeSpec& node : spec_.nodes) in_file.push_back(node.name);
  std::sort(spec_.nodes.begin(), spec_.nodes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  read_rollout();
  read_notify();
  read_warnings();
  return {std::move(spec_), std::move(errors_), std::move(in_file)};
}

Subnet SpecReader::read_subnet(const YamlNode* network, const char* name, std::optional<Cidr>& cidr) {
  const YamlNode* section = child(network, name);
  const YamlNode* value = child(section, "cidr");
  Subnet out{text(section, "cidr"), static_cast<int>(integer(section, "mtu", 0)),
             read_link_rate(section, fmt::format("network.{}", name))};
  if (!value || !value->is_text()) return out;
  Result<Cidr> parsed = parse_cidr(out.cidr);
  if (parsed.ok())
    cidr = *parsed;
  else
    error(*value, fmt::format("network.{}.cidr", name), parsed.error().message);
  return out;
}

double SpecReader::read_link_rate(const YamlNode* section, const std::string& path) {
  const YamlNode* value = child(section, "rate");
  if (!value || !value->is_text()) return 0;
  const auto rate = parse_link_rate(value->text);
  if (!rate.ok()) error(*value, path + ".rate", rate.error().message);
  return rate.value_or(0);
}

void SpecReader::read_network_address(const YamlNode* network, const char* key, std::string& out) {
  const YamlNode* value = child(network, key);
  if (!value || !value->is_text()) return;
  const std::string path = fmt::format("network.{}", key);
  const auto address = parse_ipv4(value->text);
  if (!address)
    return error(*value, path, fmt::format("'{}' is not an address such as 10.20.0.1", value->text));
  if (provisioning_ && !provisioning_->hosts(*address))
    return error(*value, path,
                 fmt::format("{} is not a host address of the provisioning network {}", value->text,
                             spec_.network.provisioning.cidr));
  out = value->text;
}

void SpecReader::read_network() {
  const YamlNode* network = child(&root_, "network");
  spec_.network.provisioning = read_subnet(network, "provisioning", provisioning_);
  spec_.network.bmc = read_subnet(network, "bmc", bmc_);
  spec_.network.storage = read_subnet(network, "storage", storage_);
  read_network_address(network, "controller", spec_.network.controller);
  read_network_address(network, "gateway", spec_.network.gateway);
  const YamlNode* any_port = child(network, "join_from_any_port");
  spec_.network.join_from_any_port = any_port && yaml_is_boolean(*any_port) && yaml_boolean(*any_port);
  if (spec_.network.controller.empty() && provisioning_)
    spec_.network.controller = format_ipv4(provisioning_->base + 1);
  // One flat network for nodes and BMCs is common; networks that overlap only partly are a mistake.
  const auto overlap = [&](const std::optional<Cidr>& a, const std::optional<Cidr>& b, const char* name,
                           const char* other) {
    if (!a || !b || !a->overlaps(*b) || (a->base == b->base && a->prefix == b->prefix)) return;
    error(*child(child(network, name), "cidr"), fmt::format("network.{}.cidr", name),
          fmt::format("overlaps the {} network but is not identical to it", other));
  };
  overlap(bmc_, provisioning_, "bmc", "provisioning");
  overlap(storage_, provisioning_, "storage", "provisioning");
  overlap(storage_, bmc_, "storage", "bmc");
}

void SpecReader::read_key(const YamlNode& at, const std::string& path) {
  static const std::vector<std::string> types = {"ssh-ed25519",
                                                 "ecdsa-sha2-nistp256",
                                                 "ecdsa-sha2-nistp384",
                                                 "ecdsa-sha2-nistp521",
                                                 "ssh-rsa",
                                                 "sk-ssh-ed25519@openssh.com",
                                                 "sk-ecdsa-sha2-nistp256@openssh.com"};
  if (at.text.find_first_of("\r\n") != std::string::npos) return error(at, path, "a key must be on one line");
  const size_t space = at.text.find(' ');
  const std::string type = at.text.substr(0, space);
  if (type.starts_with("-----BEGIN"))
    return error(at, path, "is a private key or a certificate; give the line from the .pub file");
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    const std::string near = nearest_spelling(type, types);
    return error(at, path,
                 near.empty() ? "not a public key: it must begin with its type, such as ssh-ed25519"
                              : fmt::format("unknown key type '{}', did you mean '{}'?", type, near));
  }
  const std::string rest = space == std::string::npos ? "" : at.text.substr(space + 1);
  const Result<std::string> blob = from_base64(rest.substr(0, rest.find(' ')));
  // The blob begins with the length and the name of the type.
  const bool whole = blob.ok() && blob->size() > 4 + type.size() + 16 &&
                     blob->compare(4, type.size(), type) == 0 &&
                     static_cast<unsigned char>((*blob)[3]) == type.size();
  if (!whole) error(at, path, fmt::format("the data of this {} key is damaged or truncated", type));
}

void SpecReader::read_users() {
  const YamlNode* users = child(&root_, "users");
  if (!users || !users->is_map()) return;
  std::map<int64_t, std::string> uids;
  for (const YamlEntry& entry : users->entries) {
    UserSpec user;
    user.name = entry.key;
    const std::string path = "users." + entry.key;
    if (entry.key == "root")
      errors_.push_back(
          {entry.line, entry.column, path, "root is locked on every node; declare a user with `sudo: true`"});
    if (const YamlNode* sudo = child(&entry.value, "sudo"))
      user.sudo = yaml_is_boolean(*sudo) && yaml_boolean(*sudo);
    user.uid = integer(&entry.value, "uid", 0);
    if (user.uid != 0 && !uids.emplace(user.uid, user.name).second)
      error(*child(&entry.value, "uid"), path + ".uid",
            fmt::format("{} is also the uid of '{}'", user.uid, uids[user.uid]));
    const YamlNode* keys = child(&entry.value, "keys");
    for (size_t i = 0; keys && i < keys->items.size(); ++i) {
      if (!keys->items[i].is_text()) continue;
      read_key(keys->items[i], fmt::format("{}.keys[{}]", path, i));
      user.keys.push_back(keys->items[i].text);
    }
    spec_.users[user.name] = user;
  }
}

void SpecReader::check_playbooks(const YamlNode* list, const std::string& path) {
  if (!list) return;
  const std::vector<std::string> known = known_playbooks();
  std::set<std::string> seen;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    if (!item.is_text()) continue;
    const std::string where = fmt::format("{}[{}]", path, i);
    const auto clash = std::find_if(seen.begin(), seen.end(), [&](const std::string& other) {
      return other != item.text && !both_install(other, item.text).empty();
    });
    if (clash != seen.end())
      error(item, where,
            fmt::format("playbooks '{}' and '{}' both install {}: keep one of them", *clash, item.text,
                        both_install(*clash, item.text)));
    if (!seen.insert(item.text).second)
      error(item, where, fmt::format("playbook '{}' is listed twice", item.text));
    else if (!known.empty())
      must_be_known(item, where, "playbook", item.text, known);
  }
}

void SpecReader::check_only_for() {
  for (const RefusedPlaybook& refused : refused_playbooks(spec_, only_for_)) {
    const char* section = refused.baked ? "images" : "roles";
    const char* key = refused.baked ? "bake" : "playbooks";
    const YamlNode* list = child(child(child(&root_, section), refused.name.c_str()), key);
    error(list->items[refused.index], fmt::format("{}.{}.{}[{}]", section, refused.name, key, refused.index),
          refused.why);
  }
}

void SpecReader::read_images() {
  const YamlNode* images = child(&root_, "images");
  if (!images || !images->is_map()) return;
  for (const YamlEntry& entry : images->entries) {
    ImageSpec image;
    image.name = entry.key;
    image.recipe = text(&entry.value, "recipe");
    if (const std::string kernel = text(&entry.value, "kernel"); !kernel.empty()) image.kernel = kernel;
    if (!image.recipe.empty()) check_recipe(*child(&entry.value, "recipe"), image);
    const YamlNode* bake = child(&entry.value, "bake");
    check_playbooks(bake, fmt::format("images.{}.bake", entry.key));
    if (bake)
      for (const YamlNode& item : bake->items) image.bake.push_back(item.text);
    spec_.images[image.name] = image;
  }
  use_recipes(spec_, names_.recipes);
}

// A recipe that cannot be read is an error of the images that are made from it only.
void SpecReader::check_recipe(const YamlNode& at, const ImageSpec& image) {
  const std::string path = fmt::format("images.{}.recipe", image.name);
  std::vector<std::string> known;
  for (const KnownRecipe& recipe : names_.recipes) {
    known.push_back(recipe.name);
    if (recipe.name == image.recipe && !recipe.error.empty())
      error(at, path, "the recipe cannot be read: " + recipe.error);
  }
  if (!known.empty()) must_be_known(at, path, "recipe", image.recipe, known, names_.more_recipes);
}

void SpecReader::read_roles() {
  const YamlNode* roles = child(&root_, "roles");
  if (!roles || !roles->is_map()) return;
  for (const YamlEntry& entry : roles->entries) {
    const YamlNode* playbooks = child(&entry.value, "playbooks");
    check_playbooks(playbooks, fmt::format("roles.{}.playbooks", entry.key));
    auto& list = spec_.roles[entry.key];
    if (playbooks)
      for (const YamlNode& item : playbooks->items) list.push_back(item.text);
    read_leads(entry, list);
  }
}

void SpecReader::read_leads(const YamlEntry& role, const std::vector<std::string>& playbooks) {
  const YamlNode* leads = child(&role.value, "leads");
  if (!leads || !leads->is_list()) return;
  for (size_t i = 0; i < leads->items.size(); ++i) {
    const YamlNode& item = leads->items[i];
    if (!item.is_text()) continue;
    const std::string path = fmt::format("roles.{}.leads[{}]", role.key, i);
    if (std::find(playbooks.begin(), playbooks.end(), item.text) == playbooks.end()) {
      const std::string near = nearest_spelling(item.text, playbooks);
      error(item, path,
            near.empty() ? fmt::format("role '{}' cannot lead '{}', which is not among its playbooks",
                                       role.key, item.text)
                         : fmt::format("role '{}' has no playbook '{}' to lead, did you mean '{}'?", role.key,
                                       item.text, near));
    } else if (item.text.starts_with("storage-")) {
      error(item, path,
            "a storage section is led by its server (engines nfs, moosefs) or by the first node that holds "
            "its data, and a role cannot change that");
    } else if (const auto [other, first] = spec_.leads.emplace(item.text, role.key); !first) {
      error(item, path,
            other->second == role.key
                ? fmt::format("playbook '{}' is listed twice", item.text)
                : fmt::format("playbook '{}' is already led by role '{}'", item.text, other->second));
    }
  }
}

void SpecReader::read_limits() {
  const YamlNode* limits = child(&root_, "limits");
  spec_.limits.parallel_imaging = static_cast<int>(integer(limits, "parallel_imaging", 16));
  spec_.limits.parallel_netboot = static_cast<int>(integer(limits, "parallel_netboot", 16));
  spec_.limits.failure_budget = static_cast<int>(integer(limits, "failure_budget", -1));
  read_duration({limits, "limits"}, "power_stagger", {0, kLongestLimit}, spec_.limits.power_stagger);
  read_duration({limits, "limits"}, "netboot", {kShortestDeadline, kLongestLimit}, spec_.limits.netboot);
  read_duration({limits, "limits"}, "boot", {kShortestDeadline, kLongestLimit}, spec_.limits.boot);
  read_duration({limits, "limits"}, "trial", {kShortestTrial, kLongestTrial}, spec_.limits.trial);
  read_duration({limits, "limits"}, "drain_timeout", {kShortestDrain, kLongestDrain},
                spec_.limits.drain_timeout);
  read_rate(limits, "image_write_rate", spec_.limits.image_write_rate);
  read_event_limits(limits);
}

void SpecReader::read_event_limits(const YamlNode* limits) {
  const ValuePlace section{child(limits, "events"), "limits.events"};
  EventLimits& out = spec_.limits.events;
  out.per_second = static_cast<int>(integer(section.at, "per_second", out.per_second));
  read_size(section, "bytes_per_day", {1 << 20, int64_t{1} << 40, "1 MiB and 1 TiB"}, out.bytes_per_day);
  // A request of an agent has at most 8 MiB (sys/http/http.h).
  read_size(section, "size", {64 << 10, 8 << 20, "64 KiB and 8 MiB"}, out.size);
  read_duration(section, "keep", {kDay, kLongestKept}, out.keep);
}

void SpecReader::read_size(const ValuePlace& section, const char* key, const Sizes& range, int64_t& out) {
  const YamlNode* at = child(section.at, key);
  if (!at || !at->is_text()) return;
  const std::string path = section.path + "." + key;
  const Result<int64_t> parsed = parse_size(at->text);
  if (!parsed.ok()) return error(*at, path, parsed.error().message);
  if (*parsed < range.least || *parsed > range.most)
    return error(*at, path, fmt::format("'{}' must be between {}", at->text, range.words));
  out = *parsed;
}

// `out` is unchanged if the key is absent or its value cannot be parsed.
void SpecReader::read_duration(const ValuePlace& section, const char* key, const Between& range,
                               DurationMs& out) {
  const YamlNode* at = child(section.at, key);
  if (!at || !at->is_text()) return;
  const std::string path = section.path + "." + key;
  const Result<DurationMs> parsed = parse_duration(at->text);
  if (!parsed.ok()) return error(*at, path, parsed.error().message);
  // A bare number is mostly meant in the unit that the key's default has.
  const bool bare = at->text.find_first_not_of("0123456789.") == std::string::npos;
  if (*parsed < range.least || *parsed > range.most)
    return error(*at, path,
                 fmt::format("'{}'{} must be between {} and {}", at->text,
                             bare ? fmt::format(", {} seconds as it has no unit,", at->text) : "",
                             to_human(range.least), to_human(range.most)));
  out = *parsed;
}

// Rejects a rate so low that the write would not finish before the image's next build.
void SpecReader::read_rate(const YamlNode* limits, const char* key, int64_t& out) {
  constexpr int64_t kSlowest = 1'000'000;
  const YamlNode* at = child(limits, key);
  if (!at || !at->is_text()) return;
  const std::string path = std::string("limits.") + key;
  const Result<int64_t> parsed = parse_rate(at->text);
  if (!parsed.ok()) return error(*at, path, parsed.error().message);
  if (*parsed != 0 && *parsed < kSlowest)
    return error(*at, path, fmt::format("'{}' is less than 1 MB/s; use 0 for no limit", at->text));
  out = *parsed;
}

namespace {

std::vector<std::string> sorted_words(const char* text) {
  auto out = split_words(text);
  std::sort(out.begin(), out.end());
  return out;
}

std::map<std::string, OnlyFor> shipped_only_for() {
  std::map<std::string, OnlyFor> out;
  for (const std::string& line : split_lines(embedded::playbooks_only_for)) {
    const size_t name = line.find(' '), id = line.find(' ', name + 1);
    if (name != std::string::npos && id != std::string::npos)
      out[line.substr(0, name)] = {line.substr(name + 1, id - name - 1), line.substr(id + 1)};
  }
  return out;
}

std::map<std::string, VarGroups> shipped_optional_vars() {
  std::map<std::string, VarGroups> out;
  for (const std::string& line : split_lines(embedded::playbooks_optional_vars)) {
    const auto words = split_words(line);
    out[words.at(0)].emplace_back(words.begin() + 1, words.end());
  }
  return out;
}

std::map<std::string, std::set<std::string>> shipped_variables() {
  std::map<std::string, std::set<std::string>> out;
  for (const std::string& line : split_lines(embedded::playbooks_vars)) {
    const auto words = split_words(line);
    out[words.at(0)].insert(words.begin() + 1, words.end());
  }
  return out;
}

}  // namespace

SpecNames shipped_names() {
  SpecNames out{
      sorted_words(embedded::playbook_names), sorted_words(embedded::profile_names), {}, shipped_only_for()};
  out.optional_vars = shipped_optional_vars();
  out.variables = shipped_variables();
  for (const std::string& line : split_lines(embedded::recipes)) {
    const auto words = split_words(line);
    KnownRecipe recipe{words.at(0)};
    if (words.size() > 1) recipe.distribution = words[1];
    out.recipes.push_back(std::move(recipe));
  }
  return out;
}

}  // namespace muster
