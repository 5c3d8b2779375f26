// The service over a store and a receiver that is down, slow, refuses, or takes what it says it did not.
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "controller/notices/service/notice_service.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;
using notices::Notice;
using notices::NoticeState;

namespace {

constexpr DurationMs kHour = 60 * kMinute;

// A controller's life after the other over one store; receivers are remembered beside them.
struct Site {
  Site() { receiver("ops"); }
  ~Site() { service.reset(); }

  Receiver& receiver(const std::string& name) {
    notify.receivers[name].name = name;
    return notify.receivers[name];
  }
  void start() {
    service = std::make_unique<NoticeService>(NoticeService::Parts{
        reactor, store, [this] { return causes; }, problems,
        [this]() -> Result<NoticeService::Site> {
          return NoticeService::Site{"gaggle", notify, TimeZone()};
        },
        [](TimeMs) { return std::string("night 4: done"); },
        [this](const Json& values) -> Result<Json> {
          if (secrets_missing) return fail(Code::not_found, "no secret 'hook'");
          return values;
        },
        [this](const Receiver& to, const Notice& notice, const std::string&, NoticeService::Sent sent) {
          const auto row = store.notices();
          stored_before &= notice.state == NoticeState::test ||
                           (row.ok() && row->text.find("\"" + notice.id + "\"") != std::string::npos);
          arrived.push_back({to.name, notice.id, notice.state});
          if (hangs) return waiting.push_back(std::move(sent));
          sent(answer);
        }});
    service->begin();
  }
  // kill -9, and the next life.
  void kill(MemStore::Unsynced unsynced = MemStore::Unsynced::lost) {
    service.reset();
    store.crash(unsynced);
    start();
  }
  void add_cause(const std::string& id, CauseKind kind = CauseKind::controller) {
    Cause cause;
    cause.id = id;
    cause.kind = kind;
    cause.what = id + " happened";
    cause.next = "muster status";
    causes.push_back(cause);
  }
  size_t ids() const {
    std::set<std::string> seen;
    for (const auto& one : arrived) seen.insert(one.to + one.id);
    return seen.size();
  }

  ManualReactor reactor;
  MemStore store{reactor};
  NotifySpec notify;
  std::vector<Cause> causes;
  std::unique_ptr<NoticeService> service;
  struct Arrived {
    std::string to, id;
    NoticeState state;
  };
  std::vector<Arrived> arrived;
  std::vector<NoticeService::Sent> waiting;
  Status answer = Ok{};
  bool hangs = false, secrets_missing = false, stored_before = true;
  std::map<std::string, std::string> problems = {{"dhcp", "as it was"}};
};

}  // namespace

TEST_CASE("notices: a cause is sent within a minute of being known, and stored before", "[notices]") {
  Site s;
  s.start();
  s.reactor.advance(5 * kMinute);
  CHECK(s.arrived.empty());
  s.add_cause("dhcp");
  s.reactor.advance(kMinute);
  REQUIRE(s.arrived.size() == 1);
  CHECK(s.arrived[0].state == NoticeState::begun);
  s.causes.clear();
  s.reactor.advance(kMinute);
  REQUIRE(s.arrived.size() == 2);
  CHECK(s.arrived[1].state == NoticeState::over);
  CHECK(s.stored_before);
  s.reactor.advance(24 * kHour);
  CHECK(s.arrived.size() == 2);
}

TEST_CASE("notices: the causes of before a restart are recalled until the first turn", "[notices]") {
  Site s;
  s.start();
  s.add_cause("leaf3", CauseKind::node_silent);
  Cause& cause = s.causes.front();
  cause.nodes = {NodeName("gpu01"), NodeName("gpu02")};
  cause.common = "switch";
  cause.common_value = "leaf3";
  cause.since = 77;
  s.reactor.advance(2 * kMinute);
  CHECK(s.service->recalled().empty());
  s.kill();
  const auto recalled = s.service->recalled();
  REQUIRE(recalled.size() == 1);
  CHECK(recalled[0].id == "leaf3");
  CHECK(recalled[0].kind == CauseKind::node_silent);
  CHECK(recalled[0].nodes == cause.nodes);
  CHECK(recalled[0].common == "switch");
  CHECK(recalled[0].common_value == "leaf3");
  CHECK(recalled[0].since == 77);
  s.reactor.advance(NoticeService::kGrace + NoticeService::kTurn);
  CHECK(s.service->recalled().empty());
  // What is over is not recalled.
  s.causes.clear();
  s.reactor.advance(2 * kMinute);
  s.kill();
  CHECK(s.service->recalled().empty());
}

