#include "host/gids.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace muster {
namespace {

constexpr int kMostGids = 256;
constexpr size_t kMapped = 12;  // bytes before the IPv4 address in a GID: ::ffff:0:0/96

using Bytes = std::array<unsigned char, 16>;

std::optional<Bytes> bytes_of(const std::string& address) {
  Bytes out = {};
  if (::inet_pton(AF_INET6, address.c_str(), out.data()) == 1) return out;
  out[10] = out[11] = 0xff;
  return ::inet_pton(AF_INET, address.c_str(), out.data() + kMapped) == 1 ? std::optional(out) : std::nullopt;
}

bool is_ipv4(const Bytes& bytes) {
  static constexpr unsigned char kPrefix[kMapped] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(bytes.data(), kPrefix, kMapped) == 0;
}

std::string address_text(const Bytes& bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool four = is_ipv4(bytes);
  ::inet_ntop(four ? AF_INET : AF_INET6, bytes.data() + (four ? kMapped : 0), text, sizeof text);
  return text;
}

int common_bits(const Bytes& a, const Bytes& b) {
  for (int bit = 0; bit < 128; ++bit) {
    const size_t byte = static_cast<size_t>(bit / 8);
    if (((a[byte] ^ b[byte]) >> (7 - bit % 8) & 1) != 0) return bit;
  }
  return 128;
}

}  // namespace

std::vector<Gid> roce_gids(const Files& files, const std::string& folder) {
  std::vector<Gid> out;
  for (int i = 0; i < kMostGids; ++i) {
    const std::string index = std::to_string(i);
    if (!files.exists(folder + "/gids/" + index)) break;
    if (files.read_line(folder + "/gid_attrs/types/" + index) != "RoCE v2")
      continue;  // empty ones: unreadable
    const auto bytes = bytes_of(files.read_line(folder + "/gids/" + index));
    const bool local = bytes && (*bytes)[0] == 0xfe && ((*bytes)[1] & 0xc0) == 0x80;
    if (!bytes || local || *bytes == Bytes{}) continue;
    out.push_back({i, address_text(*bytes), files.read_line(folder + "/gid_attrs/ndevs/" + index)});
  }
  std::stable_partition(out.begin(), out.end(), [](const Gid& gid) { return gid.ipv4(); });
  return out;
}

std::pair<int, int> gids_of_one_network(const std::vector<Gid>& here, const std::vector<Gid>& there) {
  std::pair<int, int> best = {-1, -1};
  int most = -1;
  bool four = false;
  for (size_t i = 0; i < here.size(); ++i)
    for (size_t k = 0; k < there.size(); ++k) {
      const auto a = bytes_of(here[i].address), b = bytes_of(there[k].address);
      if (!a || !b || is_ipv4(*a) != is_ipv4(*b) || (four && !is_ipv4(*a))) continue;
      const int common = common_bits(*a, *b);
      if (common <= most && four == is_ipv4(*a)) continue;
      most = common, four = is_ipv4(*a);
      best = {static_cast<int>(i), static_cast<int>(k)};
    }
  return best;
}

std::string range_of_addresses(const std::vector<std::string>& addresses) {
  int common = 128;
  std::optional<Bytes> first;
  for (const auto& address : addresses) {
    const auto bytes = bytes_of(address);
    if (!bytes || (first && is_ipv4(*first) != is_ipv4(*bytes))) return "";
    if (!first) first = bytes;
    common = std::min(common, common_bits(*first, *bytes));
  }
  if (!first) return "";
  for (int bit = common; bit < 128; ++bit)
    (*first)[static_cast<size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  // Addresses of both families begin with different bits, so an IPv4 network keeps the mapping's.
  return fmt::format("{}/{}", address_text(*first), is_ipv4(*first) ? common - 96 : common);
}

bool is_in_range(const std::string& address, const std::string& range) {
  const size_t slash = range.find('/');
  const auto a = bytes_of(address), b = bytes_of(range.substr(0, slash));
  if (!a || !b || slash == std::string::npos || is_ipv4(*a) != is_ipv4(*b)) return false;
  return common_bits(*a, *b) >= std::atoi(range.c_str() + slash + 1) + (is_ipv4(*a) ? 96 : 0);
}

}  // namespace muster
