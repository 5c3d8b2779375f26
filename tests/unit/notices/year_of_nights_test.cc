// A year of nights with faults drawn by a seed: what lasts, what passes, what shrinks and grows, what flaps,
// floods, receivers that are down, also for days, one that is new, clocks that are set, controllers that
// restart, also days later. MUSTER_NOTICE_YEARS=1000 for more seeds.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "controller/notices/book.h"
#include "tests/catch.h"
#include "tests/unit/notices/notice_checker.h"

using namespace muster;
using namespace muster::notices;
using notices::testing::Checker;
using notices::testing::kHour;

namespace {

constexpr TimeMs kStart = 1'767'225'600'000;  // 2026-01-01
constexpr int kNights = 365;
// By then a receiver that can be reached has what was made before, also in quiet hours of which the clock was
// set back.
constexpr DurationMs kKnownBy = 36 * kHour;
constexpr int kQuietFrom = 22 * 60, kQuietUntil = 7 * 60, kDaily = 7 * 60 + 30;

struct Event {
  enum What { begin, grow, end, ack, set_clock, restart, down, up, declare } what = begin;
  std::string cause = {};
  CauseKind kind = CauseKind::node_failed;
  size_t nodes = 1;
  DurationMs by = 0;
};

class Year {
 public:
  explicit Year(uint64_t seed) : random_(seed) {
    spec_.urgent = {cause_kind_word(CauseKind::rollout_stopped)};
    Receiver& all = spec_.receivers["all"];
    all.name = "all";
    all.daily = kDaily;
    Receiver& quiet = spec_.receivers["quiet"];
    quiet.name = "quiet";
    quiet.quiet = {kQuietFrom, kQuietUntil};
    for (int i = 0; i < kNights; ++i) draw(i * 24 * kHour);
    add(drawn(kNights - 10) * 24 * kHour + drawn(24 * kHour), {Event::declare});
  }

  void play() {
    const DurationMs end = kNights * 24 * kHour + 5 * 24 * kHour;
    auto next = events_.begin();
    while (at_ < end && checker_.complaint().empty()) {
      for (; next != events_.end() && next->first <= at_; ++next) happen(next->second);
      if (at_ >= starts_) turn();
      const DurationMs step = checker_.waits() || settles_ > at_ ? 15 * kSecond
                              : book_.waiting.empty()            ? 6 * kHour
                                                                 : kHour;
      DurationMs to = std::max(at_ + step, starts_);
      if (next != events_.end()) to = std::min(to, next->first);
      to = std::max(to, at_ + kSecond);
      elapsed_ += to - at_;
      at_ = to;
    }
  }

  std::string complaint() const {
    if (!checker_.complaint().empty()) return checker_.complaint();
    if (!complaint_.empty()) return complaint_;
    size_t missing = 0;
    int64_t lost = 0;
    for (const auto& [id, owed] : owed_)
      if (at_ - owed.since > 24 * kHour) missing += owed.to.size();
    for (const auto& [name, state] : book_.receivers) lost += state.lost;
    if (static_cast<int64_t>(missing) > lost) return "a notice was neither delivered nor given up";
    // A clock that is set back makes quiet hours longer.
    return lost > 0 && !clock_set_ && !long_down_ ? "a notice was given up" : "";
  }
  const Checker& checker() const { return checker_; }
  int dailies() const { return dailies_; }
  bool forget_notice = false;  // for a test of the checker

