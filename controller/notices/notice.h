// A notice: what receivers get about one change of a cause. Its id is the same however often it is sent.
// Plain values, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/time.h"

namespace muster::notices {

enum class NoticeState {
  begun,
  worse,  // twice as many nodes as receivers know of
  over,
  flaps,    // it changed too often for a notice each
  summary,  // many changes at once
  daily,
  test,
};
inline constexpr Words<NoticeState, 7> kNoticeStates = {{{NoticeState::begun, "begun"},
                                                         {NoticeState::worse, "worse"},
                                                         {NoticeState::over, "over"},
                                                         {NoticeState::flaps, "flaps"},
                                                         {NoticeState::summary, "summary"},
                                                         {NoticeState::daily, "daily"},
                                                         {NoticeState::test, "test"}}};
MUSTER_WORDS(NoticeState, kNoticeStates)

// A change in a summary.
struct Change {
  std::string cause, kind, what;
  NoticeState state = NoticeState::begun;
  bool open = true;  // the cause lasts
  bool operator==(const Change&) const = default;
};

// Attempts that a receiver did not answer in time after the notice was sent.
struct Unanswered {
  size_t times = 0;
  DurationMs next_try = 0;  // by the book's clock
  bool operator==(const Unanswered&) const = default;
};

struct Notice {
  std::string id;
  TimeMs time = 0;
  NoticeState state = NoticeState::begun;
  bool urgent = false;  // passes quiet hours
  std::string kind;     // cause_kind_word(), or the state's word
  std::string cause;    // for `muster ack`; "" for daily, test and summary
  std::string what, detail, next;
  std::vector<std::string> nodes = {};
  std::string common = {}, common_value = {};
  TimeMs since = 0;     // of the cause
  int64_t changes = 0;  // flaps: since when it first changed, how often
  TimeMs first_change = 0;
  bool open = true;                                   // the cause lasts
  std::vector<Change> changed = {};                   // summary
  std::vector<std::string> replaces = {};             // causes that this one took in
  DurationMs made = 0;                                // by the book's clock
  std::set<std::string> to = {};                      // receivers that do not have it yet
  std::map<std::string, Unanswered> unanswered = {};  // by receiver; those may have it
  bool operator==(const Notice&) const = default;
};

MUSTER_RECORD(Unanswered, times, next_try)
MUSTER_RECORD(Change, cause, kind, what, state, open)
MUSTER_RECORD(Notice, id, time, state, urgent, kind, cause, what, detail, next, sparse(nodes), sparse(common),
              sparse(common_value), sparse(since), sparse(changes), sparse(first_change), open,
              sparse(changed), sparse(replaces), made, to, sparse(unanswered))

}  // namespace muster::notices
