// The book of notices: each promise of docs/notify.md alone. All together, over a year:
// year_of_nights_test.cc.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "controller/bringup/current_problems.h"
#include "controller/notices/book.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::notices;

namespace {

constexpr DurationMs kStep = 5 * kSecond, kHour = 60 * kMinute;
constexpr TimeMs kStart = 1'767'225'600'000;  // 2026-01-01, midnight UTC

Cause cause_of(const std::string& id, const std::vector<std::string>& nodes,
               CauseKind kind = CauseKind::node_silent) {
  Cause cause;
  cause.id = id;
  cause.kind = kind;
  cause.what = id + " happened";
  cause.next = "muster why";
  for (const auto& node : nodes) cause.nodes.push_back(NodeName(node));
  cause.since = kStart;
  return cause;
}

std::vector<std::string> nodes(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back(fmt::format("n{:04}", i));
  return out;
}

// A book that is turned every 5 s; what it makes is taken at once, unless `hold`.
struct Site {
  Site() {
    spec.urgent = {cause_kind_word(CauseKind::rollout_stopped)};
    receiver("ops");
  }
  Receiver& receiver(const std::string& name) {
    spec.receivers[name].name = name;
    return spec.receivers[name];
  }
  LocalTime local() const { return TimeZone().at(now); }
  bool turn(DurationMs elapsed = kStep, bool after_start = false) {
    now += elapsed;
    const int64_t first = book.next_number;
    const bool changed = notices::turn(book, causes, spec, {now, elapsed, local(), "", after_start});
    for (const Notice& notice : book.waiting)
      if (std::atoll(notice.id.c_str() + notice.id.rfind('-') + 1) >= first) made.push_back(notice);
    while (!hold) {
      const Notice* next = next_for(book, spec.receivers.at("ops"), local());
      if (!next) break;
      delivered(book, "ops", std::string(next->id), now);
    }
    return changed;
  }
  void run(DurationMs span) {
    for (DurationMs done = 0; done < span; done += kStep) turn();
  }
  // A minute with these causes.
  void with(std::vector<Cause> those) {
    causes = std::move(those);
    run(kMinute);
  }
  // What waits for a receiver, in the order in which it is sent.
  std::vector<Notice> sent_to(const std::string& name) {
    std::vector<Notice> out;
    while (const Notice* next = next_for(book, spec.receivers.at(name), local())) {
      out.push_back(*next);
      delivered(book, name, out.back().id, now);
    }
    return out;
  }
  std::vector<NoticeState> states() const {
    std::vector<NoticeState> out;
    for (const Notice& notice : made) out.push_back(notice.state);
    return out;
  }

  Book book;
  NotifySpec spec;
  std::vector<Cause> causes;
  TimeMs now = kStart;
  std::vector<Notice> made;
  bool hold = false;
};

using States = std::vector<NoticeState>;
constexpr auto begun = NoticeState::begun, worse = NoticeState::worse, over = NoticeState::over,
               flaps = NoticeState::flaps, summary = NoticeState::summary, daily = NoticeState::daily;

}  // namespace

TEST_CASE("notices: what begins within 30 s and has one cause is one notice, and one when it is over",
          "[notices]") {
  Site s;
  for (size_t count = 1; count <= 4; ++count) {  // nodes fall silent one after the other
    s.causes = {cause_of("leaf", nodes(count * 8))};
    s.turn();
  }
  s.run(kMinute);
  REQUIRE(s.states() == States{begun});
  CHECK(s.made[0].nodes.size() == 32);
  CHECK(s.made[0].next == "muster why");
  s.run(kHour);
  CHECK(s.made.size() == 1);
  s.with({});
  CHECK(s.states() == States{begun, over});
  CHECK_FALSE(s.made[1].open);
}

TEST_CASE("notices: what lasts less than 30 s is no change", "[notices]") {
  Site s;
  s.causes = {cause_of("blip", nodes(1))};
  s.run(20 * kSecond);
  s.with({});
  CHECK(s.made.empty());
  CHECK(s.book.causes.empty());
  s.with({cause_of("long", nodes(1))});
  s.causes = {};
  s.run(20 * kSecond);
  s.with({cause_of("long", nodes(1))});
  CHECK(s.states() == States{begun});
}

