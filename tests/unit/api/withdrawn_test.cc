// What was withdrawn is withdrawn at once: no answer that waited, or was being made, is sent after that.
#include "base/wire.h"
#include "controller/api/rechecked.h"
#include "controller/link/link_hub.h"
#include "sys/pki.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

constexpr char kSecret[] = "the private key";

struct Withdrawing : Controller {
  Withdrawing() {
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
    REQUIRE(call(Listener::local, "PUT", "/v1/secrets/key", kSecret).status == 200);
  }
  void write(std::vector<Write> rows) {
    std::promise<bool> written;
    on_reactor(
        [&] { services().store.write(std::move(rows), [&](Status done) { written.set_value(done.ok()); }); });
    REQUIRE(written.get_future().get());
  }
  static pki::CertificateInfo papers(const std::string& node, const std::string& serial) {
    return {node, Authority::kAgentOrganization, serial};
  }
  // A request for orders that waits, since there are none.
  std::unique_ptr<Sent> poll(const pki::CertificateInfo& who) {
    auto sent = send(Listener::tls, signed_by(who, "GET", "/agent/v1/orders?boot=b&mode=installed&have="));
    REQUIRE(sent->answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    return sent;
  }
  void offer(const std::string& node) {
    wire::WorkOrder order;
    order.id = OrderId("1-a/" + node + "/steps#1");
    order.kind = wire::OrderKind::steps;
    order.params = {{"key", "secret:key"}};
    on_reactor([&] { services().link.offer(NodeName(node), order); });
  }
  pki::CertificateInfo join(const std::string& token) {
    const auto joined = ask_to_join(token);
    REQUIRE(joined.status == 200);
    const auto reply = wire::join_reply_from_json(parse_json(joined.body).value()).value();
    return pki::read_certificate(reply.certificate_pem).value();
  }
  HttpResponse ask_to_join(const std::string& token) {
    wire::JoinRequest join;
    join.node = "node01";
    join.token = token;
    join.csr_pem = pki::make_csr(pki::make_key().value(), join.node).value();
    join.boot_id = "b";
    return call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump());
  }
};

void check_refused(const HttpResponse& answer) {
  CHECK(answer.status == 401);
  CHECK(answer.close);
  CHECK(answer.body.find(kSecret) == std::string::npos);
}

}  // namespace

TEST_CASE("a waiting agent gets the order with its secrets while its certificate is good", "[api]") {
  Withdrawing c;
  c.write({CertificateRow{"0a", "node01", "f", 3}});
  const auto poll = c.poll(c.papers("node01", "0a"));
  c.offer("node01");
  const HttpResponse answer = c.answer_of(*poll);
  CHECK(answer.status == 200);
  CHECK(answer.body.find(kSecret) != std::string::npos);
}

TEST_CASE("a revoked agent's waiting request ends, and gets no order", "[api]") {
  Withdrawing c;
  c.write({CertificateRow{"0a", "node01", "f", 3}});
  const auto poll = c.poll(c.papers("node01", "0a"));
  REQUIRE(c.call(Listener::local, "POST", "/v1/certificates/0a/revoke").status == 200);
  c.offer("node01");
  check_refused(c.answer_of(*poll));
}

TEST_CASE("with one certificate all that its node was issued are revoked, and no other node's", "[api]") {
  Withdrawing c;
  c.write({CertificateRow{"0a", "node01", "f", 3}, CertificateRow{"0b", "node01", "g", 4},
           CertificateRow{"0c", "node02", "h", 4}});
  const auto renewed = c.poll(c.papers("node01", "0b"));
  REQUIRE(c.call(Listener::local, "POST", "/v1/certificates/0a/revoke").status == 200);
  check_refused(c.answer_of(*renewed));
  c.offer("node02");
  CHECK(c.answer_of(*c.send(Listener::tls, c.signed_by(c.papers("node02", "0c"), "GET",
                                                       "/agent/v1/orders?boot=b&mode=installed&have=")))
            .status == 200);
}

TEST_CASE("an order that is ready for a waiting agent is not sent once its certificate is revoked", "[api]") {
  Withdrawing c;
  c.write({CertificateRow{"0a", "node01", "f", 3}});
  const auto poll = c.poll(c.papers("node01", "0a"));
  c.write({RevokeCertificates{"node01"}});  // nothing ends the request
  c.offer("node01");
  check_refused(c.answer_of(*poll));
}

TEST_CASE("a removed node's waiting request ends", "[api]") {
  Withdrawing c;
  NodeRow gone;
  gone.name = "gone01";
  c.write({CertificateRow{"0a", "gone01", "f", 3}, gone});
  const auto poll = c.poll(c.papers("gone01", "0a"));
  REQUIRE(c.call(Listener::local, "DELETE", "/v1/nodes/gone01").status == 200);
  c.offer("gone01");
  check_refused(c.answer_of(*poll));
}

TEST_CASE("a second machine under a node's name ends the first one's waiting request", "[api]") {
  Withdrawing c;
  const std::string token = c.token_for("node01");
  const auto first = c.join(token);
  const auto poll = c.poll(first);
  REQUIRE(c.ask_to_join(token).status == 403);
  c.offer("node01");
  check_refused(c.answer_of(*poll));
}

TEST_CASE("a new join ends the older agent's waiting request, and only the new one gets orders", "[api]") {
  Withdrawing c;
  const auto poll = c.poll(c.join(c.token_for("node01")));
  const auto second = c.join(c.token_for("node01"));
  check_refused(c.answer_of(*poll));
  const auto again = c.poll(second);
  c.offer("node01");
  CHECK(c.answer_of(*again).status == 200);
}

namespace {

struct Sink : Responder {
  void respond(HttpResponse response) override { statuses.push_back(response.status); }
  void start_stream(HttpResponse) override { ++streams; }
  bool write(std::string chunk) override {
    pieces.push_back(std::move(chunk));
    return true;
  }
  void end_stream() override { ++ends; }

  std::vector<int> statuses;
  std::vector<std::string> pieces;
  int streams = 0, ends = 0;
};

struct Checked {
  bool good = true;
  std::shared_ptr<Sink> sink = std::make_shared<Sink>();
  ResponderPtr responder = api::rechecked(sink, [this]() -> std::optional<HttpResponse> {
    if (good) return std::nullopt;
    return HttpResponse::json(401, "{}");
  });
};

}  // namespace

TEST_CASE("a stream ends with the token that opened it, and once", "[api]") {
  Checked c;
  c.responder->start_stream({});
  CHECK(c.responder->write("a"));
  c.good = false;
  CHECK_FALSE(c.responder->write("b"));
  CHECK_FALSE(c.responder->write("c"));
  c.responder->end_stream();
  CHECK(c.sink->pieces == std::vector<std::string>{"a"});
  CHECK(c.sink->ends == 1);
  CHECK(c.sink->statuses.empty());
}

TEST_CASE("a stream whose token is gone before it begins is a refusal", "[api]") {
  Checked c;
  c.good = false;
  c.responder->start_stream({});
  CHECK_FALSE(c.responder->write("a"));
  c.responder->end_stream();
  CHECK(c.sink->statuses == std::vector<int>{401});
  CHECK(c.sink->streams == 0);
  CHECK(c.sink->ends == 0);
  CHECK(c.sink->pieces.empty());
}
