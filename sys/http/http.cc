#include "sys/http/http.h"

#include <strings.h>

#include <algorithm>
#include <charconv>

namespace muster {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
      if (low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    out += c;
  }
  return out;
}

bool climbs(std::string_view path) {
  while (!path.empty()) {
    size_t slash = std::min(path.find('/'), path.size());
    if (path.substr(0, slash) == "..") return true;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return false;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool HeaderLess::operator()(const std::string& a, const std::string& b) const {
  return ::strcasecmp(a.c_str(), b.c_str()) < 0;
}

Status parse_target(HttpRequest& request) {
  std::string_view target = request.target;
  if (target.empty() || target.front() != '/')
    return fail(Code::invalid, "the request's target is not a path");
  size_t mark = target.find('?');
  auto path = decode(target.substr(0, mark), false);
  if (!path || climbs(*path)) return fail(Code::invalid, "the request's path is malformed");
  request.path = std::move(*path);
  request.query.clear();
  std::string_view rest = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    size_t equals = std::min(pair.find('='), pair.size());
    auto name = decode(pair.substr(0, equals), true);
    auto value = decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return fail(Code::invalid, "the request's query is malformed");
    if (!name->empty()) request.query[*name] = std::move(*value);
  }
  return Ok{};
}

std::string url_encode(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                 c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    out += '%';
    out += "0123456789ABCDEF"[byte >> 4];
    out += "0123456789ABCDEF"[byte & 15];
  }
  return out;
}

std::optional<ByteRange> parse_range(std::string_view header, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (header.substr(0, kUnit.size()) != kUnit) return std::nullopt;
  header.remove_prefix(kUnit.size());
  size_t dash = header.find('-');
  if (dash == std::string_view::npos || header.find(',') != std::string_view::npos) return std::nullopt;
  auto first = number(header.substr(0, dash));
  auto last = number(header.substr(dash + 1));
  if (dash == 0) {  // the last N bytes
    if (!last) return std::nullopt;
    uint64_t length = std::min(*last, size);
    return ByteRange{size - length, length};
  }
  if (!first || (!last && dash + 1 != header.size()) || (last && *last < *first)) return std::nullopt;
  if (*first >= size) return ByteRange{};
  return ByteRange{*first, last ? std::min(*last, size - 1) - *first + 1 : size - *first};
}

HttpResponse HttpResponse::json(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers["Content-Type"] = "application/json";
  response.body = std::move(body);
  return response;
}

HttpResponse HttpResponse::text(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers["Content-Type"] = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

}  // namespace muster
