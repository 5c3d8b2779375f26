// Equal faults of different nodes read alike; different faults do not.
#include "controller/causes/normal_reason.h"

#include "tests/catch.h"

using namespace muster;

namespace {

bool is_gpu(const std::string& word) { return word == "gpu01" || word == "gpu02" || word == "gpu03"; }
std::string normal(const std::string& reason) { return normal_reason(reason, is_gpu); }

}  // namespace

TEST_CASE("reasons: what differs from node to node is taken out", "[causes]") {
  const std::pair<const char*, const char*> same[] = {
      {"gpu01 has no link", "gpu02 has no link"},
      {"10.20.0.11 refused the connection", "10.20.0.112 refused the connection"},
      {"no answer from 10.20.0.11:22: timed out", "no answer from 10.20.0.12:22: timed out"},
      {"NIC 52:54:00:aa:00:01 has no link", "NIC 52:54:00:0b:ff:0c has no link"},
      {"fe80::1 is not reachable", "fe80::ff:2 is not reachable"},
      {"GPU 0000:4b:00.0 fell off the bus", "GPU 0000:0a:00.0 fell off the bus"},
      {"it booted image 'sha256:3f2a91c0'", "it booted image 'sha256:90b1d2aa'"},
      {"uuid 7b0ed4a2-6c1d-4e86-9e0f-000000000001", "uuid 1f0ed4a2-6c1d-4e86-9e0f-0000000000ff"},
      {"at 22:40 the disk had 91 % free", "at 3:05 the disk had 7 % free"},
      {"dgemm/gflops: 1234.5 is below 1300 GFLOP/s", "dgemm/gflops: 99 is below 1300.25 GFLOP/s"},
      {"serial S5XN1G0R is not declared", "serial S6ZA9K4T is not declared"},
      {"failed with gpu01, gpu02", "failed with gpu03"},
      {"failed with gpu01, gpu02, gpu03: refused", "failed with gpu02: refused"},
      {"eth0 has no link", "eth1 has no link"},
  };
  for (const auto& [a, b] : same) {
    CAPTURE(a, b);
    CHECK(normal(a) == normal(b));
  }
}

TEST_CASE("reasons: what names the fault stays", "[causes]") {
  const std::pair<const char*, const char*> different[] = {
      {"gpu01 has no link", "gpu01 has no power"},
      {"ssh/harden: exit 1", "base/packages: exit 1"},
      {"eth0 has no link", "ib0 has no link"},
      {"connection refused", "connection timed out"},
      {"the disk is full", ""},
  };
  for (const auto& [a, b] : different) {
    CAPTURE(a, b);
    CHECK(normal(a) != normal(b));
  }
  CHECK(normal("no number, no name") == "no number, no name");
  CHECK(normal("").empty());
  CHECK(normal("...") == "...");
  // Only whole words are names.
  CHECK(normal("gpu01x") == normal("gpu02x"));
  CHECK(normal("agpu01 failed") != normal("gpu01 failed"));
}

TEST_CASE("reasons: of one that is long only the start is read", "[causes]") {
  constexpr size_t kLong = 1 << 20, kLongest = 1000, kMostLookUps = 2000;
  const auto repeated = [](const std::string& text) {
    std::string out;
    while (out.size() < kLong) out += text;
    return out;
  };
  for (const std::string text : {".", "x", "a ", "gpu01, ", "\xc3\xbc"}) {
    CAPTURE(text);
    size_t look_ups = 0;
    const std::string out = normal_reason(repeated(text), [&](const std::string& word) {
      ++look_ups;
      return is_gpu(word);
    });
    CHECK(!out.empty());
    CHECK(out.size() <= kLongest);
    CHECK(look_ups <= kMostLookUps);
  }
}

TEST_CASE("reasons: where a long one is cut does not depend on the length of names", "[causes]") {
  std::string end;
  for (int i = 0; i < 1000; ++i) end += " the disk is full";
  const auto is_node = [](const std::string& word) { return word == "n1" || word == "a-node-of-rack-17"; };
  CHECK(normal_reason("n1:" + end, is_node) == normal_reason("a-node-of-rack-17:" + end, is_node));
}