TEST_CASE("notices: twice as many nodes are worse, a few more are not", "[notices]") {
  Site s;
  s.with({cause_of("leaf", nodes(4))});
  s.with({cause_of("leaf", nodes(7))});
  CHECK(s.states() == States{begun});
  s.with({cause_of("leaf", nodes(8))});
  CHECK(s.states() == States{begun, worse});
  s.with({cause_of("leaf", nodes(2))});
  s.with({cause_of("leaf", nodes(8))});
  CHECK(s.states() == States{begun, worse});
}

TEST_CASE("notices: a cause that shrank for an hour is worse when it grows again", "[notices]") {
  Site s;
  s.with({cause_of("leaf", nodes(31))});
  s.causes = {cause_of("leaf", nodes(1))};  // one stays off
  s.run(2 * kHour);
  CHECK(s.states() == States{begun});
  s.with({cause_of("leaf", nodes(31))});
  CHECK(s.states() == States{begun, worse});
  CHECK(s.made[1].nodes.size() == 31);
  // What counts is the most that it had in that hour.
  s.causes = {cause_of("leaf", nodes(20))};
  s.run(kHour - kMinute);
  s.causes = {cause_of("leaf", nodes(1))};
  s.run(2 * kMinute);
  s.with({cause_of("leaf", nodes(31))});
  CHECK(s.states() == States{begun, worse});
}

TEST_CASE("notices: a cause that goes on began when it first did, one that comes again does not",
          "[notices]") {
  Site s;
  Cause cause = cause_of("a", {"a"});
  s.with({cause});
  cause.since = kStart + 3 * 24 * kHour;  // as a controller that was restarted knows it
  s.with({cause});
  s.with({});
  REQUIRE(s.states() == States{begun, over});
  CHECK(s.made[1].since == kStart);
  s.with({cause});
  REQUIRE(s.states() == States{begun, over, begun});
  CHECK(s.made[2].since == cause.since);
  cause.since = 0;  // unknown
  s.with({cause});
  CHECK(s.book.causes.at("a").since == kStart + 3 * 24 * kHour);
}

TEST_CASE("notices: a cause that gets another name goes on", "[notices]") {
  Site s;
  s.with({cause_of("one-node", {"a"})});
  s.with({cause_of("switch", {"a", "b", "c"})});
  CHECK(s.states() == States{begun, worse});
  CHECK(s.made[1].cause == "switch");
  s.with({cause_of("two-nodes", {"a", "b"})});
  CHECK(s.made.size() == 2);
  s.with({});
  CHECK(s.states() == States{begun, worse, over});
  CHECK(s.book.causes.size() == 1);
}

TEST_CASE("notices: causes of which one is made are named by it", "[notices]") {
  Site s;
  s.with({cause_of("a", {"a"}), cause_of("b", {"b"})});
  s.with({cause_of("both", {"a", "b"})});
  REQUIRE(s.states() == States{begun, begun, worse});
  CHECK(s.made[2].replaces == std::vector<std::string>{"b"});
  s.with({});
  CHECK(s.states() == States{begun, begun, worse, over});
}

TEST_CASE("notices: a name that is used again while its cause goes on is another cause", "[notices]") {
  Site s;
  s.with({cause_of("x", {"a"})});
  s.with({cause_of("y", {"a", "b"})});
  s.with({cause_of("y", {"a", "b"}), cause_of("x", {"c"})});
  CHECK(s.states() == States{begun, worse, begun});
  s.with({});
  CHECK(s.states() == States{begun, worse, begun, over, over});
}

TEST_CASE("notices: an acknowledged cause is quiet until it is over", "[notices]") {
  Site s;
  s.with({cause_of("c0ffee", nodes(2))});
  CHECK(acknowledge(s.book, "c0", {"anna", "", s.now}).error().code == Code::invalid);
  CHECK(acknowledge(s.book, "beef", {"anna", "", s.now}).error().code == Code::not_found);
  const auto acked = acknowledge(s.book, "c0ff", {"anna", "PSU on order", s.now});
  REQUIRE(acked.ok());
  CHECK(acked->cause == "c0ffee");
  s.with({cause_of("c0ffee", nodes(20))});
  CHECK(s.states() == States{begun});
  s.with({});
  CHECK(s.states() == States{begun, over});
  s.with({cause_of("c0ffee", nodes(20))});  // the acknowledgement was of the first time
  CHECK(s.states() == States{begun, over, begun});
  s.with({cause_of("c0ffee", nodes(1)), cause_of("c0ffff", {"z"})});
  CHECK(acknowledge(s.book, "c0ff", {"anna", "", s.now}).error().code == Code::conflict);
}

