#include "sys/http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "agent/link/http_link.h"
#include "sys/os.h"
#include "sys/pki.h"
#include "tests/catch.h"

namespace muster {
namespace {

constexpr DurationMs kPatience = 20 * kSecond;  // far more than anything here takes; no test waits for it

class TestFolder {
 public:
  TestFolder() {
    char pattern[] = "/tmp/muster-http-test.XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~TestFolder() { (void)make_process()->run({.argv = {"rm", "-rf", "--", path_}}); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
  return std::move(start_http_server(std::move(options), std::move(handler))).value();
}

std::unique_ptr<HttpClient> client_of(const HttpServer& server, HttpClientOptions options = {},
                                      bool tls = false) {
  options.base = (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(server.port());
  return std::move(make_http_client(std::move(options))).value();
}

void echo(HttpRequest request, ResponderPtr responder) {
  std::string text = request.method + " " + request.path + " [" + request.body + "] from " + request.remote;
  for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
  if (!request.peer.empty()) text += " peer " + request.peer + "/" + request.peer_organization;
  responder->respond(HttpResponse::text(200, text));
}

Trust by_header(const HttpRequest& request) {
  return request.headers.count("X-Known")   ? Trust::known
         : request.headers.count("X-Guest") ? Trust::guest
                                            : Trust::unknown;
}

// A bare TCP connection, for requests that no decent client sends.
class Raw {
 public:
  explicit Raw(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) ::abort();
  }
  ~Raw() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void send(const std::string& text) { (void)::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Until the server closes, or `until` was seen.
  std::string read(const std::string& until = "") {
    std::string got;
    char buffer[4096];
    while (until.empty() || got.find(until) == std::string::npos) {
      pollfd fd{fd_, POLLIN, 0};
      if (::poll(&fd, 1, kPatience) != 1) return got + " (server silent)";
      ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      got.append(buffer, static_cast<size_t>(n));
    }
    return got;
  }
  std::string talk(const std::string& text) {
    send(text);
    return read();
  }

 private:
  int fd_;
};

// A server that is as bad as the test wants: for each connection in turn, `serve(fd)`.
class BadServer {
 public:
  explicit BadServer(std::function<void(int fd, int number)> behave, int connections)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd_, 8) != 0) ::abort();
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, behave = std::move(behave), connections] {
      for (int i = 0; i < connections; ++i) {
        int fd = ::accept(fd_, nullptr, nullptr);
        if (fd < 0) return;
        behave(fd, i);
        ::close(fd);
      }
    });
  }
  ~BadServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  std::string base() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Reads one request's header.
  static std::string take(int fd) {
    std::string got;
    char c;
    while (got.find("\r\n\r\n") == std::string::npos && ::recv(fd, &c, 1, 0) == 1) got += c;
    return got;
  }
  static void say(int fd, const std::string& text) {
    (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  int fd_;
  uint16_t port_ = 0;
  std::thread thread_;
};

struct Authority {
  pki::KeyPair ca = pki::make_ca("test CA", 30).value();
  pki::KeyPair server =
      pki::issue(
          ca,
          {.common_name = "controller", .organization = "muster", .addresses = {"127.0.0.1"}, .server = true})
          .value();
  pki::KeyPair agent = pki::issue(ca, {.common_name = "gpu01", .organization = "muster-agent"}).value();

  HttpServerOptions server_options(bool require = true) const {
    HttpServerOptions options;
    options.tls = true;
    options.tls_options = {.certificate_pem = server.certificate_pem + ca.certificate_pem,
                           .key_pem = server.key_pem,
                           .client_ca_pem = ca.certificate_pem,
                           .require_client_certificate = require};
    return options;
  }
  HttpClientOptions agent_options() const {
    HttpClientOptions options;
    options.ca_pem = ca.certificate_pem;
    options.certificate_pem = agent.certificate_pem;
    options.key_pem = agent.key_pem;
    return options;
  }
};

}  // namespace

TEST_CASE("an answer larger than the client takes is an error, also where it is one of an error") {
  const auto server = serve([](HttpRequest request, ResponderPtr responder) {
    responder->respond(HttpResponse::text(request.path == "/error" ? 500 : 200, std::string(1001, 'x')));
  });
  HttpClientOptions options;
  options.max_answer = 1000;
  for (const char* path : {"/", "/error"}) {
    HttpRequest request;
    request.target = path;
    const auto answer = client_of(*server, options)->request(request, kPatience);
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code == Code::failed);
  }
  options.max_answer = 1001;
  CHECK(client_of(*server, options)->request(HttpRequest{}, kPatience).ok());
}

