#include "cli/hosts_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/lower.h"
#include "base/plural.h"
#include "base/split.h"
#include "cli/destination.h"
#include "cli/host_entry.h"
#include "cli/host_range.h"
#include "cli/host_words.h"
#include "cli/inventory.h"
#include "controller/hosts/host_address.h"
#include "controller/spec/address.h"
#include "controller/spec/units.h"
#include "controller/spec/yaml.h"

namespace muster::cli {
namespace {

constexpr const char* kForm = "[NAME] DESTINATION [address=IP] [group=WORD]";
// Of a pattern without its brackets, of which up to kMostSpecNodes copies are made.
constexpr size_t kLongestWord = 512;

struct Fields {
  HostWord first;  // the name, or the destination if there is no other
  std::optional<HostWord> destination, address, group;
  bool plain = false;  // the destination is a word without a key before it
};

class HostsReader {
 public:
  void read(const HostEntry& given);
  void read(const Inventory& inventory);
  HostsFile finish(const KnownAliases& aliases);
  void error(int line, int column, std::string message) {
    out_.errors.push_back({line, column, "", std::move(message)});
  }
  void genders(int line) { genders_line_ = line; }
  void warn(std::string message) { out_.warnings.push_back({0, 0, "", std::move(message)}); }

 private:
  using Names = std::vector<RangedName>;
  // A plain second word, which may be another host.
  struct Doubtful {
    int line, column;
    std::string name, word;
  };
  struct Kind {
    const char *one, *many;
  };
  void error(const HostEntry& entry, const HostWord& at, std::string message) {
    error(entry.line, at.column, std::move(message));
  }
  std::optional<Fields> sort_words(const HostEntry& entry, const std::vector<HostWord>& words);
  bool take_key(const HostEntry& entry, const HostWord& word, Fields& fields);
  std::optional<Names> expand(const HostEntry& entry, const HostWord& name);
  std::optional<Names> read_names(const HostEntry& entry, const HostWord& name);
  void leave_out(const HostEntry& entry, const HostWord& word);
  bool check_order(const HostEntry& entry, const Fields& fields, const Names& names);
  std::optional<std::vector<std::string>> values_of(const HostEntry& entry, const HostWord& value,
                                                    const Kind& kind, const Names& names);
  void read_destinations(const HostEntry& entry, const Fields& fields, const Names& names,
                         std::vector<ListedHost>& hosts);
  void read_addresses(const HostEntry& entry, const HostWord& at, const Names& names,
                      std::vector<ListedHost>& hosts);
  void read_group(const HostEntry& entry, const HostWord& at, std::vector<ListedHost>& hosts);
  void add(int line, int column, std::vector<ListedHost> hosts);
  std::string again(const ListedHost& host, const ListedHost& before) const;
  void check_addresses(const HostEntry& entry, const HostWord& at, const std::vector<ListedHost>& hosts);
  void check_doubtful(const KnownAliases& aliases);
  void remove_left_out();
  void warn_of_one_destination();
  void warn_of_names();