TEST_CASE("notices: from the fourth change on a cause has one line in 24 hours", "[notices]") {
  Site s;
  for (int i = 0; i < 20; ++i) {
    s.with({cause_of("flap", nodes(1))});
    s.with({});
  }
  REQUIRE(s.states() == States{begun, over, begun, flaps});
  CHECK(s.made[3].changes == 4);
  s.run(24 * kHour);
  REQUIRE(s.states() == States{begun, over, begun, flaps, flaps});
  CHECK(s.made[4].changes == 40);
  CHECK_FALSE(s.made[4].open);
  s.run(24 * kHour);
  CHECK(s.made.size() == 5);
  s.with({cause_of("flap", nodes(1))});  // a day without a change: it counts from one
  CHECK(s.states().back() == begun);
}

TEST_CASE("notices: a thousand causes at once are one summary, and one when they are over", "[notices]") {
  Site s;
  std::vector<Cause> thousand;
  for (int i = 0; i < 1000; ++i)
    thousand.push_back(cause_of(fmt::format("{:012}", i), {fmt::format("n{}", i)}, CauseKind::node_failed));
  thousand[700].kind = CauseKind::rollout_stopped;
  s.with(thousand);
  REQUIRE(s.states() == States{summary});
  CHECK(s.made[0].changed.size() == 1000);
  CHECK(s.made[0].changed[0].kind == cause_kind_word(CauseKind::rollout_stopped));  // urgent ones first
  CHECK(s.made[0].urgent);
  s.causes = {};
  s.run(15 * kMinute);
  REQUIRE(s.states() == States{summary, summary});
  CHECK(s.made[1].changed.size() == 1000);
  CHECK(std::none_of(s.made[1].changed.begin(), s.made[1].changed.end(),
                     [](const Change& change) { return change.open; }));
}

TEST_CASE("notices: a receiver gets its kinds, and in a summary no others", "[notices]") {
  Site s;
  s.hold = true;
  s.receiver("storage").kinds = {cause_kind_word(CauseKind::controller)};
  s.receiver("night").only_urgent = true;
  s.with({cause_of("a", {"a"}), cause_of("b", {}, CauseKind::controller),
          cause_of("c", {}, CauseKind::rollout_stopped)});
  REQUIRE(s.made.size() == 3);
  CHECK(s.made[0].to == std::set<std::string>{"ops"});
  CHECK(s.made[1].to == std::set<std::string>{"ops", "storage"});
  CHECK(s.made[2].to == std::set<std::string>{"ops", "night"});
  Notice all;
  all.state = summary;
  all.changed = {{"a", cause_kind_word(CauseKind::controller), "x", begun, true},
                 {"b", cause_kind_word(CauseKind::node_silent), "y", begun, true}};
  CHECK(as_wanted(all, s.spec.receivers["storage"], s.spec).changed.size() == 1);
  CHECK(as_wanted(all, s.spec.receivers["night"], s.spec).changed.empty());
}

TEST_CASE("notices: that a receiver fails is sent to the others", "[notices]") {
  Site s;
  s.hold = true;
  s.receiver("pager");
  ClusterNow now;
  now.controller[receiver_topic("ops")] = "does not take notices";
  const auto found = find_causes(current_problems(now), {});
  REQUIRE(found.size() == 1);
  const Cause& fails = found[0];
  s.with(found);
  s.with({});
  REQUIRE(s.states() == States{begun, over});
  for (const Notice& notice : s.made) CHECK(notice.to == std::set<std::string>{"pager"});
  Notice all;
  all.state = summary;
  all.changed = {{"a", cause_kind_word(fails.kind), fails.what, begun, true}};
  CHECK(as_wanted(all, s.spec.receivers["ops"], s.spec).changed.empty());
  CHECK(as_wanted(all, s.spec.receivers["pager"], s.spec).changed.size() == 1);
}

