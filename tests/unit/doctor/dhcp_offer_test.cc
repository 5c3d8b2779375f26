// The packets with which other DHCP servers are found.
#include "controller/doctor/dhcp_offer.h"

#include "base/ports.h"
#include "tests/catch.h"

using namespace muster::doctor;

namespace {

constexpr uint32_t kTransaction = 0x12345678;
constexpr MacBytes kMac = {0x52, 0x54, 0x00, 0x20, 0x00, 0x01};
constexpr size_t kMessage = 28;  // behind the headers of IPv4 and UDP

std::string text(std::initializer_list<int> bytes) {
  std::string out;
  for (const int one : bytes) out += static_cast<char>(one);
  return out;
}

// What a server at 10.20.0.5 sends: its offer of 10.20.0.77, with these options behind the type.
std::string offer(const std::string& options, int type = 2) {
  std::string message = text({2, 1, 6, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x80, 0, 0, 0, 0, 0, 10, 20, 0, 77});
  message.resize(236);
  message += text({0x63, 0x82, 0x53, 0x63, 53, 1, type}) + options + text({255});
  const int udp = static_cast<int>(message.size()) + 8, all = udp + 20;
  return text({0x45, 0, all >> 8, all & 0xff, 0, 0, 0, 0, 64, 17, 0, 0, 10, 20, 0, 5, 255, 255, 255, 255}) +
         text({0, muster::kDhcpPort, 0, 68, udp >> 8, udp & 0xff, 0, 0}) + message;
}

const std::string kServer = text({54, 4, 10, 20, 0, 6});

}  // namespace

TEST_CASE("the request is a whole packet that asks for a broadcast, and no offer itself", "[doctor][dhcp]") {
  const std::string packet = dhcp_discover(kMac, kTransaction);
  REQUIRE(packet.size() >= 20 + 8 + 300);
  const auto byte = [&](size_t at) { return static_cast<int>(static_cast<uint8_t>(packet[at])); };
  CHECK(byte(0) == 0x45);
  CHECK(static_cast<size_t>(byte(2) * 256 + byte(3)) == packet.size());
  unsigned sum = 0;
  for (size_t at = 0; at < 20; at += 2) sum += static_cast<unsigned>(byte(at) * 256 + byte(at + 1));
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  CHECK(sum == 0xffff);
  CHECK(byte(21) == 68);
  CHECK(byte(23) == muster::kDhcpPort);
  CHECK(static_cast<size_t>(byte(24) * 256 + byte(25)) == packet.size() - 20);
  CHECK(packet.substr(kMessage + 4, 4) == text({0x12, 0x34, 0x56, 0x78}));
  CHECK(byte(kMessage + 10) == 0x80);
  CHECK(packet.substr(kMessage + 28, 6) == text({0x52, 0x54, 0x00, 0x20, 0x00, 0x01}));
  // A server that gives only what to boot answers such clients alone.
  CHECK(packet.find("PXEClient") != std::string::npos);
  CHECK_FALSE(read_dhcp_offer(packet, kTransaction));
}

TEST_CASE("an offer names its server, by its identifier or by where it came from", "[doctor][dhcp]") {
  CHECK(read_dhcp_offer(offer(kServer), kTransaction) == DhcpOffer{"10.20.0.6", "10.20.0.77"});
  CHECK(read_dhcp_offer(offer(""), kTransaction) == DhcpOffer{"10.20.0.5", "10.20.0.77"});
  // Padding of short Ethernet frames, and options that are padding.
  CHECK(read_dhcp_offer(offer(text({0, 0}) + kServer) + std::string(9, '\0'), kTransaction)->server ==
        "10.20.0.6");
  std::string boots_only = offer(kServer);
  boots_only.replace(kMessage + 16, 4, std::string(4, '\0'));
  CHECK(read_dhcp_offer(boots_only, kTransaction)->address == "0.0.0.0");
}

TEST_CASE("what is no answer to this request is no offer, however it is cut", "[doctor][dhcp]") {
  CHECK_FALSE(read_dhcp_offer(offer(kServer), kTransaction + 1));
  CHECK_FALSE(read_dhcp_offer(offer(kServer, 5), kTransaction));  // an acknowledgement
  std::string other_port = offer(kServer);
  other_port[23] = 67;
  CHECK_FALSE(read_dhcp_offer(other_port, kTransaction));
  std::string fragment = offer(kServer);
  fragment[6] = 0x20;
  CHECK_FALSE(read_dhcp_offer(fragment, kTransaction));
  std::string tcp = offer(kServer);
  tcp[9] = 6;
  CHECK_FALSE(read_dhcp_offer(tcp, kTransaction));
  const std::string whole = offer(kServer);
  const size_t typed = kMessage + 236 + 4 + 3;  // up to its type
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(read_dhcp_offer(whole.substr(0, size), kTransaction).has_value() == (size >= typed));
  }
  // A length beyond the end.
  CHECK(read_dhcp_offer(offer(text({54, 200, 10})), kTransaction)->server == "10.20.0.5");
}
