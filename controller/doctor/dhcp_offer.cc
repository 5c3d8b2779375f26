#include "controller/doctor/dhcp_offer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ports.h"

namespace muster::doctor {
namespace {

constexpr int kClientPort = 68;
constexpr size_t kIpHeader = 20, kUdpHeader = 8, kBootp = 236;  // RFC 791, 768, 2131
constexpr std::string_view kCookie = "\x63\x82\x53\x63";
constexpr int kTypeDiscover = 1, kTypeOffer = 2;
constexpr int kOptionType = 53, kOptionServer = 54, kOptionPad = 0, kOptionEnd = 255;

void put(std::string& out, uint32_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

void put_option(std::string& out, int code, std::string_view value) {
  put(out, static_cast<uint32_t>(code), 1);
  put(out, static_cast<uint32_t>(value.size()), 1);
  out += value;
}

uint32_t number_at(std::string_view text, size_t at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value = value << 8 | static_cast<uint8_t>(text[at + static_cast<size_t>(i)]);
  return value;
}

std::string address_of(uint32_t value) {
  return fmt::format("{}.{}.{}.{}", value >> 24, value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff);
}

// RFC 1071.
uint16_t checksum(std::string_view header) {
  uint32_t sum = 0;
  for (size_t at = 0; at + 1 < header.size(); at += 2) sum += number_at(header, at, 2);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::string ip_header(size_t payload) {
  std::string out;
  put(out, 0x4500, 2);
  put(out, static_cast<uint32_t>(kIpHeader + payload), 2);
  put(out, 0, 4);       // not in fragments
  put(out, 0x4011, 2);  // 64 hops, UDP
  put(out, 0, 2);
  put(out, 0, 4);  // from no address yet
  put(out, 0xffffffff, 4);
  const uint16_t sum = checksum(out);
  out[10] = static_cast<char>(sum >> 8);
  out[11] = static_cast<char>(sum & 0xff);
  return out;
}

struct Options {
  int type = 0;
  std::optional<uint32_t> server = {};
};

// What ends too early is left out.
Options options_in(std::string_view text) {
  Options out;
  for (size_t at = 0; at < text.size();) {
    const int code = static_cast<uint8_t>(text[at]);
    if (code == kOptionEnd) break;
    if (code == kOptionPad) {
      ++at;
      continue;
    }
    if (at + 1 >= text.size()) break;
    const size_t length = static_cast<uint8_t>(text[at + 1]);
    if (at + 2 + length > text.size()) break;
    if (code == kOptionType && length == 1) out.type = static_cast<uint8_t>(text[at + 2]);
    if (code == kOptionServer && length == 4) out.server = number_at(text, at + 2, 4);
    at += 2 + length;
  }
  return out;
}

}  // namespace

std::string dhcp_discover(const MacBytes& mac, uint32_t transaction) {
  std::string message;
  put(message, 0x01010600, 4);  // a request, over Ethernet
  put(message, transaction, 4);
  put(message, 0x8000, 4);           // answer by broadcast
  message += std::string(16, '\0');  // no addresses
  message.append(reinterpret_cast<const char*>(mac.data()), mac.size());
  message.resize(kBootp);
  message += kCookie;
  put_option(message, kOptionType, std::string(1, static_cast<char>(kTypeDiscover)));
  put_option(message, 55, std::string_view("\x01\x03\x36\x42\x43", 5));  // mask, router, server, what to boot
  put_option(message, 60, "PXEClient:Arch:00007:UNDI:003016");
  put_option(message, 93, std::string_view("\x00\x07", 2));      // UEFI, x86-64
  put_option(message, 94, std::string_view("\x01\x03\x10", 3));  // UNDI 3.16
  put(message, kOptionEnd, 1);
  message.resize(std::max<size_t>(message.size(), 300));  // old relays drop shorter ones
  std::string udp;
  put(udp, kClientPort, 2);
  put(udp, kDhcpPort, 2);
  put(udp, static_cast<uint32_t>(kUdpHeader + message.size()), 2);
  put(udp, 0, 2);  // no checksum, as IPv4 allows
  return ip_header(udp.size() + message.size()) + udp + message;
}

std::optional<DhcpOffer> read_dhcp_offer(std::string_view packet, uint32_t transaction) {
  if (packet.size() < kIpHeader || number_at(packet, 0, 1) >> 4 != 4) return std::nullopt;
  const size_t header = (number_at(packet, 0, 1) & 0xf) * 4;
  const bool is_udp = number_at(packet, 9, 1) == 17, is_whole = (number_at(packet, 6, 2) & 0x3fff) == 0;
  if (!is_udp || !is_whole || header < kIpHeader) return std::nullopt;
  if (packet.size() < header + kUdpHeader + kBootp + kCookie.size()) return std::nullopt;
  if (number_at(packet, header + 2, 2) != kClientPort) return std::nullopt;
  const std::string_view message = packet.substr(header + kUdpHeader);
  if (number_at(message, 0, 1) != 2 || number_at(message, 4, 4) != transaction ||
      message.substr(kBootp, kCookie.size()) != kCookie)
    return std::nullopt;
  const Options options = options_in(message.substr(kBootp + kCookie.size()));
  if (options.type != kTypeOffer) return std::nullopt;
  return DhcpOffer{address_of(options.server.value_or(number_at(packet, 12, 4))),
                   address_of(number_at(message, 16, 4))};
}

}  // namespace muster::doctor
