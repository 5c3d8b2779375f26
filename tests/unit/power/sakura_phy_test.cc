// The provider driver's own refusals, and what it costs its account, over the lab's emulated API.
#include "controller/power/sakura/sakura_phy.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/fakes/phy_bench.h"

using namespace muster;
using testing::PhyBench;

namespace {

constexpr DurationMs kCall = kMinute;
constexpr DurationMs kLook = 5 * kSecond;  // too little to wait for a request's turn

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("phy: looks at many servers share one list, and a list is no request per server", "[power][phy]") {
  PhyBench bench(8);
  for (size_t i = 0; i < 8; ++i) CHECK(*bench.driver(i)->state(kCall) == PowerState::off);
  CHECK(bench.seen_with("GET /cloud/api/dedicated-phy/1.0/servers/?") == 1);
  CHECK(bench.api.served() == 1 + 1 + 8);  // the first is the look at its certificate
  for (size_t i = 0; i < 8; ++i) CHECK(bench.driver(i)->state(kCall).ok());
  CHECK(bench.api.served() == 10);
}

TEST_CASE("phy: hours of looking at sixteen servers stay below the quota, and orders still go",
          "[power][phy]") {
  PhyBench bench(16);
  std::vector<std::unique_ptr<Power>> drivers;
  for (size_t i = 0; i < 16; ++i) drivers.push_back(bench.driver(i));
  const TimeMs end = bench.clock + 3 * 60 * kMinute;
  int orders = 0;
  while (bench.clock < end) {
    for (const auto& driver : drivers) (void)driver->state(kSecond);
    if (bench.clock > end - 90 * kMinute && orders == 0) {
      ++orders;
      CHECK(drivers.front()->on(kCall).ok());
    }
    bench.pass(10 * kSecond);
  }
  CHECK(orders == 1);
  CHECK(bench.api.served() <= 3 * 300);
  for (const HttpRequest& one : bench.requests()) CHECK(one.method.size() > 2);
  CHECK(bench.account(bench.target())->requests() <= PhyAccount::kBurst + 3 * 60 * PhyAccount::kPerMinute);
}

TEST_CASE("phy: a controller that restarts again and again sends no more than one that does not",
          "[power][phy]") {
  PhyBench bench(16);
  const TimeMs begin = bench.clock;
  constexpr int kRestarts = 30;
  for (int i = 0; i < kRestarts; ++i) {
    bench.restart();
    for (size_t server = 0; server < 16; ++server) (void)bench.driver(server)->state(kLook);
    bench.pass(30 * kSecond);
  }
  const auto sent = static_cast<TimeMs>(bench.requests().size());
  CHECK(sent > PhyAccount::kBurst);
  // Of each controller one is a look at the double's certificate, which the provider's is not asked for.
  const TimeMs filled = (bench.clock - begin) * PhyAccount::kPerMinute / kMinute;
  CHECK(sent <= PhyAccount::kBurst + filled + kRestarts);
  CHECK(bench.driver()->on(2 * kMinute).ok());  // the orders' share is there
}

TEST_CASE("phy: a 429 holds over a restart", "[power][phy]") {
  PhyBench bench;
  bench.api.change([](lab::PhyManners& m) { m.throttled = 1, m.retry_after = 600 * kSecond; });
  CHECK(bench.driver()->state(kCall).error().code == Code::unavailable);
  const int served = bench.api.served();
  bench.restart();
  bench.pass(300 * kSecond);
  CHECK(bench.driver()->on(kCall).error().code == Code::unavailable);
  CHECK(bench.api.served() == served);
  bench.pass(301 * kSecond);
  CHECK(bench.driver()->on(kCall).ok());
}

TEST_CASE("phy: what is left of the budget is not believed beyond what can be", "[power][phy]") {
  constexpr size_t kServers = 80;
  PhyBench bench(kServers);
  REQUIRE(bench.driver()->state(kCall).ok());
  const std::string name = std::filesystem::directory_iterator(bench.dir.path(""))->path().filename();
  CHECK(name.find(PhyBench::kToken) == std::string::npos);
  // So many servers a controller that begins with this file can look at, at once.
  const auto looks = [&](const std::string& kept) {
    bench.dir.write(name, kept);
    bench.restart();
    int seen = 0;
    for (size_t i = 0; i < kServers; ++i) seen += bench.driver(i)->state(kLook).ok();
    return seen;
  };
  constexpr int kAll = PhyBudget::kBurst - PhyBudget::kForOrders - 1;  // one is the list
  SECTION("as it was") { CHECK(looks(R"({"left": 60, "at": 1700000000000, "blocked_until": 0})") == kAll); }
  SECTION("a clock that was set back fills nothing") {
    CHECK(looks(R"({"left": 20, "at": 1800000000000, "blocked_until": 0})") == 0);
  }
  SECTION("one that was set ahead fills no more than there is room for") {
    CHECK(looks(R"({"left": 20, "at": 1000, "blocked_until": 0})") == kAll);
  }
  SECTION("what is no answer leaves the orders' share") {
    for (const char* kept : {"", "{", "[1]", R"({"left": 1e9, "at": 0, "blocked_until": 0})",
                             R"({"left": "60", "at": 0, "blocked_until": 0})"})
      CHECK(looks(kept) == 0);
    CHECK(bench.driver()->on(2 * kMinute).ok());
  }
  SECTION("no call is blocked for longer than the provider can mean") {
    CHECK(looks(R"({"left": 60, "at": 1700000000000, "blocked_until": 1900000000000})") == 0);
    bench.pass(PhyBudget::kLongestBlock + kSecond);
    CHECK(bench.driver()->on(kCall).ok());
  }
}

TEST_CASE("phy: after a 429 nothing is sent until its time is over", "[power][phy]") {
  PhyBench bench(2);
  bench.api.change([](lab::PhyManners& m) { m.throttled = 1, m.retry_after = 600 * kSecond; });
  CHECK(bench.driver()->state(kCall).error().code == Code::unavailable);
  const int served = bench.api.served();
  const auto other = bench.driver(1)->on(kCall);
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().code == Code::unavailable);
  CHECK(holds(other.error().message, "429"));
  CHECK(bench.api.served() == served);
  bench.pass(601 * kSecond);
  CHECK(bench.driver(1)->on(kCall).ok());
}

