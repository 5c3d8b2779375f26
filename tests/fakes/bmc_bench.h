// A lab BMC behind real HTTPS with a machine that only remembers, and a clock that moves when the driver
// waits. `before` may answer in the BMC's place, `after` may change its answer: for quirks the profiles do
// not have.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "controller/ports/power.h"
#include "controller/power/waiter.h"
#include "lab/bmc.h"
#include "lab/fake_machine.h"
#include "sys/http/http.h"
#include "sys/pki.h"
#include "tests/catch.h"

namespace muster {

class BmcBench {
 public:
  explicit BmcBench(const std::string& profile) : BmcBench(*lab::find_profile(profile)) {}
  explicit BmcBench(const lab::BmcProfile& profile)
      : bmc_(profile, {"gpu01", kUuid, "SN-1", "52:54:00:00:00:01", 1024, 1}, "admin", "pw:with:colons",
             machine, [this] { return clock.load(); }) {
    const auto certificate =
        pki::issue(*pki::make_ca("bmc", 10), pki::Leaf{"bmc", "test", {"127.0.0.1"}, true, 10});
    HttpServerOptions options;
    options.tls = true;
    options.tls_options.certificate_pem = certificate->certificate_pem;
    options.tls_options.key_pem = certificate->key_pem;
    auto server = start_http_server(
        options, [this](HttpRequest request, ResponderPtr responder) { answer(request, *responder); });
    REQUIRE(server.ok());
    server_ = std::move(server).value();
    target.node = "gpu01";
    target.address = "127.0.0.1:" + std::to_string(server_->port());
    target.user = "admin";
    target.password = "pw:with:colons";
    target.on_pin = [this](const std::string& pin) { learnt_pin = pin; };
    target.on_refused = [this] { ++refusals; };
  }
  ~BmcBench() { server_->stop(); }

  // Waiting lets the firmware take over, too.
  Waiter waiter() {
    return {[this] { return clock.load(); },
            [this](DurationMs span) {
              clock += span;
              machine.boot();
            }};
  }
  std::string boots() {
    machine.boot();
    std::string out;
    for (const lab::BootFirst one : machine.boots()) out += one == lab::BootFirst::network ? 'n' : 'd';
    return out;
  }

  static constexpr const char* kUuid = "12345678-9abc-def0-1234-56789abcdef0";
  std::atomic<TimeMs> clock{1'000'000};
  lab::FakeMachine machine;
  PowerTarget target;
  std::string learnt_pin;
  int refusals = 0;
  std::function<std::optional<HttpResponse>(const HttpRequest&)> before;
  std::function<void(const HttpRequest&, HttpResponse&)> after;
  std::vector<std::string> seen;  // "GET /redfish/v1/"
  lab::Bmc& bmc() { return bmc_; }

 private:
  void answer(const HttpRequest& request, Responder& responder) {
    const std::lock_guard hold(mutex_);
    seen.push_back(request.method + " " + request.path);
    std::optional<HttpResponse> own = before ? before(request) : std::nullopt;
    HttpResponse response = own ? std::move(*own) : bmc_.handle(request);
    if (after && !own) after(request, response);
    responder.respond(std::move(response));
  }

  lab::Bmc bmc_;
  std::mutex mutex_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace muster
