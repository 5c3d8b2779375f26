// A whole controller in a folder of its own, without ports; requests go in where the servers would put them.
#pragma once

#include <future>
#include <thread>

#include "controller/api/api.h"
#include "controller/api/caller.h"
#include "controller/api/services.h"
#include "controller/boot/service/boot_service.h"
#include "controller/bringup/bringup.h"
#include "controller/daemon.h"
#include "controller/trust/authority.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

namespace muster::testing {

class Caught : public Responder {
 public:
  explicit Caught(std::promise<HttpResponse>& promise) : promise_(promise) {}
  void respond(HttpResponse response) override { promise_.set_value(std::move(response)); }
  void start_stream(HttpResponse head) override { promise_.set_value(std::move(head)); }
  bool write(std::string) override { return false; }
  void end_stream() override {}

 private:
  std::promise<HttpResponse>& promise_;
};

class Controller {
 public:
  // A lab's controller, for the specs of the tests are labs'. `sys`: what it takes for the sysfs of its
  // machine; nothing is known of that otherwise. `images`: recipes, without which no image can be built.
  explicit Controller(const std::string& playbooks = "", const std::string& agent = "",
                      const std::string& sys = "", const std::string& images = "") {
    options_.images = images;
    options_.sys = sys.empty() ? dir_.path("sys") : sys;
    options_.playbooks = playbooks;
    options_.agent_binary = agent;
    options_.state = dir_.path("state");
    options_.socket = dir_.path("sock");
    options_.dhcp = false;
    options_.lab = true;
    options_.kernel_options = "no_timer_check";
    begin();
  }
  ~Controller() { end(); }
  // Another life over the same state, or what `between` makes of it.
  void restart(const std::function<void()>& between = {}) {
    end();
    daemon_.reset();
    if (between) between();
    reactor_ = make_reactor(kWorkers);
    begin();
  }
  // From the next restart() on: one of real servers.
  void no_lab() { options_.lab = false; }
  Services& services() { return daemon_->services(); }
  std::string socket() const { return dir_.path("sock"); }
  // For the command line: from now on it answers there.
  void open() {
    on_reactor([&] { REQUIRE(daemon_->start().ok()); });
    on_reactor([] {});  // what start() posted is in the queue when that is through, not before
  }
  std::string state() const { return dir_.path("state"); }

  // The user database of these tests.
  static std::string name_of(uint32_t uid) { return uid == 0 ? "root" : uid == 1000 ? "anna" : ""; }

  // HttpRequest::peer_uid, which a server sets, is the sender.
  HttpResponse call(api::Listener listener, HttpRequest request) {
    std::promise<HttpResponse> promise;
    auto answer = promise.get_future();
    REQUIRE(parse_target(request).ok());
    reactor_->post([&, request] {
      api::dispatch(services(), listener, request, std::make_shared<Caught>(promise),
                    api::caller_of(request, name_of));
    });
    REQUIRE(answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return answer.get();
  }
  HttpResponse call(api::Listener listener, const std::string& method, const std::string& target,
                    const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    return call(listener, std::move(request));
  }
  // Through the Unix socket, from a process of this user.
  HttpResponse call_as(uint32_t uid, const std::string& method, const std::string& target,
                       const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.peer_uid = uid;
    return call(api::Listener::local, std::move(request));
  }
  // Sends it; the answer comes when it comes.
  struct Sent {
    std::promise<HttpResponse> promise = {};
    std::future<HttpResponse> answer = promise.get_future();
  };
  std::unique_ptr<Sent> send(api::Listener listener, const std::string& method, const std::string& target,
                             const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    return send(listener, std::move(request));
  }
  std::unique_ptr<Sent> send(api::Listener listener, HttpRequest request) {
    REQUIRE(parse_target(request).ok());
    auto sent = std::make_unique<Sent>();
    on_reactor([&] {
      api::dispatch(services(), listener, request, std::make_shared<Caught>(sent->promise),
                    api::caller_of(request, name_of));
    });
    return sent;
  }
  static HttpResponse answer_of(Sent& sent) {
    REQUIRE(sent.answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return sent.answer.get();
  }
  // What is given to the workers from now on waits until then.
  void hold_workers(const std::shared_future<void>& until) {
    for (int i = 0; i < kWorkers; ++i)
      on_reactor([&] { services().reactor.offload([until] { until.wait(); }, [] {}); });
  }
  std::string token_for(const std::string& node) {
    std::promise<std::string> promise;
    reactor_->post([&] {
      services().boot.arm(NodeName(node), [](Status) {});
      services().boot.mint(node, "join",
                           [&](Result<std::string> token) { promise.set_value(token.value_or("")); });
    });
    return promise.get_future().get();
  }

  // A run that waits for this node's agent.
  void start_a_run(const std::string& node) {
    std::promise<bool> started;
    reactor_->post([&] {
      Plan plan;
      plan.kind = PlanKind::discover;
      plan.nodes = {node};
      Action look;
      look.id = node + "/inventory";
      look.node = NodeName(node);
      look.kind = ActionKind::inventory;
      plan.actions = {look};
      services().bringup.executor().start(plan, "test",
                                          [&](Result<int64_t> id) { started.set_value(id.ok()); });
    });
    REQUIRE(started.get_future().get());
  }
  NodeObservation observed(const std::string& node) {
    std::promise<NodeObservation> seen;
    reactor_->post([&] { seen.set_value(services().bringup.observe(NodeName(node))); });
    return seen.get_future().get();
  }

  Json good(const HttpResponse& answer) {
    INFO(answer.body);
    REQUIRE(answer.status == 200);
    return parse_json(answer.body).value();
  }
  Json get(const std::string& target) {
    return parse_json(call(api::Listener::local, "GET", target).body).value();
  }
  static HttpRequest signed_by(const pki::CertificateInfo& certificate, const std::string& method,
                               const std::string& target, const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.peer = certificate.common_name;
    request.peer_organization = certificate.organization;
    request.peer_serial = certificate.serial;
    return request;
  }
  // Until what the executor wrote can be read: it has at most one write under way and one waiting.
  void settle() {
    for (int i = 0; i < 2; ++i) {
      std::promise<void> written;
      on_reactor([&] { services().store.write({EventRow{}}, [&](Status) { written.set_value(); }); });
      written.get_future().get();
    }
  }
  bool active() {
    bool is = false;
    on_reactor([&] { is = services().bringup.executor().active(); });
    return is;
  }

  // Does something on the reactor's thread, and waits for it.
  void on_reactor(const std::function<void()>& work) {
    std::promise<void> done;
    reactor_->post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }

 private:
  void begin() {
    auto made = Daemon::create(*reactor_, options_);
    REQUIRE(made.ok());
    daemon_ = std::move(made).value();
    thread_ = std::thread([this] { reactor_->run(); });
  }
  void end() {
    reactor_->stop();
    thread_.join();
  }

  TempDir dir_;
  DaemonOptions options_;
  static constexpr int kWorkers = 2;
  std::unique_ptr<RealReactor> reactor_ = make_reactor(kWorkers);
  std::unique_ptr<Daemon> daemon_;
  std::thread thread_;
};

}  // namespace muster::testing
