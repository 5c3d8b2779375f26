#include <map>
#include <optional>
#include <set>

#include "base/digest.h"
#include "controller/boot/service/boot_service.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr char kMac[] = "52:54:00:00:00:01";
constexpr char kDisk[] = "#!ipxe\nexit 1\n";

struct Boot {
  TempDir dir;
  DurationMs netboot_limit = 0;
  std::string admitted;  // a MAC that is declared as node99
  ManualReactor reactor;
  MemStore store{reactor};
  Authority authority = Authority::open(dir.path("state"), {"127.0.0.1"}, 1'700'000'000'000).value();
  // The script is the token itself, so that tests can read it.
  BootService boot{
      reactor,
      store,
      authority,
      {[this](const std::string& mac) { return mac == kMac       ? "node01"
                                               : mac == admitted ? "node99"
                                                                 : ""; },
       [](const std::string& node, const std::string&, const std::string& token) -> Result<std::string> {
         return node + " " + token;
       },
       [this] { return netboot_limit; },
       [this](const std::string& node, EventKind kind, const Json& data) {
         ++reported;
         said[std::string(kind.word()) + "/" + data.value("action", "") + "/" + node] += 1;
       },
       [this](const std::string& node) { hung_up.push_back(node); },
       [this](const std::string& node, const std::string& reason) { contested.emplace_back(node, reason); },
       [](const std::string& node, const std::string& token) -> Result<Json> {
         return Json{{"node", node}, {"token", token}};
       },
       {},
       {},
       [this] { return any_port; }}};
  bool any_port = false;
  uint16_t port = 1023;  // that joins come from
  // What the node's own agent is given; "" when nothing is.
  std::string leave_token() {
    std::string got;
    boot.leave_order("node01", [&](Result<Json> params) {
      if (params.ok()) got = (*params)["token"].get<std::string>();
    });
    reactor.advance(100);
    return got;
  }
  std::map<std::string, int> said;  // "join/second/node01" -> how often
  int reported = 0;
  std::vector<std::string> hung_up;
  std::vector<std::pair<std::string, std::string>> contested;
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
    request.mode = mode;
    boot.join(
        request, [&](Result<wire::JoinReply> r) { got = std::move(r); }, "10.20.0.99", port);
    reactor.advance(100);
    return got;
  }
  wire::Mode mode = wire::Mode::ram;
  CertificateRow certificate(const Result<wire::JoinReply>& reply) {
    return store.certificate(pki::read_certificate(reply->certificate_pem)->serial).value();
  }
  std::string adopt_token() {
    std::string token;
    boot.mint("node01", "adopt", [&](Result<std::string> made) { token = *made; });
    reactor.advance(10);
    return token;
  }
  void arm() {
    boot.arm("node01", [](Status) {});
    reactor.advance(10);
  }
};

// The controller that comes after one that was killed: the same store, none of its memory.
struct Life {
  Boot& before;
  std::vector<std::string> contested;
  BootService boot{before.reactor,
                   before.store,
                   before.authority,
                   {[](const std::string&) { return "node01"; },
                    [](const std::string&, const std::string&,
                       const std::string& token) -> Result<std::string> { return token; },
                    [] { return DurationMs{0}; },
                    {},
                    {},
                    [this](const std::string& node, const std::string&) { contested.push_back(node); }}};
  explicit Life(Boot& one_before) : before(one_before) {}
  std::string token() {
    std::string got;
    boot.script_for(kMac, [&](Result<std::string> script) { got = *script; });
    before.reactor.advance(100);
    return got;
  }
  Result<wire::JoinReply> join(const std::string& token, const std::string& key) {
    wire::JoinRequest request;
    request.node = "node01";
    request.token = token;
    request.csr_pem = pki::make_csr(key, "node01").value();
    Result<wire::JoinReply> got = fail(Code::failed, "no answer");
    boot.join(request, [&](Result<wire::JoinReply> reply) { got = std::move(reply); });
    before.reactor.advance(100);
    return got;
  }
};

}  // namespace

TEST_CASE("the RAM system is for an armed node's MAC only", "[api]") {
  Boot b;
  CHECK(b.script() == kDisk);
  b.arm();
  CHECK(b.script("52:54:00:00:00:99") == kDisk);
  CHECK(b.script().starts_with("node01 "));
  CHECK(b.script("52-54-00-00-00-01").starts_with("node01 "));  // as iPXE writes it
  b.boot.disarm("node01");
  CHECK(b.script() == kDisk);
}

