#include "controller/notices/receivers.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "controller/causes/cause_text.h"
#include "controller/notices/book.h"

namespace muster::notices {
namespace {

constexpr DurationMs kFirstRetry = 5 * kSecond, kLongestRetry = 10 * kMinute;
constexpr int64_t kBeforeOthers = 5;  // attempts in a row, until others are tried in between

bool is_own(const Receiver& receiver, const std::string& kind, const std::string& what) {
  return kind == cause_kind_word(CauseKind::receiver) &&
         what.starts_with(receiver_topic(receiver.name) + ":");
}

void take_from(Book& book, const std::string& receiver, const std::string& id) {
  for (Notice& notice : book.waiting)
    if (notice.id == id) notice.to.erase(receiver);
  std::erase_if(book.waiting, [](const Notice& notice) { return notice.to.empty(); });
}

// It is not behind after that: a summary may be refused as well.
void give_up(Book& book, const std::string& receiver, const std::string& id) {
  ++book.receivers[receiver].lost;
  take_from(book, receiver, id);
}

// Answers count for what still waits.
void forget_others(const Book& book, const std::string& receiver, ReceiverState& state) {
  std::set<std::string> waiting;
  for (const Notice& notice : book.waiting)
    if (notice.to.count(receiver)) waiting.insert(notice.id);
  std::erase_if(state.tried, [&](const std::string& id) { return !waiting.count(id); });
  std::erase_if(state.refusals, [&](const auto& one) { return !waiting.count(one.first); });
}

// After it took another one: the receiver is not why it did not take these.
void count_refusals(Book& book, const std::string& receiver, ReceiverState& state) {
  forget_others(book, receiver, state);
  for (const std::string& id : std::exchange(state.tried, {}))
    if (++state.refusals[id] >= kMostRefusals) give_up(book, receiver, id);
}

// What is sent in order: all about a cause, in whichever notice; and the summaries, and the daily lines.
std::set<std::string> order_of(const Notice& notice) {
  std::set<std::string> out(notice.replaces.begin(), notice.replaces.end());
  for (const Change& change : notice.changed) out.insert(change.cause);
  out.insert(notice.cause.empty() ? notice.kind : notice.cause);
  return out;
}

// `without`: ids of notices that are left out, with all others that would overtake them. So are those that
// wait for their next repeat.
const Notice* first_for(const Book& book, const std::string& receiver, bool quiet,
                        const std::set<std::string>& without) {
  std::set<std::string> held;
  for (const Notice& notice : book.waiting)
    if (without.count(notice.id)) held.merge(order_of(notice));
  const Notice* other = nullptr;  // the first that is not urgent
  for (const Notice& notice : book.waiting) {
    if (!notice.to.count(receiver)) continue;
    const auto order = order_of(notice);
    const auto sent = notice.unanswered.find(receiver);
    const bool waits = sent != notice.unanswered.end() && sent->second.next_try > book.clock;
    if (waits || std::any_of(order.begin(), order.end(),
                             [&](const std::string& one) { return held.count(one) > 0; })) {
      held.insert(order.begin(), order.end());
      continue;
    }
    if (notice.urgent) return &notice;
    if (!quiet && !other) other = &notice;
  }
  return other;
}

// Of a notice that was sent, and not answered in time.
void repeat_later(Book& book, const std::string& receiver, const std::string& id) {
  for (Notice& notice : book.waiting) {
    if (notice.id != id) continue;
    Unanswered& sent = notice.unanswered[receiver];
    if (sent.times == kRepeats.size()) {
      ReceiverState& state = book.receivers[receiver];
      state.behind = true;
      if (is_catch_up(notice)) {
        ++state.untaken;
        state.untaken_at = book.clock;
      }
      return give_up(book, receiver, id);
    }
    sent.next_try = book.clock + kRepeats.at(sent.times++);
  }
}

}  // namespace

bool is_catch_up(const Notice& notice) {
  return notice.state == NoticeState::summary && notice.id.starts_with(kCatchUp);
}

bool wants(const Receiver& receiver, const std::string& kind, const std::string& what, bool urgent) {
  return (!receiver.only_urgent || urgent) && (receiver.kinds.empty() || receiver.kinds.count(kind) > 0) &&
         !is_own(receiver, kind, what);
}

void note_open(std::map<std::string, Change>& open, const Notice& notice) {
  std::vector<Change> changes = notice.changed;
  if (!notice.cause.empty())
    changes.push_back({notice.cause, notice.kind, notice.what, notice.state, notice.open});
  for (const std::string& cause : notice.replaces) open.erase(cause);
  for (const Change& change : changes)
    if (change.open)
      open.insert_or_assign(change.cause, change);
    else
      open.erase(change.cause);
}

Notice as_wanted(Notice notice, const Receiver& receiver, const NotifySpec& spec) {
  std::erase_if(notice.changed, [&](const Change& change) {
    return !wants(receiver, change.kind, change.what, spec.urgent.count(change.kind) > 0);
  });
  return notice;
}

const Notice* next_for(const Book& book, const Receiver& receiver, const LocalTime& local) {
  const bool quiet = receiver.quiet.contains(local.minute);
  const auto found = book.receivers.find(receiver.name);
  if (found == book.receivers.end()) return first_for(book, receiver.name, quiet, {});
  const ReceiverState& state = found->second;
  if (state.next_try > book.clock) return nullptr;
  // Each second attempt is one that was not tried yet: the notices may be the reason, or the receiver.
  const bool another = state.answers && state.failures >= kBeforeOthers && state.failures % 2 == 1;
  if (const Notice* notice = another ? first_for(book, receiver.name, quiet, state.tried) : nullptr)
    return notice;
  return first_for(book, receiver.name, quiet, {});
}

void delivered(Book& book, const std::string& receiver, const std::string& id, TimeMs now) {
  ReceiverState& state = book.receivers[receiver];
  for (Notice& notice : book.waiting) {
    if (notice.id == id) note_open(state.open, notice);
    if (notice.id == id && is_catch_up(notice)) state.untaken = 0;
    if (const auto sent = notice.unanswered.find(receiver); sent != notice.unanswered.end())
      sent->second.next_try = 0;  // it works
  }
  take_from(book, receiver, id);
  count_refusals(book, receiver, state);
  state.failures = 0;
  state.next_try = 0;
  state.failing_since = 0;
  state.last_delivery = now;
  state.error.clear();
}

void failed(Book& book, const std::string& receiver, const std::string& id, const Error& error) {
  ReceiverState& state = book.receivers[receiver];
  if (state.failures++ == 0) state.failing_since = book.time;
  state.error = error.message;
  const bool refuses = error.code == Code::conflict;
  state.answers = refuses || error.code == Code::failed;
  forget_others(book, receiver, state);
  if (state.answers) state.tried.insert(id);
  // A receiver that refuses a notice works, and may take the next one.
  const int64_t tries = refuses ? ++state.refusals[id] : state.failures;
  const DurationMs wait = kFirstRetry << std::min<int64_t>(tries - 1, 10);
  state.next_try = book.clock + std::min(wait, kLongestRetry);
  if (error.code == Code::timeout) return repeat_later(book, receiver, id);
  if (!refuses || tries < kMostRefusals) return;
  give_up(book, receiver, id);
  state.next_try = 0;
}

size_t waiting_for(const Book& book, const std::string& receiver) {
  return static_cast<size_t>(
      std::count_if(book.waiting.begin(), book.waiting.end(),
                    [&](const Notice& notice) { return notice.to.count(receiver) > 0; }));
}

std::string receiver_topic(const std::string& receiver) { return std::string(kReceiverTopic) + receiver; }

bool is_failing(const Book& book, const std::string& receiver) {
  const auto state = book.receivers.find(receiver);
  return state != book.receivers.end() && state->second.failures >= kFailing;
}

}  // namespace muster::notices
