// Short texts of a fixed form: the scanner itself, and MAC addresses.
#include "base/scan.h"

#include "base/mac.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a scan passes only what it was called for", "[base]") {
  const std::string text = "ab12-x";
  Scan scan(text);
  CHECK_FALSE(scan.skip("b"));
  CHECK(scan.skip("a"));
  CHECK(scan.take(is_digit).empty());
  CHECK(scan.take(is_hex, 2) == "b1");
  CHECK_FALSE(scan.skip(2, is_digit));
  CHECK(scan.rest() == "2-x");
  CHECK(scan.skip(1, is_digit));
  CHECK(scan.skip(""));
  CHECK_FALSE(scan.skip("-xy"));
  CHECK(scan.skip("-x"));
  CHECK(scan.ended());
  CHECK_FALSE(scan.skip("-"));
  CHECK_FALSE(scan.skip(1, is_letter));
  CHECK(scan.take(is_letter).empty());
}

TEST_CASE("characters are ASCII's: bytes over 127 and neighbours of the ranges are none", "[base]") {
  for (const char c : {'\xc3', '\xa4', '\0', '/', ':', '@', '[', '`', '{'}) {
    CHECK_FALSE(is_digit(c));
    CHECK_FALSE(is_letter(c));
    CHECK_FALSE(is_hex(c));
  }
  for (const char c : {'0', '9', 'a', 'f', 'A', 'F'}) CHECK(is_hex(c));
  for (const char c : {'g', 'G', 'z'}) CHECK_FALSE(is_hex(c));
  CHECK_FALSE(is_lower('A'));
  CHECK(is_letter('Z'));
}

TEST_CASE("a MAC address is six pairs of digits between colons", "[base][mac]") {
  for (const char* good : {"52:54:00:aa:00:01", "52:54:00:AA:00:01", "00:00:00:00:00:00"})
    CHECK(is_mac(good));
  for (const char* bad :
       {"", "52:54:00:aa:00", "52:54:00:aa:00:0", "52:54:00:aa:00:01:", "52:54:00:aa:00:01:02",
        "52-54-00-aa-00-01", "525400aa0001", "52:54:00:aa:00:0g", "52:54:00:aa:00: 1", "5:254:00:aa:00:01",
        ":2:54:00:aa:00:01", "52:54:00:aa:00:01\n"})
    CHECK_FALSE(is_mac(bad));
}

TEST_CASE("a MAC address in one form, whichever it was written in", "[base][mac]") {
  CHECK(normal_mac("52-54-00-AA-00-01") == "52:54:00:aa:00:01");
  CHECK(normal_mac("52:54:00:AA:00:01") == "52:54:00:aa:00:01");
  CHECK(normal_mac("52:54-00:aa-00:01") == "52:54:00:aa:00:01");
  CHECK(normal_mac("") == "");
  CHECK_FALSE(is_mac(normal_mac("Spare-01")));
  CHECK_FALSE(is_mac(normal_mac("52.54.00.aa.00.01")));
}
