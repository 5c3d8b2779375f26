// A client that names its server: the certificate must be for that name, whatever address was resolved.
#include "sys/http/http.h"
#include "sys/pki.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a server that is called by name must have a certificate for that name", "[http][phy]") {
  const auto ca = pki::make_ca("roots", 10);
  REQUIRE(ca.ok());
  const auto certificate = pki::issue(*ca, pki::Leaf{"api", "test", {"api.example"}, true, 10});
  REQUIRE(certificate.ok());
  HttpServerOptions options;
  options.tls = true;
  options.tls_options.certificate_pem = certificate->certificate_pem;
  options.tls_options.key_pem = certificate->key_pem;
  std::string called;
  auto server = start_http_server(options, [&](HttpRequest request, ResponderPtr responder) {
    called = request.headers["Host"];
    responder->respond(HttpResponse::text(200, "yes"));
  });
  REQUIRE(server.ok());
  HttpClientOptions client;
  client.base = "https://127.0.0.1:" + std::to_string((*server)->port());
  client.ca_pem = ca->certificate_pem;
  client.host_name = "api.example";
  auto right = make_http_client(client);
  REQUIRE(right.ok());
  const auto answer = (*right)->request({}, 10 * kSecond);
  REQUIRE(answer.ok());
  CHECK(answer->status == 200);
  CHECK(called == "api.example");
  client.host_name = "other.example";
  const auto other = (*make_http_client(client))->request({}, 10 * kSecond);
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().code == Code::denied);
  client.ca_pem.clear();
  client.pin_sha256 = (*right)->peer_fingerprint();
  CHECK(make_http_client(client).error().code == Code::invalid);
}
