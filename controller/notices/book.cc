#include "controller/notices/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "controller/notices/receivers.h"

namespace muster::notices {

namespace {

constexpr size_t kShortestCause = 4;  // digits

size_t shared_nodes(const std::vector<std::string>& nodes, const Cause& cause) {
  return static_cast<size_t>(std::count_if(cause.nodes.begin(), cause.nodes.end(), [&](const NodeName& node) {
    return std::binary_search(nodes.begin(), nodes.end(), node.str());
  }));
}

// One turn over one book.
class Turning {
 public:
  Turning(Book& book, const NotifySpec& spec, const Turn& now) : book_(book), spec_(spec), now_(now) {}

  void read(const std::vector<Cause>& causes);
  void catch_up();
  void look_at_changes();
  void make_summary();
  void make_daily();
  void tidy();

 private:
  void tidy_known();
  using Open = std::map<std::string, OpenCause>;
  Open::iterator find_same(const std::string& cause);
  Open::iterator find_before(const Cause& cause, const std::vector<Open::iterator>& before,
                             const std::set<std::string>& taken);
  void take(OpenCause& open, const Cause& cause);
  void leave(const std::string& name, const std::vector<Cause>& causes);
  void count_nodes(OpenCause& open) const;
  std::optional<NoticeState> due(const OpenCause& open) const;
  void change(OpenCause& open, NoticeState state);
  Notice notice_of(const OpenCause& open, NoticeState state);
  void send_made();
  void queue(Notice notice);
  bool rests(const ReceiverState& state) const;
  bool waits_for_summary(const std::string& receiver) const;
  Notice summary_of(const char* name, std::vector<Change> changes);
  bool is_urgent(const std::string& kind) const { return spec_.urgent.count(kind) > 0; }

