// The two steps of replacing the CA, as files, and as agents and attackers see them at the TLS port.
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "controller/api/services.h"
#include "controller/daemon.h"
#include "controller/trust/authority.h"
#include "sys/http/http.h"
#include "sys/os.h"
#include "sys/pki.h"
#include "sys/reactor.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr TimeMs kNow = 1'700'000'000'000;

struct Pki {
  TempDir dir;
  const Files files{dir.path("state")};
  Authority open() const { return Authority::open(dir.path("state"), {"127.0.0.1"}, kNow).value(); }
};

bool is_of(const std::string& ca_pem, const std::string& certificate_pem) {
  const TimeMs then = pki::read_certificate(certificate_pem)->not_before + kDay;
  return pki::verify_certificate(ca_pem, certificate_pem, then).ok();
}

std::string csr() { return pki::make_csr(pki::make_key().value(), "node01").value(); }

}  // namespace

TEST_CASE("a CA is replaced in two steps, and between them agents trust both", "[replace]") {
  Pki p;
  Authority a = p.open();
  const std::string old = a.ca_pem(), pin = a.ca_fingerprint(), trust = a.trust(), digest = a.tls_digest();
  CHECK(a.identity() == pin);
  REQUIRE(a.withdraw_ca(kNow).ok());  // there is nothing to withdraw
  CHECK(a.tls_digest() == digest);

  REQUIRE(a.begin_ca(kNow).ok());
  CHECK(a.replacing_ca());
  CHECK(a.ca_pem().starts_with(old));
  CHECK(pki::certificate_fingerprints(a.ca_pem())->size() == 2);
  CHECK(a.trust() != trust);
  CHECK(a.tls_digest() != digest);
  const std::string next = a.ca_pem().substr(old.size());
  // Agents that trust the old CA only must still reach the controller.
  CHECK(a.ca_fingerprint() == pin);
  CHECK(is_of(old, a.server().certificate_pem));
  const auto agent = a.sign_agent("node01", csr());
  REQUIRE(agent.ok());
  CHECK(is_of(next, agent->pem));
  CHECK_FALSE(is_of(old, agent->pem));
  const std::string both = a.ca_pem();
  REQUIRE(a.begin_ca(kNow).ok());
  CHECK(a.ca_pem() == both);

  REQUIRE(a.withdraw_ca(kNow).ok());
  CHECK_FALSE(a.replacing_ca());
  CHECK(a.ca_pem() == next);
  CHECK(a.ca_fingerprint() == pki::certificate_fingerprint(next).value());
  CHECK(is_of(next, a.server().certificate_pem));
  CHECK(is_of(next, a.sign_agent("node01", csr())->pem));
  CHECK(a.identity() == pin);  // the disks carry it
  CHECK_FALSE(p.files.exists("/pki/ca-next.key"));
  CHECK_FALSE(p.files.exists("/pki/ca-next.crt"));
  CHECK(p.open().tls_digest() == a.tls_digest());

  // And once more.
  REQUIRE(a.begin_ca(kNow).ok());
  REQUIRE(a.withdraw_ca(kNow).ok());
  CHECK(a.ca_pem() != next);
  CHECK(p.open().identity() == pin);
}

TEST_CASE("a controller killed while it replaces the CA comes back at one of the two steps", "[replace]") {
  Pki p;
  Authority a = p.open();
  const std::string old = a.ca_pem(), pin = a.ca_fingerprint();
  SECTION("the next CA has a key and no certificate") {
    REQUIRE(p.files.write("/pki/ca-next.key", "a key", 0600).ok());
    CHECK_FALSE(p.open().replacing_ca());
    CHECK(p.open().ca_pem() == old);
    CHECK_FALSE(p.files.exists("/pki/ca-next.key"));
  }
  SECTION("the next CA is made") {
    REQUIRE(a.begin_ca(kNow).ok());
    CHECK(p.open().ca_pem() == a.ca_pem());
    CHECK(p.open().ca_fingerprint() == pin);
  }
  SECTION("the old CA is being withdrawn") {
    REQUIRE(a.begin_ca(kNow).ok());
    const std::string key = p.files.read("/pki/ca-next.key").value();
    const std::string next = p.files.read("/pki/ca-next.crt").value();
    REQUIRE(p.files.write("/pki/identity", pin).ok());
    SECTION("nothing was overwritten yet") {
      CHECK(p.open().replacing_ca());
      CHECK(p.open().identity() == pin);
      REQUIRE(a.withdraw_ca(kNow).ok());
    }
    SECTION("its key is overwritten") {}
    SECTION("its certificate, too") { REQUIRE(p.files.write("/pki/ca.crt", next).ok()); }
    SECTION("and one file of the next CA is gone") {
      REQUIRE(p.files.write("/pki/ca.crt", next).ok());
      REQUIRE(p.files.remove("/pki/ca-next.crt").ok());
    }
    REQUIRE(p.files.write("/pki/ca.key", key, 0600).ok());
    const Authority after = p.open();
    CHECK_FALSE(after.replacing_ca());
    CHECK(after.ca_pem() == next);
    CHECK(is_of(next, after.server().certificate_pem));
    CHECK(is_of(next, after.sign_agent("node01", csr())->pem));
    CHECK(after.identity() == pin);
    CHECK_FALSE(p.files.exists("/pki/ca-next.key"));
    CHECK(p.open().tls_digest() == after.tls_digest());
  }
}

