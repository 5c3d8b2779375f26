#include "cli/hosts_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/split.h"
#include "cli/destination.h"
#include "controller/spec/address.h"
#include "controller/spec/host_name.h"
#include "controller/spec/units.h"
#include "controller/spec/yaml.h"

namespace muster::cli {
namespace {

constexpr const char* kForm = "NAME [DESTINATION] [address=IP] [group=WORD]";
// Of a pattern without its brackets, of which up to 4,096 copies are made.
constexpr size_t kLongestWord = 512;
constexpr size_t kShownNames = 3;

struct Word {
  std::string text;
  int column = 0;
};
// One host: a line of a file, or the text between two commas.
struct Entry {
  std::string text;
  int line = 1, column = 1;  // of its first byte
};
struct Fields {
  std::optional<Word> name, destination, address, group;
};

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Columns count characters, not bytes.
int column_at(const Entry& entry, size_t byte) {
  const auto bytes = static_cast<std::ptrdiff_t>(std::min(byte, entry.text.size()));
  return entry.column + static_cast<int>(bytes - std::count_if(entry.text.begin(), entry.text.begin() + bytes,
                                                               continues_character));
}

std::vector<Word> words_in(const Entry& entry) {
  std::vector<Word> out;
  for (size_t at = 0; at < entry.text.size();) {
    const size_t begin = entry.text.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    at = std::min(entry.text.find_first_of(" \t", begin), entry.text.size());
    out.push_back({entry.text.substr(begin, at - begin), column_at(entry, begin)});
  }
  return out;
}

// True if the text contains a range in brackets. Brackets with a colon contain an IPv6 address.
bool has_range(const std::string& pattern) {
  const size_t open = pattern.find_first_of("[]");
  if (open == std::string::npos) return false;
  const size_t close = std::min(pattern.find(']', open), pattern.size());
  return pattern.substr(open, close - open).find(':') == std::string::npos;
}

std::string counted(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

class HostsReader {
 public:
  void read(const Entry& given);
  HostsFile finish();
  void error(int line, int column, std::string message) {
    out_.errors.push_back({line, column, "", std::move(message)});
  }

 private:
  void error(const Entry& entry, const Word& at, std::string message) {
    error(entry.line, at.column, std::move(message));
  }
  bool check_characters(const Entry& entry);
  std::optional<Fields> sort_words(const Entry& entry, const std::vector<Word>& words);
  bool take_key(const Entry& entry, const Word& word, Fields& fields);
  std::optional<std::vector<RangedName>> read_names(const Entry& entry, const Word& name);
  struct Kind {
    const char *one, *many;
  };
  std::optional<std::vector<std::string>> values_of(const Entry& entry, const Word& value, const Kind& kind,
                                                    const std::vector<RangedName>& names);
  void read_destinations(const Entry& entry, const Word& at, const std::vector<RangedName>& names,
                         std::vector<ListedHost>& hosts);
  void read_addresses(const Entry& entry, const Word& at, const std::vector<RangedName>& names,
                      std::vector<ListedHost>& hosts);
  void read_group(const Entry& entry, const Word& at, std::vector<ListedHost>& hosts);
  void add(const Entry& entry, const Word& name, std::vector<ListedHost> hosts);
  void check_addresses(const Entry& entry, const Word& at, const std::vector<ListedHost>& hosts);
  void warn_of_one_destination();

  HostsFile out_;
  std::map<std::string, int> names_;              // -> line
  std::map<std::string, std::string> addresses_;  // -> name
  bool too_many_ = false;
};

void HostsReader::read(const Entry& given) {
  Entry entry = given;
  entry.text.resize(std::min(entry.text.find('#'), entry.text.size()));
  const std::vector<Word> words = words_in(entry);
  if (words.empty() || !check_characters(entry)) return;
  const auto fields = sort_words(entry, words);
  if (!fields) return;
  const auto names = read_names(entry, *fields->name);
  if (!names) return;
  std::vector<ListedHost> hosts;
  for (const RangedName& one : *names)
    hosts.push_back({one.name, one.name, "", "", entry.line, fields->name->column});
  // Each field is checked even if another has an error, so that all errors are reported at once.
  if (fields->destination) read_destinations(entry, *fields->destination, *names, hosts);
  if (fields->address) read_addresses(entry, *fields->address, *names, hosts);
  if (fields->group) read_group(entry, *fields->group, hosts);
  if (fields->address) check_addresses(entry, *fields->address, hosts);
  add(entry, *fields->name, std::move(hosts));
}

// Reports at most one invalid character per line: a binary file is full of them.
bool HostsReader::check_characters(const Entry& entry) {
  for (size_t i = 0; i < entry.text.size(); ++i) {
    const auto c = static_cast<unsigned char>(entry.text[i]);
    if (is_control(entry.text[i])) {
      error(entry.line, column_at(entry, i), fmt::format("control character 0x{:02x}", c));
      return false;
    }
    if (c >= 0x80) {
      error(entry.line, column_at(entry, i),
            "not an ASCII character: names, destinations and groups must be ASCII");
      return false;
    }
  }
  return true;
}

std::optional<Fields> HostsReader::sort_words(const Entry& entry, const std::vector<Word>& words) {
  Fields fields;
  bool good = true;
  for (const Word& word : words) {
    if (word.text.find('=') != std::string::npos && word.text[0] != '-') {
      good = take_key(entry, word, fields) && good;
    } else if (!fields.name) {
      fields.name = word;
    } else if (!fields.destination) {
      fields.destination = word;
    } else {
      error(entry, word,
            fmt::format("unexpected word '{}': the format of a line is {}", word.text.substr(0, 60), kForm));
      good = false;
    }
  }
  if (good && !fields.name) {
    error(entry, words.front(), fmt::format("the name is missing: the format of a line is {}", kForm));
    good = false;
  }
  if (!good) return {};
  return fields;
}

bool HostsReader::take_key(const Entry& entry, const Word& word, Fields& fields) {
  static const std::vector<std::string> known = {"address", "group"};
  const size_t equals = word.text.find('=');
  const std::string key = word.text.substr(0, equals);
  const Word value{word.text.substr(equals + 1), word.column + static_cast<int>(equals) + 1};
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    const std::string near = nearest_spelling(key, known);
    error(entry, word,
          near.empty() ? fmt::format("unknown key '{}'; known: address, group", key.substr(0, 60))
                       : fmt::format("unknown key '{}', did you mean '{}'?", key.substr(0, 60), near));
    return false;
  }
  std::optional<Word>& place = key == "address" ? fields.address : fields.group;
  if (place || value.text.empty()) {
    error(entry, word, key + (place ? " is given twice" : "= has no value"));
    return false;
  }
  place = value;
  return true;
}

std::optional<std::vector<RangedName>> HostsReader::read_names(const Entry& entry, const Word& name) {
  const std::string& text = name.text;
  const size_t inside =
      has_range(text) ? std::min(text.find(']'), text.size()) - text.find_first_of("[]") : 0;
  if (text.size() - inside > kLongestWord) {
    error(entry, name, fmt::format("the name is too long ({} characters)", text.size()));
    return {};
  }
  const auto range = expand_numbered_range(text);
  if (!range.ok()) {
    error(entry, name, range.error().message);
    return {};
  }
  for (const RangedName& one : *range) {
    const std::string wrong = wrong_host_name(one.name);
    if (wrong.empty()) continue;
    const bool long_form = text.find('.') != std::string::npos || text.find('@') != std::string::npos;
    error(
        entry, name,
        long_form ? wrong + fmt::format("; write a short name first: node01 {}", text.substr(0, 60)) : wrong);
    return {};
  }
  return *range;
}

// One value per name: from a range, from a text with {n}, or the text itself for a single name.
std::optional<std::vector<std::string>> HostsReader::values_of(const Entry& entry, const Word& value,
                                                               const Kind& kind,
                                                               const std::vector<RangedName>& names) {
  const std::string& text = value.text;
  const bool ranged = has_range(text);
  const size_t inside = ranged ? std::min(text.find(']'), text.size()) - text.find_first_of("[]") : 0;
  if (text.size() - inside > kLongestWord) {
    error(entry, value, fmt::format("the {} is too long ({} characters)", kind.one, text.size()));
    return {};
  }
  std::vector<std::string> out;
  Result<std::vector<std::string>> expanded = out;
  if (ranged) {
    expanded = expand_range(text);
    if (expanded.ok()) out = *expanded;
  } else if (text.find_first_of("{}") != std::string::npos) {
    for (const RangedName& one : names) {
      const auto filled = expand_number(text, one.number, NumberForm::decimal);
      if (!filled.ok()) expanded = filled.error();
      if (!filled.ok()) break;
      out.push_back(*filled);
    }
  } else {
    out.push_back(text);
  }
  if (expanded.ok() && out.size() == names.size()) return out;
  error(entry, value,
        expanded.ok() ? fmt::format("{} for {}", counted(out.size(), kind.one, kind.many),
                                    counted(names.size(), "name", "names"))
                      : expanded.error().message);
  return {};
}

void HostsReader::read_destinations(const Entry& entry, const Word& at, const std::vector<RangedName>& names,
                                    std::vector<ListedHost>& hosts) {
  // Checked before expansion: '-oProxyCommand={n}' is an option, even if it has other errors.
  if (at.text[0] == '-') return error(entry, at, wrong_destination(at.text.substr(0, 60)));
  const auto values = values_of(entry, at, {"destination", "destinations"}, names);
  if (!values) return;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (const std::string wrong = wrong_destination((*values)[i]); !wrong.empty())
      return error(entry, at, wrong);
    hosts[i].destination = (*values)[i];
  }
}

void HostsReader::read_addresses(const Entry& entry, const Word& at, const std::vector<RangedName>& names,
                                 std::vector<ListedHost>& hosts) {
  const auto values = values_of(entry, at, {"address", "addresses"}, names);
  if (!values) return;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string& text = (*values)[i];
    const auto address = parse_ipv4(text);
    const uint32_t first = address.value_or(0) >> 24;
    if (!address)
      return error(entry, at,
                   fmt::format("'{}' is not an IPv4 address such as 10.20.0.11", text.substr(0, 60)));
    // "This network", loopback, multicast and reserved addresses do not identify a single host.
    if (first == 0 || first == 127 || first >= 224)
      return error(entry, at,
                   fmt::format("{} is not an address at which other hosts can reach this host", text));
    hosts[i].address = text;
  }
}

