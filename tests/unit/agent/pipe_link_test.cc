#include "agent/measuring/pipe_link.h"

#include <memory>

#include "base/gzip.h"
#include "base/json_dump.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

namespace {

struct Bench {
  ManualReactor reactor;
  std::vector<Json> sent;
  std::optional<Error> ended;
  PipeLink link{reactor,
                "boot-1",
                {[this](std::string line) {
                   REQUIRE(line.back() == '\n');
                   sent.push_back(parse_json(line).value());
                 },
                 [this](Error why) { ended = std::move(why); }}};

  void say(const Json& message) { link.receive(dump_json(message) + "\n"); }
  std::optional<Result<wire::PollReply>> orders;
  void poll() {
    link.poll({"a"}, [this](Result<wire::PollReply> reply) { orders = std::move(reply); });
  }
};

Json order(const std::string& kind, Json params = Json::object()) {
  return {{"id", "1-a/x#1"}, {"kind", kind}, {"params", std::move(params)}, {"deadline_ms", 1000}};
}
Json check_order(const Json& step, const std::string& mode = "check") {
  return order("check", {{"mode", mode}, {"steps", Json::array({step})}});
}
Json accept_step() { return {{"id", "a"}, {"module", "accept"}, {"params", {{"kernel", "dgemm"}}}}; }

wire::OrderKind kind_taken(const Json& order) {
  return only_measuring(wire::work_order_from_json(order).value()).kind;
}

}  // namespace

TEST_CASE("pipe link: a poll and its answer", "[agent][hosts]") {
  Bench bench;
  bench.poll();
  REQUIRE(bench.sent.size() == 1);
  CHECK(bench.sent[0]["poll"] == Json{{"have", {"a"}}, {"boot", "boot-1"}, {"mode", "adopted"}});
  CHECK_FALSE(bench.orders);
  const uint64_t number = bench.sent[0]["n"].get<uint64_t>();
  bench.say({{"n", number + 1}, {"orders", {{"orders", Json::array()}}}});  // of no call
  CHECK_FALSE(bench.orders);
  bench.say({{"n", number}, {"orders", {{"orders", {order("inventory")}}, {"withdrawn", {"a"}}}}});
  REQUIRE(bench.orders);
  REQUIRE(bench.orders->ok());
  CHECK((*bench.orders)->orders.at(0).kind == wire::OrderKind::inventory);
  CHECK((*bench.orders)->withdrawn == std::vector<std::string>{"a"});
}

TEST_CASE("pipe link: an answer that does not come, or is an error, ends the call and not the link",
          "[agent][hosts]") {
  Bench bench;
  bench.poll();
  for (int i = 0; i < 5; ++i) {
    bench.reactor.advance(10 * kSecond);
    bench.say({{"alive", true}});
  }
  REQUIRE(bench.orders);
  CHECK(bench.orders->error().code == Code::timeout);
  CHECK_FALSE(bench.ended);
  std::optional<Result<uint64_t>> acked;
  bench.link.post({"boot-1", "x", {}}, [&](Result<uint64_t> ack) { acked = std::move(ack); });
  bench.say({{"n", bench.sent.back()["n"]}, {"error", {{"code", "unavailable"}, {"message", "disk full"}}}});
  REQUIRE(acked);
  CHECK(acked->error().code == Code::unavailable);
  bench.link.post({"boot-1", "x", {}}, [&](Result<uint64_t> ack) { acked = std::move(ack); });
  bench.say({{"n", bench.sent.back()["n"]}, {"ack", 7}});
  CHECK(acked->value() == 7);
}

TEST_CASE("pipe link: ends when the command says so, is gone, is silent, or sends something else",
          "[agent][hosts]") {
  Bench bench;
  SECTION("leave") {
    bench.say({{"leave", true}});
    bench.reactor.advance(0);
    REQUIRE(bench.ended);
    CHECK(bench.ended->code == Code::cancelled);
  }
  SECTION("closed") {
    bench.link.closed();
    bench.link.closed();
    bench.reactor.advance(0);
    REQUIRE(bench.ended);
    CHECK(bench.ended->code == Code::unavailable);
  }
  SECTION("silent") {
    bench.reactor.advance(50 * kSecond);
    CHECK_FALSE(bench.ended);
    CHECK(bench.sent.size() == 5);  // its own signs
    bench.say({{"alive", true}});
    bench.reactor.advance(60 * kSecond);
    CHECK_FALSE(bench.ended);
    bench.reactor.advance(20 * kSecond);
    REQUIRE(bench.ended);
    CHECK(bench.ended->code == Code::unavailable);
  }
  SECTION("garbage") {
    bench.link.receive("what is this\n");
    bench.reactor.advance(0);
    REQUIRE(bench.ended);
    CHECK(bench.ended->code == Code::invalid);
  }
  SECTION("an endless line") {
    const std::string piece(1 << 20, 'x');
    for (int i = 0; i < 65; ++i) bench.link.receive(piece);
    bench.reactor.advance(0);
    REQUIRE(bench.ended);
    CHECK(bench.ended->code == Code::invalid);
  }
}

