#include "controller/metrics/service/metrics_port.h"

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "controller/metrics/exposition.h"
#include "controller/metrics/service/metrics_service.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

namespace {

struct Served {
  std::string page = "a 1\n";
  DaemonOptions options;
  std::map<std::string, std::string> problems;
  MetricsPort::Text text = [this]() -> const std::string& { return page; };

  Served() {
    options.metrics = "127.0.0.1";
    options.metrics_port = 0;
  }
};

// What other threads post is done when a test says so; the clocks are the test's.
class PostedReactor : public ManualReactor {
 public:
  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    changed_.notify_all();
  }
  bool is_posted_to() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [this] { return !posted_.empty(); });
  }
  size_t run_posted() {
    std::vector<Task> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(posted_);
    }
    for (const Task& task : tasks) task();
    return tasks.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> posted_;
};

// Its status is 0 where no answer came.
HttpResponse request_to(const MetricsPort& port, const std::string& method, const std::string& target,
                        const std::string& body = "") {
  auto client = make_http_client({.base = "http://127.0.0.1:" + std::to_string(port.port())}).value();
  HttpRequest request;
  request.method = method;
  request.target = target;
  request.body = body;
  HttpResponse none;
  none.status = 0;
  return client->request(std::move(request), 10 * kSecond).value_or(none);
}

}  // namespace

TEST_CASE("metrics port: /metrics for every client, and nothing else", "[metrics]") {
  Served served;
  const auto reactor = make_reactor(1);
  MetricsPort port(*reactor, served.options, served.problems, served.text);
  port.open();
  REQUIRE(port.port() != 0);
  std::thread thread([&] { reactor->run(); });
  const auto answer = [&](const std::string& method, const std::string& target,
                          const std::string& body = "") { return request_to(port, method, target, body); };
  const HttpResponse page = answer("GET", "/metrics");
  CHECK(page.status == 200);
  CHECK(page.body == served.page);
  CHECK(page.headers.at("Content-Type") == Exposition::kContentType);
  CHECK(answer("GET", "/metrics?x=1").status == 200);
  for (const char* other : {"/", "/v1/status", "/v1/secrets", "/metrics/x", "/images/a"})
    CHECK(answer("GET", other).status == 404);
  CHECK(answer("POST", "/metrics").status == 405);
  CHECK(answer("DELETE", "/metrics").status == 405);
  CHECK(answer("PUT", "/metrics", "x").status != 200);
  reactor->stop();
  thread.join();
  port.close();
  CHECK(served.problems.empty());
}

TEST_CASE("metrics port: the reactor makes one page a second, none for what is not served", "[metrics]") {
  Served served;
  PostedReactor reactor;
  MetricsPort port(reactor, served.options, served.problems, served.text);
  port.open();
  REQUIRE(port.port() != 0);
  CHECK(request_to(port, "GET", "/v1/status").status == 404);
  CHECK(request_to(port, "POST", "/metrics").status == 405);
  CHECK(reactor.run_posted() == 0);
  for (const char* page : {"a 1\n", "a 2\n"}) {
    served.page = page;
    auto first = std::async(std::launch::async, [&] { return request_to(port, "GET", "/metrics"); });
    REQUIRE(reactor.is_posted_to());
    CHECK(reactor.run_posted() == 1);
    CHECK(first.get().body == page);
    served.page = "later\n";
    for (int i = 0; i < 20; ++i) CHECK(request_to(port, "GET", "/metrics").body == page);
    CHECK(reactor.run_posted() == 0);
    reactor.advance(MetricsService::kFresh);
  }
}

TEST_CASE("metrics port: it closes while a request waits for the page", "[metrics]") {
  Served served;
  PostedReactor reactor;
  MetricsPort port(reactor, served.options, served.problems, served.text);
  port.open();
  REQUIRE(port.port() != 0);
  auto waits = std::async(std::launch::async, [&] { return request_to(port, "GET", "/metrics"); });
  REQUIRE(reactor.is_posted_to());
  port.close();
  CHECK(waits.get().status != 200);
  CHECK(reactor.run_posted() == 1);
  CHECK(reactor.idle());
}

TEST_CASE("metrics port: without the option there is none", "[metrics]") {
  Served served;
  served.options.metrics.clear();
  ManualReactor reactor;
  MetricsPort port(reactor, served.options, served.problems, served.text);
  port.open();
  CHECK(port.port() == 0);
  CHECK(reactor.idle());
  CHECK(served.problems.empty());
}

TEST_CASE("metrics port: an address that cannot be used is a problem until it can", "[metrics]") {
  Served served;
  HttpServerOptions other;
  auto holder = start_http_server(other, [](HttpRequest, ResponderPtr) {}).value();
  served.options.metrics_port = holder->port();
  ManualReactor reactor;
  MetricsPort port(reactor, served.options, served.problems, served.text);
  port.open();
  CHECK(port.port() == 0);
  CHECK(served.problems.count("metrics") == 1);
  reactor.advance(3 * MetricsPort::kAgain);
  CHECK(served.problems.count("metrics") == 1);
  holder.reset();
  reactor.advance(MetricsPort::kAgain);
  CHECK(port.port() == served.options.metrics_port);
  CHECK(served.problems.empty());
  CHECK(reactor.idle());
}

TEST_CASE("metrics port: retries end with it", "[metrics]") {
  Served served;
  served.options.metrics = "192.0.2.1";  // no machine's
  ManualReactor reactor;
  {
    MetricsPort port(reactor, served.options, served.problems, served.text);
    port.open();
    CHECK_FALSE(reactor.idle());
  }
  CHECK(reactor.idle());
}

TEST_CASE("metrics port: its address is numeric, without a port", "[metrics]") {
  for (const char* good : {"", "127.0.0.1", "::1", "10.20.0.1"}) CHECK(wrong_metrics_address(good) == "");
  for (const char* bad : {"localhost", "10.20.0.1:9", "[::1]", "10.20.0", " 10.20.0.1", "yes"})
    CHECK(wrong_metrics_address(bad) != "");
}

TEST_CASE("metrics port: every network is a problem, and closed; the controller starts", "[metrics]") {
  for (const char* every : {"0.0.0.0", "::", "::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"}) {
    CAPTURE(every);
    CHECK(wrong_metrics_address(every) == "");
    Served served;
    served.options.metrics = every;
    served.options = with_defaults(served.options, "musterd");
    CHECK(served.options.metrics == "");  // nor does a plan have Prometheus scrape it
    ManualReactor reactor;
    MetricsPort port(reactor, served.options, served.problems, served.text);
    port.open();
    CHECK(port.port() == 0);
    REQUIRE(served.problems.count("metrics") == 1);
    CHECK(served.problems["metrics"].find(every) != std::string::npos);
    CHECK(reactor.idle());
  }
  for (const char* one : {"", "127.0.0.1", "::1"}) {
    DaemonOptions options;
    options.metrics = one;
    CHECK(with_defaults(options, "musterd").metrics == one);
    CHECK(with_defaults(options, "musterd").metrics_closed == "");
  }
}