TEST_CASE("notices: a receiver that is down for an hour gets everything in order", "[notices]") {
  Site s;
  s.start();
  s.reactor.advance(kMinute);
  s.answer = fail(Code::unavailable, "connection refused");
  const auto failing_since = [&] {
    return s.service->shown()["receivers"][0]["failing_since"].get<TimeMs>();
  };
  CHECK(failing_since() == 0);
  s.add_cause("a");
  const TimeMs down = s.reactor.now();
  s.reactor.advance(10 * kMinute);
  const TimeMs first = failing_since();
  CHECK(first >= down);
  CHECK(first <= down + kMinute);
  CHECK(s.problems.count("receiver ops") == 1);
  CHECK(s.service->counts().failing.at("ops"));
  s.add_cause("b");
  s.reactor.advance(50 * kMinute);
  CHECK(failing_since() == first);
  CHECK(s.service->counts().waiting == 2);
  s.answer = Ok{};
  s.arrived.clear();
  s.reactor.advance(15 * kMinute);
  REQUIRE(s.arrived.size() == 2);
  CHECK(s.arrived[0].id.starts_with("a-"));
  CHECK(s.arrived[1].id.starts_with("b-"));
  CHECK(s.problems.size() == 1);
  CHECK_FALSE(s.service->counts().failing.at("ops"));
  CHECK(failing_since() == 0);
  CHECK(s.service->counts().waiting == 0);
}

TEST_CASE("notices: a receiver that takes a notice and answers 500 gets it again with the same id",
          "[notices]") {
  Site s;
  s.start();
  s.reactor.advance(kMinute);
  s.answer = fail(Code::failed, "HTTP 500");
  s.add_cause("a");
  s.reactor.advance(5 * kMinute);
  CHECK(s.arrived.size() > 1);
  CHECK(s.ids() == 1);
}

TEST_CASE("notices: a receiver that hangs holds up neither others nor the controller", "[notices]") {
  Site s;
  s.receiver("slow");
  s.start();
  s.reactor.advance(kMinute);
  s.hangs = true;
  s.add_cause("a");
  s.reactor.advance(kMinute);
  REQUIRE(s.waiting.size() == 2);  // one each, and no more while it is on its way
  s.hangs = false;
  s.waiting[0](Ok{});
  s.add_cause("b");
  s.reactor.advance(kMinute);
  CHECK(s.arrived.size() == 3);
  s.waiting[1](fail(Code::timeout, "no answer"));
  s.reactor.advance(kMinute);
  CHECK(s.service->counts().waiting == 0);
  CHECK(s.ids() == 4);
}

TEST_CASE("notices: killed between a notice and its row, at most one is sent twice, with the same id",
          "[notices]") {
  for (const auto unsynced : {MemStore::Unsynced::lost, MemStore::Unsynced::kept}) {
    for (int step = 0; step < 60; ++step) {
      CAPTURE(step);
      Site s;
      s.start();
      s.add_cause("a");
      s.add_cause("b");
      s.reactor.advance(NoticeService::kGrace + notices::kSettle - 2 * kSecond);
      for (int i = 0; i < step * 2; ++i) s.reactor.step();
      s.kill(unsynced);
      s.reactor.advance(5 * kMinute);
      CHECK(s.ids() == 2);
      CHECK(s.arrived.size() <= 3);
      CHECK(s.stored_before);
      CHECK(s.service->counts().waiting == 0);
    }
  }
}

TEST_CASE("notices: what waited when the controller ended is sent by the next one, also days later",
          "[notices]") {
  Site s;
  s.start();
  s.answer = fail(Code::unavailable, "connection refused");
  s.add_cause("a");
  s.reactor.advance(3 * kMinute);
  REQUIRE(s.ids() == 1);
  s.service.reset();
  s.reactor.advance(60 * kHour);
  s.arrived.clear();
  s.answer = Ok{};
  s.start();
  s.reactor.advance(5 * kMinute);
  REQUIRE(s.arrived.size() == 1);
  CHECK(s.arrived[0].id.starts_with("a-"));
  CHECK(s.service->counts().lost == 0);
}

