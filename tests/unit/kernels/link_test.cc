// A link whose connection breaks: where the peer's server ended with its agent and was started again.
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/link/link.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::kernels;

namespace {

// Serves `broken` connections up to their first frame, each as a server of its own, then `whole` ones.
struct RestartedServer {
  RestartedServer(int broken, int whole) {
    auto first = Listener::open("127.0.0.1", 0);
    REQUIRE(first.ok());
    port = first->port();
    serving = std::thread([this, broken, whole, listener = std::move(first).value()]() mutable {
      for (int i = 0; i < broken; ++i) {
        if (i > 0) listener = Listener::open("127.0.0.1", port).value();
        listener.serve_until({seconds_now() + 10, 1, {}}, [](int fd, const std::string&) {
          Connection link(fd, seconds_now() + 10);
          (void)link.receive();
        });
      }
      if (whole == 0) return;
      LinkServerOptions options{.bind = "127.0.0.1", .port = port, .seconds = 30, .sessions = whole};
      served = LinkServer::open(std::move(options)).value().run();
    });
  }
  ~RestartedServer() { serving.join(); }

  uint16_t port = 0;
  Measurement served;
  std::thread serving;
};

Measurement link_to(const RestartedServer& server) {
  return run_link(Files("/"), {.to = "127.0.0.1", .port = server.port, .seconds = 0.02});
}

}  // namespace

TEST_CASE("a link whose peer's server was restarted is measured again, and says so") {
  const RestartedServer server(2, 1);
  const auto m = link_to(server);
  CHECK(m.error == "");
  CHECK(m.outcome == Outcome::measured);
  CHECK(m.metrics.at("send_mbps").value > 0);
  CHECK(m.detail["measured_again_after"].size() == 2);
}

TEST_CASE("a link whose connection breaks each time is not measured") {
  const RestartedServer server(3, 0);
  const auto m = link_to(server);
  CHECK(m.outcome == Outcome::unavailable);
  CHECK(m.metrics.empty());
  CHECK(m.faulty_parts == std::vector<std::string>{"link here - 127.0.0.1"});
}

TEST_CASE("a frame's time is that of its header, also where its body never comes") {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  Connection link(fds[0], seconds_now() + 10);
  CHECK(link.arrived() == 0);
  const double before = seconds_now();
  Header header{0x4d55534c, 3, 0, 1000, 0};
  REQUIRE(::write(fds[1], &header, sizeof header) == sizeof header);
  ::close(fds[1]);
  CHECK_FALSE(link.receive().ok());
  CHECK(link.arrived() >= before);
}
