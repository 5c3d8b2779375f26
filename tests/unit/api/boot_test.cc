#include <optional>

#include "base/digest.h"
#include "controller/boot_port.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr char kMac[] = "52:54:00:00:00:01";
constexpr char kDisk[] = "#!ipxe\nexit\n";

struct Boot {
  TempDir dir;
  DurationMs netboot_limit = 0;
  std::string admitted;   // a MAC that is declared as node99
  ManualReactor reactor;
  MemStore store{reactor};
  Authority authority = Authority::open(dir.path("state"), {"127.0.0.1"}, 1'700'000'000'000).value();
  // The script is the token itself, so that tests can read it.
  BootService boot{reactor, store, authority,
                   {[this](const std::string& mac) { return mac == kMac ? "node01" : mac == admitted ? "node99" : ""; },
                    [](const std::string& node, const std::string&, const std::string& token) -> Result<std::string> {
                      return node + " " + token;
                    },
                    [this] { return netboot_limit; }}};
  std::string script(const std::string& mac = kMac) {
    std::optional<std::string> got;
    boot.script_for(mac, [&](Result<std::string> s) { got = *s; });
    reactor.advance(100);
    return got.value_or("");
  }
  std::string token() { return script().substr(std::string("node01 ").size()); }
  Result<wire::JoinReply> join(const std::string& token, const std::string& key, const std::string& uuid = "",
                               const std::string& node = "node01") {
    wire::JoinRequest request;
    request.node = node;
    request.token = token;
    request.csr_pem = pki::make_csr(key, node).value();
    request.product_uuid = uuid;
    Result<wire::JoinReply> got = fail(Code::failed, "no answer");
    boot.join(request, [&](Result<wire::JoinReply> r) { got = std::move(r); });
    reactor.advance(100);
    return got;
  }
  void arm() {
    boot.arm("node01", [](Status) {});
    reactor.advance(10);
  }
};

}  // namespace

TEST_CASE("the RAM system is for an armed node's MAC only", "[api]") {
  Boot b;
  CHECK(b.script() == kDisk);
  b.arm();
  CHECK(b.script("52:54:00:00:00:99") == kDisk);
  CHECK(b.script().rfind("node01 ", 0) == 0);
  CHECK(b.script("52-54-00-00-00-01").rfind("node01 ", 0) == 0);  // as iPXE writes it
  b.boot.disarm("node01");
  CHECK(b.script() == kDisk);
}

TEST_CASE("each fetch has a token of its own, and only the last one opens", "[api]") {
  Boot b;
  b.arm();
  const std::string first = b.token(), second = b.token();
  CHECK(first != second);
  const std::string key = pki::make_key().value();
  CHECK(b.join(first, key).error().code == Code::denied);
  CHECK(b.join(second, key).ok());
}

