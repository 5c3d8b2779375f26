// What notices promise (docs/notify.md), checked without the book's code: no change of a cause without its
// notice, no notice without a change, at most four of a cause in 24 hours, and of what is open one summary to
// a receiver that lacks notices.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/notices/notice.h"

namespace muster::notices::testing {

constexpr DurationMs kHour = 60 * kMinute, kOneDay = 24 * kHour;

class Checker {
 public:
  struct Fault {
    size_t nodes = 1;
    bool acked = false;
  };
  // What is true at this moment; the notices that the turn made.
  void turn(DurationMs at, const std::map<std::string, Fault>& faults, const std::vector<Notice>& made) {
    for (const auto& [cause, fault] : faults) seen_[cause];
    for (auto& [cause, seen] : seen_) {
      const auto fault = faults.find(cause);
      look(at, seen, fault == faults.end() ? nullptr : &fault->second);
    }
    for (const Notice& notice : made) read(at, notice);
    for (const auto& [cause, seen] : seen_) overdue(at, cause, seen);
  }
  // True while a notice is due: the next turn should not be far.
  bool waits() const {
    for (const auto& [cause, seen] : seen_)
      if (!seen.expected.empty() || seen.differs >= 0 || (seen.larger >= 0 && !seen.acked)) return true;
    return false;
  }
  // Causes that have been open and unchanged for so long, and that each receiver should know as open.
  std::vector<std::string> open_for(DurationMs span, DurationMs at) const {
    std::vector<std::string> out;
    for (const auto& [cause, seen] : seen_)
      if (seen.up && !seen.acked && seen.in_series <= 3 && at - seen.last_change >= span)
        out.push_back(cause);
    return out;
  }
  // Causes that have been over and unchanged for so long, which no receiver should know as open.
  std::vector<std::string> over_for(DurationMs span, DurationMs at) const {
    std::vector<std::string> out;
    for (const auto& [cause, seen] : seen_)
      if (!seen.up && seen.in_series <= 3 && at - seen.last_change >= span) out.push_back(cause);
    return out;
  }
  const std::string& complaint() const { return complaint_; }
  size_t changes() const { return changes_; }
  size_t lines() const { return lines_; }

 private:
  struct Expected {
    NoticeState state;
    DurationMs since;
  };
  struct Seen {
    bool up = false;          // as operators should know it
    size_t nodes = 0;         // of which they know
    DurationMs differs = -1;  // since when the truth is another
    DurationMs larger = -1;
    DurationMs fewer = -1;  // since when it has fewer nodes than they know of
    size_t most = 0;        // the most that it had since then
    bool listed = false;    // open before this turn, and not acknowledged
    DurationMs last_change = -kOneDay, last_line = -kOneDay, last_over = 0;
    int in_series = 0;
    DurationMs unsaid = -1;  // of the first change that no line told of
    bool acked = false;
    std::deque<Expected> expected;
    std::vector<DurationMs> notices;
  };

  void complain(const std::string& cause, const std::string& what) {
    if (complaint_.empty()) complaint_ = cause + ": " + what;
  }

  void look(DurationMs at, Seen& seen, const Fault* fault) {
    if (fault && fault->acked) seen.acked = true;  // until it is over
    seen.listed = seen.up && !seen.acked;
    shrink(at, seen, fault);
    if ((fault != nullptr) == seen.up)
      seen.differs = -1;
    else if (seen.differs < 0)
      seen.differs = at;
    const bool doubled = fault && seen.up && fault->nodes >= 2 * seen.nodes;
    if (!doubled)
      seen.larger = -1;
    else if (seen.larger < 0)
      seen.larger = at;
    if (seen.differs >= 0 && at - seen.differs >= 30 * kSecond) {
      seen.up = fault != nullptr;
      change(at, seen, seen.up ? NoticeState::begun : NoticeState::over, fault);
    } else if (seen.larger >= 0 && at - seen.larger >= 30 * kSecond && !seen.acked) {
      change(at, seen, NoticeState::worse, fault);
    }
  }

