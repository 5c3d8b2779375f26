#include "controller/metrics/service/metrics_port.h"

#include <thread>

#include "controller/metrics/exposition.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

namespace {

struct Served {
  const std::string page = "a 1\n";
  DaemonOptions options;
  std::map<std::string, std::string> problems;
  MetricsPort::Text text = [this]() -> const std::string& { return page; };

  Served() {
    options.metrics = "127.0.0.1";
    options.metrics_port = 0;
  }
};

}  // namespace

TEST_CASE("metrics port: /metrics for every client, and nothing else", "[metrics]") {
  Served served;
  const auto reactor = make_reactor(1);
  MetricsPort port(*reactor, served.options, served.problems, served.text);
  port.open();
  REQUIRE(port.port() != 0);
  std::thread thread([&] { reactor->run(); });
  auto client = make_http_client({.base = "http://127.0.0.1:" + std::to_string(port.port())}).value();
  const auto answer = [&](const std::string& method, const std::string& target,
                          const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    HttpResponse none;
    none.status = 0;
    return client->request(std::move(request), 10 * kSecond).value_or(none);
  };
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
  for (const char* good : {"", "127.0.0.1", "0.0.0.0", "::1", "10.20.0.1"})
    CHECK(wrong_metrics_address(good) == "");
  for (const char* bad : {"localhost", "10.20.0.1:9", "[::1]", "10.20.0", " 10.20.0.1", "yes"})
    CHECK(wrong_metrics_address(bad) != "");
}
