#include "agent/link/http_link.h"

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "base/digest.h"
#include "sys/http/http.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/fakes/captured_log.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// The real reactor in a world where it is half a day later.
struct Later : RealReactor {
  std::unique_ptr<RealReactor> real = make_reactor(1);  // one worker: what is handed to it later ends later
  TimeMs now() const override { return real->now() + kDay / 2; }
  SteadyMs steady() const override { return real->steady(); }
  void post(Task task) override { real->post(std::move(task)); }
  TimerId after(DurationMs delay, Task task) override { return real->after(delay, std::move(task)); }
  void cancel(TimerId timer) override { real->cancel(timer); }
  void run() override { real->run(); }
  void stop() override { real->stop(); }
  void offload(Task work, Task done) override { real->offload(std::move(work), std::move(done)); }
  void on_stop_signal(Task on_signal) override { real->on_stop_signal(std::move(on_signal)); }
  void when_ready(int fd, Ready what, Task on_ready) override {
    real->when_ready(fd, what, std::move(on_ready));
  }
  void forget(int fd) override { real->forget(fd); }
};

// A FAKE controller: signs what an agent with a certificate of its CA asks for, and keeps who asked for
// orders.
struct FakeController {
  pki::KeyPair ca = pki::make_ca("muster CA", 10).value(), next = pki::make_ca("muster CA", 10).value();
  bool refuse = false;
  // While the CA is replaced: agents are to trust these, and get certificates of the next one.
  std::string trusted = ca.certificate_pem;
  bool replaces = false;
  std::mutex mutex;
  std::vector<std::string> polled_with;  // serials
  HttpRequest last_poll = {};
  std::string renewed;  // the serial of the certificate that was made
  std::unique_ptr<HttpServer> server;
  FakeController() {
    auto own = pki::issue(ca, {"musterd", "muster-controller", {"127.0.0.1"}, true, 5}).value();
    HttpServerOptions options;
    options.tls = true;
    options.tls_options = {own.certificate_pem + ca.certificate_pem, own.key_pem,
                           ca.certificate_pem + next.certificate_pem, true};
    server = start_http_server(options, [this](HttpRequest request, ResponderPtr answer) {
               handle(request, *answer);
             }).value();
  }
  void handle(const HttpRequest& request, Responder& answer) {
    const std::lock_guard lock(mutex);
    if (request.path == "/agent/v1/orders") {
      polled_with.push_back(request.peer_serial);
      last_poll = request;
      return answer.respond(
          HttpResponse::json(200, replaces ? R"({"orders": [], "renew": true})" : R"({"orders": []})"));
    }
    if (request.path != "/agent/v1/renew" || refuse) return answer.respond(HttpResponse::json(409, "{}"));
    const std::string csr = parse_json(request.body).value()["csr_pem"].get<std::string>();
    const std::string pem =
        pki::sign_csr(replaces ? next : ca, csr, {request.peer, "muster-agent", {}, false, 365}).value();
    renewed = pki::read_certificate(pem).value().serial;
    answer.respond(
        HttpResponse::json(200, wire::to_json(wire::JoinReply{request.peer, pem, trusted}).dump()));
  }
  void replace_ca(const std::string& now_trusted) {
    const std::lock_guard lock(mutex);
    replaces = true;
    trusted = now_trusted;
  }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(server->port()); }
};