 private:
  int64_t drawn(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random_); }
  bool chance(int percent) { return drawn(99) < percent; }
  // Every length between 5 s and 5 days is as likely in its order of magnitude.
  DurationMs some_time() {
    const double low = std::log(5'000.0), high = std::log(5.0 * 24 * 3'600'000);
    return static_cast<DurationMs>(std::exp(std::uniform_real_distribution<double>(low, high)(random_)));
  }
  void add(DurationMs at, Event event) { events_.emplace(at, std::move(event)); }

  void draw(DurationMs night) {
    const DurationMs begin = night + 21 * kHour + drawn(10 * kHour);
    if (chance(20)) add_fault(begin, 1);
    if (chance(1)) add_fault(begin, 10 + drawn(10));  // flaps
    if (drawn(299) == 0)
      for (int64_t i = 12 + drawn(40); i > 0; --i) add_fault(begin + drawn(5 * kSecond), 1);
    if (chance(2)) add(begin, {Event::set_clock, "", {}, 0, (drawn(1) ? 1 : -1) * drawn(5 * kHour)});
    if (chance(3)) {
      const DurationMs off = chance(20) ? drawn(60 * kHour) : 0;
      add(begin + drawn(kHour), {Event::restart, "", {}, 0, off});
    }
    if (chance(2)) {
      const DurationMs down = chance(20) ? 24 * kHour + drawn(12 * kHour) : drawn(6 * kHour);
      add(begin, {Event::down, "", {}, 0, down});
      add(begin + down, {Event::up});
    }
  }

  void add_fault(DurationMs at, int64_t times) {
    Event event;
    event.cause = fmt::format("{:012x}", ++last_cause_);
    event.kind = static_cast<CauseKind>(drawn(static_cast<int64_t>(CauseKind::receiver)));
    for (int64_t i = 0; i < times; ++i) {
      event.what = Event::begin;
      event.nodes = static_cast<size_t>(1 + drawn(3));
      add(at, event);
      const DurationMs lasts = times > 1 ? 10 * kSecond + drawn(3 * kHour) : some_time();
      if (chance(20)) {
        Event grows = event;
        grows.what = Event::grow;
        grows.nodes *= 3;
        const DurationMs after = drawn(lasts);
        add(at + after, grows);
        if (chance(50)) {  // shrinks to what it was, and grows again
          const DurationMs shrinks = after + drawn(lasts - after), again = shrinks + drawn(lasts - shrinks);
          grows.nodes = event.nodes;
          add(at + shrinks, grows);
          grows.nodes *= 4;
          add(at + again, grows);
        }
      }
      if (chance(15)) add(at + std::min(lasts - 1, kMinute + drawn(kHour)), {Event::ack, event.cause});
      event.what = Event::end;
      add(at + lasts, event);
      at += lasts + 10 * kSecond + drawn(2 * kHour);
    }
  }

  void happen(const Event& event) {
    settles_ = at_ + kMinute;
    switch (event.what) {
      case Event::begin:
      case Event::grow: {
        if (event.what == Event::grow && !causes_.count(event.cause)) return;
        Cause& cause = causes_[event.cause];
        cause.id = event.cause;
        cause.kind = event.kind;
        cause.what = event.cause + " is broken";
        cause.next = "muster status";
        cause.nodes.clear();
        for (size_t i = 0; i < event.nodes; ++i)
          cause.nodes.push_back(NodeName(fmt::format("{}-{:02}", event.cause, i)));
        faults_[event.cause].nodes = event.nodes;
        return;
      }
      case Event::end:
        causes_.erase(event.cause);
        faults_.erase(event.cause);
        return;
      case Event::ack:
        if (!faults_.count(event.cause) || !known(event.cause) || at_ < starts_) return;
        REQUIRE(acknowledge(book_, event.cause, {"anna", "known", now()}).ok());
        faults_[event.cause].acked = true;
        return;
      case Event::set_clock:
        wall_ += event.by;
        clock_set_ = true;
        return;
      case Event::restart:
        book_ = book_from_text(to_text(book_)).value();
        starts_ = std::max(starts_, at_ + event.by);
        reached_ = std::max(reached_, starts_);
        restarted_ = true;
        return;
      case Event::down:
        ++down_;
        if (event.by > 23 * kHour) long_down_ = true;
        return;
      case Event::up:
        --down_;
        reached_ = std::max(reached_, at_);
        return;
      case Event::declare:
        spec_.receivers["late"].name = "late";
        declared_ = at_;
        return;
    }
  }

  bool known(const std::string& cause) const {
    const auto open = book_.causes.find(cause);
    return open != book_.causes.end() && open->second.known;
  }
  TimeMs now() const { return kStart + at_ + wall_; }

  void turn() {
    std::vector<Cause> causes;
    for (const auto& [id, cause] : causes_) causes.push_back(cause);
    Turn turn{now(), elapsed_, TimeZone().at(now())};
    turn.first = std::exchange(restarted_, false);
    elapsed_ = 0;
    const int64_t first = book_.next_number;
    notices::turn(book_, causes, spec_, turn);
    std::vector<Notice> made;
    for (const Notice& notice : book_.waiting)
      if (number_of(notice) >= first) made.push_back(notice);
    for (const Notice& notice : made) owed_[notice.id] = {notice.to, at_};
    if (forget_notice && !made.empty() && !made.back().cause.empty()) {
      made.pop_back();
      forget_notice = false;
    }
    for (const Notice& notice : made) note_daily(notice, turn.local);
    checker_.turn(at_, faults_, made);
    deliver(turn.local);
    look_at_receivers();
  }

  // Whatever was given up, each knows what is open, and what is over.
  void look_at_receivers() {
    if (down_ > 0 || at_ - reached_ < kKnownBy || !complaint_.empty()) return;
    const auto open = checker_.open_for(kKnownBy, at_), over = checker_.over_for(kKnownBy, at_);
    for (const auto& [name, receiver] : spec_.receivers) {
      if (name == "late" && at_ - declared_ < kKnownBy) continue;
      for (const std::string& cause : open)
        if (const auto found = known_by_[name].find(cause);
            found == known_by_[name].end() || !found->second.open)
          complaint_ = name + " does not know that " + cause + " is open";
      for (const std::string& cause : over)
        if (const auto found = known_by_[name].find(cause);
            found != known_by_[name].end() && found->second.open)
          complaint_ = name + " does not know that " + cause + " is over";
    }
  }

  // Notices that are urgent overtake others: the one with the larger number counts.
  void note_known(const std::string& receiver, const std::string& cause, int64_t number, bool open) {
    Known& known = known_by_[receiver][cause];
    if (number < known.number) return;
    known = {number, open};
  }
  void note_known(const std::string& receiver, const Notice& notice) {
    if (!notice.cause.empty()) note_known(receiver, notice.cause, number_of(notice), notice.open);
    for (const Change& change : notice.changed)
      note_known(receiver, change.cause, number_of(notice), change.open);
  }

  static int64_t number_of(const Notice& notice) {
    return std::strtoll(notice.id.c_str() + notice.id.rfind('-') + 1, nullptr, 10);
  }

  void note_daily(const Notice& notice, const LocalTime& local) {
    if (notice.state != NoticeState::daily) return;
    ++dailies_;
    if (!clock_set_ && local.day == last_daily_ && complaint_.empty()) complaint_ = "two lines on one day";
    if (local.minute < kDaily && complaint_.empty()) complaint_ = "a line before its time";
    last_daily_ = local.day;
  }

  void deliver(const LocalTime& local) {
    for (const auto& [name, receiver] : spec_.receivers) {
      while (const Notice* next = next_for(book_, receiver, local)) {
        const bool quiet = local.minute >= kQuietFrom || local.minute < kQuietUntil;
        if (name == "quiet" && quiet && !next->urgent && complaint_.empty())
          complaint_ = next->id + " in quiet hours";
        const std::string id = next->id;
        if (down_ > 0) {
          failed(book_, name, id, fail(Code::unavailable, "connection refused"));
          break;
        }
        note_known(name, as_wanted(*next, receiver, spec_));
        if (owed_[id].to.erase(name) == 0 && complaint_.empty()) complaint_ = id + " was delivered twice";
        delivered(book_, name, id, now());
      }
    }
  }

  std::mt19937_64 random_;
  NotifySpec spec_;
  Book book_;
  Checker checker_;
  std::multimap<DurationMs, Event> events_;
  std::map<std::string, Cause> causes_;
  std::map<std::string, Checker::Fault> faults_;
  struct Owed {
    std::set<std::string> to = {};
    DurationMs since = 0;
  };
  std::map<std::string, Owed> owed_;
  struct Known {
    int64_t number = 0;
    bool open = false;
  };
  std::map<std::string, std::map<std::string, Known>> known_by_;  // receiver -> cause
  std::string complaint_;
  DurationMs at_ = 0, elapsed_ = 0, wall_ = 0, settles_ = 0;
  DurationMs starts_ = 0;                  // until then there is no controller
  DurationMs reached_ = 0, declared_ = 0;  // since when receivers can be reached; when "late" was declared
  uint64_t last_cause_ = 0;
  int down_ = 0;  // reasons why receivers cannot be reached
  bool clock_set_ = false, long_down_ = false, restarted_ = false;
  int64_t last_daily_ = -1;
  int dailies_ = 0;
};

}  // namespace

TEST_CASE("a year of nights: each change has its notice, each notice its change, and none is too many",
          "[notices]") {
  const char* more = std::getenv("MUSTER_NOTICE_YEARS");
  const int seeds = more ? std::atoi(more) : 100;
  size_t changes = 0, lines = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    Year year(static_cast<uint64_t>(seed));
    year.play();
    REQUIRE(year.complaint() == "");
    CHECK(year.dailies() >= kNights - 20);
    changes += year.checker().changes();
    lines += year.checker().lines();
  }
  CHECK(changes > static_cast<size_t>(seeds) * 100);
  CHECK(lines > static_cast<size_t>(seeds) / 10);
}

TEST_CASE("a year of nights: a notice that is not made is found", "[notices]") {
  Year year(1);
  year.forget_notice = true;
  year.play();
  CHECK(year.complaint() != "");
}
