// The lab's provider API (lab/phy_api.h) behind real HTTPS with machines that only remember, and a clock that
// moves when the driver waits.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller/power/sakura/sakura_phy.h"
#include "controller/power/wrap.h"
#include "lab/fake_machine.h"
#include "lab/phy_api.h"
#include "sys/http/http.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

namespace muster::testing {

class PhyBench {
 public:
  explicit PhyBench(int servers = 1) {
    for (int i = 0; i < servers; ++i) {
      const std::string id = std::to_string(113100000001 + i);
      ids.push_back(id);
      lab::PhyMachine one;
      one.id = id;
      one.nickname = "gpu" + std::to_string(i + 1);
      one.address = "127.0.0.1";
      one.machine = &machines[id];
      one.install = [this, id](const std::string& image, const std::vector<std::string>& keys) {
        installed[id] = image;
        keys_of[id] = keys;
        return std::string();
      };
      api.add(one);
    }
    const auto certificate =
        pki::issue(*pki::make_ca("provider", 10), pki::Leaf{"api", "test", {"127.0.0.1"}, true, 10});
    HttpServerOptions options;
    options.tls = true;
    options.tls_options.certificate_pem = certificate->certificate_pem;
    options.tls_options.key_pem = certificate->key_pem;
    auto server = start_http_server(
        options, [this](HttpRequest request, ResponderPtr responder) { answer(request, *responder); });
    REQUIRE(server.ok());
    server_ = std::move(server).value();
    restart();
  }
  ~PhyBench() { server_->stop(); }

  // The controller restarts: it keeps what lies in its folder, and its monotonic clock starts over.
  void restart() {
    booted = clock.load();
    accounts = std::make_unique<PhyAccounts>(waiter(), [this] { return clock + of_day; });
  }
  // Waiting lets what is due happen, and firmware take over.
  Waiter waiter() {
    return {[this] { return clock - booted + kSecond; },
            [this](DurationMs span) {
              clock += span;
              api.advance();
              for (auto& [id, machine] : machines) machine.boot();
            }};
  }
  PowerTarget target(size_t index = 0) {
    PowerTarget out;
    out.node = NodeName("gpu0" + std::to_string(index + 1));
    out.address = ids[index];
    out.user = kToken;
    out.password = kSecret;
    out.api = "127.0.0.1:" + std::to_string(server_->port());
    out.state = dir.path("");
    out.on_pin = [this](const std::string& pin) { learnt_pin = pin; };
    out.on_refused = [this] { ++refusals; };
    return out;
  }
  std::shared_ptr<PhyAccount> account(const PowerTarget& at) {
    return accounts->of(at.api, at.user, at.password, at.state);
  }
  std::unique_ptr<Power> driver(PowerTarget at) {
    auto shared = account(at);
    return make_sakura_phy(std::move(at), waiter(), std::move(shared));
  }
  std::unique_ptr<Power> driver(size_t index = 0) { return driver(target(index)); }
  std::unique_ptr<Power> retrying(size_t index = 0) { return with_retries(driver(index), waiter(), 1); }
  lab::FakeMachine& machine(size_t index = 0) { return machines[ids[index]]; }
  void pass(DurationMs span) { waiter().sleep(span); }
  int seen_with(const std::string& part) {
    const std::lock_guard hold(mutex_);
    int n = 0;
    for (const HttpRequest& one : requests_)
      n += (one.method + " " + one.target).find(part) != std::string::npos;
    return n;
  }
  std::vector<HttpRequest> requests() {
    const std::lock_guard hold(mutex_);
    return requests_;
  }

  static constexpr const char* kToken = "12345678-aaaa-bbbb-cccc-123456789012";
  static constexpr const char* kSecret = "secret-of-the-account";
  static constexpr const char* kImage = "debian12-x86_64";
  std::atomic<TimeMs> clock{1'000'000}, booted{0};
  std::atomic<TimeMs> of_day{1'700'000'000'000};  // beside the clock; a test may set it
  std::vector<std::string> ids;
  std::map<std::string, lab::FakeMachine> machines;
  std::map<std::string, std::string> installed;
  std::map<std::string, std::vector<std::string>> keys_of;
  lab::PhyApi api{kToken, kSecret,
                  [] {
                    return std::vector<lab::PhyImage>{{kImage, "Debian 12", "debian", true, true},
                                                      {"windows", "Windows", "admin", false, true}};
                  },
                  [this] { return clock.load(); }};
  TempDir dir;
  std::unique_ptr<PhyAccounts> accounts;
  std::string learnt_pin;
  int refusals = 0;
  // Answers in the API's place, as what stands before it does: gateways, proxies. Server's thread.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> instead = {};
  // Changes what the API answers. Server's thread.
  std::function<void(const HttpRequest&, HttpResponse&)> after = {};
  // On the server's thread, before it answers: the caller waits meanwhile.
  std::function<void(const HttpRequest&)> on_request = {};

 private:
  void answer(const HttpRequest& request, Responder& responder) {
    {
      const std::lock_guard hold(mutex_);
      requests_.push_back(request);
    }
    if (on_request) on_request(request);
    std::optional<HttpResponse> other = instead ? instead(request) : std::nullopt;
    HttpResponse response = other ? std::move(*other) : api.handle(request);
    if (after && !other) after(request, response);
    responder.respond(std::move(response));
  }
  std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace muster::testing
