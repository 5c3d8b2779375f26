// The Redfish driver against the strict emulated BMC, over real HTTPS on loopback, once per vendor profile.
#include "controller/power/redfish.h"

#include <chrono>

#include "base/http.h"
#include "base/pki.h"
#include "lab/bmc.h"
#include "lab/fake_machine.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

TimeMs steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Rig {
  FakeMachine machine;
  Bmc bmc;
  std::unique_ptr<HttpServer> server;
  std::string learned;

  explicit Rig(const std::string& profile)
      : bmc(*find_profile(profile), {"n1", "11111111-2222-3333-4444-555555555555", "S1", "52:54:00:00:00:01", 1024, 1}, "admin",
            "right", machine, steady_ms) {
    const auto ca = pki::make_ca("bmc", 30).value();
    const auto leaf = pki::issue(ca, {"n1", "bmc", {"127.0.0.1"}, true, 30}).value();
    HttpServerOptions options;
    options.tls = true;
    options.tls_options.certificate_pem = leaf.certificate_pem;
    options.tls_options.key_pem = leaf.key_pem;
    server = start_http_server(options, [this](HttpRequest request, ResponderPtr r) { r->respond(bmc.handle(request)); }).value();
  }
  PowerTarget target() {
    PowerTarget t;
    t.node = "n1";
    t.address = "127.0.0.1:" + std::to_string(server->port());
    t.user = "admin";
    t.password = "right";
    t.on_pin = [this](const std::string& pin) { learned = pin; };
    return t;
  }
  std::unique_ptr<Power> driver(PowerTarget t) { return redfish_driver().make(std::move(t)).value(); }
};

constexpr DurationMs kLimit = 60 * kSecond;

}  // namespace

TEST_CASE("redfish: every profile powers on, boots once from the network, and powers off", "[power]") {
  for (const auto& profile : bmc_profiles()) {
    INFO(profile.name);
    Rig rig(profile.name);
    auto power = rig.driver(rig.target());
    REQUIRE(power->state(kLimit).value() == PowerState::off);
    const auto armed = power->boot_once_network(kLimit);
    INFO((armed.ok() ? "" : armed.error().message));
    REQUIRE(armed.ok());
    REQUIRE(power->on(kLimit).ok());
    CHECK(rig.machine.running());
    REQUIRE(power->on(kLimit).ok());   // idempotent
    REQUIRE(rig.machine.boot());
    CHECK(rig.machine.boots().back() == BootFirst::network);
    REQUIRE(rig.machine.guest_reboot());   // "Once" is spent
    CHECK(rig.machine.boots().back() == BootFirst::disk);
    REQUIRE(power->off(kLimit, false).ok());
    CHECK_FALSE(rig.machine.running());
    REQUIRE(power->off(kLimit, false).ok());
    // Straight on again: some refuse for a while after a power-off.
    REQUIRE(power->on(kLimit).ok());
    CHECK(rig.machine.running());
  }
}

TEST_CASE("redfish: a certificate is learnt once and enforced; the password is never sent to another machine", "[power]") {
  Rig rig("generic");
  REQUIRE(rig.driver(rig.target())->state(kLimit).ok());
  REQUIRE(rig.learned.rfind("sha256:", 0) == 0);
  auto again = rig.target();
  again.pin_sha256 = rig.learned;
  CHECK(rig.driver(again)->state(kLimit).ok());
  Rig impostor("generic");
  auto pinned = impostor.target();
  pinned.pin_sha256 = rig.learned;
  const int served = impostor.bmc.requests_served();
  const auto refused = impostor.driver(pinned)->state(2 * kSecond);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(impostor.bmc.requests_served() == served);
}

TEST_CASE("redfish: wrong password and wrong machine are refused before anything is done", "[power]") {
  Rig rig("generic");
  auto wrong = rig.target();
  wrong.password = "wrong";
  const auto denied = rig.driver(wrong)->on(kLimit);
  REQUIRE_FALSE(denied.ok());
  CHECK(denied.error().code == Code::denied);
  CHECK(denied.error().message.find("wrong") == std::string::npos);
  CHECK_FALSE(rig.machine.running());
  auto other = rig.target();
  other.expected_uuid = "99999999-2222-3333-4444-555555555555";
  const auto swapped = rig.driver(other)->on(kLimit);
  REQUIRE_FALSE(swapped.ok());
  CHECK(swapped.error().code == Code::denied);
  CHECK_FALSE(rig.machine.running());
}

TEST_CASE("redfish: a BMC that promises and does nothing is a timeout, one that is busy is waited for", "[power]") {
  Rig rig("generic");
  rig.machine.set_dead(true);
  const auto lied = rig.driver(rig.target())->on(3 * kSecond);
  REQUIRE_FALSE(lied.ok());
  CHECK((lied.error().code == Code::timeout || lied.error().code == Code::unavailable));
  rig.machine.set_dead(false);
  rig.bmc.fail_until(steady_ms() + 3 * kSecond);
  CHECK(rig.driver(rig.target())->state(kLimit).value() == PowerState::off);
}
