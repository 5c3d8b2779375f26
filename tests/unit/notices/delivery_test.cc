// One delivery to a real HTTP server, sendmail and a program, each of which can fail.
#include <sys/stat.h>

#include <mutex>

#include "base/json.h"
#include "controller/notices/service/delivery.h"
#include "sys/http/http.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/free_port.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

notices::Notice some_notice() {
  notices::Notice out;
  out.id = "3fa9-7";
  out.kind = "controller";
  out.what = "DHCP does not answer";
  out.next = "muster status";
  return out;
}

// Takes what it is sent, then answers as told.
class Hook {
 public:
  Hook() {
    server_ = std::move(start_http_server({}, [this](HttpRequest request, ResponderPtr responder) {
                const std::lock_guard hold(mutex_);
                last_ = std::move(request);
                ++count_;
                responder->respond(HttpResponse::text(
                    status_, "no " + last_.headers["Authorization"] + " at " + last_.target + more_));
              })).value();
  }
  Receiver receiver() const {
    Receiver out;
    out.name = "hook";
    out.webhook.url = "http://127.0.0.1:" + std::to_string(server_->port()) + "/services/x?y=1";
    return out;
  }
  void answer(int status, const std::string& more = "") {
    const std::lock_guard hold(mutex_);
    status_ = status;
    more_ = more;
  }
  HttpRequest last() {
    const std::lock_guard hold(mutex_);
    return last_;
  }
  int count() {
    const std::lock_guard hold(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  HttpRequest last_;
  int status_ = 200, count_ = 0;
  std::string more_;
  std::unique_ptr<HttpServer> server_;
};

std::string program(const TempDir& dir, const std::string& name, const std::string& text,
                    mode_t mode = 0755) {
  const std::string path = dir.path(name);
  REQUIRE(Files("/").write(path, "#!/bin/sh\n" + text).ok());
  ::chmod(path.c_str(), mode);
  return path;
}

}  // namespace

TEST_CASE("delivery: a webhook gets JSON with the id, at its whole URL", "[notices]") {
  Hook hook;
  Receiver to = hook.receiver();
  to.webhook.headers["Authorization"] = "Bearer hunter2";
  REQUIRE(deliver(to, some_notice(), "gaggle", {}).ok());
  HttpRequest got = hook.last();
  CHECK(got.method == "POST");
  CHECK(got.target == "/services/x?y=1");
  CHECK(got.headers["Content-Type"] == "application/json");
  CHECK(got.headers["Authorization"] == "Bearer hunter2");
  CHECK(parse_json(got.body).value()["id"] == "3fa9-7");
}

TEST_CASE("delivery: what is not 2xx is not delivered, and an echoed secret is not in the error",
          "[notices]") {
  Hook hook;
  Receiver to = hook.receiver();
  to.webhook.headers["Authorization"] = "Bearer hunter2";
  for (const int status : {301, 404, 413, 429, 500}) {
    CAPTURE(status);
    hook.answer(status);
    const Status sent = deliver(to, some_notice(), "gaggle", {});
    REQUIRE_FALSE(sent.ok());
    for (const char* secret : {"hunter2", "services"})
      CHECK(sent.error().message.find(secret) == std::string::npos);
  }
  CHECK(hook.count() == 5);
}

TEST_CASE("delivery: an answer that refuses the notice is not one that another try may change", "[notices]") {
  Hook hook;
  for (const int status : {301, 401, 403, 404, 407, 408, 410, 429, 500}) {
    CAPTURE(status);
    hook.answer(status);
    CHECK(deliver(hook.receiver(), some_notice(), "gaggle", {}).error().code == Code::failed);
  }
  for (const int status : {400, 413, 415, 422}) {
    CAPTURE(status);
    hook.answer(status);
    CHECK(deliver(hook.receiver(), some_notice(), "gaggle", {}).error().code == Code::conflict);
  }
  for (const int status : {502, 503}) {
    CAPTURE(status);
    hook.answer(status);
    CHECK(deliver(hook.receiver(), some_notice(), "gaggle", {}).error().code == Code::unavailable);
  }
  hook.answer(504);  // it may have it
  CHECK(deliver(hook.receiver(), some_notice(), "gaggle", {}).error().code == Code::timeout);
}

TEST_CASE("delivery: 2xx is delivered, however long the answer is", "[notices]") {
  Hook hook;
  hook.answer(202, std::string(1 << 20, 'x'));
  CHECK(deliver(hook.receiver(), some_notice(), "gaggle", {}).ok());
  CHECK(hook.count() == 1);
}

TEST_CASE("delivery: a connector of Teams says in the text of its 200 what became of a notice", "[notices]") {
  Hook hook;
  Receiver to = hook.receiver();
  to.webhook.shape = WebhookShape::teams;
  const std::string failed = "Webhook message delivery failed with error: ";
  const std::pair<std::string, Code> answers[] = {
      {failed + "Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0", Code::failed},
      {failed + "Microsoft Teams endpoint returned HTTP error 404 with ContextId tcid=0", Code::failed},
      {failed + "Microsoft Teams endpoint returned HTTP error 413 with ContextId tcid=0", Code::conflict},
      {failed + "Microsoft Teams endpoint returned HTTP error 503 with ContextId tcid=0", Code::unavailable},
      {failed + "something else", Code::failed}};
  for (const auto& [text, code] : answers) {
    CAPTURE(text);
    hook.answer(200, text);
    const Status sent = deliver(to, some_notice(), "gaggle", {});
    REQUIRE_FALSE(sent.ok());
    CHECK(sent.error().code == code);
    CHECK(sent.error().message.find("services") == std::string::npos);
    // Only theirs is read.
    CHECK(deliver(hook.receiver(), some_notice(), "gaggle", {}).ok());
  }
  hook.answer(200, "1");
  CHECK(deliver(to, some_notice(), "gaggle", {}).ok());
  hook.answer(202, std::string(1 << 20, 'x'));
  CHECK(deliver(to, some_notice(), "gaggle", {}).ok());
}

TEST_CASE("delivery: a receiver that is down, and a URL that is none", "[notices]") {
  Receiver to;
  to.webhook.url = "http://127.0.0.1:" + std::to_string(testing::free_port()) + "/";
  CHECK(deliver(to, some_notice(), "gaggle", {}).error().code == Code::unavailable);
  for (const char* url :
       {"", "hooks.example/x", "ftp://127.0.0.1/x", "http:///x", "http://127.0.0.1:99999/"}) {
    CAPTURE(url);
    to.webhook.url = url;
    CHECK(deliver(to, some_notice(), "gaggle", {}).error().code == Code::invalid);
  }
}

TEST_CASE("delivery: sendmail gets the addresses as arguments and the mail on its input", "[notices]") {
  const TempDir dir;
  DeliveryPaths paths;
  paths.sendmail =
      program(dir, "sendmail", "echo \"$@\" >" + dir.path("args") + "; cat >" + dir.path("mail"));
  Receiver to;
  to.way = ReceiverWay::mail;
  to.mail = {{"root", "ops@site.example"}, "muster@site.example"};
  REQUIRE(deliver(to, some_notice(), "gaggle", paths).ok());
  CHECK(*Files("/").read(dir.path("args")) == "-i -f muster@site.example -- root ops@site.example\n");
  CHECK(Files("/").read(dir.path("mail"))->find("\nTo: root, ops@site.example\n") != std::string::npos);
  paths.sendmail = program(dir, "full", "exit 75");
  CHECK(deliver(to, some_notice(), "gaggle", paths).error().code == Code::failed);
  paths.sendmail = dir.path("missing");
  CHECK_FALSE(deliver(to, some_notice(), "gaggle", paths).ok());
}

TEST_CASE("delivery: a program gets the JSON, and must be the site's own", "[notices]") {
  const TempDir dir;
  const TempDir results;
  ::chmod(dir.path("").c_str(), 0755);
  DeliveryPaths paths;
  paths.programs = dir.path("");
  while (paths.programs.back() == '/') paths.programs.pop_back();
  program(dir, "page", "cat >" + results.path("got"));
  program(dir, "loose", "exit 0", 0777);
  program(dir, "fails", "echo no line >&2; exit 3");
  Receiver to;
  to.way = ReceiverWay::program;
  to.program = "page";
  REQUIRE(deliver(to, some_notice(), "gaggle", paths).ok());
  CHECK(parse_json(*Files("/").read(results.path("got"))).value()["cluster"] == "gaggle");
  to.program = "loose";
  CHECK(deliver(to, some_notice(), "gaggle", paths).error().code == Code::denied);
  to.program = "missing";
  CHECK(deliver(to, some_notice(), "gaggle", paths).error().code == Code::invalid);
  to.program = "fails";
  CHECK(deliver(to, some_notice(), "gaggle", paths).error().code == Code::failed);
}