TEST_CASE("phy: a refused token is one request, and neither it nor its secret is in what is said",
          "[power][phy]") {
  PhyBench bench;
  PowerTarget wrong = bench.target();
  wrong.password = "not-the-secret";
  const auto refused = bench.driver(wrong)->state(kCall);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(holds(refused.error().message, "gpu01"));
  CHECK(holds(refused.error().message, "muster secret set"));
  CHECK_FALSE(holds(refused.error().message, PhyBench::kToken));
  CHECK_FALSE(holds(refused.error().message, "not-the-secret"));
  const int served = bench.api.served();
  CHECK(bench.driver(wrong)->on(kCall).error().code == Code::denied);
  CHECK(bench.api.served() == served);
  CHECK(bench.driver()->state(kCall).ok());  // the right one is another account
}

TEST_CASE("phy: a locked server gets no order, and nothing waits for people at the machine", "[power][phy]") {
  PhyBench bench;
  REQUIRE(bench.driver()->on(kCall).ok());
  SECTION("people") {
    bench.api.change([](lab::PhyManners& m) { m.locked_by_people = true; });
    bench.pass(kMinute);
    const auto off = bench.retrying()->off(kCall, false);
    REQUIRE_FALSE(off.ok());
    CHECK(off.error().code == Code::denied);
    CHECK(*bench.driver()->state(kCall) == PowerState::unknown);
  }
  SECTION("people who came since the list was read") {
    bench.api.change([](lab::PhyManners& m) { m.locked_by_people = true; });
    const auto sent = bench.seen_with("POST ");
    const auto off = bench.retrying()->off(kCall, false);
    REQUIRE_FALSE(off.ok());
    CHECK(off.error().code == Code::denied);
    CHECK(bench.seen_with("POST ") == sent + 1);
  }
  SECTION("an installation") {
    const auto at = bench.target();
    const Json body = {{"os_image_id", PhyBench::kImage},
                       {"password", "abcdefg1"},
                       {"ssh_public_keys", {"ssh-ed25519 AAAA"}},
                       {"allow_password_login", false}};
    REQUIRE(bench.account(at)->post(bench.ids[0], "os_install/", body, kCall).ok());
    bench.pass(20 * kSecond);
    CHECK(bench.driver()->off(kCall, false).error().code == Code::unavailable);
    CHECK(*bench.driver()->state(kCall) == PowerState::unknown);
  }
  CHECK(bench.api.orders(bench.ids[0]) == 1);
}

TEST_CASE("phy: an order whose answer is lost is looked at, not repeated", "[power][phy]") {
  PhyBench bench;
  bench.api.change([](lab::PhyManners& m) { m.lost_answers = 1; });
  CHECK(bench.retrying()->on(2 * kMinute).ok());
  CHECK(bench.machine().running());
  CHECK(bench.api.orders(bench.ids[0]) == 1);
  CHECK(bench.seen_with("POST ") == 1);
}

TEST_CASE("phy: a 204 that nothing follows is a timeout, not a success", "[power][phy]") {
  PhyBench bench;
  bench.api.change([](lab::PhyManners& m) { m.ignores_orders = true; });
  const auto on = bench.driver()->on(kCall);
  REQUIRE_FALSE(on.ok());
  CHECK(on.error().code == Code::timeout);
  CHECK(holds(on.error().message, "gpu01 (server 113100000001), power on"));
}

