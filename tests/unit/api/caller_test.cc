// Who is taken for the caller of a request, and how that is written and shown.
#include "controller/api/caller.h"

#include <unistd.h>

#include "base/sudo_user.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/sudo_environment.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Caller;
using api::caller_of;
using api::Listener;
using api::text_of;
using testing::Controller;

namespace {

constexpr uint32_t kRoot = 0, kAnna = 1000, kNameless = 1001;

HttpRequest from(uint32_t uid, const std::string& sudo_user = "") {
  HttpRequest request;
  request.method = "POST";
  request.remote = "unix";
  request.peer_uid = uid;
  if (!sudo_user.empty()) request.headers[kSudoUserHeader] = sudo_user;
  return request;
}

std::string seen(const HttpRequest& request) { return text_of(caller_of(request, Controller::name_of)); }

}  // namespace

TEST_CASE("a caller is the user that the kernel reports; a header about sudo counts from root alone",
          "[api][caller]") {
  CHECK(seen(from(kAnna)) == "anna");
  CHECK(seen(from(kNameless)) == "uid 1001");
  CHECK(seen(from(kRoot)) == "root");
  CHECK(seen(from(kRoot, "ben")) == "ben (sudo)");
  CHECK(seen(from(kRoot, "root")) == "root");
  for (const uint32_t uid : {kAnna, kNameless, 65534u})
    CHECK(caller_of(from(uid, "ben"), Controller::name_of).sudo_user.empty());
  CHECK(seen(from(kAnna, "ben")) == "anna");
  // A login that looks like more than a name.
  const auto odd = [](uint32_t) { return std::string("ben (sudo), muster up"); };
  CHECK(text_of(caller_of(from(kAnna), odd)) == "ben ?sudo?? muster up");
}

TEST_CASE("through TLS a caller is the token and its address, and what only reads has no caller",
          "[api][caller]") {
  HttpRequest request;
  request.method = "POST";
  request.remote = "10.20.0.9";
  request.headers["Authorization"] = "Bearer x";
  request.headers[kSudoUserHeader] = "ben";
  CHECK(seen(request) == "operator token from 10.20.0.9");
  CHECK_FALSE(api::user_to_name(request).has_value());
  CHECK(api::user_to_name(from(kAnna)) == kAnna);
  int lookups = 0;
  const auto counted = [&lookups](uint32_t) { return std::to_string(++lookups); };
  for (const char* method : {"GET", "HEAD"}) {
    HttpRequest reads = from(kAnna);
    reads.method = method;
    CHECK_FALSE(caller_of(reads, counted).uid.has_value());
    CHECK_FALSE(api::user_to_name(reads).has_value());
  }
  CHECK(lookups == 0);
  CHECK(text_of(Caller{}) == "unknown");
}

TEST_CASE("names of a caller control no terminal and have an end; what it was made with is added",
          "[api][caller]") {
  CHECK(seen(from(kRoot, "ben\x1b[2J\r\n\x7f")) == "ben?[2J??? (sudo)");
  const std::string fits(255, 'x');
  CHECK(seen(from(kRoot, fits)) == fits + " (sudo)");
  CHECK(seen(from(kRoot, fits + "y")) == fits + "... (sudo)");
  // Letters that look like others, and what controls a terminal in two or three bytes.
  CHECK(seen(from(kRoot, "\xd0\xb0nna")) == "??nna (sudo)");
  CHECK(seen(from(kRoot, "a\xc2\x9b\xe2\x80\xae")) == "a????? (sudo)");
  Caller anna;
  anna.uid = kRoot;
  anna.login = "root";
  anna.sudo_user = "anna";
  CHECK(text_of(anna, "muster up") == "anna (sudo), muster up");
  CHECK(text_of(anna, "it\x9b") == "anna (sudo), it?");
  CHECK(text_of(anna, std::string(101, 'm')) == "anna (sudo), " + std::string(100, 'm') + "...");
}

TEST_CASE("the user database names this process's user, and has no name for another number",
          "[api][caller]") {
  CHECK(api::login_name(0) == "root");
  CHECK(api::login_name(0x7ffffff1).empty());
}