TEST_CASE("notices: a receiver that is new gets what is open in one, without what is acknowledged",
          "[notices]") {
  Site s;
  s.spec.receivers.clear();
  s.hold = true;
  std::vector<Cause> five;
  for (const char* id : {"aaaa", "bbbb", "cccc", "dddd", "eeee"}) five.push_back(cause_of(id, {id}));
  s.with(five);
  CHECK(s.made.empty());
  REQUIRE(acknowledge(s.book, "cccc", {"anna", "", s.now}).ok());
  s.receiver("ops");
  s.with(five);
  const auto first = s.sent_to("ops");
  REQUIRE(first.size() == 1);
  CHECK(first[0].state == summary);
  CHECK(first[0].changed.size() == 4);
  for (const Change& change : first[0].changed) {
    CHECK(change.cause != "cccc");
    CHECK(change.state == begun);
    CHECK(change.open);
  }
  s.with(five);
  CHECK(s.sent_to("ops").empty());
  // Another name: what waited for the old one is counted.
  five.push_back(cause_of("ffff", {"ffff"}));
  s.with(five);
  CHECK(waiting_for(s.book, "ops") == 1);
  s.spec.receivers.clear();
  s.receiver("oncall");
  s.with(five);
  CHECK(s.book.lost == 1);
  const auto second = s.sent_to("oncall");
  REQUIRE(second.size() == 1);
  CHECK(second[0].changed.size() == 5);
}

TEST_CASE("notices: a receiver that is new gets a cause that begins with it once", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  const auto sent = s.sent_to("ops");
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].state == begun);
}

TEST_CASE("notices: in quiet hours only what is urgent is sent, the rest afterwards", "[notices]") {
  Site s;
  s.hold = true;
  Receiver& ops = s.receiver("ops");
  ops.quiet = {22 * 60, 7 * 60};
  s.with({cause_of("a", {"a"}), cause_of("c", {}, CauseKind::rollout_stopped)});  // it is midnight
  REQUIRE(s.made.size() == 2);
  const Notice* first = next_for(s.book, ops, s.local());
  REQUIRE(first);
  CHECK(first->cause == "c");
  delivered(s.book, "ops", std::string(first->id), s.now);
  CHECK_FALSE(next_for(s.book, ops, {0, 6 * 60 + 59}));
  CHECK(next_for(s.book, ops, {0, 7 * 60}));
  CHECK_FALSE(next_for(s.book, ops, {0, 22 * 60}));
}

TEST_CASE("notices: what is urgent is sent first", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  s.with({cause_of("a", {"a"}), cause_of("c", {}, CauseKind::rollout_stopped)});
  const auto sent = s.sent_to("ops");
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].cause == "c");
  CHECK(sent[1].cause == "a");
}

TEST_CASE("notices: one line a day at its time, also when the controller was not there then", "[notices]") {
  Site s;
  s.receiver("ops").daily = 7 * 60 + 30;
  s.run(7 * kHour);
  CHECK(s.made.empty());
  s.run(kHour);
  REQUIRE(s.states() == States{daily});
  CHECK(s.made[0].urgent);
  s.run(12 * kHour);
  CHECK(s.made.size() == 1);
  s.turn(14 * kHour);  // 10 o'clock on the next day
  CHECK(s.made.size() == 2);
  s.run(kHour);
  CHECK(s.made.size() == 2);
}

TEST_CASE("notices: a clock that is set makes no notice, holds none up, and leaves the daily line",
          "[notices]") {
  for (const DurationMs jump : {-90 * 24 * kHour, -3 * kHour, 3 * kHour, 90 * 24 * kHour}) {
    CAPTURE(jump);
    Site s;
    s.receiver("ops").daily = 7 * 60 + 30;
    s.with({cause_of("a", {"a"})});
    s.causes.push_back(cause_of("b", {"b"}));
    s.turn();
    s.now += jump;
    s.turn();
    const States states = s.states();
    CHECK(std::count(states.begin(), states.end(), begun) <= 1);
    s.made.clear();
    s.run(kMinute);
    CHECK(std::count_if(s.made.begin(), s.made.end(), [](const Notice& n) { return n.state == begun; }) == 1);
    s.made.clear();
    s.run(25 * kHour);
    const auto lines =
        std::count_if(s.made.begin(), s.made.end(), [](const Notice& n) { return n.state == daily; });
    CHECK((lines == 1 || lines == 2));
    CHECK(s.made.size() == static_cast<size_t>(lines));
  }
}