TEST_CASE("phy: a nickname is pinned to its server, and one that moved is not followed", "[power][phy]") {
  PhyBench bench(2);
  PowerTarget named = bench.target();
  named.address = "gpu2";
  CHECK(bench.driver(named)->on(kCall).ok());
  CHECK(bench.learnt_pin == "server:" + bench.ids[1]);
  CHECK(bench.machine(1).running());
  named.pin_sha256 = "server:" + bench.ids[0];
  const auto moved = bench.driver(named)->off(kCall, false);
  REQUIRE_FALSE(moved.ok());
  CHECK(moved.error().code == Code::denied);
  CHECK(bench.machine(1).running());
}

TEST_CASE("phy: a server that is another node's takes no order and is not pinned, whatever leads to it",
          "[power][phy]") {
  PhyBench bench(2);
  PowerTarget at = bench.target();
  SECTION("an id, where another node has the nickname") { at.servers_of_others = {{"gpu1", "gpu07"}}; }
  SECTION("a nickname, where another node has the id") {
    at.address = "gpu1";
    at.servers_of_others = {{bench.ids[0], "gpu07"}};
  }
  SECTION("a nickname, where another node had it so far") {
    at.address = "gpu1";
    at.servers_of_others = {{"server:" + bench.ids[0], "gpu07"}};
  }
  for (const Status& refused :
       {bench.driver(at)->on(kCall), bench.driver(at)->off(kCall, true),
        Status(make_phy_install(at, bench.account(at))->prepare(PhyBench::kImage, kCall).error())}) {
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::denied);
    CHECK(holds(refused.error().message, "gpu07"));
  }
  CHECK(bench.seen_with("POST ") == 0);
  CHECK(bench.learnt_pin.empty());
  PowerTarget other = bench.target(1);  // nothing leads to that one
  other.servers_of_others = at.servers_of_others;
  CHECK(bench.driver(other)->on(kCall).ok());
}

TEST_CASE("phy: the server that the controller runs on takes no order, and is looked at all the same",
          "[power][phy]") {
  PhyBench bench;
  bench.machine().start();
  PowerTarget at = bench.target();
  SECTION("by its address") { at.own_names = {"127.0.0.1", "head"}; }
  SECTION("by its nickname") {
    lab::PhyMachine own;
    own.id = bench.ids[0], own.nickname = "Head", own.address = "198.51.100.7";
    own.machine = &bench.machine();
    bench.api.add(own);
    at.own_names = {"10.20.0.1", "head"};
  }
  for (const Status& refused :
       {bench.driver(at)->on(kCall), bench.driver(at)->off(kCall, false), bench.driver(at)->off(kCall, true),
        Status(make_phy_install(at, bench.account(at))->prepare(PhyBench::kImage, kCall).error())}) {
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::denied);
    CHECK(holds(refused.error().message, "own-machine"));
  }
  CHECK(bench.seen_with("POST ") == 0);
  CHECK(bench.driver(at)->state(kCall).ok());
}

TEST_CASE("phy: a server that is not in the account, or a nickname of two, is reported with what there is",
          "[power][phy]") {
  PhyBench bench(2);
  PowerTarget lost = bench.target();
  lost.address = "999999999999";
  const auto none = bench.driver(lost)->state(kCall);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == Code::not_found);
  CHECK(holds(none.error().message, bench.ids[1]));
  lab::PhyMachine twin;
  twin.id = "113100000099";
  twin.nickname = "gpu2";
  twin.machine = &bench.machines[twin.id];
  bench.api.add(twin);
  bench.pass(kMinute);
  lost.address = "gpu2";
  CHECK(bench.driver(lost)->state(kCall).error().code == Code::invalid);
}

TEST_CASE("phy: an account of many pages is read whole", "[power][phy]") {
  PhyBench bench(130);
  for (const size_t last : {size_t{0}, size_t{129}}) CHECK(bench.driver(last)->state(kCall).ok());
  CHECK(bench.seen_with("/servers/?limit=100&offset=100") == 1);
}

TEST_CASE("phy: what the list remembers of the power is never believed alone", "[power][phy]") {
  PhyBench bench;
  bench.api.change([](lab::PhyManners& m) { m.cache_every = 0; });
  CHECK(*bench.driver()->state(kCall) == PowerState::off);
  bench.machine().start();  // from outside: the API goes on reporting "off"
  bench.pass(3 * kMinute);
  CHECK(*bench.driver()->state(kCall) == PowerState::on);
}

TEST_CASE("phy: describe says who it is, its lock and its ports", "[power][phy]") {
  PhyBench bench;
  const auto reported = bench.driver()->describe(kCall);
  REQUIRE(reported.ok());
  CHECK((*reported)["server"] == bench.ids[0]);
  CHECK((*reported)["nickname"] == "gpu1");
  CHECK((*reported)["power"] == "off");
  CHECK((*reported)["ports"].size() == 1);
}

TEST_CASE("phy: hardware that does not answer its provider is unknown, not off, and still takes orders",
          "[power][phy]") {
  PhyBench bench;
  bench.api.change([](lab::PhyManners& m) { m.unreadable_power = 2; });
  CHECK(*bench.driver()->state(kCall) == PowerState::unknown);
  CHECK(bench.driver()->on(kCall).ok());
  CHECK(bench.machine().running());
}