TEST_CASE("each request gets the same token, and polling does not spoil it", "[api]") {
  Boot b;
  b.arm();
  const std::string first = b.token();
  for (int i = 0; i < 200; ++i) CHECK(b.token() == first);
  CHECK(b.said["boot/script/node01"] == 1);
  CHECK(b.said["boot/often/node01"] == 1);
  CHECK(b.reported == 2);
  CHECK(b.join(first, pki::make_key().value()).ok());
}

TEST_CASE("a power-on that takes long gets few tokens, each good until one is used", "[api]") {
  Boot b;
  b.arm();
  std::set<std::string> tokens;
  std::string before;
  for (int minute = 0; minute < 300; ++minute) {
    const std::string now = b.token();
    if (now != before && !before.empty())
      CHECK(b.store.token(sha256(before)).ok());  // the one before is not taken back
    tokens.insert(before = now);
    b.reactor.advance(kMinute);
  }
  CHECK(tokens.size() == 8);
}

TEST_CASE("asked for twice at once, one token is made", "[api]") {
  Boot b;
  b.arm();
  std::vector<std::string> got;
  for (int i = 0; i < 3; ++i) b.boot.script_for(kMac, [&](Result<std::string> s) { got.push_back(*s); });
  b.reactor.advance(100);
  REQUIRE(got.size() == 3);
  CHECK(got[0] == got[2]);
  // Another power-on while one is being written: those who wait boot from disk, their token opens nothing.
  b.boot.disarm("node01");
  b.arm();
  b.boot.script_for(kMac, [&](Result<std::string> s) { got.push_back(*s); });
  b.arm();
  b.reactor.advance(100);
  REQUIRE(got.size() == 4);
  CHECK(got[3] == kDisk);
}

TEST_CASE("a join from a port that any user may use is refused, and changes nothing", "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token();  // which every user of another node can read
  for (const int port : {1024, 40000, 65535}) {
    b.port = static_cast<uint16_t>(port);
    CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
    CHECK(b.join("guessed", pki::make_key().value()).error().code == Code::denied);
  }
  CHECK(b.said["join/refused/"] == 6);
  b.port = 1023;
  const std::string key = pki::make_key().value();
  const auto joined = b.join(token, key);
  REQUIRE(joined.ok());
  // Nor is such a user taken for a second machine, which would stop the node.
  b.port = 40000;
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.empty());
  CHECK_FALSE(b.certificate(joined).contested);
  CHECK(b.said["join/second/node01"] == 0);
  // A lost answer is repeated to the same key, from a port of root's too.
  CHECK(b.join(token, key).error().code == Code::denied);
  b.port = 700;
  CHECK(b.join(token, key).ok());
}

TEST_CASE("behind an address translation that the spec declares, any port will do", "[api]") {
  Boot b;
  b.any_port = true;
  b.port = 40000;
  b.arm();
  CHECK(b.join(b.token(), pki::make_key().value()).ok());
  b.any_port = false;
  b.mode = wire::Mode::adopted;
  CHECK(b.join(b.adopt_token(), pki::make_key().value()).error().code == Code::denied);
}

TEST_CASE("once its power-on is over, a node's unused tokens open nothing", "[api]") {
  Boot b;
  b.arm();
  const std::string stolen = b.token();
  b.boot.disarm("node01");
  CHECK(b.join(stolen, pki::make_key().value()).error().code == Code::denied);
  b.arm();
  CHECK(b.join(stolen, pki::make_key().value()).error().code == Code::denied);  // nor in the next one
  const std::string used = b.token(), key = pki::make_key().value();
  REQUIRE(b.join(used, key).ok());
  b.boot.disarm("node01");
  CHECK(b.join(used, key).ok());  // its answer may have been lost
  CHECK(b.contested.empty());
}

TEST_CASE(
    "a token that a life of the controller before handed out is good in the power-on it continues, and in no "
    "other",
    "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token();
  Life next(b);
  const bool goes_on = GENERATE(true, false);
  if (goes_on)
    next.boot.rearm("node01", [](Status) {});
  else
    next.boot.arm("node01", [](Status) {});
  b.reactor.advance(100);
  CHECK(next.join(token, pki::make_key().value()).ok() == goes_on);
}

