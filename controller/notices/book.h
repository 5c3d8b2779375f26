// The book of notices: which causes are open, what receivers were sent about each, and what is still to be
// sent. A turn takes the causes of now and adds notices: one per cause and change, however many nodes it has.
// Pure functions and values, no I/O; its durations are measured by its own clock, so that a wall clock that
// is set neither sends nor holds up anything.
//
// What lasts less than kSettle is no change. A cause that has another id than before, but the same kind and
// some of the same nodes, goes on. From the fourth change on (no day without one between them) a cause flaps:
// one line in 24 h, so at most four notices in any 24 h. An acknowledged cause is quiet until it is over.
// More than kMostAlone notices in kBusySpan are one summary. A receiver that is new, or that works again
// after notices to it were given up, gets one summary of what is open, and of what is over that it knows as
// open.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/result.h"
#include "base/time.h"
#include "base/time_zone.h"
#include "controller/causes/cause.h"
#include "controller/notices/notice.h"
#include "controller/spec/notify_spec.h"

namespace muster::notices {

constexpr DurationMs kSettle = 30 * kSecond;
constexpr int64_t kMostChanges = 3;  // with a notice each
constexpr size_t kMostAlone = 10;
constexpr DurationMs kBusySpan = 10 * kMinute;
constexpr DurationMs kUrgentSummary = kMinute;  // least time between two, if something urgent is in it
constexpr DurationMs kGiveUp = kDay;            // from a notice until it is no longer sent
// When a notice is sent again that a receiver did not answer in time. It may have it all the same, and would
// show it each time: after the last of them it is given up. One that hangs for an hour gets it.
constexpr std::array<DurationMs, 3> kRepeats = {kMinute, 10 * kMinute, 60 * kMinute};
constexpr int64_t kMostRefusals = 5;         // of one notice by a receiver, until it is no longer sent to it
constexpr DurationMs kFewer = 60 * kMinute;  // with fewer nodes than receivers know of, until it counts
constexpr size_t kMostWaiting = 2000;        // notices
constexpr int64_t kFailing = 3;              // attempts in a row

struct Acknowledged {
  std::string by, reason;
  TimeMs time = 0;
  bool operator==(const Acknowledged&) const = default;
};

struct OpenCause {
  std::string cause;  // its id now
  std::string kind, what, detail, next, common, common_value;
  std::vector<std::string> nodes;
  TimeMs since = 0;
  bool present = true;     // as of the last turn
  bool known = false;      // receivers know it as open
  size_t known_nodes = 0;  // how many nodes they know of
  // By the book's clock; 0: never.
  DurationMs turned = 0;   // when `present` changed
  DurationMs grew = 0;     // since when it has twice as many nodes as they know of
  DurationMs shrank = 0;   // since when it has fewer
  size_t most_since = 0;   // the most nodes that it had since then
  DurationMs changed = 0;  // the last change
  DurationMs last_line = 0;
  int64_t changes = 0;
  TimeMs first_change = 0;
  bool unsaid = false;                     // changed since the last line
  std::vector<std::string> replaces = {};  // known causes that this one took in since the last notice
  std::optional<Acknowledged> ack = {};
  bool operator==(const OpenCause&) const = default;
};

struct ReceiverState {
  int64_t last_day = 0;  // of the daily line, TimeZone::at()
  int64_t failures = 0;  // in a row
  int64_t lost = 0;      // notices that were given up
  bool behind = false;   // it lacks notices: it is new, or some were given up
  // What it knows as open, by cause. May have more while not all that was made for it is delivered.
  std::map<std::string, Change> open = {};
  // Notices that it answered with an error since it last took one; and of those that it did not take although
  // it answers, how often it refused them, or took another one after such an answer.
  std::set<std::string> tried = {};
  std::map<std::string, int64_t> refusals = {};
  bool answers = false;  // at the last attempt
  // Summaries of what it lacks that it did not answer in time, since it took one; when the last one was given
  // up, by the book's clock.
  int64_t untaken = 0;
  DurationMs untaken_at = 0;
  DurationMs next_try = 0;  // by the book's clock
  TimeMs last_delivery = 0, failing_since = 0;
  std::string error = {};
  bool operator==(const ReceiverState&) const = default;
};

struct Book {
  DurationMs clock = kDay;  // so that 0 is long ago
  TimeMs time = 0;          // wall clock of the last turn
  int64_t next_number = 1;
  std::map<std::string, OpenCause> causes = {};  // by the id it began with
  std::vector<Notice> waiting = {};              // in order; each has a receiver
  std::map<std::string, ReceiverState> receivers = {};
  std::vector<DurationMs> alone = {};  // when notices were made, within kBusySpan
  std::vector<Change> gathered = {};   // for the next summary
  DurationMs last_summary = 0;
  int64_t lost = 0;  // of receivers that are no longer declared
  bool operator==(const Book&) const = default;
};

struct Turn {
  TimeMs now = 0;           // wall clock
  DurationMs elapsed = 0;   // since the last turn, by a clock that is never set
  LocalTime local = {};     // of the site
  std::string window = {};  // how the last night's rollout went, for the daily line; empty: nothing to say
  bool first = false;       // after a start: nothing could be sent since the last one
};

// Returns true if anything but the clocks changed, which is then to be stored before anything is sent.
bool turn(Book& book, const std::vector<Cause>& causes, const NotifySpec& spec, const Turn& now);

// The causes that were there in the last turn, as find_causes() takes them for its `before`; without texts.
std::vector<Cause> present_causes(const Book& book);

// `cause`: at least four digits of the id of an open cause. not_found, conflict (more than one), invalid.
Result<OpenCause> acknowledge(Book& book, const std::string& cause, Acknowledged ack);

// The next notice for this receiver; null: none, or not yet.
const Notice* next_for(const Book& book, const Receiver& receiver, const LocalTime& local);
// The notice as this receiver gets it: of a summary only the changes that it wants.
Notice as_wanted(Notice notice, const Receiver& receiver, const NotifySpec& spec);
void delivered(Book& book, const std::string& receiver, const std::string& id, TimeMs now);
// Code::conflict: it refuses this notice, and would again. Code::failed: it answered, and the notice may be
// the reason: others are tried in between. Code::timeout: it was sent, and not answered in time: it waits
// for its time in kRepeats, or until another one is answered, and holds up only those about its own cause. A
// receiver that is away gets them in order.
void failed(Book& book, const std::string& receiver, const std::string& id, const Error& error);
// What is sent on request; `number` makes its id unique.
Notice test_notice(const std::string& number, TimeMs now);

// Of the problem that a receiver fails: its key, which the cause's text begins with.
std::string receiver_topic(const std::string& receiver);
bool is_failing(const Book& book, const std::string& receiver);
size_t waiting_for(const Book& book, const std::string& receiver);

std::string to_text(const Book& book);
Result<Book> book_from_text(const std::string& text);  // Code::corrupt if malformed

}  // namespace muster::notices