TEST_CASE("targets are decoded, and refused when they climb or lie") {
  auto parse = [](std::string target) {
    HttpRequest request;
    request.target = std::move(target);
    REQUIRE(parse_target(request).ok());
    return request;
  };
  auto bad = [](std::string target) {
    HttpRequest request;
    request.target = std::move(target);
    return parse_target(request).ok() ? Code::failed : parse_target(request).error().code;
  };
  REQUIRE(parse("/a%20b?x=1%2B1&y=a+b&z").path == "/a b");
  REQUIRE(parse("/a%20b?x=1%2B1&y=a+b&z").query ==
          std::map<std::string, std::string>{{"x", "1+1"}, {"y", "a b"}, {"z", ""}});
  REQUIRE(parse("/" + url_encode("a/b ü")).path == "/a/b ü");
  for (const char* target :
       {"/a/../b", "/%2e%2e/x", "/a%2f..", "/..", "/a%0d%0ab", "/%", "/%4", "/%zz", "", "*", "/a?b=%00"})
    REQUIRE(bad(target) == Code::invalid);
}

TEST_CASE("ranges: what RFC 9110 says, for one range") {
  auto range = [](std::string_view header) {
    auto r = parse_range(header, 100);
    return r ? std::to_string(r->first) + "+" + std::to_string(r->length) : "none";
  };
  REQUIRE(range("bytes=0-9") == "0+10");
  REQUIRE(range("bytes=90-200") == "90+10");
  REQUIRE(range("bytes=5-") == "5+95");
  REQUIRE(range("bytes=-7") == "93+7");
  REQUIRE(range("bytes=-700") == "0+100");
  REQUIRE(parse_range("bytes=100-", 100)->length == 0);
  REQUIRE(parse_range("bytes=-0", 100)->length == 0);
  for (const char* header :
       {"", "bytes=", "bytes=a-b", "bytes=9-0", "bytes=0-1,3-4", "lines=0-1", "bytes=1-2x", "bytes=-"})
    REQUIRE(range(header) == "none");
}

