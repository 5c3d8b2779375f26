// What a copied example has in place of the site's own values: its ssh key, digests of zeros, and addresses,
// MACs and names that are reserved for documentation (RFC 5737, RFC 7042, RFC 2606).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/scan.h"
#include "base/split.h"
#include "controller/spec/warnings/observer.h"

namespace muster::warnings {
namespace {

constexpr std::array<std::string_view, 3> kNetworks = {"192.0.2.", "198.51.100.", "203.0.113."};
constexpr std::string_view kMacs = "00:00:5e:00:53:";
constexpr std::array<std::string_view, 4> kNames = {".example", ".example.com", ".example.net",
                                                    ".example.org"};
constexpr size_t kDigestLength = 64;
// Of README.md and docs/specs; there is no private key for it.
constexpr std::string_view kSampleKey =
    "AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W";

// Texts for people, texts of files, and keys, whose comment names a person.
constexpr std::array<std::string_view, 5> kNotRead = {"carried", "comment", "keys", "playbooks", "warnings"};

bool is_reserved(std::string_view word) {
  const auto begins = [&](std::string_view network) { return word.starts_with(network); };
  // A domain of its own, too: "example.com", but not "example".
  const auto ends = [&](std::string_view name) {
    return word.ends_with(name) || (word == name.substr(1) && has(word, "."));
  };
  return std::any_of(kNetworks.begin(), kNetworks.end(), begins) ||
         std::any_of(kNames.begin(), kNames.end(), ends);
}

bool in_host(char c) { return is_alphanumeric(c) || c == '.' || c == '-'; }

// The first word of a text that is a reserved address or name; "" if there is none.
std::string reserved_word(const std::string& text) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  if (lower.starts_with(kMacs)) return text;
  for (size_t at = 0; at < lower.size();) {
    size_t end = at;
    while (end < lower.size() && in_host(lower[end])) ++end;
    if (end > at && is_reserved(std::string_view(lower).substr(at, end - at)))
      return text.substr(at, end - at);
    at = end + 1;
  }
  return "";
}

// "" if it is a digest.
std::string wrong_digest(const std::string& text) {
  if (text.size() != kDigestLength || !std::all_of(text.begin(), text.end(), is_hex))
    return fmt::format("'{}' is not a SHA-256, which has 64 hexadecimal digits", text);
  const bool one_digit = text.find_first_not_of(text[0]) == std::string::npos;
  return one_digit ? fmt::format("'{}...' stands for a digest", text.substr(0, 8)) : "";
}

bool is_read(const std::string& key) {
  return std::find(kNotRead.begin(), kNotRead.end(), key) == kNotRead.end();
}

// True if it warned.
bool visit(Observer& o, const YamlNode& node, const std::string& path) {
  if (node.is_text()) {
    if (path.ends_with("sha256") && !node.text.empty())
      if (std::string wrong = wrong_digest(node.text); !wrong.empty())
        o.warn(finding::kPlaceholderDigest, node, path, std::move(wrong));
    const std::string word = reserved_word(node.text);
    if (word.empty()) return false;
    o.warn(finding::kPlaceholderAddress, node, path, fmt::format("{} is reserved for documentation", word));
    return true;
  }
  // One of a list stands for the others: sixteen addresses are replaced together.
  for (size_t i = 0; i < node.items.size(); ++i)
    if (visit(o, node.items[i], fmt::format("{}[{}]", path, i)) && node.items[i].is_text()) break;
  for (const YamlEntry& entry : node.entries)
    if (is_read(entry.key)) visit(o, entry.value, path.empty() ? entry.key : path + "." + entry.key);
  return false;
}

void sample_keys(Observer& o) {
  const YamlNode* users = o.section("users");
  if (!users) return;
  for (const YamlEntry& user : users->entries) {
    const YamlNode* keys = yaml_child(&user.value, "keys");
    for (size_t i = 0; keys && i < keys->items.size(); ++i)
      if (has(keys->items[i].text, kSampleKey))
        o.warn(finding::kPlaceholderKey, keys->items[i], fmt::format("users.{}.keys[{}]", user.key, i),
               "this is the key of the examples, and its private half is lost");
  }
}

}  // namespace

void placeholder_warnings(Observer& o) {
  visit(o, o.root, "");
  sample_keys(o);
}

}  // namespace muster::warnings