TEST_CASE("notices: a receiver that refuses one gets the next", "[notices]") {
  Site s;
  s.start();
  s.reactor.advance(kMinute);
  s.answer = fail(Code::conflict, "HTTP 413");
  s.add_cause("a");
  s.reactor.advance(10 * kMinute);
  CHECK(static_cast<int64_t>(s.arrived.size()) == notices::kMostRefusals);
  CHECK(s.service->counts().lost == 1);
  s.answer = Ok{};
  s.add_cause("b");
  s.reactor.advance(kMinute);
  CHECK(s.arrived.back().id.starts_with("b-"));
  CHECK(s.service->counts().waiting == 0);
}

TEST_CASE("notices: a restart neither repeats what was sent nor says that it is over", "[notices]") {
  Site s;
  s.start();
  s.add_cause("a");
  s.reactor.advance(3 * kMinute);
  REQUIRE(s.arrived.size() == 1);
  const auto known = s.causes;
  s.causes.clear();  // until agents have reported
  s.kill();
  s.reactor.advance(30 * kSecond);
  s.causes = known;
  s.reactor.advance(10 * kMinute);
  CHECK(s.arrived.size() == 1);
}

TEST_CASE("notices: nothing is sent that could not be stored", "[notices]") {
  Site s;
  s.start();
  s.reactor.advance(kMinute);
  s.add_cause("a");
  s.store.fail_next(20, fail(Code::failed, "disk full"));
  s.reactor.advance(kMinute);
  CHECK(s.arrived.empty());
  s.reactor.advance(5 * kMinute);
  CHECK(s.ids() == 1);
  CHECK(s.stored_before);
}

TEST_CASE("notices: a secret that is missing is the receiver's failure", "[notices]") {
  Site s;
  s.secrets_missing = true;
  s.start();
  s.add_cause("a");
  s.reactor.advance(5 * kMinute);
  CHECK(s.arrived.empty());
  CHECK(s.service->shown()["receivers"][0]["failures"].get<int>() > 1);
  CHECK(s.service->shown()["receivers"][0]["error"] != "");
  s.secrets_missing = false;
  s.reactor.advance(10 * kMinute);
  CHECK(s.arrived.size() == 1);
}

TEST_CASE("notices: what an operator acknowledges stays acknowledged over a restart", "[notices]") {
  Site s;
  s.start();
  s.add_cause("c0ffee");
  s.reactor.advance(3 * kMinute);
  std::optional<Result<Json>> done;
  const auto keep = [&](Result<Json> result) { done = std::move(result); };
  s.service->acknowledge("beef", {"anna", "", 0}, keep);
  s.reactor.advance(kSecond);
  REQUIRE(done);
  CHECK(done->error().code == Code::not_found);
  done.reset();
  s.service->acknowledge("c0ff", {"anna", "PSU on order", 0}, keep);
  s.reactor.advance(kSecond);
  REQUIRE((done && done->ok()));
  CHECK((**done)["acknowledged"]["reason"] == "PSU on order");
  s.kill();
  CHECK(s.service->shown()["causes"][0]["acknowledged"]["by"] == "anna");
}

TEST_CASE("notices: a test is sent at once to the receivers that are meant", "[notices]") {
  Site s;
  s.receiver("pager");
  s.start();
  Json result;
  const auto keep = [&](Result<Json> sent) { result = sent.ok() ? *sent : Json(); };
  s.service->test("missing", keep);
  CHECK(result.is_null());
  s.service->test("", keep);
  REQUIRE(result["receivers"].size() == 2);
  CHECK(result["receivers"][0]["error"] == "");
  s.answer = fail(Code::failed, "HTTP 404");
  s.service->test("pager", keep);
  REQUIRE(result["receivers"].size() == 1);
  CHECK(result["receivers"][0]["error"] == "HTTP 404");
  CHECK(s.service->counts().waiting == 0);
}