TEST_CASE("notices: a receiver that fails is tried less and less often, is a problem, and gets all in order",
          "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  s.with({cause_of("a", {"a"}), cause_of("b", {"b"})});
  const Receiver ops = s.spec.receivers.at("ops");
  int tries = 0;
  for (int i = 0; i < 720; ++i) {  // an hour
    if (const Notice* next = next_for(s.book, ops, s.local())) {
      failed(s.book, "ops", next->id, fail(Code::failed, "HTTP 500"));
      ++tries;
    }
    s.turn();
  }
  CHECK(tries > 5);
  CHECK(tries < 20);
  CHECK(is_failing(s.book, "ops"));
  CHECK(waiting_for(s.book, "ops") == 2);
  const Book after = book_from_text(to_text(s.book)).value();  // a restart
  CHECK(after == s.book);
  s.run(10 * kMinute);
  for (const char* cause : {"a", "b"}) {
    const Notice* next = next_for(s.book, ops, s.local());
    REQUIRE(next);
    CHECK(next->cause == cause);
    delivered(s.book, "ops", std::string(next->id), s.now);
  }
  CHECK_FALSE(is_failing(s.book, "ops"));
}

TEST_CASE("notices: what is not delivered for a day is given up and counted", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  s.turn(23 * kHour);
  CHECK(s.book.waiting.size() == 1);
  s.turn(kHour);
  CHECK(s.book.waiting.empty());
  CHECK(s.book.receivers.at("ops").lost == 1);
  s.spec.receivers.clear();
  s.turn();
  CHECK(s.book.receivers.empty());
  CHECK(s.book.lost == 1);
}

TEST_CASE("notices: a receiver to which notices were given up gets what is open when it works again",
          "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  s.causes.push_back(cause_of("b", {"b"}));
  const auto try_it = [&s] {
    if (const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local()))
      failed(s.book, "ops", next->id, fail(Code::unavailable, "connection refused"));
  };
  for (int i = 0; i < 25 * 6; ++i) {  // 25 h
    try_it();
    s.turn(10 * kMinute);
  }
  CHECK(s.book.receivers.at("ops").lost == 2);
  s.causes.erase(s.causes.begin());
  s.run(kMinute);
  s.turn(10 * kMinute);
  std::set<std::string> open;
  for (const Notice& notice : s.sent_to("ops"))
    for (const Change& change : notice.changed) open.insert(change.cause);
  CHECK(open.count("b") == 1);
  s.run(kHour);
  CHECK(s.sent_to("ops").empty());
}

TEST_CASE("notices: after days without a receiver it gets what is over that it knows as open", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"}), cause_of("b", {"b"}), cause_of("d", {"d"})});
  REQUIRE(s.sent_to("ops").size() == 3);
  const auto try_it = [&s](DurationMs span) {
    for (DurationMs done = 0; done < span; done += 10 * kMinute) {
      if (const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local()))
        failed(s.book, "ops", next->id, fail(Code::unavailable, "connection refused"));
      s.turn(10 * kMinute);
    }
  };
  s.causes = {cause_of("b", {"b"}), cause_of("c", {"c"}), cause_of("d", {"d"})};
  try_it(kHour);
  s.causes = {cause_of("b", {"b"})};  // `c` came and went
  try_it(60 * kHour);
  s.book = book_from_text(to_text(s.book)).value();
  s.causes = {cause_of("b", {"b"}), cause_of("d", {"d"})};  // again
  s.run(kMinute);
  s.turn(10 * kMinute);
  std::map<std::string, bool> open;
  for (const Notice& notice : s.sent_to("ops")) {
    if (!notice.cause.empty()) open[notice.cause] = notice.open;
    for (const Change& change : notice.changed) {
      CHECK(change.open == (change.state != over));
      open[change.cause] = change.open;
    }
  }
  CHECK(open == std::map<std::string, bool>{{"a", false}, {"b", true}, {"d", true}});
  s.run(kHour);
  CHECK(s.sent_to("ops").empty());
}

