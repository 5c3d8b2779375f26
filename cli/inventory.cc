#include "cli/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/scan.h"
#include "base/split.h"
#include "cli/destination.h"
#include "cli/host_range.h"
#include "controller/spec/units.h"

namespace muster::cli {
namespace {

constexpr const char* kAll = "all";

struct Header {
  std::string group, kind;  // "hosts", "vars", "children"
};

// "[gpu]", "[gpu:vars]". An IPv6 address in brackets, and a range of numbers, is no head.
std::optional<Header> header_of(const std::string& line) {
  if (line.size() < 3 || line.front() != '[' || line.back() != ']') return {};
  const auto parts = split(line.substr(1, line.size() - 2), ':');
  if (parts.empty() || parts.size() > 2) return {};
  const std::string kind = parts.size() == 2 ? parts[1] : "hosts";
  if (kind != "hosts" && kind != "vars" && kind != "children") return {};
  const std::string& group = parts[0];
  const auto is_in_name = [](char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.'; };
  if (!std::all_of(group.begin(), group.end(), is_in_name) ||
      !std::any_of(group.begin(), group.end(), is_letter))
    return {};
  return Header{group, kind};
}

// Without a comment, which begins with '#' or ';' at the start of a line, and with " #" behind a host.
std::string content_of(const std::string& given) {
  std::string line = trim(given);
  if (line.starts_with('#') || line.starts_with(';')) return "";
  line.resize(std::min({line.find(" #"), line.find("\t#"), line.size()}));
  return trim(line);
}

// Words, of which a value may be quoted: ansible_ssh_common_args='-o ProxyJump=login'.
std::vector<std::string> quoted_words(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  char quote = 0;
  for (const char c : line + " ") {
    if (quote == 0 && (c == ' ' || c == '\t')) {
      if (!word.empty()) out.push_back(std::move(word));
      word.clear();
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(word);
  return out;
}

struct Variables {
  std::string connection, address, port, user;
};

struct VariableKey {
  const char *key, *older;
  std::string Variables::*place;
};
// The connection first: of a local host, nothing else matters.
constexpr VariableKey kVariables[] = {
    {"ansible_connection", "ansible_connection", &Variables::connection},
    {"ansible_host", "ansible_ssh_host", &Variables::address},
    {"ansible_port", "ansible_ssh_port", &Variables::port},
    {"ansible_user", "ansible_ssh_user", &Variables::user},
};

// The machine that Ansible runs on.
bool is_local(const Variables& variables) { return variables.connection == "local"; }

void fill(const Variables& from, Variables& into) {
  for (const VariableKey& one : kVariables)
    if ((into.*one.place).empty()) into.*one.place = from.*one.place;
}

class InventoryReader {
 public:
  void read(const std::string& line, int number);
  Inventory finish();

 private:
  struct Group {
    std::set<std::string> hosts, children;
    Variables variables;
  };
  struct Below {
    std::set<std::string> hosts, groups;  // also of the groups in it; with itself
  };
  void error(int line, std::string message) { out_.errors.push_back({line, 1, "", std::move(message)}); }
  void too_many(int line);
  void read_host(const std::vector<std::string>& words, int line);
  void take(const std::string& key, const std::string& value, int line, Variables& into);
  std::set<std::string> members(const std::string& group, std::set<std::string>& seen) const;
  bool contains(const std::string& group, const std::string& other) const;
  std::vector<std::string> nearest(const std::string& host, const std::vector<std::string>& givers) const;
  void inherit(const VariableKey& variable);
  Inventory out_;
  std::map<std::string, size_t> at_;  // name -> its place in out_.hosts
  std::vector<Variables> own_;        // of out_.hosts
  std::map<std::string, Group> groups_;
  std::map<std::string, Below> below_;  // of each group
  bool too_many_ = false;
  Header now_ = {"ungrouped", "hosts"};
};

void InventoryReader::take(const std::string& key, const std::string& value, int line, Variables& into) {
  if (!key.starts_with("ansible_")) return;
  std::string* place = nullptr;
  for (const VariableKey& one : kVariables)
    if (key == one.key || key == one.older) place = &(into.*one.place);
  if (!place || (place == &into.connection && value != "local"))
    if (has(key, "ssh") || has(key, "connection") || has(key, "pass")) out_.ignored.insert(key);
  if (!place) return;
  if (has(value, "{{")) {
    error(line, fmt::format("{}={} is a template, which is not rendered: write the value", key, value));
  } else if (place == &into.address && !destination_port(value).empty()) {
    error(line, fmt::format("{}={} has a port: write it as ansible_port={}", key, value.substr(0, 60),
                            destination_port(value)));
  } else {
    *place = value;
  }
}

void InventoryReader::too_many(int line) {
  if (!too_many_) error(line, fmt::format("more than {} hosts", kMostSpecNodes));
  too_many_ = true;
}

void InventoryReader::read_host(const std::vector<std::string>& words, int line) {
  Variables variables;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos)
      return error(line, fmt::format("unexpected word '{}': in an inventory, a line has one host and "
                                     "KEY=VALUE",
                                     words[i].substr(0, 60)));
    take(words[i].substr(0, equals), words[i].substr(equals + 1), line, variables);
  }
  const auto names = expand_host_range(words[0]);
  if (!names.ok()) return error(line, names.error().message);
  if (names->size() > 1 && !variables.address.empty())
    return error(line, fmt::format("ansible_host={} is given to {} hosts: give each a line of its own",
                                   variables.address, names->size()));
  for (const RangedName& one : *names) {
    if (out_.hosts.size() == kMostSpecNodes && !at_.count(one.name)) return too_many(line);
    const auto [at, fresh] = at_.emplace(one.name, out_.hosts.size());
    if (fresh) out_.hosts.push_back({one.name, "", "", "", line, 1});
    if (fresh) own_.push_back({});
    Variables merged = variables;  // a later mention wins
    fill(own_[at->second], merged);
    if (merged.port.empty()) merged.port = destination_port(one.name);
    own_[at->second] = merged;
    groups_[now_.group].hosts.insert(one.name);
  }
}

void InventoryReader::read(const std::string& given, int number) {
  const std::string line = content_of(given);
  if (line.empty()) return;
  if (const auto header = header_of(line)) {
    now_ = *header;
    (void)groups_[now_.group];
    return;
  }
  if (now_.kind == "hosts") return read_host(quoted_words(line), number);
  if (now_.kind == "children") {
    groups_[now_.group].children.insert(line);
    return;
  }
  const size_t equals = line.find('=');
  if (equals == std::string::npos) return;
  const auto value = quoted_words(trim(line.substr(equals + 1)));
  take(trim(line.substr(0, equals)), value.empty() ? "" : value[0], number, groups_[now_.group].variables);
}

std::set<std::string> InventoryReader::members(const std::string& group, std::set<std::string>& seen) const {
  const auto found = groups_.find(group);
  if (found == groups_.end() || !seen.insert(group).second) return {};
  std::set<std::string> out = found->second.hosts;
  for (const std::string& child : found->second.children) out.merge(members(child, seen));
  return out;
}

// Of a group and itself, and of two in a circle, neither is the outer one.
bool InventoryReader::contains(const std::string& group, const std::string& other) const {
  return below_.at(group).groups.count(other) > 0 && below_.at(other).groups.count(group) == 0;
}

// Those of the groups that have the host, and contain no other one of these.
std::vector<std::string> InventoryReader::nearest(const std::string& host,
                                                  const std::vector<std::string>& givers) const {
  std::vector<std::string> all, out;
  for (const std::string& group : givers)
    if (below_.at(group).hosts.count(host)) all.push_back(group);
  for (const std::string& group : all)
    if (std::none_of(all.begin(), all.end(),
                     [&](const std::string& other) { return contains(group, other); }))
      out.push_back(group);
  return out;
}

// Gives the variable to all hosts that have none of their own. One error for two groups.
void InventoryReader::inherit(const VariableKey& variable) {
  std::vector<std::string> givers;
  for (const auto& [name, group] : groups_)
    if (name != kAll && !(group.variables.*variable.place).empty()) givers.push_back(name);
  std::set<std::pair<std::string, std::string>> said;
  for (size_t i = 0; i < own_.size(); ++i) {
    const InventoryHost& host = out_.hosts[i];
    std::string& own = own_[i].*variable.place;
    if (!own.empty() || is_local(own_[i])) continue;
    std::string giver;
    for (const std::string& group : nearest(host.name, givers)) {
      const std::string& value = groups_.at(group).variables.*variable.place;
      if (!giver.empty() && value != own && said.emplace(giver, group).second)
        error(host.line,
              fmt::format("{} of {} is {} in group {} and {} in group {}, and neither group contains "
                          "the other: write it on the line of the host",
                          variable.key, host.name, own, giver, value, group));
      if (!giver.empty()) continue;
      own = value;
      giver = group;
    }
    if (const auto all = groups_.find(kAll); own.empty() && all != groups_.end())
      own = all->second.variables.*variable.place;
  }
}

Inventory InventoryReader::finish() {
  for (const auto& [name, group] : groups_) {
    Below& below = below_[name];
    below.hosts = members(name, below.groups);
  }
  for (const VariableKey& one : kVariables) inherit(one);
  std::vector<InventoryHost> reached;
  for (size_t i = 0; i < own_.size(); ++i) {
    InventoryHost& host = out_.hosts[i];
    if (is_local(own_[i])) {
      out_.ignored.insert(host.name + " (ansible_connection=local)");
      continue;
    }
    host.address = own_[i].address;
    host.port = own_[i].port;
    host.user = own_[i].user;
    reached.push_back(std::move(host));
  }
  out_.hosts = std::move(reached);
  return std::move(out_);
}

}  // namespace

bool is_inventory(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& given) {
    const std::string line = content_of(given);
    if (header_of(line)) return true;
    const auto words = quoted_words(line);
    return std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.starts_with("ansible_") && has(word, "=");
    });
  });
}

bool is_yaml_inventory(const std::vector<std::string>& lines) {
  for (const std::string& given : lines) {
    const std::string line = content_of(given);
    if (!line.empty() && line != "---")
      return line.find(':') == line.size() - 1 && line.find_first_of(" \t") == line.npos;
  }
  return false;
}

Inventory read_inventory(const std::vector<std::string>& lines) {
  InventoryReader reader;
  int number = 0;
  for (const std::string& line : lines) reader.read(line, ++number);
  return reader.finish();
}

}  // namespace muster::cli
