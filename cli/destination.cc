#include "cli/destination.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/lower.h"

namespace muster::cli {
namespace {

constexpr std::string_view kScheme = "ssh://";
constexpr std::string_view kUsualPort = "22";
constexpr size_t kLongest = 320;  // a DNS name (253), a user (32), the scheme and a port

// OpenSSH from 9.6 on rejects these: %h and %r in ProxyCommand go through a shell (CVE-2023-51385).
constexpr std::string_view kOfShells = "'`\"$;&<>|(){}*?!~#^=,";

struct DestinationParts {
  bool uri = false, has_user = false, has_port = false, bracketed = false;
  std::string user, host, port;  // host without brackets
};

DestinationParts parts_of(const std::string& text) {
  DestinationParts out;
  std::string rest = text;
  out.uri = lower(rest.substr(0, kScheme.size())) == kScheme;
  if (out.uri) rest.erase(0, kScheme.size());
  if (out.uri && !rest.empty() && rest.back() == '/') rest.pop_back();
  // The last '@' separates user and host, as in ssh: a user name may contain '@'.
  if (const size_t at = rest.rfind('@'); at != std::string::npos) {
    out.has_user = true;
    out.user = rest.substr(0, at);
    rest.erase(0, at + 1);
  }
  const bool bracket = !rest.empty() && rest[0] == '[';
  const size_t close = bracket ? rest.find(']') : std::string::npos;
  // More than one colon outside of brackets is an IPv6 address without a port.
  const bool one = std::count(rest.begin(), rest.end(), ':') == 1;
  const size_t colon = out.uri || one || close != std::string::npos
                           ? rest.find(':', close == std::string::npos ? 0 : close)
                           : std::string::npos;
  if (colon != std::string::npos) {
    out.has_port = true;
    out.port = rest.substr(colon + 1);
    rest.erase(colon);
  }
  out.bracketed = bracket && rest.back() == ']';
  out.host = out.bracketed ? rest.substr(1, rest.size() - 2) : rest;
  return out;
}

bool is_ipv6(const std::string& text) {
  in6_addr address = {};
  return ::inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &address) == 1;
}

bool has_bad_character(const std::string& text, std::string_view more) {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte >= 0x7f || kOfShells.find(c) != std::string_view::npos ||
           more.find(c) != std::string_view::npos;
  });
}

bool is_port(const std::string& text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  const int value = std::stoi(text);
  return value > 0 && value < 65536;
}

}  // namespace

std::string wrong_destination(const std::string& text) {
  if (text.empty()) return "the destination is empty";
  if (text.size() > kLongest) return fmt::format("the destination is too long ({} characters)", text.size());
  if (text[0] == '-') return fmt::format("'{}' begins with '-': ssh would take it for an option", text);
  const DestinationParts p = parts_of(text);
  if (p.host.empty()) return fmt::format("'{}' does not name a host", text);
  if (p.has_user && p.user.empty()) return fmt::format("'{}' has no user before '@'", text);
  if (p.host[0] == '-' || (p.has_user && p.user[0] == '-'))
    return fmt::format("'{}': a host or user must not begin with '-'", text);
  if (p.has_port && !is_port(p.port)) return fmt::format("'{}': '{}' is not a port", text, p.port);
  if (p.bracketed && !is_ipv6(p.host))
    return fmt::format("'{}': '{}' in brackets is not an IPv6 address", text, p.host);
  const bool as_uri = p.uri || p.has_port;
  if (has_bad_character(p.host, "\\/[]@") || has_bad_character(p.user, as_uri ? "\\/[]:" : "/[]") ||
      (p.has_user && p.user.back() == '\\'))
    return fmt::format("'{}' is not a destination: expected [USER@]HOST[:PORT]", text);
  return "";
}

std::string ssh_argument(const std::string& text) {
  const DestinationParts p = parts_of(text);
  const std::string user = p.has_user ? p.user + "@" : "";
  if (p.uri || (!p.has_port && !p.bracketed)) return text;
  if (!p.has_port) return user + p.host;
  // ssh decodes %XX behind ssh://.
  std::string out(kScheme);
  for (const char c : user + (p.bracketed ? "[" + p.host + "]" : p.host))
    out += c == '%' ? std::string("%25") : std::string(1, c);
  return out + ":" + p.port;
}

std::string destination_host(const std::string& text) { return lower(parts_of(text).host); }
std::string destination_port(const std::string& text) { return parts_of(text).port; }

std::string distinct_port(const std::string& text) {
  std::string port = destination_port(text);
  return port == kUsualPort ? "" : port;
}

std::string with_user_and_port(const std::string& text, const std::string& user, const std::string& port) {
  if (user.empty() && port.empty()) return text;
  const DestinationParts p = parts_of(text);
  const std::string who = user.empty() ? p.user : user, where = port.empty() ? p.port : port;
  const bool ipv6 = p.host.find(':') != std::string::npos;
  const std::string host = ipv6 && !where.empty() ? "[" + p.host + "]" : p.host;
  return (who.empty() ? "" : who + "@") + host + (where.empty() ? "" : ":" + where);
}

bool has_login_signs(const std::string& word) {
  return word.find_first_of("@:") != std::string::npos || word.starts_with('[');
}

bool has_destination_signs(const std::string& word) {
  return has_login_signs(word) || word.find('.') != std::string::npos;
}

std::string destination_key(const std::string& text) {
  std::string key = destination_host(text);
  if (!key.empty() && key.back() == '.') key.pop_back();
  const std::string port = distinct_port(text);
  return port.empty() ? key : key + ":" + port;
}

}  // namespace muster::cli