TEST_CASE("notices: a receiver that has all notices knows nothing else as open", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a", "b"})});
  s.sent_to("ops");
  s.with({cause_of("z", {"a", "b"})});  // goes on under another id
  CHECK(s.book.receivers.at("ops").open.count("a") == 1);
  s.with({});
  s.sent_to("ops");
  s.turn();
  CHECK(s.book.receivers.at("ops").open.empty());
}

TEST_CASE("notices: what waited is not given up because there was no controller", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  s.turn(3 * 24 * kHour, true);
  CHECK(waiting_for(s.book, "ops") == 1);
  CHECK(s.book.receivers.at("ops").lost == 0);
  s.turn(23 * kHour);
  CHECK(waiting_for(s.book, "ops") == 1);
  s.turn(kHour);
  CHECK(s.book.receivers.at("ops").lost == 1);
}

TEST_CASE("notices: one that a receiver refuses holds up the others for minutes", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"}), cause_of("b", {"b"})});
  const Receiver ops = s.spec.receivers.at("ops");
  DurationMs spent = 0;
  int tries = 0;
  for (; waiting_for(s.book, "ops") > 1 && spent < kHour; spent += kStep) {
    if (const Notice* next = next_for(s.book, ops, s.local())) {
      CHECK(next->cause == "a");
      failed(s.book, "ops", next->id, fail(Code::conflict, "HTTP 413"));
      ++tries;
    }
    s.turn();
  }
  CHECK(tries == kMostRefusals);
  CHECK(spent <= 5 * kMinute);
  CHECK(s.book.receivers.at("ops").lost == 1);
  const auto sent = s.sent_to("ops");
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].cause == "b");
  // An answer of another kind is no refusal, however often it comes.
  s.with({cause_of("a", {"a"}), cause_of("b", {"b"}), cause_of("c", {"c"})});
  for (int i = 0; i < 20; ++i) failed(s.book, "ops", s.book.waiting.at(0).id, fail(Code::failed, "HTTP 404"));
  CHECK(waiting_for(s.book, "ops") == 1);
}

TEST_CASE("notices: one at which a receiver fails holds up others for minutes, until it is given up",
          "[notices]") {
  Site s;
  s.hold = true;
  std::vector<Cause> causes;
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) causes.push_back(cause_of(id, {id}));
  s.with(causes);
  const Receiver ops = s.spec.receivers.at("ops");
  DurationMs spent = 0, first = 0;
  std::string taken;
  for (; waiting_for(s.book, "ops") > 0 && spent < kHour; spent += kStep) {
    const Notice* next = next_for(s.book, ops, s.local());
    if (next && next->cause == "a") {
      failed(s.book, "ops", next->id, fail(Code::failed, "page exited with 1"));
    } else if (next) {
      if (first == 0) first = spent;
      taken += next->cause;
      delivered(s.book, "ops", std::string(next->id), s.now);
    }
    s.turn();
  }
  CHECK(first <= 5 * kMinute);
  CHECK(taken == "bcdefg");
  CHECK(waiting_for(s.book, "ops") == 0);
  CHECK(s.book.receivers.at("ops").lost == 1);
  CHECK_FALSE(is_failing(s.book, "ops"));
}

TEST_CASE("notices: two at which a receiver fails do not hold up the others between them", "[notices]") {
  Site s;
  s.hold = true;
  std::vector<Cause> causes;
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h"}) causes.push_back(cause_of(id, {id}));
  s.with(causes);
  const Receiver ops = s.spec.receivers.at("ops");
  Code second = Code::failed;
  SECTION("with 500 each") {}
  SECTION("with 500 and 400") { second = Code::conflict; }
  std::map<std::string, size_t> refused;
  std::string taken;
  for (DurationMs spent = 0; waiting_for(s.book, "ops") > 0 && spent < 3 * kHour; spent += kStep) {
    if (const Notice* next = next_for(s.book, ops, s.local())) {
      const std::string id = next->id, cause = next->cause;
      if (cause == "a" || cause == "b") {
        ++refused[cause];
        failed(s.book, "ops", id, fail(cause == "a" ? Code::failed : second, "HTTP"));
      } else {
        if (taken.empty()) CHECK(spent <= 15 * kMinute);
        taken += cause;
        delivered(s.book, "ops", id, s.now);
      }
    }
    s.turn();
  }
  CHECK(taken == "cdefgh");
  CHECK(refused["b"] > 1);
  CHECK(waiting_for(s.book, "ops") == 0);
  CHECK(s.book.receivers.at("ops").lost == 2);
}