  Book& book_;
  const NotifySpec& spec_;
  const Turn& now_;
  std::vector<Notice> made_;
};

Turning::Open::iterator Turning::find_same(const std::string& cause) {
  return std::find_if(book_.causes.begin(), book_.causes.end(),
                      [&](const auto& open) { return open.second.cause == cause; });
}

// The cause of `before` that this one continues: of the same kind, with most of the same nodes.
Turning::Open::iterator Turning::find_before(const Cause& cause, const std::vector<Open::iterator>& before,
                                             const std::set<std::string>& taken) {
  auto best = book_.causes.end();
  size_t most = 0;
  for (const auto& it : before) {
    if (it->second.kind != cause_kind_word(cause.kind) || taken.count(it->first)) continue;
    if (const size_t shared = shared_nodes(it->second.nodes, cause); shared > most) {
      best = it;
      most = shared;
    }
  }
  return best;
}

void Turning::read(const std::vector<Cause>& causes) {
  std::map<std::string, std::string> by_id;
  for (const auto& [name, open] : book_.causes) by_id.emplace(open.cause, name);
  std::set<std::string> taken, seen;
  std::vector<const Cause*> others;
  for (const Cause& cause : causes) {
    if (!seen.insert(cause.id).second) continue;
    const auto same = by_id.find(cause.id);
    if (same == by_id.end()) {
      others.push_back(&cause);
      continue;
    }
    taken.insert(same->second);
    take(book_.causes[same->second], cause);
  }
  std::vector<Open::iterator> before;
  for (auto it = book_.causes.begin(); it != book_.causes.end(); ++it)
    if (!taken.count(it->first) && (it->second.present || it->second.known)) before.push_back(it);
  for (const Cause* cause : others) {
    auto open = find_before(*cause, before, taken);
    if (open == book_.causes.end()) {
      std::string name = cause->id;
      while (book_.causes.count(name)) name += "'";  // what began with this id has another one by now
      open = book_.causes.emplace(name, OpenCause{}).first;
      open->second.turned = book_.clock;
    }
    taken.insert(open->first);
    take(open->second, *cause);
  }
  std::vector<std::string> left;
  for (const auto& [name, open] : book_.causes)
    if (open.present && !taken.count(name)) left.push_back(name);
  for (const std::string& name : left) leave(name, causes);
}

void Turning::take(OpenCause& open, const Cause& cause) {
  // A restarted controller knows of some problems only since then.
  const bool goes_on = open.present || open.known;
  if (!goes_on || open.since == 0 || (cause.since != 0 && cause.since < open.since)) open.since = cause.since;
  if (!open.present) open.turned = book_.clock;
  open.present = true;
  open.cause = cause.id;
  open.kind = cause_kind_word(cause.kind);
  open.what = cause.what;
  open.detail = cause.detail;
  open.next = cause.next;
  open.common = cause.common;
  open.common_value = cause.common_value;
  open.nodes.assign(cause.nodes.begin(), cause.nodes.end());
  std::sort(open.nodes.begin(), open.nodes.end());
}

// A cause that is there no more: it is over, or all its nodes are in others of its kind now.
void Turning::leave(const std::string& name, const std::vector<Cause>& causes) {
  OpenCause& open = book_.causes[name];
  auto into = book_.causes.end();
  std::set<std::string> elsewhere;
  for (const Cause& cause : causes) {
    if (open.kind != cause_kind_word(cause.kind) || shared_nodes(open.nodes, cause) == 0) continue;
    if (into == book_.causes.end()) into = find_same(cause.id);
    elsewhere.insert(cause.nodes.begin(), cause.nodes.end());
  }
  if (open.nodes.empty() || into == book_.causes.end() ||
      !std::includes(elsewhere.begin(), elsewhere.end(), open.nodes.begin(), open.nodes.end())) {
    open.present = false;
    open.turned = book_.clock;
    return;
  }
  OpenCause& other = into->second;
  if (open.known && !other.known) {  // receivers know of it under this name
    other.known = true;
    other.known_nodes = open.known_nodes;
  }
  if (open.known) other.replaces.push_back(open.cause);
  other.replaces.insert(other.replaces.end(), open.replaces.begin(), open.replaces.end());
  book_.causes.erase(name);
}

// What was smaller for a while is compared with that when it grows again. A dip is not.
void Turning::count_nodes(OpenCause& open) const {
  const bool counts = open.present && open.known;
  if (!counts || open.nodes.size() >= open.known_nodes) {
    open.shrank = 0;
    open.most_since = 0;
  } else {
    if (open.shrank == 0) open.shrank = book_.clock;
    open.most_since = std::max(open.most_since, open.nodes.size());
    if (book_.clock - open.shrank >= kFewer) {
      open.known_nodes = open.most_since;
      open.shrank = 0;
      open.most_since = 0;
    }
  }
  const bool larger = open.known_nodes > 0 && open.nodes.size() >= 2 * open.known_nodes;
  if (!counts || (!larger && open.replaces.empty()))
    open.grew = 0;
  else if (open.grew == 0)
    open.grew = book_.clock;
}

std::optional<NoticeState> Turning::due(const OpenCause& open) const {
  const auto settled = [&](DurationMs since) { return book_.clock - since >= kSettle; };
  if (open.present != open.known) {
    if (!settled(open.turned) || (open.present && open.ack)) return std::nullopt;
    return open.present ? NoticeState::begun : NoticeState::over;
  }
  if (open.present && open.grew != 0 && settled(open.grew) && !open.ack) return NoticeState::worse;
  return std::nullopt;
}

void Turning::look_at_changes() {
  for (auto& [name, open] : book_.causes) {
    count_nodes(open);
    if (const auto state = due(open)) change(open, *state);
    const bool gone = !open.present && !open.known && book_.clock - open.turned >= kSettle;
    if (gone) open.ack.reset();  // it was acknowledged before there was a notice
    const bool may_say = open.last_line == 0 || book_.clock - open.last_line >= kDay;
    if (!open.unsaid || !may_say || open.ack) continue;
    made_.push_back(notice_of(open, NoticeState::flaps));
    open.last_line = book_.clock;
    open.unsaid = false;
  }
  send_made();
}

void Turning::change(OpenCause& open, NoticeState state) {
  if (book_.clock - open.changed >= kDay) open.changes = 0;
  if (open.changes == 0) open.first_change = now_.now;
  ++open.changes;
  open.changed = book_.clock;
  open.known = state != NoticeState::over;
  open.grew = open.shrank = 0;
  open.most_since = 0;
  if (open.known) open.known_nodes = open.nodes.size();
  if (open.changes > kMostChanges)
    open.unsaid = true;
  else
    made_.push_back(notice_of(open, state));
  open.replaces.clear();
  if (!open.known) open.ack.reset();
}

Notice Turning::notice_of(const OpenCause& open, NoticeState state) {
  Notice out;
  out.id = fmt::format("{}-{}", open.cause, book_.next_number++);
  out.time = now_.now;
  out.state = state;
  out.urgent = is_urgent(open.kind);
  out.kind = open.kind;
  out.cause = open.cause;
  out.what = open.what;
  out.detail = open.detail;
  out.next = open.next;
  out.nodes = open.nodes;
  out.common = open.common;
  out.common_value = open.common_value;
  out.since = open.since;
  out.changes = open.changes;
  out.first_change = open.first_change;
  out.open = open.known;
  out.replaces = open.replaces;
  return out;
}

void Turning::send_made() {
  std::erase_if(book_.alone, [&](DurationMs at) { return book_.clock - at >= kBusySpan; });
  const bool busy = !book_.gathered.empty() || book_.alone.size() + made_.size() > kMostAlone;
  for (Notice& notice : made_) {
    if (busy) {
      book_.gathered.push_back({notice.cause, notice.kind, notice.what, notice.state, notice.open});
      continue;
    }
    book_.alone.push_back(book_.clock);
    queue(std::move(notice));
  }
  made_.clear();
}

void Turning::make_summary() {
  if (book_.gathered.empty()) return;
  const bool urgent = std::any_of(book_.gathered.begin(), book_.gathered.end(),
                                  [&](const Change& change) { return is_urgent(change.kind); });
  if (book_.clock - book_.last_summary < (urgent ? kUrgentSummary : kBusySpan)) return;
  book_.last_summary = book_.clock;
  queue(summary_of("summary", std::exchange(book_.gathered, {})));
}

Notice Turning::summary_of(const char* name, std::vector<Change> changes) {
  Notice out;
  out.id = fmt::format("{}-{}", name, book_.next_number++);
  out.time = now_.now;
  out.state = NoticeState::summary;
  out.kind = "summary";
  out.next = "muster notify";
  out.changed = std::move(changes);
  std::stable_sort(out.changed.begin(), out.changed.end(),
                   [&](const Change& a, const Change& b) { return is_urgent(a.kind) && !is_urgent(b.kind); });
  out.urgent = !out.changed.empty() && is_urgent(out.changed.front().kind);
  return out;
}

// One that answers a summary too late has it, and would get it again and again. One that did not answer at
// all gets it once more when it takes something.
bool Turning::rests(const ReceiverState& state) const {
  const bool may_hang = state.untaken == 1 && state.failures == 0;
  return state.untaken > 0 && !may_hang && book_.clock - state.untaken_at < kDay;
}

bool Turning::waits_for_summary(const std::string& receiver) const {
  return std::any_of(book_.waiting.begin(), book_.waiting.end(), [&](const Notice& notice) {
    return is_catch_up(notice) && notice.to.count(receiver) > 0;
  });
}

// Before this turn's changes, which have notices of their own.
void Turning::catch_up() {
  for (const auto& [name, receiver] : spec_.receivers) {
    const auto [found, fresh] = book_.receivers.try_emplace(name);
    ReceiverState& state = found->second;
    if (fresh) state.behind = true;
    // While it fails, the summary would be old when it arrives, unless nothing else is tried.
    const bool too_early = state.failures > 0 && waiting_for(book_, name) > 0;
    if (!state.behind || too_early || rests(state) || waits_for_summary(name)) continue;
    state.behind = false;
    std::map<std::string, Change> over = state.open;
    for (const Notice& notice : book_.waiting)
      if (notice.to.count(name)) note_open(over, notice);
    std::vector<Change> changes;
    for (const auto& [id, open] : book_.causes) {
      if (!open.known) continue;
      over.erase(id);
      over.erase(open.cause);
      if (!open.ack && wants(receiver, open.kind, open.what, is_urgent(open.kind)))
        changes.push_back({open.cause, open.kind, open.what, NoticeState::begun, true});
    }
    for (const auto& [cause, known] : over)
      if (wants(receiver, known.kind, known.what, is_urgent(known.kind)))
        changes.push_back({cause, known.kind, known.what, NoticeState::over, false});
    if (changes.empty()) continue;
    Notice out = summary_of(kCatchUp, std::move(changes));
    out.what = over.empty() ? "open causes" : "open causes, and those that are over";
    out.to = {name};
    out.made = book_.clock;
    book_.waiting.push_back(std::move(out));
  }
}

void Turning::make_daily() {
  const auto is_open = [](const auto& open) { return open.second.present || open.second.known; };
  const auto open = std::count_if(book_.causes.begin(), book_.causes.end(), is_open);
  const auto quiet = std::count_if(book_.causes.begin(), book_.causes.end(), [&](const auto& one) {
    return is_open(one) && one.second.ack.has_value();
  });
  for (const auto& [name, receiver] : spec_.receivers) {
    if (receiver.daily < 0) continue;
    int64_t& last = book_.receivers[name].last_day;
    const bool past = now_.local.minute >= receiver.daily;
    // New here, or the clock was set back: today's line comes if its time is still ahead.
    if (last == 0 || last > now_.local.day) last = now_.local.day - (past ? 0 : 1);
    if (!past || last == now_.local.day) continue;
    last = now_.local.day;
    Notice out;
    out.id = fmt::format("daily-{}", book_.next_number++);
    out.time = now_.now;
    out.state = NoticeState::daily;
    out.kind = "daily";
    out.urgent = true;  // its time is the operator's choice
    out.what = fmt::format("{}{}", now_.window.empty() ? "" : now_.window + "; ",
                           open == 0 ? "nothing needs attention" : fmt::format("open causes: {}", open));
    if (quiet > 0) out.what += fmt::format(", of which acknowledged: {}", quiet);
    out.next = open == 0 ? "muster status" : "muster notify";
    out.open = open > 0;
    out.to = {name};
    out.made = book_.clock;
    book_.waiting.push_back(std::move(out));
  }
}

void Turning::queue(Notice notice) {
  notice.made = book_.clock;
  for (const auto& [name, receiver] : spec_.receivers) {
    const bool gets = notice.changed.empty() ? wants(receiver, notice.kind, notice.what, notice.urgent)
                                             : !as_wanted(notice, receiver, spec_).changed.empty();
    if (gets) notice.to.insert(name);
  }
  if (!notice.to.empty()) book_.waiting.push_back(std::move(notice));
}

void Turning::tidy() {
  std::erase_if(book_.causes, [&](const auto& one) {
    const OpenCause& open = one.second;
    const bool gone = !open.present && !open.known && book_.clock - open.turned >= kSettle && !open.unsaid;
    // It is remembered while its next changes count with these.
    const auto old = [&](DurationMs at) { return at == 0 || book_.clock - at >= kDay; };
    return gone && old(open.changed) && old(open.last_line);
  });
  for (const auto& [name, state] : book_.receivers)
    if (!spec_.receivers.count(name)) book_.lost += state.lost;
  std::erase_if(book_.receivers, [&](const auto& one) { return !spec_.receivers.count(one.first); });
  size_t too_many = book_.waiting.size() - std::min(book_.waiting.size(), kMostWaiting);
  for (Notice& notice : book_.waiting) {
    book_.lost += static_cast<int64_t>(
        std::erase_if(notice.to, [&](const std::string& name) { return !spec_.receivers.count(name); }));
    if (book_.clock - notice.made < kGiveUp && too_many == 0) continue;
    for (const std::string& name : notice.to) {
      ++book_.receivers[name].lost;
      book_.receivers[name].behind = true;
    }
    notice.to.clear();
    if (too_many > 0) --too_many;
  }
  std::erase_if(book_.waiting, [](const Notice& notice) { return notice.to.empty(); });
  tidy_known();
}

// A receiver that has all notices knows as open what they said, by the id that a cause had then.
void Turning::tidy_known() {
  if (!book_.gathered.empty()) return;
  std::set<std::string> open;
  for (const auto& [id, cause] : book_.causes)
    if (cause.known || cause.unsaid) open.insert({id, cause.cause});
  for (auto& [name, state] : book_.receivers)
    if (!state.behind && waiting_for(book_, name) == 0)
      std::erase_if(state.open, [&](const auto& known) { return !open.count(known.first); });
}

}  // namespace

bool turn(Book& book, const std::vector<Cause>& causes, const NotifySpec& spec, const Turn& now) {
  const DurationMs elapsed = std::max<DurationMs>(0, now.elapsed);
  book.clock += elapsed;
  book.time = now.now;
  // What waited is given up after a day of attempts, not after a day without a controller.
  for (Notice& notice : book.waiting)
    if (now.first) notice.made += elapsed;
  const Book before = book;
  Turning turning(book, spec, now);
  turning.read(causes);
  turning.catch_up();
  turning.look_at_changes();
  turning.make_summary();
  turning.make_daily();
  turning.tidy();
  return !(before == book);
}

std::vector<Cause> present_causes(const Book& book) {
  std::vector<Cause> out;
  for (const auto& [name, open] : book.causes) {
    const auto kind = value_of(kCauseKinds, open.kind);
    if (!open.present || !kind) continue;
    Cause& cause = out.emplace_back();
    cause.id = open.cause;
    cause.kind = *kind;
    for (const std::string& node : open.nodes) cause.nodes.emplace_back(node);
    cause.common = open.common;
    cause.common_value = open.common_value;
    cause.since = open.since;
  }
  return out;
}

Result<OpenCause> acknowledge(Book& book, const std::string& cause, Acknowledged ack) {
  if (cause.size() < kShortestCause)
    return fail(Code::invalid,
                fmt::format("cause '{}': give at least {} digits of its id", cause, kShortestCause));
  OpenCause* found = nullptr;
  for (auto& [name, open] : book.causes) {
    if ((!open.present && !open.known) || (!open.cause.starts_with(cause) && !name.starts_with(cause)))
      continue;
    if (found) return fail(Code::conflict, "more than one open cause begins with " + cause);
    found = &open;
  }
  if (!found) return fail(Code::not_found, "no open cause " + cause + ": `muster notify` lists them");
  found->ack = std::move(ack);
  return *found;
}

Notice test_notice(const std::string& number, TimeMs now) {
  Notice out;
  out.id = "test-" + number;
  out.time = now;
  out.state = NoticeState::test;
  out.kind = "test";
  out.what = "a test: this receiver gets muster's notices";
  out.next = "muster notify";
  out.open = false;
  return out;
}

}  // namespace muster::notices