struct Node {
  TempDir dir;
  Files files{dir.path("")};
  FakeController controller;
  Later reactor;
  Credentials old;
  std::atomic<bool> trial = false;
  std::unique_ptr<RenewableLink> link;
  std::thread thread;
  explicit Node(int days) {
    old.key_pem = pki::make_key().value();
    old.certificate_pem = pki::sign_csr(controller.ca, pki::make_csr(old.key_pem, "node01").value(),
                                        {"node01", "muster-agent", {}, false, days})
                              .value();
    old.ca_pem = controller.ca.certificate_pem;
    REQUIRE(write_credentials(files, "/muster", old).ok());
    AgentIdentity identity;
    identity.slot = "b";
    identity.on_trial = [this] { return trial.load(); };
    link = make_http_link(reactor, controller.url(), old, identity).value();
    thread = std::thread([this] { reactor.run(); });
  }
  ~Node() {
    reactor.stop();
    thread.join();
  }
  // Looks, then polls until the work that this began is through.
  void look_and_settle(Renewal& renewal) {
    reactor.post([&] { renewal.look(); });
    for (int i = 0; i < 4; ++i) {
      std::promise<void> done;
      reactor.post([&] { reactor.offload([] {}, [&] { done.set_value(); }); });
      done.get_future().get();
      std::promise<void> polled;
      reactor.post([&] { link->poll({}, [&](const Result<wire::PollReply>&) { polled.set_value(); }); });
      polled.get_future().get();
    }
  }
  // What a request for orders says now.
  std::map<std::string, std::string> asks() {
    std::promise<void> polled;
    reactor.post([&] { link->poll({"1/a#1"}, [&](const Result<wire::PollReply>&) { polled.set_value(); }); });
    polled.get_future().get();
    const std::lock_guard lock(controller.mutex);
    HttpRequest last = controller.last_poll;
    REQUIRE(parse_target(last).ok());
    return last.query;
  }
  std::string kept() { return read_credentials(files, "/muster").value().certificate_pem; }
  std::string last_poll() {
    const std::lock_guard lock(controller.mutex);
    return controller.polled_with.back();
  }
};

// A link that cannot be switched.
struct StuckLink : RenewableLink {
  bool requested = false;
  Status use(const Credentials&) override { return requested = true, fail(Code::failed, "cannot switch"); }
  void on_renew(std::function<void()>) override {}
  void poll(const std::vector<std::string>&, Orders) override {}
  void post(const wire::EventBatch&, Acked) override {}
};

AgentConfig config_of(const Node& node) {
  return {"node01", node.controller.url(), "", wire::Mode::installed};
}

}  // namespace

TEST_CASE("a certificate is due when two thirds of its life are over", "[agent]") {
  const auto ca = pki::make_ca("muster CA", 10).value();
  const auto pem = pki::issue(ca, {"node01", "muster-agent", {}, false, 300}).value().certificate_pem;
  const auto info = pki::read_certificate(pem).value();
  const auto due = info.not_before + (info.not_after - info.not_before) / 3 * 2;
  CHECK_FALSE(renewal_due(pem, due));
  CHECK(renewal_due(pem, due + 1));
  CHECK(renewal_due(pem, info.not_after + kDay));
  CHECK_FALSE(renewal_due("no certificate", due));
}

TEST_CASE("an old certificate is replaced on the disk and on the link, the key stays", "[agent]") {
  Node node(1);  // of two days, half is over; half a day later two thirds are
  Renewal renewal(node.reactor, node.files, *node.link, "/muster", config_of(node));
  node.look_and_settle(renewal);
  CHECK(node.kept() != node.old.certificate_pem);
  CHECK(read_credentials(node.files, "/muster")->key_pem == node.old.key_pem);
  CHECK(node.last_poll() == node.controller.renewed);
}

TEST_CASE("a controller that refuses costs nothing: the old certificate stays in use", "[agent]") {
  Node node(1);
  node.controller.refuse = true;
  Renewal renewal(node.reactor, node.files, *node.link, "/muster", config_of(node));
  node.look_and_settle(renewal);
  CHECK(node.kept() == node.old.certificate_pem);
  CHECK(node.last_poll() == pki::read_certificate(node.old.certificate_pem)->serial);
}

TEST_CASE("a young certificate is left alone", "[agent]") {
  Node node(300);
  Renewal renewal(node.reactor, node.files, *node.link, "/muster", config_of(node));
  node.look_and_settle(renewal);
  CHECK(node.kept() == node.old.certificate_pem);
  CHECK(node.controller.renewed.empty());
}

TEST_CASE("a request for orders says that the boot is on trial, as long as it is", "[agent][in-place]") {
  Node node(300);
  CHECK(node.asks().count("trial") == 0);
  node.trial = true;
  auto query = node.asks();
  CHECK(query["trial"] == "1");
  CHECK(query["slot"] == "b");
  CHECK(query["have"] == "1/a#1");
  node.trial = false;  // committed, by the same process
  CHECK(node.asks().count("trial") == 0);
}