TEST_CASE("notices: one that is not answered in time is repeated a few times, and holds up only its cause",
          "[notices]") {
  Site s;
  s.hold = true;
  std::vector<Cause> causes = {cause_of("a", {"a"}), cause_of("b", {"b"})};
  s.with(causes);
  const Receiver ops = s.spec.receivers.at("ops");
  size_t tries = 0, before_b = 0;
  for (DurationMs spent = 0; spent < 3 * kHour; spent += kStep) {
    const Notice* next = next_for(s.book, ops, s.local());
    if (next && next->cause != "b") {  // "a", then a summary of both
      tries += next->cause == "a";
      failed(s.book, "ops", std::string(next->id), fail(Code::timeout, "page did not end within 15 s"));
    } else if (next) {
      CHECK(next->cause == "b");
      before_b = tries;
      delivered(s.book, "ops", std::string(next->id), s.now);
    }
    s.turn();
  }
  CHECK(before_b == 1);
  CHECK(tries == 1 + kRepeats.size());
  CHECK(waiting_for(s.book, "ops") == 0);
  CHECK(s.book.receivers.at("ops").lost == 2);
  // It may lack "a", and gets a summary again once it takes something in time.
  causes.push_back(cause_of("c", {"c"}));
  s.with(causes);
  const auto next = s.sent_to("ops");
  REQUIRE(next.size() == 1);
  CHECK(next[0].cause == "c");
  s.turn();
  const auto open = s.sent_to("ops");
  REQUIRE(open.size() == 1);
  CHECK(open[0].state == summary);
  CHECK(open[0].changed.size() == 3);
}

TEST_CASE("notices: a receiver that never answers in time gets one summary a day beside", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  std::map<std::string, size_t> tries;  // by notice
  for (DurationMs spent = 0; spent < 2 * kDay; spent += kMinute) {
    if (const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local())) {
      ++tries[next->id];
      failed(s.book, "ops", next->id, fail(Code::timeout, "no answer"));
    }
    s.turn(kMinute);
  }
  CHECK(tries.size() == 3);
  for (const auto& [id, count] : tries) CHECK(count <= 1 + kRepeats.size());
}

TEST_CASE("notices: a summary that is answered too late comes twice, then once a day, whatever else is taken",
          "[notices]") {
  Site s;
  s.hold = true;
  s.spec.receivers.clear();
  s.with({cause_of("a", {"a"})});
  const Receiver ops = s.receiver("ops");
  std::map<std::string, size_t> tries;  // by summary
  size_t taken = 0;
  for (int minute = 0; minute < 2 * 24 * 60; ++minute) {
    const std::string other = fmt::format("u{}", minute);
    if (minute % 30 == 0) s.causes.push_back(cause_of(other, {other}));
    s.turn(kMinute);
    while (const Notice* next = next_for(s.book, ops, s.local())) {
      const std::string id = next->id;
      if (next->state == summary) {
        ++tries[id];
        failed(s.book, "ops", id, fail(Code::timeout, "page did not end within 15 s"));
      } else {
        ++taken;
        delivered(s.book, "ops", id, s.now);
      }
    }
  }
  CHECK(taken > 90);
  CHECK(tries.size() == 3);
  for (const auto& [id, count] : tries) CHECK(count <= 1 + kRepeats.size());
  s.turn(kDay);
  CHECK(s.book.receivers.at("ops").untaken > 0);
  CHECK_FALSE(s.sent_to("ops").empty());
  CHECK(s.book.receivers.at("ops").untaken == 0);
}

TEST_CASE("notices: what is open after a receiver hung for more than an hour does not come a day late",
          "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  for (DurationMs spent = 0; spent < 80 * kMinute; spent += kMinute) {
    if (const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local()))
      failed(s.book, "ops", std::string(next->id), fail(Code::timeout, "no answer"));
    s.turn(kMinute);
  }
  CHECK(s.book.receivers.at("ops").lost == 1);
  s.book = book_from_text(to_text(s.book)).value();  // a restart
  s.run(kHour + 10 * kMinute);
  const auto sent = s.sent_to("ops");
  REQUIRE(sent.size() == 1);
  REQUIRE(sent[0].changed.size() == 1);
  CHECK(sent[0].changed[0].cause == "a");
  s.run(kHour);
  CHECK(s.sent_to("ops").empty());
}