  HostsFile out_;
  std::map<std::string, ListedHost> names_;       // all that were read, also those that are too many
  std::map<std::string, std::string> addresses_;  // -> name
  std::vector<Doubtful> doubtful_;
  std::map<std::string, std::pair<int, int>> left_out_;  // name -> line and column
  bool too_many_ = false;
  int genders_line_ = 0;  // the first line with genders' attributes; 0: none has any
};

void HostsReader::read(const HostEntry& given) {
  const HostEntry entry = without_comment(given);
  std::vector<HostWord> words = words_in(entry);
  if (words.empty()) return;
  if (const auto wrong = wrong_character(entry)) {
    out_.errors.push_back(*wrong);
    return;
  }
  if (words[0].text[0] == '-') {
    if (words.size() == 1) return leave_out(entry, words[0]);
    return error(entry, words[0],
                 fmt::format("'{0}': options of other tools are not read; a host is left out by -NAME: -{1}",
                             words[0].text.substr(0, 60), words[1].text.substr(0, 60)));
  }
  if (genders_line_ > 0) {
    if (const HostWord* other = not_of_genders(words))
      return error(entry, *other,
                   fmt::format("'{}' has no place in a file of genders, and line {} has genders' attributes: "
                               "split the file",
                               other->text.substr(0, 60), genders_line_));
    words.resize(1);
  }
  const auto fields = sort_words(entry, words);
  if (!fields) return;
  const auto names = read_names(entry, fields->first);
  if (!names || !check_order(entry, *fields, *names)) return;
  std::vector<ListedHost> hosts;
  for (const RangedName& one : *names)
    hosts.push_back(
        {name_of_written(one.name), one.name, one.name, "", "", entry.line, fields->first.column});
  // Each field is checked even if another has an error, so that all errors are reported at once.
  if (fields->destination) read_destinations(entry, *fields, *names, hosts);
  if (fields->address) read_addresses(entry, *fields->address, *names, hosts);
  if (fields->group) read_group(entry, *fields->group, hosts);
  if (fields->address) check_addresses(entry, *fields->address, hosts);
  add(entry.line, fields->first.column, std::move(hosts));
}

void HostsReader::read(const Inventory& inventory) {
  out_.errors = inventory.errors;
  for (const InventoryHost& host : inventory.hosts) {
    const std::string to =
        with_user_and_port(host.address.empty() ? host.name : host.address, host.user, host.port);
    std::string wrong = wrong_listed_host(host.name);
    if (wrong.empty()) wrong = wrong_destination(to);
    if (wrong.empty())
      add(host.line, host.column,
          {{name_of_written(host.name), host.name, to, "", "", host.line, host.column}});
    else
      error(host.line, host.column, wrong);
  }
  const std::vector<std::string> ignored(inventory.ignored.begin(), inventory.ignored.end());
  warn("read as an inventory of Ansible: its groups only give variables" +
       (ignored.empty() ? std::string()
                        : fmt::format("; without effect, so put what ssh needs into its configuration: {}",
                                      fmt::join(ignored, ", "))));
}

std::optional<Fields> HostsReader::sort_words(const HostEntry& entry, const std::vector<HostWord>& words) {
  Fields fields;
  bool good = true;
  for (const HostWord& word : words) {
    if (word.text.find('=') != std::string::npos && word.text[0] != '-') {
      good = take_key(entry, word, fields) && good;
    } else if (fields.first.text.empty()) {
      fields.first = word;
    } else if (!fields.destination) {
      fields.destination = word;
      fields.plain = true;
    } else {
      error(entry, word,
            fmt::format("unexpected word '{}': several hosts need commas or lines between them; the format "
                        "of a line is {}",
                        word.text.substr(0, 60), kForm));
      good = false;
    }
  }
  if (good && fields.first.text.empty()) {
    error(entry, words.front(), fmt::format("the name is missing: the format of a line is {}", kForm));
    good = false;
  }
  if (!good) return {};
  return fields;
}

bool HostsReader::take_key(const HostEntry& entry, const HostWord& word, Fields& fields) {
  static const std::vector<std::string> known = {"address", "group", "destination"};
  const size_t equals = word.text.find('=');
  const std::string key = word.text.substr(0, equals);
  const HostWord value{word.text.substr(equals + 1), word.column + static_cast<int>(equals) + 1};
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    const std::string near = nearest_spelling(key, known);
    error(entry, word,
          near.empty() ? fmt::format("unknown key '{}': remove it; known: address, group, destination",
                                     key.substr(0, 60))
                       : fmt::format("unknown key '{}', did you mean '{}'?", key.substr(0, 60), near));
    return false;
  }
  std::optional<HostWord>& place = key == "address" ? fields.address
                                   : key == "group" ? fields.group
                                                    : fields.destination;
  if (place || value.text.empty()) {
    error(entry, word, key + (place ? " is given twice" : "= has no value"));
    return false;
  }
  place = value;
  return true;
}

std::optional<HostsReader::Names> HostsReader::expand(const HostEntry& entry, const HostWord& name) {
  Names out;
  for (const std::string& pattern : split_host_list(name.text)) {
    if (length_outside_brackets(pattern) > kLongestWord) {
      error(entry, name, fmt::format("the name is too long ({} characters)", pattern.size()));
      return {};
    }
    const auto range = expand_host_range(pattern);
    if (!range.ok()) {
      error(entry, name, range.error().message);
      return {};
    }
    if (out.size() + range->size() > kMostSpecNodes) {
      error(entry, name, fmt::format("more than {} hosts", kMostSpecNodes));
      return {};
    }
    out.insert(out.end(), range->begin(), range->end());
  }
  if (out.empty()) error(entry, name, "the name is empty");
  if (out.empty()) return {};
  return out;
}

std::optional<HostsReader::Names> HostsReader::read_names(const HostEntry& entry, const HostWord& name) {
  auto names = expand(entry, name);
  if (!names) return {};
  for (const RangedName& one : *names)
    if (const std::string wrong = wrong_listed_host(one.name); !wrong.empty()) {
      error(entry, name, wrong);
      return {};
    }
  return names;
}

void HostsReader::leave_out(const HostEntry& entry, const HostWord& word) {
  const auto names = expand(entry, {word.text.substr(1), word.column});
  if (!names) return;
  for (const RangedName& one : *names)
    left_out_.emplace(name_of_written(one.name), std::pair(entry.line, word.column));
}

// In a line with a destination, the name is a plain word.
bool HostsReader::check_order(const HostEntry& entry, const Fields& fields, const Names& names) {
  if (!fields.destination) return true;
  if (!has_destination_signs(names[0].name)) return true;
  error(entry, fields.first, destination_before_name(names[0].name, fields.destination->text.substr(0, 60)));
  return false;
}

// One value per name: from a range, from a text with {n}, or the text itself for a single name.
std::optional<std::vector<std::string>> HostsReader::values_of(const HostEntry& entry, const HostWord& value,
                                                               const Kind& kind, const Names& names) {
  const std::string& text = value.text;
  if (length_outside_brackets(text) > kLongestWord) {
    error(entry, value, fmt::format("the {} is too long ({} characters)", kind.one, text.size()));
    return {};
  }
  std::vector<std::string> out;
  Status read = Ok{};
  if (!has_host_range(text) && text.find_first_of("{}") != std::string::npos) {
    for (const RangedName& one : names) {
      const auto filled = expand_number(text, one.number, NumberForm::decimal);
      if (!filled.ok()) read = filled.error();
      if (!filled.ok()) break;
      out.push_back(*filled);
    }
  } else {
    const auto expanded = expand_host_range(text);
    if (!expanded.ok()) read = expanded.error();
    if (expanded.ok())
      for (const RangedName& one : *expanded) out.push_back(one.name);
  }
  if (read.ok() && out.size() == names.size()) return out;
  error(entry, value,
        read.ok() ? fmt::format("{} for {}", counted(out.size(), kind.one, kind.many),
                                counted(names.size(), "name", "names"))
                  : read.error().message);
  return {};
}

void HostsReader::read_destinations(const HostEntry& entry, const Fields& fields, const Names& names,
                                    std::vector<ListedHost>& hosts) {
  const HostWord& at = *fields.destination;
  // Checked before expansion: '-oProxyCommand={n}' is an option, even if it has other errors.
  if (at.text[0] == '-') return error(entry, at, wrong_destination(at.text.substr(0, 60)));
  if (split_host_list(at.text).size() > 1)
    return error(
        entry, at,
        fmt::format("'{}' has several destinations: write a range such as 10.0.3.[1-2], or a line for "
                    "each host",
                    at.text.substr(0, 60)));
  const auto values = values_of(entry, at, {"destination", "destinations"}, names);
  if (!values) return;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string &name = names[i].name, &value = (*values)[i];
    if (const std::string wrong = wrong_destination(value); !wrong.empty()) return error(entry, at, wrong);
    hosts[i].destination = value;
    if (!fields.plain || lower(value) == lower(name)) continue;
    if (are_siblings(name, value)) return error(entry, at, two_plain_words(name, value));
    if (has_destination_signs(value)) continue;
    doubtful_.push_back({entry.line, at.column, name, value});
  }
}