  // What has fewer nodes for an hour is from then on compared with the most that it had in that hour.
  static void shrink(DurationMs at, Seen& seen, const Fault* fault) {
    if (!fault || !seen.up || fault->nodes >= seen.nodes) {
      seen.fewer = -1;
      return;
    }
    if (seen.fewer < 0) seen.fewer = at, seen.most = 0;
    seen.most = std::max(seen.most, fault->nodes);
    if (at - seen.fewer < kHour) return;
    seen.nodes = seen.most;
    seen.fewer = -1;
  }

  void change(DurationMs at, Seen& seen, NoticeState state, const Fault* fault) {
    ++changes_;
    if (at - seen.last_change >= kOneDay) seen.in_series = 0;
    ++seen.in_series;
    seen.last_change = at;
    seen.differs = seen.larger = seen.fewer = -1;
    if (fault) seen.nodes = fault->nodes;
    if (state == NoticeState::over) {
      seen.acked = false;
      seen.last_over = at;
    }
    if (seen.in_series <= 3)
      seen.expected.push_back({state, at});
    else if (seen.unsaid < 0)
      seen.unsaid = at;
  }

  void read(DurationMs at, const Notice& notice) {
    if (!ids_.insert(notice.id).second) complain(notice.id, "two notices have this id");
    if (notice.state == NoticeState::daily) return;
    if (notice.id.starts_with("open-")) return read_open(notice);
    if (notice.state != NoticeState::summary) return tell(at, notice.cause, notice.state, notice.open);
    for (const Change& change : notice.changed) tell(at, change.cause, change.state, change.open);
  }

  void read_open(const Notice& notice) {
    std::set<std::string> named;
    for (const Change& change : notice.changed) {
      if (change.open)
        named.insert(change.cause);
      else if (seen_[change.cause].listed)
        complain(change.cause, "over in the summary of what is open");
    }
    if (notice.to.size() != 1) complain(notice.id, "what is open, to several receivers");
    for (const auto& [cause, seen] : seen_)
      if (seen.listed != (named.count(cause) > 0)) complain(cause, "wrong in the summary of what is open");
  }

  void tell(DurationMs at, const std::string& cause, NoticeState state, bool open) {
    Seen& seen = seen_[cause];
    seen.notices.push_back(at);
    size_t of_day = 0;
    // A summary may be made up to 10 min after what it tells of.
    for (const DurationMs one : seen.notices) of_day += one > at - kOneDay + 10 * kMinute;
    if (of_day > 4) complain(cause, fmt::format("{} notices in 24 h", of_day));
    if (state == NoticeState::flaps) {
      ++lines_;
      if (seen.unsaid < 0) complain(cause, "a line without a change");
      seen.unsaid = -1;
      seen.last_line = at;
      return;
    }
    if (seen.expected.empty() || seen.expected.front().state != state)
      return complain(cause, "a notice without a change");
    if ((state != NoticeState::over) != open) complain(cause, "a notice that says it is otherwise");
    seen.expected.pop_front();
  }

  void overdue(DurationMs at, const std::string& cause, const Seen& seen) {
    const DurationMs summary = 10 * kMinute, step = 2 * kMinute;
    if (!seen.expected.empty() && at - seen.expected.front().since > summary + step)
      complain(cause, "a change without its notice");
    const DurationMs line_due = std::max({seen.unsaid, seen.last_line + kOneDay, seen.last_over});
    if (seen.unsaid >= 0 && !seen.acked && at - line_due > kHour * 7)
      complain(cause, "flaps, without a line");
  }

  std::map<std::string, Seen> seen_;
  std::set<std::string> ids_;
  std::string complaint_;
  size_t changes_ = 0, lines_ = 0;
};

}  // namespace muster::notices::testing
