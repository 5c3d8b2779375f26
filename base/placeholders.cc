#include "base/placeholders.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <vector>

#include "base/lower.h"

namespace muster {
namespace {

struct Known {
  const char* value;
  const char* source;
};

// Lower case.
constexpr Known kUuids[] = {
    {"03000200-0400-0500-0006-000700080009", "AMI's default: oshi/oshi 2417, rockstor/rockstor-core 1964"},
    {"12345678-1234-5678-90ab-cddeefaabbcc", "FOGProject/fogproject, hostmanager.class.php"},
    {"12345678-1234-5678-1234-567812345678", "example in RFCs and manuals, found in shipped firmware"},
    {"12345678-1234-1234-1234-123456789abc", "example in manuals, found in shipped firmware"},
    {"01234567-89ab-cdef-0123-456789abcdef", "counting up"},
    {"00000000-0000-0000-0807-060504030201", "counting down: rockstor/rockstor-core 2143"},
    {"ffffff00-ffff-ffff-ffff-ffffffffffff", "FOGProject/fogproject, hostmanager.class.php"},
    {"4c4c4544-0000-2010-8020-80c04f202020", "Dell without a service tag: freebsd/freebsd-src, rc.d/hostid"},
    {"8a95d198-7f46-11e5-bf8b-08002704d48e", "EDK II's example for Arm: SolidRun/lx2160a_uefi 4"},
    {"07090201-0103-0301-0807-060504030201", "freebsd/freebsd-src, rc.d/hostid"},
    {"11111111-2222-3333-4444-555555555555", "freebsd/freebsd-src, rc.d/hostid"},
    {"890e2d14-cacd-45d1-ae66-bc80e8bfeb0f", "freebsd/freebsd-src, rc.d/hostid"},
    {"8e275844-178f-44a8-aceb-a7d7e5178c63", "freebsd/freebsd-src, rc.d/hostid"},
    {"dc698397-fa54-4cf2-82c8-b1b5307a6a7f", "freebsd/freebsd-src, rc.d/hostid"},
    {"deadbeef-dead-beef-dead-beefdeadbeef", "typed by hand"},
    {"not settable", "dmidecode, for all zeros"},
    {"not present", "dmidecode, for all ones"},
};

// Lower case, words separated by one blank.
constexpr Known kSerials[] = {
    {"to be filled by o.e.m.", "AMI: openshift/assisted-installer-agent 1625"},
    {"to be filled by oem", "AMI"},
    {"o.e.m.", "AMI"},
    {"default string", "AMI: lf-edge/eve 6381"},
    {"default", "lf-edge/eve 6381"},
    {"system serial number", "ASUS: lf-edge/eve 6381"},
    {"chassis serial number", "ASUS"},
    {"base board serial number", "FOGProject/fogproject, hostmanager.class.php"},
    {"type2 - board serial number", "FOGProject/fogproject, hostmanager.class.php"},
    {"serial number", "a field that contains its own name"},
    {"enter serial", "FOGProject/fogproject 198"},
    {"not specified", "dmidecode, for a missing field: lf-edge/eve 6381"},
    {"not applicable", "FOGProject/fogproject, hostmanager.class.php"},
    {"not available", "HPE, Lenovo"},
    {"not present", "dmidecode"},
    {"not settable", "dmidecode"},
    {"none", "Supermicro"},
    {"null", "firmware, for a missing value"},
    {"n/a", "firmware, for a missing value"},
    {"unknown", "VMware, QEMU"},
    {"invalid", "Lenovo"},
    {"empty", "Gigabyte"},
};

// Prefixes of addresses that many ports have, lower case. Counting sequences (00:01:02:03:04:05,
// 00:11:22:33:44:55) are recognized without an entry.
constexpr Known kAddresses[] = {
    {"00:00:5e:", "VRRP and CARP (RFC 5798, 7.3), and other IANA groups"},
    {"00:00:0c:07:ac:", "HSRP (RFC 2281, 5.1)"},
    {"00:05:73:a0:", "HSRP for IPv6 (Cisco's documentation)"},
    {"00:07:b4:00:", "GLBP (Cisco's documentation)"},
    {"00:00:00:00:00:", "adapters whose EEPROM was never written"},
    {"00:a0:c9:00:00:00", "Intel's adapters whose NVM was erased"},
    {"00:e0:4c:53:44:58", "Realtek USB adapters of several vendors"},
    {"be:3a:f2:b6:05:9f", "Insyde's RNDIS device in BMCs, same address on all: metal3-io/metal3-docs 595"},
    {"00:1a:7d:da:71:0a", "USB adapters: OCSInventory-NG/OCSInventory-ocsreports 1440"},
    {"00:1a:7d:da:71:13", "USB adapters of the same manufacturer"},
    {"88:88:88:88:87:88", "Intel's 82579 and I217 to I219 with an NVM that was never written"},
    {"08:00:27:00:01:92", "Nuvoton's boards: OpenNuvoton/NUC980-linux-4.4.y 8"},
    {"08:00:27:00:01:93", "Nuvoton's boards: OpenNuvoton/MA35D1_Buildroot 9"},
    {"00:02:03:04:05:06", "LibreRouterOrg/board 20"},
};

template <size_t N>
bool is_known(const Known (&list)[N], const std::string& value) {
  return std::any_of(std::begin(list), std::end(list), [&](const Known& one) { return value == one.value; });
}

bool is_shared_address(const std::string& mac) {
  return std::any_of(std::begin(kAddresses), std::end(kAddresses),
                     [&](const Known& one) { return mac.starts_with(one.value); });
}

// Returns the text in lower case, with each run of blanks and underscores as one blank, and none at the ends.
std::string plain_words(const std::string& text) {
  std::string out;
  for (const char c : lower(text)) {
    const bool blank = c == '_' || std::isspace(static_cast<unsigned char>(c));
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

bool all_same(const std::string& text) {
  return text.find_first_not_of(text.substr(0, 1)) == std::string::npos;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Ignores separators; nullopt if it has characters other than hexadecimal digits.
std::optional<std::vector<int>> bytes_of(const std::string& text, char between) {
  std::vector<int> out;
  std::string digits = text;
  digits.erase(std::remove(digits.begin(), digits.end(), between), digits.end());
  if (digits.size() % 2) return {};
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return {};
    out.push_back(high * 16 + low);
  }
  return out;
}

// True if each byte exceeds the one before by the same amount: 00 01 02, 00 11 22, or all equal.
bool counts_up(const std::vector<int>& bytes) {
  for (size_t i = 2; i < bytes.size(); ++i)
    if (((bytes[i] - bytes[i - 1]) & 255) != ((bytes[1] - bytes[0]) & 255)) return false;
  return true;
}

std::optional<std::vector<int>> address_of(const std::string& mac) {
  if (mac.size() != 17) return {};
  for (size_t i = 2; i < mac.size(); i += 3)
    if (mac[i] != ':') return {};
  auto bytes = bytes_of(lower(mac), ':');
  if (bytes && bytes->size() != 6) return {};
  return bytes;
}

}  // namespace

bool is_placeholder_uuid(const std::string& text) {
  constexpr size_t kDigits = 32, kTail = 24;
  const std::string uuid = lower(text);
  if (uuid.empty() || is_known(kUuids, plain_words(uuid))) return true;
  std::string digits = uuid;
  digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
  if (all_same(digits) && (digits.size() == kDigits || digits[0] == '0' || digits[0] == 'f')) return true;
  const auto bytes = bytes_of(uuid, '-');
  if (!bytes || digits.size() != kDigits) return false;
  // A random or constructed UUID has more than two different bytes. Zeros followed by a node's number do not
  // identify a machine either; zeros followed by a MAC address do (Supermicro).
  if (std::set<int>(bytes->begin(), bytes->end()).size() <= 2) return true;
  if (digits.compare(kDigits - kTail, kTail, std::string(kTail, 'f')) == 0)
    return true;  // freebsd/freebsd-src, rc.d/hostid: "*-ffff-ffff-ffff-ffffffffffff"
  return counts_up(*bytes);
}

bool names_one_thing(const std::string& text) {
  static const std::string kCounted = "01234567890123456789", kHex = "0123456789abcdef";
  const std::string serial = plain_words(text);
  if (serial.empty() || all_same(serial) || is_known(kSerials, serial)) return false;
  if (serial.size() > 4 &&
      (kCounted.find(serial) != std::string::npos || kHex.find(serial) != std::string::npos))
    return false;
  // QEMU's default for a drive.
  return !serial.starts_with("qm000") && !serial.starts_with("drive-");
}

bool is_station_address(const std::string& mac) {
  const auto bytes = address_of(mac);
  if (!bytes || bytes->front() & 1) return false;
  return std::any_of(bytes->begin(), bytes->end(), [](int byte) { return byte != 0; });
}

bool names_one_port(const std::string& mac) {
  const auto bytes = address_of(mac);
  return is_station_address(mac) && !(bytes->front() & 2) && !counts_up(*bytes) &&
         !is_shared_address(lower(mac));
}

bool is_usb_driver(const std::string& driver) {
  static const std::set<std::string> kDrivers = {
      "cdc_ether", "cdc_ncm", "cdc_eem",  "cdc_subset", "cdc_mbim", "rndis_host", "usbnet",
      "r8152",     "asix",    "smsc75xx", "smsc95xx",   "lan78xx",  "aqc111",     "ax88179_178a"};
  return kDrivers.count(driver) > 0;
}

}  // namespace muster
