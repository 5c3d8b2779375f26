// What a verb that changes a cluster says when its plan is not the plan any more by the time it is approved.
#include "cli/carry_out.h"

#include <atomic>
#include <memory>
#include <string>

#include "sys/http/http.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr const char* kChanged =
    R"({"code": "conflict", "message": "changed (node gpu07: its agent is now silent): plan again"})";
constexpr const char* kPlanned =
    R"({"digest": "sha256:0123456789", "kind": "accept", "empty": false, "text": "the plan\n"})";

// A controller with one plan, which it does not start: first for a conflict, then for good.
struct Refusing {
  explicit Refusing(const std::string& run_state) {
    HttpServerOptions options;
    options.unix_path = dir.path("sock");
    auto started = start_http_server(options, [this, run_state](HttpRequest request, ResponderPtr out) {
      if (request.path == "/v1/plan") {
        ++plans;
        out->respond(HttpResponse::json(200, kPlanned));
      } else if (request.path == "/v1/status") {
        out->respond(HttpResponse::json(200, R"({"run": {"id": 3, "state": ")" + run_state + R"("}})"));
      } else if (++approvals == 1) {
        out->respond(HttpResponse::json(409, kChanged));
      } else {
        out->respond(HttpResponse::json(403, R"({"code": "denied", "message": "no"})"));
      }
    });
    REQUIRE(started.ok());
    server = std::move(started).value();
  }
  testing::Ran accept() {
    return testing::muster_command({"accept", "gpu01", "--yes", "--socket", dir.path("sock")});
  }

  TempDir dir;
  std::atomic<int> plans = 0, approvals = 0;
  std::unique_ptr<HttpServer> server;
};

size_t count_of(const std::string& text, const std::string& words) {
  size_t out = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++out;
  return out;
}

}  // namespace

TEST_CASE("why a plan is made again is said before it is made", "[cli]") {
  Refusing controller("done");
  const auto ran = controller.accept();
  CAPTURE(ran.out, ran.err);
  CHECK(ran.exit == cli::kRefused);
  CHECK(controller.plans == 2);
  CHECK(count_of(ran.err, "node gpu07: its agent is now silent") == 1);
  CHECK(count_of(ran.out, "the plan\n") == 1);  // it is the same one: printed once
}

TEST_CASE("with another run under way nothing is planned over and over", "[cli]") {
  Refusing controller("running");
  const auto ran = controller.accept();
  CAPTURE(ran.out, ran.err);
  CHECK(ran.exit == cli::kRefused);
  CHECK(controller.plans == 1);
  CHECK(count_of(ran.err, "node gpu07: its agent is now silent") == 1);
}