TEST_CASE("who joined before the controller restarted keeps its place in the power-on that goes on",
          "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token(), key = pki::make_key().value();
  const auto first = b.join(token, key);
  REQUIRE(first.ok());
  Life next(b);
  next.boot.rearm("node01", [](Status) {});
  b.reactor.advance(100);
  CHECK(next.join(token, key).ok());  // the same machine, whose answer may have been lost
  CHECK(next.contested.empty());
  // A stranger who asks for the script gets a token that opens nothing, and asking often makes no more of
  // them.
  const std::string stolen = next.token();
  REQUIRE(stolen.size() == 48);
  CHECK(next.token() == stolen);
  CHECK(next.join(stolen, pki::make_key().value()).error().code == Code::denied);
  CHECK(next.contested == std::vector<std::string>{"node01"});
  CHECK_FALSE(b.certificate(first).revoked);
  CHECK(b.certificate(first).contested);
}

TEST_CASE("a power-on that begins has no tokens of the one before, durably", "[api]") {
  Boot b;
  b.arm();
  const std::string used = b.token();
  REQUIRE(b.join(used, pki::make_key().value()).ok());
  const std::string adopting = b.adopt_token();
  Status armed = fail(Code::failed, "not yet");
  b.boot.arm("node01", [&](Status done) { armed = done; });
  CHECK_FALSE(armed.ok());  // not before the store has it
  b.reactor.advance(100);
  REQUIRE(armed.ok());
  CHECK(b.store.token(sha256(used)).error().code == Code::not_found);
  CHECK(b.store.token(sha256(adopting)).ok());
  Life next(b);
  next.boot.rearm("node01", [](Status) {});
  b.reactor.advance(100);
  CHECK(next.join(next.token(), pki::make_key().value()).ok());  // no machine had joined in this one
  CHECK(next.contested.empty());
  b.store.fail_next(1, fail(Code::failed, "disk full"));
  b.boot.arm("node01", [&](Status done) { armed = done; });
  b.reactor.advance(100);
  CHECK_FALSE(armed.ok());
}

TEST_CASE("a second join in one power-on is refused, revokes nothing, and stops the node", "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token();
  const auto first = b.join(token, pki::make_key().value());
  REQUIRE(first.ok());
  CHECK(b.token() == token);  // who comes late is to be noticed
  CHECK(b.said["join/joined/node01"] == 1);
  const bool disarmed = GENERATE(false, true);  // whether the first said hello already
  if (disarmed) b.boot.disarm("node01");
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  REQUIRE(b.contested.size() == 1);
  CHECK(b.contested[0].first == "node01");
  CHECK(b.said["join/second/node01"] == 1);
  CHECK_FALSE(b.certificate(first).revoked);
  CHECK(b.certificate(first).contested);
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.size() == 1);  // once is enough
  // The next power-on settles it.
  b.boot.disarm("node01");
  b.arm();
  const std::string next = b.token();
  CHECK(next != token);
  const auto second = b.join(next, pki::make_key().value());
  REQUIRE(second.ok());
  CHECK(b.certificate(first).revoked);
  CHECK_FALSE(b.certificate(second).revoked);
  CHECK_FALSE(b.certificate(second).contested);
  // What was contested in an earlier power-on is no trouble of this one.
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.size() == 1);
}

TEST_CASE("a spent token that is shown again when the installed system works stops no node", "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token();
  const auto first = b.join(token, pki::make_key().value());
  REQUIRE(first.ok());
  b.boot.disarm("node01");
  NodeRow row;
  row.name = "node01";
  row.mode = "installed";
  b.store.write({row}, [](Status) {});
  b.reactor.advance(100);
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.empty());
  CHECK_FALSE(b.certificate(first).contested);
  CHECK_FALSE(b.certificate(first).revoked);
  CHECK(b.said["join/late/node01"] == 1);
  b.arm();  // the next power-on: its own second join counts
  const std::string next = b.token();
  REQUIRE(b.join(next, pki::make_key().value()).ok());
  CHECK(b.join(next, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.size() == 1);
}

