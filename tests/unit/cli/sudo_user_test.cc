// What the command sends about sudo, which the controller may believe (controller/api/caller.h).
#include <string>

#include "base/sudo_user.h"
#include "sys/http/http.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/sudo_environment.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// The header of a request that the command makes; "-" if it sends none.
std::string sent(const char* sudo_user) {
  const testing::SudoUser variable(sudo_user);
  const TempDir dir;
  std::string value = "-";
  HttpServerOptions options;
  options.unix_path = dir.path("sock");
  auto server = start_http_server(options, [&](HttpRequest request, ResponderPtr out) {
    if (const auto header = request.headers.find(kSudoUserHeader); header != request.headers.end())
      value = header->second;
    out->respond(HttpResponse::json(200, R"({"runs": []})"));
  });
  REQUIRE(server.ok());
  CHECK(testing::muster_command({"runs", "--socket", dir.path("sock")}).exit == 0);
  server->reset();  // joins the thread that wrote `value`
  return value;
}

}  // namespace

TEST_CASE("the command sends who called sudo, on one line and not without end", "[cli]") {
  CHECK(sent(nullptr) == "-");
  CHECK(sent("") == "-");
  CHECK(sent("anna") == "anna");
  CHECK(sent("anna\r\nX-Other: 1") == "anna  X-Other: 1");
  CHECK(sent(std::string(10'000, 'x').c_str()) == std::string(256, 'x'));
}
