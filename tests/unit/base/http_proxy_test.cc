// A client that goes through an HTTP proxy: it never connects to the server itself, and the proxy of https
// sees nothing of what is sent.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <thread>

#include "sys/http/http.h"
#include "sys/pki.h"
#include "tests/catch.h"

using namespace muster;

namespace {

sockaddr_in loopback(uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(port);
  return out;
}

// Serves one connection: relays a CONNECT to `server`, whatever its name, or answers itself.
class Proxy {
 public:
  Proxy(uint16_t server, std::string refusal = "") : server_(server), refusal_(std::move(refusal)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Proxy() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string seen() {
    const std::lock_guard hold(mutex_);
    return seen_;
  }

 private:
  void serve() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1) head += byte;
    note(head);
    if (!refusal_.empty())
      send(client, refusal_);
    else if (head.starts_with("CONNECT "))
      relay(client);
    else
      send(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    ::close(client);
  }
  void relay(int client) {
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      send(client, "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n");
      std::array<pollfd, 2> ends = {pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
      while (::poll(ends.data(), ends.size(), -1) > 0)
        if (!pass(ends[0], server) || !pass(ends[1], client)) break;
    }
    ::close(server);
  }
  bool pass(const pollfd& from, int to) {
    if (from.revents == 0) return true;
    std::array<char, 4096> buffer;
    const ssize_t size = ::recv(from.fd, buffer.data(), buffer.size(), 0);
    if (size <= 0) return false;
    const std::string piece(buffer.data(), static_cast<size_t>(size));
    note(piece);
    send(to, piece);
    return true;
  }
  static void send(int to, const std::string& text) {
    (void)!::send(to, text.data(), text.size(), MSG_NOSIGNAL);
  }
  void note(const std::string& piece) {
    const std::lock_guard hold(mutex_);
    seen_ += piece;
  }

  const uint16_t server_;
  const std::string refusal_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::string seen_;
  std::thread thread_;
};

HttpRequest some_post() {
  HttpRequest request;
  request.method = "POST";
  request.target = "/services/x";
  request.headers["Authorization"] = "hunter2";
  request.body = "a notice";
  return request;
}

}  // namespace

TEST_CASE("http: through a proxy, https goes to a name that only the proxy resolves", "[http]") {
  const auto ca = pki::make_ca("roots", 10);
  REQUIRE(ca.ok());
  const auto certificate = pki::issue(*ca, pki::Leaf{"hooks", "test", {"hooks.example"}, true, 10});
  REQUIRE(certificate.ok());
  HttpServerOptions options;
  options.tls = true;
  options.tls_options.certificate_pem = certificate->certificate_pem;
  options.tls_options.key_pem = certificate->key_pem;
  auto server = start_http_server(options, [](HttpRequest request, ResponderPtr responder) {
    responder->respond(HttpResponse::text(200, request.body + request.headers["Authorization"]));
  });
  REQUIRE(server.ok());
  for (const char* name : {"hooks.example", "other.example"}) {
    CAPTURE(name);
    Proxy proxy((*server)->port());
    HttpClientOptions client;
    client.base = "https://hooks.example";
    client.proxy = proxy.url();
    client.ca_pem = ca->certificate_pem;
    client.host_name = name;
    client.keep_alive = false;
    const auto answer = (*make_http_client(client))->request(some_post(), 10 * kSecond);
    if (std::string(name) == "hooks.example") {
      REQUIRE(answer.ok());
      CHECK(answer->body == "a noticehunter2");
    } else {
      CHECK(answer.error().code == Code::denied);
    }
    CHECK(proxy.seen().starts_with("CONNECT hooks.example:443 HTTP/1.1\r\nHost: hooks.example:443\r\n"));
    CHECK(proxy.seen().find("hunter2") == std::string::npos);
    CHECK(proxy.seen().find("/services/x") == std::string::npos);
  }
}

TEST_CASE("http: through a proxy, plain http has the whole URL in its first line", "[http]") {
  Proxy proxy(0);
  HttpClientOptions client;
  client.base = "http://hooks.example:8080";
  client.proxy = proxy.url();
  const auto answer = (*make_http_client(client))->request(some_post(), 10 * kSecond);
  REQUIRE(answer.ok());
  CHECK(answer->body == "ok");
  CHECK(proxy.seen().starts_with("POST http://hooks.example:8080/services/x HTTP/1.1\r\n"));
}

TEST_CASE("http: a proxy that refuses, closes, or is none", "[http]") {
  HttpClientOptions client;
  client.base = "https://hooks.example";
  client.insecure_first_use = true;
  for (const char* refusal :
       {"HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 200", "no HTTP\r\n\r\n", "\r\n\r\n"}) {
    CAPTURE(refusal);
    Proxy proxy(0, refusal);
    client.proxy = proxy.url();
    CHECK((*make_http_client(client))->request(some_post(), 10 * kSecond).error().code == Code::unavailable);
  }
  for (const char* wrong : {"https://127.0.0.1:3128", "unix:/run/x", "proxy.example:3128"}) {
    CAPTURE(wrong);
    client.proxy = wrong;
    CHECK(make_http_client(client).error().code == Code::invalid);
  }
  client.proxy = "http://127.0.0.1:3128";
  for (const char* wrong : {"https://", "https://a b", "https://user@host", "ftp://host"}) {
    CAPTURE(wrong);
    client.base = wrong;
    CHECK(make_http_client(client).error().code == Code::invalid);
  }
}