TEST_CASE("a request goes there and back, over one connection for many, plain and over a Unix socket") {
  HttpServerOptions open;
  open.trust = [](const HttpRequest&) { return Trust::known; };
  auto server = serve(echo, open);
  auto client = client_of(*server);
  for (int i = 0; i < 3; ++i) {
    auto answer = client->request({.method = "POST", .target = "/x%20y?q=1", .body = "body"}, kPatience);
    REQUIRE(answer.ok());
    REQUIRE(answer->body == "POST /x y [body] from 127.0.0.1 q=1");
    REQUIRE(answer->headers.at("content-type") == "text/plain; charset=utf-8");
  }
  auto large = std::string(6 << 20, 'b');
  REQUIRE(client->request({.method = "PUT", .target = "/", .body = large}, kPatience)->body.size() >
          large.size());
  REQUIRE(client->request({.method = "HEAD", .target = "/"}, kPatience)->body.empty());
  REQUIRE(client->request({.target = "/after"}, kPatience)->body == "GET /after [] from 127.0.0.1");
  REQUIRE(client->peer_fingerprint().empty());

  TestFolder folder;
  std::string path = folder.path() + "/musterd.sock";
  for (int i = 0; i < 2; ++i) {
    auto local = serve(echo, {.unix_path = path});
    struct stat info;
    REQUIRE(::stat(path.c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0660);
    REQUIRE(start_http_server({.unix_path = path}, echo).error().code == Code::unavailable);
    auto near = std::move(make_http_client({.base = "unix:" + path})).value();
    REQUIRE(near->request({.target = "/"}, kPatience)->body == "GET / [] from unix");
  }
  REQUIRE(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("of a client on the Unix socket the server learns the user from the kernel, of others none") {
  const auto user = [](HttpRequest request, ResponderPtr responder) {
    responder->respond(
        HttpResponse::text(200, request.peer_uid ? std::to_string(*request.peer_uid) : "none"));
  };
  TestFolder folder;
  const std::string path = folder.path() + "/musterd.sock";
  auto local = serve(user, {.unix_path = path});
  auto near = std::move(make_http_client({.base = "unix:" + path})).value();
  for (int i = 0; i < 2; ++i)  // on a connection that is kept, too
    CHECK(near->request({.method = "POST", .target = "/"}, kPatience)->body == std::to_string(::geteuid()));
  auto server = serve(user);
  CHECK(client_of(*server)->request({.method = "POST", .target = "/"}, kPatience)->body == "none");
}

TEST_CASE("a second server on the same port is unavailable, bad TLS material invalid") {
  auto server = serve(echo);
  HttpServerOptions same;
  same.port = server->port();
  REQUIRE(start_http_server(same, echo).error().code == Code::unavailable);
  REQUIRE(start_http_server({.address = "localhost"}, echo).error().code == Code::invalid);
  Authority authority;
  auto options = authority.server_options();
  options.tls_options.key_pem = authority.agent.key_pem;
  REQUIRE(start_http_server(options, echo).error().code == Code::invalid);
  REQUIRE(make_http_client({.base = "https://127.0.0.1"}).error().code == Code::invalid);
  REQUIRE(make_http_client({.base = "http://some.name"}).error().code == Code::invalid);
  REQUIRE(make_http_client({.base = "ftp://127.0.0.1"}).error().code == Code::invalid);
}

TEST_CASE("mutual TLS names the peer, and refuses who has no certificate of our CA") {
  Authority ours, theirs;
  auto server = serve(echo, ours.server_options());
  auto client = client_of(*server, ours.agent_options(), true);
  auto answer = client->request({.target = "/"}, kPatience);
  REQUIRE(answer.ok());
  REQUIRE(answer->body == "GET / [] from 127.0.0.1 peer gpu01/muster-agent");
  REQUIRE(client->peer_fingerprint() == pki::certificate_fingerprint(ours.server.certificate_pem).value());

  std::atomic<int> reached = 0;
  auto guarded = serve(
      [&](HttpRequest r, ResponderPtr p) {
        ++reached;
        echo(std::move(r), std::move(p));
      },
      ours.server_options());
  HttpClientOptions without;
  without.ca_pem = ours.ca.certificate_pem;
  REQUIRE(client_of(*guarded, without, true)->request({.target = "/"}, kPatience).error().code ==
          Code::denied);
  auto foreign = theirs.agent_options();
  foreign.ca_pem = ours.ca.certificate_pem;
  REQUIRE(client_of(*guarded, foreign, true)->request({.target = "/"}, kPatience).error().code ==
          Code::denied);
  REQUIRE(reached == 0);
  // The other way round: a server of another CA.
  REQUIRE(
      client_of(*guarded, theirs.agent_options(), true)->request({.target = "/"}, kPatience).error().code ==
      Code::denied);
  REQUIRE(reached == 0);
}

TEST_CASE("an optional client certificate leaves the peer empty, never guessed") {
  Authority authority;
  auto server = serve(echo, authority.server_options(false));
  HttpClientOptions without;
  without.ca_pem = authority.ca.certificate_pem;
  REQUIRE(client_of(*server, without, true)->request({.target = "/"}, kPatience)->body ==
          "GET / [] from 127.0.0.1");
}

TEST_CASE("a pin names the leaf or the CA that signed it; anything else is denied before a byte is sent") {
  Authority authority, other;
  std::atomic<int> reached = 0;
  auto server = serve(
      [&](HttpRequest r, ResponderPtr p) {
        ++reached;
        echo(std::move(r), std::move(p));
      },
      authority.server_options(false));
  auto with_pin = [&](const std::string& certificate) {
    HttpClientOptions options;
    options.pin_sha256 = pki::certificate_fingerprint(certificate).value();
    return client_of(*server, options, true)->request({.target = "/"}, kPatience);
  };
  REQUIRE(with_pin(authority.server.certificate_pem).ok());
  REQUIRE(with_pin(authority.ca.certificate_pem).ok());
  REQUIRE(reached == 2);
  REQUIRE(with_pin(other.ca.certificate_pem).error().code == Code::denied);
  REQUIRE(reached == 2);

  // A forger who sends our CA's certificate along with a leaf of his own.
  auto forged = other.server_options(false);
  forged.tls_options.certificate_pem = other.server.certificate_pem + authority.ca.certificate_pem;
  auto forger = serve(echo, forged);
  HttpClientOptions options;
  options.pin_sha256 = pki::certificate_fingerprint(authority.ca.certificate_pem).value();
  REQUIRE(client_of(*forger, options, true)->request({.target = "/"}, kPatience).error().code ==
          Code::denied);

  HttpClientOptions first;
  first.insecure_first_use = true;
  auto curious = client_of(*server, first, true);
  REQUIRE(curious->request({.target = "/"}, kPatience).ok());
  REQUIRE(curious->peer_fingerprint() ==
          pki::certificate_fingerprint(authority.server.certificate_pem).value());
}

TEST_CASE(
    "a client of our CA does not pass for the controller, nor does another server of it where the controller "
    "is required") {
  Authority authority;
  std::atomic<int> reached = 0;
  const auto answer = [&](HttpRequest r, ResponderPtr p) {
    ++reached;
    echo(std::move(r), std::move(p));
  };
  // A node that shows its own certificate as a server's, with the CA's behind it.
  auto impostor = authority.server_options(false);
  impostor.tls_options.certificate_pem = authority.agent.certificate_pem + authority.ca.certificate_pem;
  impostor.tls_options.key_pem = authority.agent.key_pem;
  auto node = serve(answer, impostor);
  auto server = serve(answer, authority.server_options(false));
  HttpClientOptions pinned, trusting, asking;
  pinned.pin_sha256 = asking.pin_sha256 = pki::certificate_fingerprint(authority.ca.certificate_pem).value();
  pinned.ignore_certificate_times = true;
  trusting.ca_pem = authority.ca.certificate_pem;
  REQUIRE(client_of(*node, pinned, true)->request({.target = "/"}, kPatience).error().code == Code::denied);
  REQUIRE(client_of(*node, trusting, true)->request({.target = "/"}, kPatience).error().code == Code::denied);
  asking.peer_organization = "muster-controller";
  REQUIRE(client_of(*server, asking, true)->request({.target = "/"}, kPatience).error().code == Code::denied);
  REQUIRE(reached == 0);
  asking.peer_organization = "muster";
  REQUIRE(client_of(*server, asking, true)->request({.target = "/"}, kPatience).ok());
}

TEST_CASE("join asks for the controller's certificate before it shows its token", "[http]") {
  Authority authority;
  std::atomic<int> reached = 0;
  const auto answer = [&](HttpRequest, ResponderPtr p) {
    ++reached;
    p->respond(HttpResponse::json(403, R"({"code": "denied", "message": "no"})"));
  };
  auto impostor = authority.server_options(false);
  impostor.tls_options.certificate_pem = authority.agent.certificate_pem + authority.ca.certificate_pem;
  impostor.tls_options.key_pem = authority.agent.key_pem;
  auto node = serve(answer, impostor);
  auto other =
      serve(answer, authority.server_options(false));  // a server of the same CA that is not the controller
  auto real = authority.server_options(false);
  const auto controller = pki::issue(authority.ca, {.common_name = "musterd",
                                                    .organization = "muster-controller",
                                                    .addresses = {"127.0.0.1"},
                                                    .server = true})
                              .value();
  real.tls_options.certificate_pem = controller.certificate_pem + authority.ca.certificate_pem;
  real.tls_options.key_pem = controller.key_pem;
  auto musterd = serve(answer, real);
  JoinOptions options;
  options.pin = pki::certificate_fingerprint(authority.ca.certificate_pem).value();
  options.key_pem = pki::make_key().value();
  options.request.node = "node01";
  options.request.token = "secret";
  for (const auto* server : {&node, &other, &musterd}) {
    options.url = "https://127.0.0.1:" + std::to_string((*server)->port());
    REQUIRE(join(options, nullptr).error().code == Code::denied);
    REQUIRE(reached == (server == &musterd ? 1 : 0));
  }
}

TEST_CASE("of an unknown client a small body is taken, and a large one not even read") {
  HttpServerOptions options;
  options.trust = by_header;
  auto server = serve(echo, options);
  const auto head = [](size_t length, const std::string& more) {
    return "POST / HTTP/1.1\r\nHost: x\r\n" + more + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
  };
  // Decided from the header: not a byte of the body is sent.
  Raw large(server->port());
  REQUIRE(large.talk(head(65537, "")).starts_with("HTTP/1.1 413 "));
  Raw small(server->port());
  small.send(head(65536, "") + std::string(65536, 'a'));
  REQUIRE(small.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));
  Raw known(server->port());
  known.send(head(1 << 20, "X-Known: yes\r\n") + std::string(1 << 20, 'a'));
  REQUIRE(known.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));

  HttpServerOptions none;
  none.max_unknown_body = 0;
  auto boot = serve(echo, none);
  Raw one(boot->port());
  REQUIRE(one.talk(head(1, "")).starts_with("HTTP/1.1 413 "));
  Raw get(boot->port());
  get.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(get.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));

  Raw guest(server->port());
  guest.send(head(1 << 20, "X-Guest: yes\r\n") + std::string(1 << 20, 'a'));
  REQUIRE(guest.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a client that is held back is refused from the header, and its connection ends") {
  HttpServerOptions options;
  options.trust = by_header;
  options.holds_back = [](const HttpRequest& head, size_t length) {
    return head.headers.count("X-Held") > 0 && length > 10;
  };
  auto server = serve(echo, options);
  const auto head = [](size_t length, const std::string& more) {
    return "POST / HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\n" + more +
           "Content-Length: " + std::to_string(length) + "\r\n\r\n";
  };
  Raw held(server->port());  // not a byte of the body is sent
  const std::string answer = held.talk(head(1 << 20, "X-Held: yes\r\n"));
  CHECK(answer.starts_with("HTTP/1.1 429 "));
  CHECK(answer.find("Connection: close") != std::string::npos);
  Raw small(server->port());
  small.send(head(10, "X-Held: yes\r\n") + std::string(10, 'a'));
  CHECK(small.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));
  Raw other(server->port());
  other.send(head(100, "") + std::string(100, 'a'));
  CHECK(other.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a certificate alone makes no client known") {
  Authority authority;
  HttpServerOptions options = authority.server_options(false);
  std::atomic<bool> good = true;  // what the store says of it
  options.trust = [&](const HttpRequest& request) {
    return good && !request.peer_serial.empty() ? Trust::known : Trust::unknown;
  };
  auto tls = serve(echo, options);
  HttpClientOptions bare;
  bare.ca_pem = authority.ca.certificate_pem;
  const HttpRequest post{.method = "POST", .target = "/", .body = std::string(1 << 20, 'a')};
  const auto refused = [&](const HttpClientOptions& who) {
    const auto answer = client_of(*tls, who, true)->request(post, kPatience);
    return !answer.ok() || answer->status == 413;
  };
  REQUIRE(client_of(*tls, authority.agent_options(), true)->request(post, kPatience)->status == 200);
  REQUIRE(refused(bare));
  good = false;
  REQUIRE(refused(authority.agent_options()));
}

TEST_CASE("an answer may end its connection") {
  auto server = serve([](HttpRequest, ResponderPtr responder) {
    HttpResponse response = HttpResponse::text(401, "no");
    response.close = true;
    responder->respond(std::move(response));
  });
  Raw raw(server->port());
  const std::string answer = raw.talk("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(answer.find("Connection: close") != std::string::npos);
  CHECK(answer.rfind("HTTP/1.1 401 ") == 0);  // and the second request has none
}

TEST_CASE("strangers have so many connections per address, and those we know do not count") {
  HttpServerOptions options;
  options.trust = by_header;
  options.max_unknown_per_address = 2;
  auto server = serve(echo, options);
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n", known = "X-Known: yes\r\n";
  const auto request = [&](Raw& raw, const std::string& more) {
    raw.send(get + more + "\r\n");
    return raw.read("from 127.0.0.1").starts_with("HTTP/1.1 200 ");
  };
  Raw first(server->port()), second(server->port());
  REQUIRE(request(first, ""));
  REQUIRE(request(second, ""));
  Raw third(server->port());
  REQUIRE_FALSE(request(third, known));  // not even heard
  REQUIRE(request(second, known));       // known from now on: its place is free
  Raw fourth(server->port());
  REQUIRE(request(fourth, "X-Guest: yes\r\n"));  // takes a place
  Raw fifth(server->port());
  REQUIRE_FALSE(request(fifth, ""));
  second.close();  // did not count any more: gives back nothing
  Raw sixth(server->port());
  REQUIRE_FALSE(request(sixth, ""));
}

TEST_CASE("strangers in all are bounded, and so are the bodies of all") {
  HttpServerOptions options;
  options.max_unknown_clients = 1;
  auto one = serve(echo, options);
  Raw first(one->port());
  first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(first.read("from 127.0.0.1").starts_with("HTTP/1.1 200 "));
  Raw second(one->port());
  REQUIRE(second.talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n").empty());

  HttpServerOptions small;
  small.max_bodies = 4000;  // a quarter of it for strangers
  auto server = serve(echo, small);
  const std::string post =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\nExpect: 100-continue\r\n\r\n";
  Raw holder(server->port());
  holder.send(post);
  REQUIRE(holder.read("100 Continue").starts_with("HTTP/1.1 100 "));
  Raw refused(server->port());
  REQUIRE(refused.talk(post).starts_with("HTTP/1.1 503 "));
  holder.send(std::string(600, 'a'));
  REQUIRE(holder.read("from 127.0.0.1").find("HTTP/1.1 200 ") != std::string::npos);
  Raw later(server->port());  // what was held is given back
  later.send(post);
  REQUIRE(later.read("100 Continue").starts_with("HTTP/1.1 100 "));
}

TEST_CASE("a certificate out of its time is refused, unless the clock is known to be wrong") {
  Authority authority;
  authority.server =
      pki::issue(authority.ca, {.common_name = "c", .organization = "o", .server = true, .days = -1}).value();
  auto server = serve(echo, authority.server_options());
  auto options = authority.agent_options();
  REQUIRE(client_of(*server, options, true)->request({.target = "/"}, kPatience).error().code ==
          Code::denied);
  options.ignore_certificate_times = true;
  REQUIRE(client_of(*server, options, true)->request({.target = "/"}, kPatience).ok());
}

TEST_CASE("a long poll is answered from another thread while other requests go on") {
  std::mutex mutex;
  std::condition_variable arrived;
  ResponderPtr held;
  auto server = serve([&](HttpRequest request, ResponderPtr responder) {
    if (request.path != "/poll") return echo(std::move(request), std::move(responder));
    std::lock_guard lock(mutex);
    held = std::move(responder);
    arrived.notify_all();
  });
  auto poll = std::async(std::launch::async,
                         [&] { return client_of(*server)->request({.target = "/poll"}, kPatience); });
  ResponderPtr mine;
  {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return held != nullptr; });
    mine = std::move(held);
  }
  REQUIRE(client_of(*server)->request({.target = "/other"}, kPatience).ok());
  mine->respond(HttpResponse::json(200, "[]"));
  mine->respond(HttpResponse::json(200, "never"));
  auto answer = poll.get();
  REQUIRE(answer.ok());
  REQUIRE(answer->body == "[]");
}

TEST_CASE("a dropped responder and a throwing handler answer 500; a responder may outlive its server") {
  ResponderPtr kept;
  {
    auto server = serve([&](HttpRequest request, ResponderPtr responder) {
      if (request.path == "/throw") throw std::runtime_error("broken");
      if (request.path == "/keep") kept = std::move(responder);
    });
    REQUIRE(client_of(*server)->request({.target = "/drop"}, kPatience)->status == 500);
    REQUIRE(client_of(*server)->request({.target = "/throw"}, kPatience)->status == 500);
    auto answer = std::async(std::launch::async,
                             [&] { return client_of(*server)->request({.target = "/keep"}, kPatience); });
    // Its connection ends with the server, or was never made: either way the caller knows which.
    while (client_of(*server)->request({.target = "/drop"}, kPatience)->status != 500) {
    }
    server->stop();
    auto result = answer.get();
    REQUIRE_FALSE(result.ok());
    REQUIRE((result.error().code == Code::timeout || result.error().code == Code::unavailable));
  }
  if (kept) kept->respond(HttpResponse::text(200, "too late"));
}

TEST_CASE("an event stream flows, ends, and notices that its client has gone") {
  std::promise<ResponderPtr> endless;
  auto server = serve([&](HttpRequest request, ResponderPtr responder) {
    responder->start_stream({});
    for (int i = 0; i < 3; ++i) responder->write("data: " + std::to_string(i) + "\n\n");
    if (request.path == "/finite") return responder->end_stream();
    endless.set_value(std::move(responder));
  });
  auto client = client_of(*server);
  std::string got;
  auto all = client->stream({.target = "/finite"}, kPatience, [&](std::string_view piece) {
    got += piece;
    return true;
  });
  REQUIRE(all.ok());
  REQUIRE(all->headers.at("Content-Type") == "text/event-stream");
  REQUIRE(got == "data: 0\n\ndata: 1\n\ndata: 2\n\n");

  auto some = client->stream({.target = "/endless"}, kPatience, [&](std::string_view) { return false; });
  REQUIRE(some.ok());
  auto responder = endless.get_future().get();
  // The client hung up; a few writes may still be taken before that is known.
  int taken = 0;
  while (responder->write("data: more\n\n")) ++taken;
  REQUIRE_FALSE(responder->write("data: again\n\n"));
}

TEST_CASE("a stream whose client reads nothing is cut off, not buffered without bound") {
  std::promise<ResponderPtr> started;
  auto server = serve([&](HttpRequest, ResponderPtr responder) {
    responder->start_stream({});
    started.set_value(std::move(responder));
  });
  Raw idle(server->port());
  idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto responder = started.get_future().get();
  std::string chunk(1 << 20, 's');
  int taken = 0;
  while (responder->write(chunk)) REQUIRE(++taken < 1000);
  REQUIRE_FALSE(responder->write("x"));
}

TEST_CASE("a file is streamed whole, in ranges, and never through a link", "[http]") {
  TestFolder folder;
  std::string content;
  for (int i = 0; content.size() < 3u << 20; ++i) content += std::to_string(i) + ",";
  REQUIRE(Files("/").write(folder.path() + "/image", content).ok());
  REQUIRE(Files("/").symlink("image", folder.path() + "/link").ok());
  REQUIRE(Files("/").write(folder.path() + "/empty", "").ok());
  auto handler = [&](HttpRequest request, ResponderPtr responder) {
    HttpResponse response;
    response.file = folder.path() + request.path;
    responder->respond(std::move(response));
  };
  Authority authority;
  auto plain = serve(handler);
  auto secure = serve(handler, authority.server_options());
  for (bool tls : {false, true}) {
    auto client = tls ? client_of(*secure, authority.agent_options(), true) : client_of(*plain);
    auto get = [&](std::string path, std::string range = "", std::string method = "GET") {
      HttpRequest request{.method = std::move(method), .target = std::move(path)};
      if (!range.empty()) request.headers["Range"] = std::move(range);
      return client->request(request, kPatience).value();
    };
    REQUIRE((get("/image").body == content));
    auto part = get("/image", "bytes=1000-1999");
    REQUIRE(part.status == 206);
    REQUIRE(part.body == content.substr(1000, 1000));
    REQUIRE(part.headers.at("Content-Range") == "bytes 1000-1999/" + std::to_string(content.size()));
    REQUIRE((get("/image", "bytes=2000000-").body == content.substr(2000000)));
    REQUIRE(get("/image", "bytes=99999999-").status == 416);
    REQUIRE(get("/empty").body.empty());
    auto head = get("/image", "", "HEAD");
    REQUIRE(head.headers.at("Content-Length") == std::to_string(content.size()));
    REQUIRE(head.body.empty());
    REQUIRE(get("/missing").status == 404);
    REQUIRE(get("/link").status == 500);
    REQUIRE(get("/empty").status == 200);
  }
}

TEST_CASE("requests on which two parsers could disagree are refused before a handler sees them") {
  std::atomic<int> reached = 0;
  HttpServerOptions options;
  options.max_body = 1000;
  auto server = serve(
      [&](HttpRequest r, ResponderPtr p) {
        ++reached;
        echo(std::move(r), std::move(p));
      },
      options);
  auto status = [&](const std::string& text) { return Raw(server->port()).talk(text).substr(9, 3); };
  REQUIRE(status("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == "411");
  REQUIRE(
      status("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
          [0] == '4');
  REQUIRE(status("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na") == "400");
  REQUIRE(status("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab") == "400");
  REQUIRE(status("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n") == "400");
  REQUIRE(status("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n") == "400");
  REQUIRE(status("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n") == "400");
  REQUIRE(status("GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n") == "400");
  REQUIRE(status("nonsense\r\n\r\n") == "400");
  REQUIRE(status("GET / HTTP/1.1\r\nA: " + std::string(9000, 'a')) == "431");
  REQUIRE(status("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n") == "413");
  REQUIRE(reached == 0);
  REQUIRE(
      client_of(*server)->request({.method = "POST", .body = std::string(1001, 'x')}, kPatience)->status ==
      413);
  REQUIRE(reached == 0);
  REQUIRE(
      client_of(*server)->request({.method = "POST", .body = std::string(1000, 'x')}, kPatience)->status ==
      200);
  REQUIRE(reached == 1);
}

TEST_CASE("pipelining, HTTP/1.0, half-closed clients and 100-continue work") {
  auto server = serve(echo);
  auto both =
      Raw(server->port())
          .talk("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  REQUIRE(both.find("GET /1 []") < both.find("GET /2 []"));
  REQUIRE(both.find("GET /2 []") != std::string::npos);
  auto old = Raw(server->port()).talk("GET /old HTTP/1.0\r\n\r\n");
  REQUIRE(old.find("GET /old []") != std::string::npos);
  REQUIRE(old.find("(server silent)") == std::string::npos);
  Raw expecting(server->port());
  expecting.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  REQUIRE(expecting.read("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  expecting.send("ab");
  REQUIRE(expecting.read("[ab]").find("200 OK") != std::string::npos);
}

TEST_CASE("headers that would split a response are dropped, and requests refused") {
  auto server = serve([](HttpRequest, ResponderPtr responder) {
    HttpResponse response = HttpResponse::text(200, "x");
    response.headers["Evil"] = "a\r\nInjected: yes";
    responder->respond(std::move(response));
  });
  auto client = client_of(*server);
  auto answer = client->request({.target = "/"}, kPatience);
  REQUIRE(answer.ok());
  REQUIRE(answer->headers.count("Injected") == 0);
  REQUIRE(client->request({.target = "/ HTTP/1.1\r\nA: b"}, kPatience).error().code == Code::invalid);
  REQUIRE(client->request({.headers = {{"A", "b\r\nC: d"}}}, kPatience).error().code == Code::invalid);
}

TEST_CASE("unavailable means nothing was sent, timeout that the outcome is unknown") {
  auto server = serve(echo);
  uint16_t port = server->port();
  auto client = client_of(*server);
  server->stop();
  auto refused = client->request({.method = "POST", .target = "/"}, kPatience);
  REQUIRE(refused.error().code == Code::unavailable);
  REQUIRE(port != 0);

  std::promise<void> done;
  auto released = done.get_future();
  BadServer silent(
      [&](int fd, int) {
        BadServer::take(fd);
        released.wait();
      },
      1);
  auto waiting = std::move(make_http_client({.base = silent.base()})).value();
  auto late = waiting->request({.method = "POST", .target = "/"}, 50);
  REQUIRE(late.error().code == Code::timeout);
  done.set_value();

  BadServer abrupt([](int fd, int) { BadServer::take(fd); }, 1);
  auto cut =
      std::move(make_http_client({.base = abrupt.base()})).value()->request({.target = "/"}, kPatience);
  REQUIRE(cut.error().code == Code::timeout);
  BadServer babble(
      [](int fd, int) {
        BadServer::take(fd);
        BadServer::say(fd, "what?\r\n\r\n");
      },
      1);
  REQUIRE(std::move(make_http_client({.base = babble.base()}))
              .value()
              ->request({.target = "/"}, kPatience)
              .error()
              .code == Code::timeout);
}

TEST_CASE("a body cut short is an error, one without a length ends with the connection") {
  auto answer = [](const std::string& text, bool stream) {
    BadServer server(
        [&](int fd, int) {
          BadServer::take(fd);
          BadServer::say(fd, text);
        },
        1);
    auto client = std::move(make_http_client({.base = server.base()})).value();
    return stream ? client->stream({.target = "/"}, kPatience, [](std::string_view) { return true; })
                  : client->request({.target = "/"}, kPatience);
  };
  REQUIRE(answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", false).error().code == Code::timeout);
  REQUIRE(answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", true).error().code == Code::timeout);
  REQUIRE(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", false).error().code ==
          Code::timeout);
  REQUIRE(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", true).ok());
  REQUIRE(answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\nall of it", false)->body ==
          "all of it");
  REQUIRE(answer("HTTP/1.1 204 No Content\r\n\r\n", false)->status == 204);
}

TEST_CASE("a client that needs only the status has it, whatever becomes of the body") {
  const auto answer = [](const std::string& text, bool stalls) {
    BadServer server(
        [&](int fd, int) {
          BadServer::take(fd);
          BadServer::say(fd, text);
          if (stalls) BadServer::take(fd);  // until the client closes
        },
        1);
    auto client = std::move(make_http_client({.base = server.base(), .head_only = true})).value();
    return client->request({.method = "POST", .target = "/"}, kPatience);
  };
  CHECK(answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", false)->status == 200);
  CHECK(answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", true)->status == 200);
  CHECK(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n", true)->status == 200);
  CHECK(answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\n", true)->status ==
        503);
  CHECK(answer("HTTP/1.1 100 Continue\r\n\r\n", false).error().code == Code::timeout);
  CHECK(answer("HTTP/1.1 200 OK\r\nContent-", false).error().code == Code::timeout);
}

TEST_CASE("a request on a connection that dies under it is repeated for GET only, once") {
  auto behave = [](int fd, int number) {
    BadServer::take(fd);
    BadServer::say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(number));
    if (number == 0) BadServer::take(fd);  // then closes without an answer
  };
  {
    BadServer server(behave, 2);
    auto client = std::move(make_http_client({.base = server.base()})).value();
    REQUIRE(client->request({.target = "/"}, kPatience)->body == "0");
    REQUIRE(client->request({.target = "/"}, kPatience)->body == "1");
  }
  {
    BadServer server(behave, 2);
    auto client = std::move(make_http_client({.base = server.base()})).value();
    REQUIRE(client->request({.target = "/"}, kPatience)->body == "0");
    REQUIRE(client->request({.method = "POST", .target = "/"}, kPatience).error().code == Code::timeout);
  }
}

TEST_CASE("basic authentication and Connection: close go out as asked") {
  BadServer server(
      [](int fd, int) {
        std::string header = BadServer::take(fd);
        BadServer::say(
            fd, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(header.size()) + "\r\n\r\n" + header);
      },
      1);
  auto client =
      std::move(
          make_http_client(
              {.base = server.base(), .basic_user = "root", .basic_password = "calvin", .keep_alive = false}))
          .value();
  std::string sent = client->request({.target = "/redfish/v1"}, kPatience)->body;
  REQUIRE(sent.starts_with("GET /redfish/v1 HTTP/1.1\r\n"));
  REQUIRE(sent.find("Authorization: Basic cm9vdDpjYWx2aW4=\r\n") != std::string::npos);
  REQUIRE(sent.find("Connection: close\r\n") != std::string::npos);
}

TEST_CASE("many clients at once get their own answers") {
  auto server = serve(echo);
  std::vector<std::future<int>> clients;
  for (int c = 0; c < 8; ++c)
    clients.push_back(std::async(std::launch::async, [&, c] {
      auto client = client_of(*server);
      int right = 0;
      for (int i = 0; i < 25; ++i) {
        std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
        auto answer = client->request({.target = path}, kPatience);
        right += answer.ok() && answer->body == "GET " + path + " [] from 127.0.0.1";
      }
      return right;
    }));
  for (auto& client : clients) REQUIRE(client.get() == 25);
}

}  // namespace muster
