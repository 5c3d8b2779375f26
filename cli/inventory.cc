#include "cli/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/scan.h"
#include "base/split.h"
#include "cli/destination.h"
#include "cli/host_range.h"

namespace muster::cli {
namespace {

constexpr size_t kMostHosts = 4096;
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
  std::string address, port, user;
  bool local = false;  // ansible_connection=local: the machine that Ansible runs on
};

void fill(const Variables& from, Variables& into) {
  if (into.address.empty()) into.address = from.address;
  if (into.port.empty()) into.port = from.port;
  if (into.user.empty()) into.user = from.user;
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
  void error(int line, std::string message) { out_.errors.push_back({line, 1, "", std::move(message)}); }
  void read_host(const std::vector<std::string>& words, int line);
  void take(const std::string& key, const std::string& value, int line, Variables& into);
  std::set<std::string> members(const std::string& group, std::set<std::string>& seen) const;

  Inventory out_;
  std::map<std::string, size_t> at_;  // name -> its place in out_.hosts
  std::vector<Variables> own_;        // of out_.hosts
  std::map<std::string, Group> groups_;
  Header now_ = {"ungrouped", "hosts"};
};

void InventoryReader::take(const std::string& key, const std::string& value, int line, Variables& into) {
  if (!key.starts_with("ansible_")) return;
  std::string* place = nullptr;
  if (key == "ansible_host" || key == "ansible_ssh_host") place = &into.address;
  if (key == "ansible_port" || key == "ansible_ssh_port") place = &into.port;
  if (key == "ansible_user" || key == "ansible_ssh_user") place = &into.user;
  if (key == "ansible_connection" && value == "local") {
    into.local = true;
  } else if (!place) {
    if (has(key, "ssh") || has(key, "connection") || has(key, "pass")) out_.ignored.insert(key);
  } else if (has(value, "{{")) {
    error(line, fmt::format("{}={} is a template, which is not rendered: write the value", key, value));
  } else if (place == &into.address && !destination_port(value).empty()) {
    error(line, fmt::format("{}={} has a port: write it as ansible_port={}", key, value.substr(0, 60),
                            destination_port(value)));
  } else {
    *place = value;
  }
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
  if (variables.local) {
    out_.ignored.insert(words[0] + " (ansible_connection=local)");
    return;
  }
  const auto names = expand_host_range(words[0]);
  if (!names.ok()) return error(line, names.error().message);
  if (names->size() > 1 && !variables.address.empty())
    return error(line, fmt::format("ansible_host={} is given to {} hosts: give each a line of its own",
                                   variables.address, names->size()));
  for (const RangedName& one : *names) {
    const auto [at, fresh] = at_.emplace(one.name, out_.hosts.size());
    if (fresh && out_.hosts.size() > kMostHosts) return;  // said by the reader of the list
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

// A group that contains another has more members, or the same ones.
Inventory InventoryReader::finish() {
  std::vector<std::pair<size_t, const Group*>> by_size;
  std::map<const Group*, std::set<std::string>> hosts;
  for (const auto& [name, group] : groups_) {
    std::set<std::string> seen;
    hosts[&group] = members(name, seen);
    if (name != kAll) by_size.push_back({hosts[&group].size(), &group});
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto give = [&](const std::string& host, const Group& group) {
    fill(group.variables, own_[at_.at(host)]);
  };
  for (const auto& [size, group] : by_size)
    for (const std::string& host : hosts[group]) give(host, *group);
  if (const auto all = groups_.find(kAll); all != groups_.end())
    for (const InventoryHost& host : out_.hosts) give(host.name, all->second);
  for (size_t i = 0; i < out_.hosts.size(); ++i) {
    out_.hosts[i].address = own_[i].address;
    out_.hosts[i].port = own_[i].port;
    out_.hosts[i].user = own_[i].user;
  }
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