void HostsReader::read_addresses(const HostEntry& entry, const HostWord& at, const Names& names,
                                 std::vector<ListedHost>& hosts) {
  const auto values = values_of(entry, at, {"address", "addresses"}, names);
  if (!values) return;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string& text = (*values)[i];
    if (!parse_ipv4(text))
      return error(entry, at,
                   fmt::format("'{}' is not an IPv4 address such as 10.20.0.11", text.substr(0, 60)));
    if (!reaches_one_host(text))
      return error(entry, at,
                   fmt::format("{} is not an address at which other hosts can reach this host", text));
    hosts[i].address = text;
  }
}

void HostsReader::read_group(const HostEntry& entry, const HostWord& at, std::vector<ListedHost>& hosts) {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr size_t kLongestName = 40;
  const std::string allowed = std::string(letters) + "0123456789-";
  if (at.text.size() > kLongestName || letters.find(at.text[0]) == std::string_view::npos ||
      at.text.find_first_not_of(allowed) != std::string::npos)
    return error(
        entry, at,
        fmt::format("'{}' is not a group name: expected a lower-case letter, then up to {} lower-case "
                    "letters, digits and '-'",
                    at.text.substr(0, 60), kLongestName - 1));
  for (ListedHost& host : hosts) host.group = at.text;
}

