// A job of an unprivileged user on a node whose firmware is about to boot: what it can fetch, and what it
// cannot be.
#include "base/json_dump.h"
#include "base/wire.h"
#include "tests/field/case.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

namespace muster::tests {
namespace {

using api::Listener;

constexpr uint16_t kOfRoot = 1023, kOfAnyUser = 1024;

struct Armed : testing::Controller {
  Armed() {
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
    on_reactor([&] { services().boot.arm("node01", [](Status) {}); });
  }
  // As a user of node01 fetches it.
  std::string token() {
    HttpRequest request;
    request.target = "/boot/52-54-00-20-00-01.ipxe";
    request.remote = "10.20.0.11";
    request.remote_port = kOfAnyUser;
    const HttpResponse script = call(Listener::boot, request);
    REQUIRE(script.status == 200);
    const std::string before = "muster.token=";
    const size_t at = script.body.find(before);
    REQUIRE(at != std::string::npos);
    const size_t begin = at + before.size();
    return script.body.substr(begin, script.body.find_first_of(" \n", begin) - begin);
  }
  int join_from(uint16_t port, const std::string& token) {
    wire::JoinRequest join;
    join.node = "node01";
    join.token = token;
    join.csr_pem = pki::make_csr(pki::make_key().value(), join.node).value();
    join.boot_id = "boot-1";
    HttpRequest request;
    request.method = "POST";
    request.target = "/agent/v1/join";
    request.body = dump_json(wire::to_json(join));
    request.remote = "10.20.0.11";
    request.remote_port = port;
    return call(Listener::tls, request).status;
  }
};

}  // namespace

FIELD_CASE("script-for-every-user") {
  Armed armed;
  const std::string token = armed.token();
  CHECK(armed.join_from(kOfAnyUser, token) == 403);
  CHECK(armed.join_from(60000, token) == 403);
  // The refusal has spent nothing, and contested nothing.
  CHECK(armed.join_from(kOfRoot, token) == 200);
}

}  // namespace muster::tests