TEST_CASE("a replaced operator token is the only one, and survives a restart", "[replace]") {
  Pki p;
  Authority a = p.open();
  const std::string before = a.operator_token(), digest = a.tls_digest();
  REQUIRE(a.replace_token().ok());
  CHECK(a.operator_token() != before);
  CHECK(a.operator_token().size() == before.size());
  CHECK(a.tls_digest() != digest);
  CHECK(p.open().operator_token() == a.operator_token());
}

namespace {

// A controller with its ports.
struct Live {
  TempDir dir;
  std::unique_ptr<RealReactor> reactor = make_reactor(1);
  std::unique_ptr<Daemon> daemon;
  std::thread thread;
  Live() {
    DaemonOptions options;
    options.state = dir.path("state");
    options.socket = dir.path("sock");
    options.sys = dir.path("sys");
    options.listen = "127.0.0.1";
    options.tls_port = options.boot_port = 0;
    options.dhcp = false;
    options.lab = true;
    daemon = Daemon::create(*reactor, options).value();
    thread = std::thread([this] { reactor->run(); });
    on_reactor([&] { REQUIRE(daemon->start().ok()); });
    on_reactor([] {});
  }
  ~Live() {
    on_reactor([&] { daemon->stop(); });
    reactor->stop();
    thread.join();
  }
  void on_reactor(const std::function<void()>& work) {
    std::promise<void> done;
    reactor->post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  Authority& authority() { return daemon->services().authority; }
  void reopen() {
    on_reactor([&] { daemon->services().reopen(); });
  }
  std::unique_ptr<HttpClient> client(const std::string& ca_pem, const std::string& certificate = "",
                                     const std::string& key = "") {
    HttpClientOptions options;
    on_reactor([&] { options.base = "https://127.0.0.1:" + std::to_string(daemon->tls_port()); });
    options.ca_pem = ca_pem;
    options.certificate_pem = certificate;
    options.key_pem = key;
    return make_http_client(options).value();
  }
};

// 0: it does not get that far.
int status_of(HttpClient& client, const std::string& path, const std::string& token = "") {
  HttpRequest request;
  request.target = path;
  if (!token.empty()) request.headers["Authorization"] = "Bearer " + token;
  const auto response = client.request(request, 20 * kSecond);
  return response.ok() ? response->status : 0;
}

}  // namespace

TEST_CASE("a replaced token is refused, also on a connection that it opened", "[replace][http]") {
  Live live;
  const std::string old = live.authority().operator_token();
  const auto client = live.client(live.authority().ca_pem());
  REQUIRE(status_of(*client, "/v1/version", old) == 200);
  live.on_reactor([&] {
    REQUIRE(live.authority().replace_token().ok());
    live.daemon->services().reopen();
  });
  CHECK(status_of(*client, "/v1/version", old) != 200);
  const auto again = live.client(live.authority().ca_pem());
  CHECK(status_of(*again, "/v1/version", old) == 401);
  CHECK(status_of(*again, "/v1/version", live.authority().operator_token()) == 200);
}

TEST_CASE("an agent of the old CA is let in until that is withdrawn, one of the new CA from the beginning",
          "[replace][http]") {
  Live live;
  const std::string old = live.authority().ca_pem(), key = pki::make_key().value();
  const auto signed_now = [&] {
    return live.authority().sign_agent("node01", pki::make_csr(key, "node01").value()).value().pem;
  };
  // 401: the certificate is good for TLS, and the store knows none of these.
  const auto asks = [&](const std::string& trusted, const std::string& certificate) {
    return status_of(*live.client(trusted, certificate, key), "/agent/v1/orders");
  };
  const std::string first = signed_now();
  CHECK(asks(old, first) == 401);
  live.on_reactor([&] { REQUIRE(live.authority().begin_ca(kNow).ok()); });
  live.reopen();
  const std::string both = live.authority().ca_pem(), second = signed_now();
  CHECK(asks(old, first) == 401);
  CHECK(asks(both, first) == 401);
  CHECK(asks(both, second) == 401);
  live.on_reactor([&] { REQUIRE(live.authority().withdraw_ca(kNow).ok()); });
  live.reopen();
  CHECK(asks(both, second) == 401);
  CHECK(asks(live.authority().ca_pem(), second) == 401);
  CHECK(asks(old, second) == 0);  // it does not trust this controller
  CHECK(asks(both, first) == 0);  // this controller does not trust it
}