void HostsReader::check_addresses(const HostEntry& entry, const HostWord& at,
                                  const std::vector<ListedHost>& hosts) {
  for (const ListedHost& host : hosts) {
    if (host.address.empty()) continue;
    const auto [other, fresh] = addresses_.emplace(host.address, host.name);
    if (fresh || other->second == host.name) continue;
    return error(
        entry, at,
        fmt::format("address {} is given to both {} and {}", host.address, other->second, host.name));
  }
}

// Two things that are written differently may get one name: node_01 and node-01.
std::string HostsReader::again(const ListedHost& host, const ListedHost& before) const {
  if (lower(destination_host(host.written)) == lower(destination_host(before.written))) return "";
  return fmt::format("{} and {} (line {}) would both be called {}: write '{}-b destination={}'", host.written,
                     before.written, before.line, host.name, host.name, host.destination);
}

// Hosts whose line has an error are added as well, so that duplicate names are detected.
void HostsReader::add(int line, int column, std::vector<ListedHost> hosts) {
  std::vector<std::string> twice;
  int first_line = 0;
  for (ListedHost& host : hosts) {
    const auto [before, fresh] = names_.emplace(host.name, host);
    if (!fresh) {
      if (const std::string other = again(host, before->second); !other.empty())
        return error(line, column, other);
      if (genders_line_ > 0) continue;  // its attributes may stand in several lines
      if (twice.empty()) first_line = before->second.line;
      twice.push_back(host.written);
    } else if (out_.hosts.size() < kMostSpecNodes) {
      out_.hosts.push_back(std::move(host));
    } else if (!too_many_) {
      too_many_ = true;
      error(line, column, fmt::format("more than {} hosts", kMostSpecNodes));
    }
  }
  if (!twice.empty())
    error(line, column, fmt::format("listed twice: {} (first on line {})", some_of(twice), first_line));
}

// One error for a line, however many hosts its range has.
void HostsReader::check_doubtful(const KnownAliases& aliases) {
  std::set<std::string> words, known;
  for (const Doubtful& one : doubtful_) words.insert(one.word);
  if (aliases && !words.empty()) known = aliases(words);
  std::set<std::pair<int, int>> said;
  for (const Doubtful& one : doubtful_)
    if (!known.count(one.word) && said.emplace(one.line, one.column).second)
      error(one.line, one.column, two_plain_words(one.name, one.word));
}