TEST_CASE("two tokens of one power-on are one join", "[api]") {
  Boot b;
  b.arm();
  const std::string old = b.token();
  b.reactor.advance(11 * kMinute);
  const std::string fresh = b.token();
  REQUIRE(old != fresh);
  const auto first = b.join(old, pki::make_key().value());
  REQUIRE(first.ok());
  CHECK(b.join(fresh, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.size() == 1);
  CHECK(b.certificate(first).contested);
}

TEST_CASE("the first join of a power-on ends every older certificate of the node, all or nothing", "[api]") {
  Boot b;
  b.store.write({CertificateRow{"aa", "node01", "", 0}, CertificateRow{"bb", "node02", "", 0}},
                [](Status) {});
  b.arm();
  const std::string token = b.token(), key = pki::make_key().value();
  b.store.fail_next(1, fail(Code::failed, "disk full"));
  CHECK_FALSE(b.join(token, key).ok());
  CHECK_FALSE(b.store.certificate("aa")->revoked);
  CHECK(b.hung_up.empty());
  const auto joined = b.join(token, key);
  REQUIRE(joined.ok());
  CHECK(b.store.certificate("aa")->revoked);
  CHECK_FALSE(b.store.certificate("bb")->revoked);
  CHECK_FALSE(b.certificate(joined).revoked);
  CHECK(b.hung_up == std::vector<std::string>{"node01"});  // a poll under an older one gets no order any more
}

TEST_CASE("adopting again ends the certificate of the first time; the token is one machine's", "[api]") {
  Boot b;
  b.mode = wire::Mode::adopted;
  const auto first = b.join(b.adopt_token(), pki::make_key().value());
  REQUIRE(first.ok());
  const std::string token = b.adopt_token();
  const auto second = b.join(token, pki::make_key().value());
  REQUIRE(second.ok());
  CHECK(b.certificate(first).revoked);
  CHECK_FALSE(b.certificate(second).revoked);
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.contested.size() == 1);
  CHECK(b.certificate(second).contested);
}

TEST_CASE("a second machine ends the certificates that the first one has renewed, too", "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token(), key = pki::make_key().value();
  const auto first = b.join(token, key);
  REQUIRE(first.ok());
  CertificateRow shown = b.certificate(first);
  shown.issued -= 200 * kDay;
  Result<wire::JoinReply> renewed = fail(Code::failed, "no answer");
  b.boot.renew(shown, pki::make_csr(key, "node01").value(),
               [&](Result<wire::JoinReply> r) { renewed = std::move(r); });
  b.reactor.advance(100);
  REQUIRE(renewed.ok());
  CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  CHECK(b.certificate(first).contested);
  CHECK(b.certificate(renewed).contested);
}

TEST_CASE("a script that is requested while the RAM system runs is reported, once", "[api]") {
  Boot b;
  b.arm();
  REQUIRE(b.join(b.token(), pki::make_key().value()).ok());
  b.boot.disarm("node01");  // it said hello
  CHECK(b.script() == kDisk);
  CHECK(b.script() == kDisk);
  CHECK(b.said["boot/again/node01"] == 1);
  b.arm();
  REQUIRE(b.join(b.token(), pki::make_key().value()).ok());
  b.boot.disarm("node01");
  b.boot.disarm("node01");  // and boots from its disk
  CHECK(b.script() == kDisk);
  CHECK(b.said["boot/again/node01"] == 1);
}

TEST_CASE("refused joins are reported, and a flood of them is not kept", "[api]") {
  Boot b;
  b.arm();
  const std::string key = pki::make_key().value();
  for (int i = 0; i < 300; ++i) CHECK_FALSE(b.join("guessed", key).ok());
  CHECK(b.said["join/refused/"] == 60);
  CHECK(b.said["join/flood/"] == 1);
  b.reactor.advance(kMinute);
  (void)b.join("guessed", key);
  CHECK(b.said["join/refused/"] == 61);
}

TEST_CASE("a call with a revoked certificate is reported once", "[api]") {
  Boot b;
  for (int i = 0; i < 5; ++i) b.boot.saw_revoked("node01", "aa", "10.20.0.99");
  CHECK(b.said["join/revoked/node01"] == 1);
}