void HostsReader::read_group(const Entry& entry, const Word& at, std::vector<ListedHost>& hosts) {
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

void HostsReader::check_addresses(const Entry& entry, const Word& at, const std::vector<ListedHost>& hosts) {
  for (const ListedHost& host : hosts) {
    if (host.address.empty()) continue;
    const auto [other, fresh] = addresses_.emplace(host.address, host.name);
    if (fresh || other->second == host.name) continue;
    return error(
        entry, at,
        fmt::format("address {} is given to both {} and {}", host.address, other->second, host.name));
  }
}

// Hosts whose line has an error are added as well, so that duplicate names are detected.
void HostsReader::add(const Entry& entry, const Word& name, std::vector<ListedHost> hosts) {
  std::vector<std::string> again;
  int first_line = 0;
  for (ListedHost& host : hosts) {
    const auto [other, fresh] = names_.emplace(host.name, entry.line);
    if (!fresh) {
      if (again.empty()) first_line = other->second;
      again.push_back(host.name);
    } else if (out_.hosts.size() < kMostHosts) {
      out_.hosts.push_back(std::move(host));
    } else if (!too_many_) {
      too_many_ = true;
      error(entry, name, fmt::format("more than {} hosts", kMostHosts));
    }
  }
  if (!again.empty())
    error(entry, name,
          fmt::format("listed twice: {} (first on line {})", some_of(again, kShownNames), first_line));
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
    out_.warnings.push_back({second.line, second.column, "",
                             fmt::format("{} names have the same destination, {}: {}", names.size(), key,
                                         some_of(names, kShownNames))});
  }
}