void HostsReader::remove_left_out() {
  for (const auto& [name, at] : left_out_)
    if (!names_.count(name))
      error(at.first, at.second, fmt::format("'{}' is to be left out, but is not in the list", name));
  std::erase_if(out_.hosts, [this](const ListedHost& host) { return left_out_.count(host.name) > 0; });
}

void HostsReader::warn_of_one_destination() {
  std::map<std::string, std::vector<const ListedHost*>> by_destination;
  for (const ListedHost& host : out_.hosts)
    by_destination[destination_key(host.destination)].push_back(&host);
  for (const auto& [key, hosts] : by_destination) {
    if (hosts.size() < 2) continue;
    std::vector<std::string> names;
    for (const ListedHost* host : hosts) names.push_back(host->name);
    const ListedHost& second = *hosts[1];
    out_.warnings.push_back(
        {second.line, second.column, "",
         fmt::format("{} names have the same destination, {}: {}", names.size(), key, some_of(names))});
  }
}

void HostsReader::warn_of_names() {
  std::vector<std::string> changed;
  for (const ListedHost& host : out_.hosts)
    if (host.name != host.written) changed.push_back(host.written + " is " + host.name);
  if (!changed.empty()) warn("names in reports and in the history: " + some_of(changed));
}

HostsFile HostsReader::finish(const KnownAliases& aliases) {
  check_doubtful(aliases);
  remove_left_out();
  if (out_.errors.empty() && out_.hosts.empty())
    error(0, 0, fmt::format("no hosts are listed; the format of a line is {}", kForm));
  warn_of_one_destination();
  warn_of_names();
  sort_errors(out_.errors);
  sort_errors(out_.warnings);
  return std::move(out_);
}

// Returns an error that prevents reading any line; "" if there is none.
std::string wrong_as_a_whole(const std::string& text) {
  const auto begins = [&](std::string_view with) { return text.compare(0, with.size(), with) == 0; };
  if (begins("\xff\xfe") || begins("\xfe\xff")) return "is UTF-16: save it as UTF-8";
  if (text.size() > kMostBytesOfHosts)
    return fmt::format("has {} bytes; the limit, for {} hosts, is {}", text.size(), kMostSpecNodes,
                       kMostBytesOfHosts);
  if (is_yaml_inventory(lines_of_hosts_file(text)))
    return "is YAML: of Ansible's inventories only the INI form is read; `ansible-inventory --list` and "
           "`ansible all --list-hosts` print the names";
  return "";
}

// Reads the lines with what the whole file says about them.
void read_lines(const std::vector<std::string>& lines, HostsReader& reader) {
  if (is_inventory(lines)) return reader.read(read_inventory(lines));
  std::vector<HostEntry> entries;
  for (const std::string& line : lines) entries.push_back({line, static_cast<int>(entries.size()) + 1, 1});
  const auto genders = std::find_if(entries.begin(), entries.end(), [](const HostEntry& entry) {
    return is_genders(words_in(without_comment(entry)));
  });
  if (genders != entries.end()) {
    reader.genders(genders->line);
    reader.warn("read as a file of genders: the attributes in the second column have no effect");
  }
  for (const HostEntry& entry : entries) reader.read(entry);
}

}  // namespace

HostsFile read_hosts_file(const std::string& text, const KnownAliases& aliases) {
  HostsReader reader;
  if (const std::string wrong = wrong_as_a_whole(text); !wrong.empty())
    reader.error(0, 0, wrong);
  else
    read_lines(lines_of_hosts_file(text), reader);
  return reader.finish(aliases);
}

HostsFile read_hosts_option(const std::string& text, const KnownAliases& aliases) {
  HostsReader reader;
  if (const std::string wrong = wrong_as_a_whole(text); !wrong.empty())
    reader.error(0, 0, wrong);
  else
    for (const HostEntry& entry : entries_of_option(text)) reader.read(entry);
  return reader.finish(aliases);
}

}  // namespace muster::cli
