#include "controller/spec/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace muster {

std::optional<uint32_t> parse_ipv4(const std::string& text) {
  uint32_t out = 0;
  size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at || end - at > 3 || (end - at > 1 && text[at] == '0')) return std::nullopt;
    const int value = std::atoi(text.substr(at, end - at).c_str());
    if (value > 255) return std::nullopt;
    out = out << 8 | static_cast<uint32_t>(value);
    if (part < 3 && (end >= text.size() || text[end] != '.')) return std::nullopt;
    at = part < 3 ? end + 1 : end;
  }
  if (at != text.size()) return std::nullopt;
  return out;
}

std::string format_ipv4(uint32_t a) {
  return fmt::format("{}.{}.{}.{}", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

Result<Cidr> parse_cidr(const std::string& text, int shortest, int longest) {
  const size_t slash = text.find('/');
  const auto address = parse_ipv4(text.substr(0, slash));
  const std::string prefix = slash == std::string::npos ? "" : text.substr(slash + 1);
  if (!address || prefix.empty() || prefix.size() > 2 ||
      prefix.find_first_not_of("0123456789") != std::string::npos)
    return fail(Code::invalid, fmt::format("'{}' is not a network such as 10.20.0.0/24", text));
  Cidr out{*address, std::atoi(prefix.c_str())};
  if (out.prefix < shortest || out.prefix > longest)
    return fail(Code::invalid,
                fmt::format("'{}': the prefix must be between {} and {}", text, shortest, longest));
  if ((out.base & out.mask()) != out.base)
    return fail(Code::invalid, fmt::format("'{}' is an address, not a network; did you mean '{}'?", text,
                                           format_cidr({out.base & out.mask(), out.prefix})));
  return out;
}

std::string format_cidr(const Cidr& network) {
  return fmt::format("{}/{}", format_ipv4(network.base), network.prefix);
}

bool is_dns_name(const std::string& text) {
  static const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (text.size() > 253 || text.find_first_of(letters) == std::string::npos ||
      text.find_first_not_of(letters + "0123456789.-") != std::string::npos)
    return false;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    if (end == at || end - at > 63 || text[at] == '-' || text[end - 1] == '-') return false;
    at = end + 1;
  }
  return true;
}

}  // namespace muster