TEST_CASE(
    "a link that cannot be switched does not make a renewal undone: the new certificate is kept and said to "
    "be",
    "[agent]") {
  Node node(1);
  StuckLink stuck;
  const CapturedLog logged;
  Renewal renewal(node.reactor, node.files, stuck, "/muster", config_of(node));
  node.look_and_settle(renewal);
  CHECK(stuck.requested);
  CHECK(node.kept() != node.old.certificate_pem);
  CHECK(logged.text().find("certificate renewed, but the link uses the old one") != std::string::npos);
  CHECK(logged.text().find("could not be renewed") == std::string::npos);
}

TEST_CASE("a young certificate is replaced when the controller says so, with the CAs to trust",
          "[agent][replace]") {
  Node node(300);
  const std::string pin = pki::certificate_fingerprint(node.controller.ca.certificate_pem).value();
  AgentConfig config = config_of(node);
  config.ca_pin = pin;
  REQUIRE(write_config(node.files, "/muster", config).ok());
  CHECK(node.asks()["ca"] == sha256(node.old.ca_pem));
  node.controller.replace_ca(node.controller.ca.certificate_pem + node.controller.next.certificate_pem);
  Renewal first(node.reactor, node.files, *node.link, "/muster", config);
  node.look_and_settle(first);
  const auto moved = read_credentials(node.files, "/muster").value();
  CHECK(moved.key_pem == node.old.key_pem);
  CHECK(moved.ca_pem == node.controller.trusted);
  CHECK(node.last_poll() == node.controller.renewed);
  CHECK(node.asks()["ca"] == sha256(node.controller.trusted));
  // The controller's own certificate is still of the old CA, by which others join.
  CHECK(read_config(node.files, "/muster")->ca_pin == pin);

  node.controller.replace_ca(node.controller.next.certificate_pem);
  Renewal second(node.reactor, node.files, *node.link, "/muster", config);  // its minute has not begun
  node.look_and_settle(second);
  CHECK(read_credentials(node.files, "/muster")->ca_pem == node.controller.trusted);
  CHECK(read_config(node.files, "/muster")->ca_pin ==
        pki::certificate_fingerprint(node.controller.trusted).value());
}

TEST_CASE("an agent takes no CA before which stands none that it trusts", "[agent][replace]") {
  Node node(300);
  node.controller.replace_ca(node.controller.next.certificate_pem + node.controller.ca.certificate_pem);
  Renewal renewal(node.reactor, node.files, *node.link, "/muster", config_of(node));
  node.look_and_settle(renewal);
  CHECK_FALSE(node.controller.renewed.empty());
  CHECK(node.kept() == node.old.certificate_pem);
  CHECK(read_credentials(node.files, "/muster")->ca_pem == node.old.ca_pem);
}

TEST_CASE("an agent that was killed between CAs and certificate reports that it is not complete",
          "[agent][replace]") {
  const auto old = pki::make_ca("muster CA", 10).value(), next = pki::make_ca("muster CA", 10).value();
  const std::string both = old.certificate_pem + next.certificate_pem;
  const auto of = [](const pki::KeyPair& ca) {
    return pki::issue(ca, {"node01", "muster-agent", {}, false, 5}).value().certificate_pem;
  };
  CHECK(trust_of({"", of(old), old.certificate_pem}) == sha256(old.certificate_pem));
  CHECK(trust_of({"", of(old), both}) == "incomplete");
  CHECK(trust_of({"", of(next), both}) == sha256(both));
  CHECK(trust_of({"", of(next), next.certificate_pem}) == sha256(next.certificate_pem));
  CHECK(trust_of({"", "", both}) == "");
  CHECK(trust_of({"", of(old), ""}) == "");
}

TEST_CASE("the pin that a killed agent did not update is updated at its next start", "[agent][replace]") {
  Node node(300);
  AgentConfig config = config_of(node);
  config.ca_pin = "sha256:" + std::string(64, '0');
  REQUIRE(write_config(node.files, "/muster", config).ok());
  Renewal renewal(node.reactor, node.files, *node.link, "/muster", config);
  node.look_and_settle(renewal);
  CHECK(read_config(node.files, "/muster")->ca_pin == pki::certificate_fingerprint(node.old.ca_pem).value());
}