TEST_CASE("once its power-on is over, a node's unused tokens open nothing", "[api]") {
  Boot b;
  b.arm();
  const std::string stolen = b.token(), used = b.token(), key = pki::make_key().value();
  REQUIRE(b.join(used, key).ok());
  b.boot.disarm("node01");
  CHECK(b.join(stolen, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.join(used, key).ok());   // its answer may have been lost
}

TEST_CASE("a token outlives the longest netboot", "[api]") {
  Boot b;
  b.netboot_limit = 40 * kMinute;
  b.arm();
  const std::string token = b.token(), key = pki::make_key().value();
  b.reactor.advance(b.netboot_limit);
  CHECK(b.join(token, key).ok());
}

TEST_CASE("tokens expire, and the store never has one in clear", "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token();
  CHECK(b.store.token(sha256(token)).ok());
  CHECK_FALSE(b.store.token(token).ok());
  b.reactor.advance(kMinute * 21);
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
}

TEST_CASE("another machine under a bound name is refused", "[api]") {
  Boot b;
  NodeRow row;
  row.name = "node01";
  row.product_uuid = "aaaa";
  b.store.write({row}, [](Status) {});
  b.arm();
  const std::string key = pki::make_key().value();
  CHECK(b.join(b.token(), key, "bbbb").error().code == Code::denied);
  CHECK(b.join(b.token(), key, "aaaa").ok());
}

TEST_CASE("machines nobody declared are noted, and booted only while discovery is on", "[api]") {
  Boot b;
  CHECK(b.script("52:54:00:00:00:99") == kDisk);
  CHECK(b.boot.unknown_macs().count("52:54:00:00:00:99") == 1);
  b.boot.discover_unknown(true);
  CHECK(b.script("52:54:00:00:00:99").rfind("unknown-52:54:00:00:00:99 ", 0) == 0);
  CHECK(b.script("52-54-00-00-00-9A").rfind("unknown-52:54:00:00:00:9a ", 0) == 0);
  CHECK(b.script() == kDisk);             // declared and not armed: nothing changed for it
  CHECK(b.script("anything") == kDisk);   // no MAC, no name, no token
  CHECK(b.boot.unknown_macs().count("anything") == 0);
  b.boot.discover_unknown(false);
  CHECK(b.script("52:54:00:00:00:99") == kDisk);
}

TEST_CASE("an undeclared machine's token opens its own name, while discovery is on, until it is declared", "[api]") {
  Boot b;
  const std::string mac = "52:54:00:00:00:99", name = "unknown-" + mac, key = pki::make_key().value();
  const auto token = [&] { return b.script(mac).substr(name.size() + 1); };
  b.boot.discover_unknown(true);
  const std::string first = token(), second = token();
  CHECK(b.join(second, key).error().code == Code::denied);                // as node01
  CHECK(b.join(first, key, "", name).error().code == Code::denied);       // an older one
  CHECK(b.join(second, key, "", name).ok());
  CHECK(b.join(second, pki::make_key().value(), "", name).error().code == Code::denied);
  const std::string off = token();
  b.boot.discover_unknown(false);
  CHECK(b.join(off, key, "", name).error().code == Code::denied);
  b.boot.discover_unknown(true);
  CHECK(b.join(off, key, "", name).error().code == Code::denied);         // of the time before
  const std::string last = token();
  b.admitted = mac;
  CHECK(b.join(last, key, "", name).error().code == Code::denied);
}

TEST_CASE("many MACs do not fill the store", "[api]") {
  Boot b;
  b.boot.discover_unknown(true);
  int booted = 0;
  for (int i = 0; i < 300; ++i) {
    char mac[18];
    std::snprintf(mac, sizeof mac, "52:54:00:00:%02x:%02x", 1 + i / 256, i % 256);
    booted += b.script(mac) != kDisk;
  }
  CHECK(booted == 256);
  CHECK(b.boot.unknown_macs().size() == 256);
}

TEST_CASE("names of undeclared machines", "[api]") {
  CHECK(unknown_name("52-54-00-AA-00-01") == "unknown-52:54:00:aa:00:01");
  CHECK(mac_of_unknown("unknown-52:54:00:aa:00:01") == "52:54:00:aa:00:01");
  CHECK(mac_of_unknown("unknown-52:54:00:aa:00").empty());
  CHECK(mac_of_unknown("unknown-52-54-00-aa-00-01").empty());   // a host name, so a spec may declare it
  CHECK(mac_of_unknown("node01").empty());
}

TEST_CASE("an agent's certificate is renewed once half of its life is over", "[api]") {
  Boot b;
  b.arm();
  const std::string key = pki::make_key().value();
  const auto first = b.join(b.token(), key);
  REQUIRE(first.ok());
  const std::string csr = pki::make_csr(key, "whoever").value();
  Result<wire::JoinReply> got = fail(Code::failed, "no answer");
  const auto renew = [&](TimeMs issued) {
    b.boot.renew("node01", csr, issued, [&](Result<wire::JoinReply> r) { got = std::move(r); });
    b.reactor.advance(100);
  };
  renew(b.reactor.now() - 181 * kDay);
  CHECK(got.error().code == Code::conflict);
  renew(b.reactor.now() - 183 * kDay);
  REQUIRE(got.ok());
  const auto info = pki::read_certificate(got->certificate_pem).value();
  CHECK(info.common_name == "node01");   // the name of who asks, not of the request
  CHECK(info.serial != pki::read_certificate(first->certificate_pem)->serial);
  CHECK(b.store.certificate(info.serial)->node == "node01");
  b.boot.renew("node01", "no request", 0, [&](Result<wire::JoinReply> r) { got = std::move(r); });
  CHECK(got.error().code == Code::invalid);
}

TEST_CASE("the server's certificate is made anew in its last third, the CA is not", "[api]") {
  TempDir dir;
  const auto open = [&](TimeMs now) { return Authority::open(dir.path("state"), {"127.0.0.1"}, now).value(); };
  const auto first = open(0);
  const TimeMs end = pki::read_certificate(first.server().certificate_pem)->not_after;
  CHECK(open(end - 276 * kDay).server().certificate_pem == first.server().certificate_pem);
  const auto second = open(end - 274 * kDay);
  CHECK(second.server().certificate_pem != first.server().certificate_pem);
  CHECK(second.ca_pem() == first.ca_pem());
}
