// The metrics of a whole controller, as operators and Prometheus get them.
#include <cmath>

#include "base/wire.h"
#include "controller/metrics/exposition.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/metrics/series.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;
using testing::Series;

TEST_CASE("metrics: operators get them at the socket, and elsewhere with their token only",
          "[api][metrics]") {
  Controller controller;
  const auto page = controller.call(Listener::local, "GET", "/metrics");
  CHECK(page.status == 200);
  CHECK(page.headers.at("Content-Type") == Exposition::kContentType);
  CHECK(controller.call(Listener::tls, "GET", "/metrics").status == 401);
  CHECK(controller.call(Listener::boot, "GET", "/metrics").status == 404);
  CHECK(controller.call(Listener::local, "POST", "/metrics").status == 405);
  HttpRequest request;
  request.target = "/metrics";
  request.headers["Authorization"] = "Bearer " + controller.services().authority.operator_token();
  CHECK(controller.call(Listener::tls, request).status == 200);
}

TEST_CASE("metrics: the nodes of a spec, its images, the controller's certificates, an agent's certificate",
          "[api][metrics]") {
  Controller controller;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  const std::string key = pki::make_key().value();
  wire::JoinRequest join;
  join.node = "node01";
  join.token = controller.token_for("node01");
  join.csr_pem = pki::make_csr(key, "node01").value();
  join.boot_id = "b";
  const auto joined = controller.call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump());
  REQUIRE(joined.status == 200);
  const auto reply = wire::join_reply_from_json(parse_json(joined.body).value()).value();
  const auto certificate = pki::read_certificate(reply.certificate_pem).value();
  const std::string series = "muster_agent_certificate_expiration_timestamp_seconds{node=\"node01\"}";
  REQUIRE(
      controller
          .call(Listener::tls, Controller::signed_by(certificate, "POST", "/agent/v1/events",
                                                     wire::to_json(wire::EventBatch{"b", "i", {}}).dump()))
          .status == 200);
  const Series all(controller.call(Listener::local, "GET", "/metrics").body);
  CHECK(all.count("muster_node_state") == std::stoul(all.of("muster_nodes{state=\"unknown\"}")));
  CHECK(all.count("muster_node_state") >= 2);
  CHECK(all.count("muster_image_build_failed") >= 1);
  CHECK(all.count("muster_image_build_timestamp_seconds") == 0);
  CHECK(all.count("muster_certificate_expiration_timestamp_seconds") == 2);
  CHECK(std::stod(all.of("process_open_fds")) > 0);
  CHECK(std::stod(all.of("process_resident_memory_bytes")) > 0);
  CHECK(all.of("muster_notices_undelivered") == "0");
  CHECK(all.count("muster_causes") == kCauseKinds.size());
  // To the minute: the certificate begins and ends by whole seconds.
  CHECK(std::abs(std::stod(all.of(series)) - static_cast<double>(certificate.not_after / kSecond)) < 60);
}
