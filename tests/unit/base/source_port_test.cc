// Source ports of HTTP: those below 1024 are root's, and a join has to come from one of them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sys/http/http.h"
#include "tests/catch.h"

using namespace muster;

namespace {

constexpr int kFirstOpen = 1024;
constexpr int kReserved = 1023 - 665 + 1;

struct PortCaller {
  std::unique_ptr<HttpClient> client;
  int port = 0;  // as the server saw it
};

PortCaller port_caller(const HttpServer& server, bool reserved) {
  HttpClientOptions options;
  options.base = "http://127.0.0.1:" + std::to_string(server.port());
  options.reserved_port = reserved;
  PortCaller caller{std::move(make_http_client(std::move(options))).value()};
  const auto answer = caller.client->request({.target = "/"}, kMinute);
  REQUIRE(answer.ok());
  caller.port = std::stoi(answer->body);
  return caller;
}

bool may_use_reserved_ports() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool may = false;
  for (int port = 700; !may && port < 710; ++port) {
    address.sin_port = htons(static_cast<uint16_t>(port));
    may = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ::close(fd);
  return may;
}

}  // namespace

TEST_CASE("root sends from a reserved port on demand, while one is free; another user from any") {
  HttpServerOptions options;
  options.max_unknown_per_address = kReserved + 2;
  const auto server =
      std::move(start_http_server(options, [](const HttpRequest& request, const ResponderPtr& responder) {
        responder->respond(HttpResponse::text(200, std::to_string(request.remote_port)));
      })).value();
  CHECK(port_caller(*server, false).port >= kFirstOpen);
  if (!may_use_reserved_ports()) {
    CHECK(port_caller(*server, true).port >= kFirstOpen);
    return;
  }
  // All stay connected: to this server a port serves once.
  std::vector<PortCaller> callers;
  std::set<int> reserved;
  for (int i = 0; i < kReserved; ++i) {
    callers.push_back(port_caller(*server, true));
    if (callers.back().port < kFirstOpen) CHECK(reserved.insert(callers.back().port).second);
  }
  // Some may be in use by services of this machine.
  CHECK(reserved.size() > kReserved / 2);
  callers.push_back(port_caller(*server, true));
  CHECK(callers.back().port >= kFirstOpen);
}