namespace {

// Fetches once, in another thread, from a command that answers with `answer`, a byte at a time.
Result<PipeLink::Packed> fetched(const std::function<std::string(const Json&)>& answer,
                                 std::function<bool()> cancelled = {}) {
  const auto reactor = make_reactor(1);
  std::unique_ptr<PipeLink> link;
  link = std::make_unique<PipeLink>(
      *reactor, "boot-1",
      PipeLink::Ports{[&](const std::string& line) {
                        reactor->post([&, text = answer(parse_json(line).value())] {
                          for (const char& c : text) link->receive({&c, 1});
                        });
                      },
                      [](const Error&) {}});
  Result<PipeLink::Packed> out = fail(Code::failed, "");
  reactor->offload([&] { out = link->fetch("abc", cancelled); }, [&] { reactor->stop(); });
  reactor->run();
  return out;
}

}  // namespace

TEST_CASE("pipe link: a program comes between lines, in any pieces", "[agent][hosts]") {
  const std::string packed = gzip("a program\nof two lines").value();
  const auto came = fetched([&](const Json& request) {
    CHECK(request["program"] == "abc");
    const Json head = {{"n", request["n"]}, {"bytes", packed.size()}, {"raw", 22}};
    return "{\"alive\":true}\n" + dump_json(head) + "\n" + packed + "{\"alive\":true}\n";
  });
  REQUIRE(came.ok());
  CHECK(came->bytes == packed);
  CHECK(came->size == 22);
}

TEST_CASE("pipe link: a program that is not there, too large, or no longer wanted", "[agent][hosts]") {
  const auto error = [](const Json& request) {
    return dump_json({{"n", request["n"]}, {"error", {{"code", "not_found"}, {"message", "none"}}}}) + "\n";
  };
  CHECK(fetched(error).error().code == Code::not_found);
  const auto large = [](const Json& request) {
    return dump_json({{"n", request["n"]}, {"bytes", int64_t{1} << 40}, {"raw", 1}}) + "\n";
  };
  CHECK(fetched(large).error().code == Code::unavailable);
  const auto nothing = [](const Json&) { return std::string(); };
  CHECK(fetched(nothing, [] { return true; }).error().code == Code::cancelled);
}

TEST_CASE("orders over a pipe: an inventory, and checks that measure; all others become unknown",
          "[agent][hosts]") {
  using wire::OrderKind;
  CHECK(kind_taken(order("inventory")) == OrderKind::inventory);
  CHECK(kind_taken(check_order(accept_step())) == OrderKind::check);
  for (const char* kind :
       {"image", "boot_disk", "steps", "reboot", "power_off", "kexec", "write_slot", "boot_slot", "later"}) {
    const auto taken = only_measuring(wire::work_order_from_json(order(kind)).value());
    CHECK(taken.kind == OrderKind::unknown);
    CHECK(taken.kind_word() == kind);
  }
}

TEST_CASE("orders over a pipe: a check that is not only one is refused", "[agent][hosts]") {
  using wire::OrderKind;
  CHECK(kind_taken(check_order(accept_step(), "apply")) == OrderKind::unknown);
  CHECK(kind_taken(order("check")) == OrderKind::unknown);
  CHECK(kind_taken(order("check", {{"mode", "check"}, {"steps", "none"}})) == OrderKind::unknown);
  for (const char* module : {"command", "file", "service", "reboot", "acceptable", ""}) {
    Json step = accept_step();
    step["module"] = module;
    CHECK(kind_taken(check_order(step)) == OrderKind::unknown);
  }
  Json verified = accept_step();
  verified["verify"] = {{"module", "command"}, {"params", {{"command", "true"}}}};
  CHECK(kind_taken(check_order(verified)) == OrderKind::unknown);
  verified["verify"] = accept_step();
  CHECK(kind_taken(check_order(verified)) == OrderKind::check);
  CHECK(kind_taken(check_order("no step")) == OrderKind::unknown);
}
