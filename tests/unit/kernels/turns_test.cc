// Turns of measurements at a node: the rule, and two servers with the clients of both.
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "kernels/common/connection.h"
#include "kernels/common/kernels.h"
#include "kernels/common/turns.h"
#include "kernels/link/link.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::kernels;

namespace {

// The servers of two nodes, 127.0.0.1 and 127.0.0.2, at one port.
struct TwoNodes {
  TwoNodes() {
    auto first = LinkServer::open({.bind = "127.0.0.1", .seconds = 20, .sessions = 6});
    REQUIRE(first.ok());
    port = first->port();
    auto second = LinkServer::open({.bind = "127.0.0.2", .port = port, .seconds = 20, .sessions = 6});
    REQUIRE(second.ok());
    serving.emplace_back([server = std::move(first).value()]() mutable { (void)server.run(); });
    serving.emplace_back([server = std::move(second).value()]() mutable { (void)server.run(); });
  }
  // The servers end after their last session.
  ~TwoNodes() {
    for (const char* node : {"127.0.0.1", "127.0.0.2"})
      for (auto fd = connect_until({node, port, "", 0}); fd; fd = connect_until({node, port, "", 0}))
        ::close(*fd);
  }
  // From the first to the second.
  Measurement link(Turn turn, double wait = 0) const {
    return run_link(
        Files("/"),
        {.to = "127.0.0.2", .port = port, .seconds = 0.02, .bind = "127.0.0.1", .turn = {turn, wait}});
  }
  std::unique_ptr<Connection> session(const std::string& node) const {
    const auto fd = connect_until({node, port, "", 5});
    REQUIRE(fd.ok());
    return std::make_unique<Connection>(*fd, seconds_now() + 20);
  }
  uint16_t port = 0;
  std::vector<std::jthread> serving;
};

Turn taken(Connection& at, Turn turn) { return take_turn(nullptr, at, {turn, 0}).value(); }

}  // namespace

TEST_CASE("turns: many share a node, one is alone, and the rest is not counted", "[link]") {
  Turns turns;
  CHECK(turns.take(Turn::shared));
  CHECK(turns.take(Turn::shared));
  CHECK_FALSE(turns.take(Turn::alone));
  CHECK(turns.take(Turn::none));
  turns.leave(Turn::none);
  turns.leave(Turn::shared);
  CHECK_FALSE(turns.take(Turn::alone));
  turns.leave(Turn::shared);
  CHECK(turns.take(Turn::alone));
  CHECK_FALSE(turns.take(Turn::alone));
  CHECK_FALSE(turns.take(Turn::shared));
  CHECK(turns.take(Turn::none));
  turns.leave(Turn::alone);
  CHECK(turns.take(Turn::shared));
}

TEST_CASE("turns: a session's turn ends with it, and ordinary pings are none", "[link]") {
  Turns turns;
  {
    SessionTurn session(turns);
    for (const uint64_t ping : {0ul, 1ul, 99ul}) CHECK(session.reply_to(ping) == ping);
    CHECK(turns.take(Turn::alone));
    turns.leave(Turn::alone);
  }
  TwoNodes nodes;
  auto first = nodes.session("127.0.0.1"), second = nodes.session("127.0.0.1");
  CHECK(taken(*first, Turn::shared) == Turn::shared);
  CHECK(taken(*second, Turn::alone) == Turn::shared);
  CHECK(taken(*first, Turn::shared) == Turn::shared);
  first.reset();
  // The server notices the end of the session in its own time.
  CHECK(take_turn(nullptr, *second, {Turn::alone, 15}).value() == Turn::alone);
}

TEST_CASE("a link that is measured alone shares neither end", "[link]") {
  TwoNodes nodes;
  SECTION("no other measurement runs") {
    const auto m = nodes.link(Turn::alone);
    CHECK(m.error == "");
    CHECK(m.detail["turn"] == "alone");
    // The servers notice the end of its sessions in their own time.
    CHECK(nodes.link(Turn::shared, 15).detail["turn"] == "shared");
    CHECK_FALSE(nodes.link(Turn::none).detail.contains("turn"));
  }
  SECTION("another measures at the partner") {
    const auto other = nodes.session("127.0.0.2");
    REQUIRE(taken(*other, Turn::shared) == Turn::shared);
    const auto m = nodes.link(Turn::alone);
    CHECK(m.error == "");
    CHECK(m.metrics.at("send_mbps").value > 0);
    CHECK(m.detail["turn"] == "shared");
  }
  SECTION("another measures at this node, alone") {
    const auto other = nodes.session("127.0.0.1");
    REQUIRE(taken(*other, Turn::alone) == Turn::alone);
    const auto m = nodes.link(Turn::alone);
    CHECK(m.error == "");
    CHECK(m.metrics.at("send_mbps").value > 0);
    CHECK(m.detail["turn"] == "none");
  }
  SECTION("one end is refused: the other is free again") {
    const auto other = nodes.session("127.0.0.2"), own = nodes.session("127.0.0.1");
    REQUIRE(taken(*other, Turn::shared) == Turn::shared);
    const auto partner = nodes.session("127.0.0.2");
    CHECK(take_turn(own.get(), *partner, {Turn::alone, 0}).value() == Turn::shared);
    const auto beside = nodes.session("127.0.0.1");
    CHECK(taken(*beside, Turn::shared) == Turn::shared);
  }
}

TEST_CASE("a server without turns grants each of them", "[link]") {
  auto listener = Listener::open("127.0.0.1", 0);
  REQUIRE(listener.ok());
  const uint16_t port = listener->port();
  const std::jthread serving([l = std::move(listener).value()]() mutable {
    l.serve_until({seconds_now() + 20, 1, {}}, [](int fd, const std::string&) {
      Connection link(fd, seconds_now() + 20);
      for (auto ping = link.receive(kPing); ping.ok(); ping = link.receive(kPing))
        if (!link.send(kPong, ping->value).ok()) return;
    });
  });
  Connection link(connect_until({"127.0.0.1", port, "", 5}).value(), seconds_now() + 20);
  CHECK(taken(link, Turn::shared) == Turn::shared);
  CHECK(taken(link, Turn::alone) == Turn::alone);
}