TEST_CASE("notices: while a summary of what is open waits, no other one is made", "[notices]") {
  Site s;
  s.hold = true;
  s.spec.receivers.clear();
  s.with({cause_of("a", {"a"})});
  s.receiver("ops");
  s.turn();
  REQUIRE(waiting_for(s.book, "ops") == 1);
  s.book.receivers.at("ops").behind = true;  // since another notice was given up
  s.run(kMinute);
  CHECK(waiting_for(s.book, "ops") == 1);
  REQUIRE(s.sent_to("ops").size() == 1);
  s.turn();
  CHECK(s.sent_to("ops").size() == 1);
}

TEST_CASE("notices: a receiver that hangs for an hour loses nothing, and gets it in order", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  const Receiver ops = s.spec.receivers.at("ops");
  for (DurationMs spent = 0; spent < kHour; spent += kStep) {
    if (spent == kHour / 2) s.causes = {};
    if (const Notice* next = next_for(s.book, ops, s.local())) {
      CHECK(next->state == begun);
      failed(s.book, "ops", next->id, fail(Code::timeout, "no answer"));
    }
    s.turn();
  }
  s.book = book_from_text(to_text(s.book)).value();  // a restart
  s.run(kHour / 2);
  const auto sent = s.sent_to("ops");
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].state == begun);
  CHECK(sent[1].state == over);
  CHECK(s.book.receivers.at("ops").lost == 0);
}

TEST_CASE("notices: what overtakes one that failed once does not count against it", "[notices]") {
  Site s;
  s.hold = true;
  std::vector<Cause> causes = {cause_of("p", {"p"})};
  s.with(causes);
  failed(s.book, "ops", s.book.waiting.at(0).id, fail(Code::failed, "HTTP 500"));
  for (int64_t i = 0; i <= kMostRefusals; ++i) {
    causes.push_back(cause_of(fmt::format("u{}", i), {}, CauseKind::rollout_stopped));
    s.with(causes);
    const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local());
    REQUIRE(next);
    CHECK(next->urgent);
    delivered(s.book, "ops", std::string(next->id), s.now);
  }
  CHECK(waiting_for(s.book, "ops") == 1);
  CHECK(s.book.receivers.at("ops").lost == 0);
}

TEST_CASE("notices: that a cause is over does not overtake that it began", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("p", {"p"})});
  s.with({});
  REQUIRE(waiting_for(s.book, "ops") == 2);
  for (int i = 0; i < 20; ++i) {
    const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local());
    REQUIRE(next);
    CHECK(next->state == begun);
    failed(s.book, "ops", next->id, fail(Code::failed, "page exited with 1"));
    s.turn(10 * kMinute);
  }
}

TEST_CASE("notices: a summary does not overtake what it is about", "[notices]") {
  Site s;
  s.hold = true;
  s.with({cause_of("a", {"a"})});
  failed(s.book, "ops", s.book.waiting.at(0).id, fail(Code::timeout, "no answer"));
  s.turn(10 * kSecond);
  Notice later;
  later.id = "s-1";
  later.state = summary;
  later.kind = "summary";
  later.to = {"ops"};
  SECTION("the same cause") {
    later.changed = {{"a", "node_silent", "a", over, false}};
    s.book.waiting.push_back(later);
    CHECK(next_for(s.book, s.spec.receivers.at("ops"), s.local()) == nullptr);
  }
  SECTION("another one") {
    later.changed = {{"b", "node_silent", "b", over, false}};
    s.book.waiting.push_back(later);
    const Notice* next = next_for(s.book, s.spec.receivers.at("ops"), s.local());
    REQUIRE(next);
    CHECK(next->id == "s-1");
  }
}

TEST_CASE("notices: a turn without a change need not be stored", "[notices]") {
  Site s;
  s.turn();  // which notes its receivers
  CHECK_FALSE(s.turn());
  s.causes = {cause_of("a", {"a"})};
  CHECK(s.turn());
  CHECK_FALSE(s.turn());
  CHECK(book_from_text("{}").error().code == Code::corrupt);
  CHECK(book_from_text("no").error().code == Code::corrupt);
}
