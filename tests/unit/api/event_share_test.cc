// A node's share of events, as the controller's routes apply it (controller/link/event_door.h).
#include "base/json_dump.h"
#include "base/wire.h"
#include "controller/link/link_hub.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

struct Flooded : Controller {
  Flooded() { REQUIRE(call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200); }
  pki::CertificateInfo join() {
    wire::JoinRequest request;
    request.node = "node01";
    request.token = token_for("node01");
    request.csr_pem = pki::make_csr(pki::make_key().value(), request.node).value();
    request.boot_id = "b";
    const Json reply = good(call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(request).dump()));
    return pki::read_certificate(reply["certificate"].get<std::string>()).value();
  }
  HttpResponse post(const pki::CertificateInfo& who, const std::string& body) {
    return call(Listener::tls, signed_by(who, "POST", "/agent/v1/events", body));
  }
  // How many of so many small events of a new process are taken.
  uint64_t send(const pki::CertificateInfo& who, uint64_t count) {
    wire::EventBatch batch;
    batch.boot_id = "b";
    batch.incarnation = who.serial;
    for (uint64_t seq = 1; seq <= count; ++seq) batch.events.push_back({seq, 0, OrderId(), "log"});
    const HttpResponse answer = post(who, dump_json(wire::to_json(batch)));
    return answer.status == 200 ? parse_json(answer.body).value()["ack"].get<uint64_t>() : 0;
  }
  bool held() {
    bool is = false;
    on_reactor([&] { is = services().link.held_back().holds("node01", 8 << 20); });
    return is;
  }
};

}  // namespace

TEST_CASE("a node that was flooding is heard again once it has joined", "[api]") {
  Flooded c;
  const uint64_t taken = c.send(c.join(), 20'000);
  CHECK(taken >= 6000);
  CHECK(taken < 20'000);
  CHECK(c.held());
  CHECK(c.send(c.join(), 5000) == 5000);
}

TEST_CASE("what cannot be read is worth a pause, too", "[api]") {
  Flooded c;
  const auto who = c.join();
  CHECK(c.post(who, std::string(8 << 20, '[')).status == 422);
  CHECK(c.held());
  CHECK(c.post(who, std::string(8 << 20, '[')).status == 503);
  CHECK(
      c.call(Listener::tls, Controller::signed_by(who, "POST", "/agent/v1/renew", std::string(8 << 20, '[')))
          .status == 422);
  CHECK(c.send(who, 5) == 5);  // small
}