TEST_CASE("tokens that expired are not kept", "[api]") {
  Boot b;
  b.arm();
  const std::string first = b.token();
  b.reactor.advance(kDay + 31 * kMinute);  // by then no clock that was set can have been meant
  (void)b.token();
  CHECK(b.store.token(sha256(first)).error().code == Code::not_found);
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

TEST_CASE("a token lives as long as it was made for, whatever is done to the clock", "[api]") {
  Boot b;
  b.arm();
  const std::string token = b.token();
  SECTION("set forth while its node boots") {
    b.reactor.set_clock(35 * kMinute);
    CHECK(b.join(token, pki::make_key().value()).ok());
  }
  SECTION("set back: it does not live longer") {
    b.reactor.set_clock(-24 * 60 * kMinute);
    b.reactor.advance(kMinute * 21);
    CHECK(b.join(token, pki::make_key().value()).error().code == Code::denied);
  }
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
  CHECK(b.join(b.token(), key, "").error().code ==
        Code::denied);  // one that shows none is another machine too
  CHECK(b.said["join/refused/"] == 2);
  CHECK(b.join(b.token(), key, "aaaa").ok());
}

TEST_CASE("undeclared machines are noted, and booted only while discovery is on", "[api]") {
  Boot b;
  CHECK(b.script("52:54:00:00:00:99") == kDisk);
  CHECK(b.boot.unknown_macs().count("52:54:00:00:00:99") == 1);
  b.boot.discover_unknown(true);
  CHECK(b.script("52:54:00:00:00:99").starts_with("unknown-52:54:00:00:00:99 "));
  CHECK(b.script("52-54-00-00-00-9A").starts_with("unknown-52:54:00:00:00:9a "));
  CHECK(b.script() == kDisk);            // declared and not armed: nothing changed for it
  CHECK(b.script("anything") == kDisk);  // no MAC, no name, no token
  CHECK(b.boot.unknown_macs().count("anything") == 0);
  b.boot.discover_unknown(false);
  CHECK(b.script("52:54:00:00:00:99") == kDisk);
}

TEST_CASE("an undeclared machine's token opens its own name, while discovery is on, until it is declared",
          "[api]") {
  Boot b;
  const std::string mac = "52:54:00:00:00:99", name = "unknown-" + mac, key = pki::make_key().value();
  const auto token = [&] { return b.script(mac).substr(name.size() + 1); };
  b.boot.discover_unknown(true);
  const std::string first = token(), second = token();
  CHECK(b.join(second, key).error().code == Code::denied);           // as node01
  CHECK(b.join(first, key, "", name).error().code == Code::denied);  // an older one
  CHECK(b.join(second, key, "", name).ok());
  CHECK(b.join(second, pki::make_key().value(), "", name).error().code == Code::denied);
  const std::string off = token();
  b.boot.discover_unknown(false);
  CHECK(b.join(off, key, "", name).error().code == Code::denied);
  b.boot.discover_unknown(true);
  CHECK(b.join(off, key, "", name).error().code == Code::denied);  // of the time before
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
  CHECK(mac_of_unknown("unknown-52-54-00-aa-00-01").empty());  // a host name, so a spec may declare it
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
    b.boot.renew({"0a", "node01", "f", issued}, csr, [&](Result<wire::JoinReply> r) { got = std::move(r); });
    b.reactor.advance(100);
  };
  renew(b.reactor.now() - 181 * kDay);
  CHECK(got.error().code == Code::conflict);
  renew(b.reactor.now() - 183 * kDay);
  REQUIRE(got.ok());
  const auto info = pki::read_certificate(got->certificate_pem).value();
  CHECK(info.common_name == "node01");  // the name of who asks, not of the request
  CHECK(info.serial != pki::read_certificate(first->certificate_pem)->serial);
  CHECK(b.store.certificate(info.serial)->node == "node01");
  b.boot.renew({"0a", "node01", "f", 0}, "no request",
               [&](Result<wire::JoinReply> r) { got = std::move(r); });
  CHECK(got.error().code == Code::invalid);
}

TEST_CASE("the server's certificate is renewed in its last third, the CA is not", "[api]") {
  TempDir dir;
  const auto open = [&](TimeMs now) {
    return Authority::open(dir.path("state"), {"127.0.0.1"}, now).value();
  };
  const auto first = open(0);
  const TimeMs end = pki::read_certificate(first.server().certificate_pem)->not_after;
  CHECK(open(end - 276 * kDay).server().certificate_pem == first.server().certificate_pem);
  const auto second = open(end - 274 * kDay);
  CHECK(second.server().certificate_pem != first.server().certificate_pem);
  CHECK(second.ca_pem() == first.ca_pem());
  CHECK(first.certificate_ends().at("server") == end);
  CHECK(second.certificate_ends().at("ca") == first.certificate_ends().at("ca"));
}

TEST_CASE("an agent that hands over by itself is given a token of the power-on that is pending",
          "[api][kexec]") {
  Boot b;
  CHECK(b.leave_token() == "");  // none is
  b.arm();
  const std::string first = b.leave_token(), second = b.leave_token();
  CHECK(first != "");
  CHECK(first != second);  // the controller was restarted in between, say: both are good, and one joins
  const std::string key = pki::make_key().value();
  const auto joined = b.join(first, key);
  REQUIRE(joined.ok());
  CHECK(b.join(first, key).ok());  // its answer was lost
  SECTION("the other one is a second machine's") {
    CHECK_FALSE(b.join(second, pki::make_key().value()).ok());
    CHECK(b.contested.size() == 1);
  }
  SECTION("and of no use in the next power-on") {
    b.arm();
    CHECK_FALSE(b.join(second, pki::make_key().value()).ok());
    CHECK(b.contested.empty());
  }
  b.boot.disarm("node01");
  CHECK(b.leave_token() == "");
}