TEST_CASE("through the controller's socket the command records the user that runs it", "[api][caller]") {
  const testing::SudoUser none(nullptr);
  Controller c;
  c.open();
  REQUIRE(testing::muster_command({"node", "discover", "off", "--socket", c.socket()}).exit == 0);
  c.settle();
  const std::string self = text_of({.uid = ::geteuid(), .login = api::login_name(::geteuid())});
  const Json events = c.get("/v1/events/list")["events"];
  REQUIRE(events.size() > 0);
  bool found = false;
  for (const Json& event : events)
    found = found || (event["kind"] == "discovery" && event["data"]["by"] == self);
  CHECK(found);
}

TEST_CASE("a change through TLS is recorded with its token and address, a refused one not at all",
          "[api][caller]") {
  Controller c;
  HttpRequest request;
  request.method = "PUT";
  request.target = "/v1/secrets/any";
  request.body = "value";
  request.remote = "10.20.0.9";
  const auto recorded = [&c] {
    c.settle();
    std::string by;
    const Json events = c.get("/v1/events/list")["events"];
    for (const Json& event : events)
      if (event["kind"] == "secret") by = event["data"]["by"].get<std::string>();
    return by;
  };
  request.headers["Authorization"] = "Bearer wrong";
  CHECK(c.call(Listener::tls, request).status == 401);
  CHECK(recorded().empty());
  request.headers["Authorization"] = "Bearer " + c.services().authority.operator_token();
  CHECK(c.call(Listener::tls, request).status == 200);
  CHECK(recorded() == "operator token from 10.20.0.9");
}

TEST_CASE("who stored a revision, approved a run and holds a node is in the answers and on the terminal",
          "[api][caller]") {
  const testing::SudoUser none(nullptr);
  Controller c;
  c.open();
  const auto muster = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--socket", c.socket()});
    const auto ran = testing::muster_command(arguments);
    CAPTURE(ran.err);
    CHECK(ran.exit == 0);
    return ran;
  };
  const auto says = [](const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  };
  HttpRequest by_sudo = from(kRoot, "anna");
  by_sudo.method = "PUT";
  by_sudo.target = "/v1/spec?note=first";
  by_sudo.body = testing::kSpec;
  REQUIRE(c.call(Listener::local, by_sudo).status == 200);
  CHECK(c.get("/v1/spec")["caller"] == "anna (sudo)");
  CHECK(c.get("/v1/specs")["specs"][0]["caller"] == "anna (sudo)");
  const auto shown = muster({"spec", "show"});
  CHECK(shown.out == testing::kSpec);  // goes into a file as it is
  CHECK(says(shown.err, "by anna (sudo)"));
  const auto listed = muster({"spec", "history"});
  CHECK(says(listed.out, "by anna (sudo)"));
  CHECK(says(listed.out, "first"));

  REQUIRE(c.call_as(kAnna, "POST", "/v1/nodes/node02/quarantine", R"({"reason": "PSU"})").status == 200);
  const Json node = c.get("/v1/nodes/node02");
  CHECK(node["held_caller"] == "anna");
  CHECK(node["held_since"].get<TimeMs>() > 0);
  CHECK(says(muster({"why", "node02"}).out, "quarantined by anna at "));
  c.settle();
  c.restart();
  c.open();
  CHECK(c.get("/v1/nodes/node02/why")["held_caller"] == "anna");
  REQUIRE(c.call_as(kAnna, "POST", "/v1/nodes/node02/quarantine", R"({"release": true})").status == 200);
  CHECK(c.get("/v1/nodes/node02")["held_caller"] == "");
  CHECK(c.get("/v1/nodes/node02")["held_since"] == 0);

  std::promise<void> written;
  c.on_reactor([&] {
    RunRow run{1, "sha256:" + std::string(64, 'a'), RunState::done, 1000, 2000, "anna (sudo), muster\x1b[2J"};
    c.services().store.write({run}, [&](Status) { written.set_value(); });
  });
  written.get_future().get();
  const auto runs = muster({"runs"});
  CHECK(says(runs.out, "anna (sudo), muster"));
  CHECK_FALSE(says(runs.out, "\x1b"));
}