HostsFile HostsReader::finish() {
  if (out_.errors.empty() && out_.hosts.empty())
    error(0, 0, fmt::format("no hosts are listed; the format of a line is {}", kForm));
  warn_of_one_destination();
  sort_errors(out_.errors);
  sort_errors(out_.warnings);
  return std::move(out_);
}

// Returns an error that prevents reading any line; "" if there is none.
std::string wrong_as_a_whole(const std::string& text) {
  const auto begins = [&](std::string_view with) { return text.compare(0, with.size(), with) == 0; };
  if (begins("\xff\xfe") || begins("\xfe\xff")) return "is UTF-16: save it as UTF-8";
  if (text.size() > kMostBytesOfHosts)
    return fmt::format("has {} bytes; the limit, for {} hosts, is {}", text.size(), kMostHosts,
                       kMostBytesOfHosts);
  return "";
}

}  // namespace

HostsFile read_hosts_file(const std::string& text) {
  HostsReader reader;
  if (const std::string wrong = wrong_as_a_whole(text); !wrong.empty()) {
    reader.error(0, 0, wrong);
    return reader.finish();
  }
  int number = 0;
  for (std::string line : split_lines(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text)) {
    if (line.ends_with('\r')) line.pop_back();
    reader.read({std::move(line), ++number, 1});
  }
  return reader.finish();
}

HostsFile read_hosts_option(const std::string& text) {
  HostsReader reader;
  if (const std::string wrong = wrong_as_a_whole(text); !wrong.empty()) {
    reader.error(0, 0, wrong);
    return reader.finish();
  }
  Entry entry;
  int column = 1, depth = 0;
  for (const char c : text) {
    depth += (c == '[') - (c == ']');
    if (!continues_character(c)) ++column;
    if (c != ',' || depth > 0) {
      entry.text += c;
      continue;
    }
    reader.read(entry);
    entry = {"", 1, column};
  }
  reader.read(entry);
  return reader.finish();
}

}  // namespace muster::cli
