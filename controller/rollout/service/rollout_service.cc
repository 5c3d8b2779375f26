#include "controller/rollout/service/rollout_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/rollout/service/rollout_shown.h"
#include "controller/rollout/service/rollout_window.h"
#include "controller/rollout/survey.h"
#include "sys/log.h"

namespace muster {

using namespace rollout;

namespace {

// Returns the nodes that may be in a batch.
std::vector<std::string> to_find_ways_of(const View& view) {
  std::vector<std::string> out;
  const auto& roles = view.policy.roles;
  for (const Node& node : view.nodes) {
    const bool works = node.state == NodeState::accepted || node.state == NodeState::degraded;
    const bool ours = std::find(roles.begin(), roles.end(), node.role) != roles.end();
    if (ours && works && node.online && node.held_by == HeldBy::nobody && !node.image_wanted.empty() &&
        node.image_now != node.image_wanted)
      out.push_back(node.name);
  }
  return out;
}

void put_ways(View& view, const std::vector<NodeWay>& ways) {
  for (const NodeWay& way : ways) {
    const auto node = std::lower_bound(view.nodes.begin(), view.nodes.end(), way.node,
                                       [](const Node& a, const std::string& name) { return a.name < name; });
    if (node == view.nodes.end() || node->name != way.node) continue;
    node->way = way.by == NodeWay::By::in_place      ? Way::in_place
                : way.by == NodeWay::By::through_ram ? Way::through_ram
                                                     : Way::none;
    node->way_reason = way.why;
  }
}

std::map<std::string, std::string> reasons_of(const View& view, const Record& record,
                                              const std::vector<Left>& left) {
  std::map<std::string, std::string> out;
  for (const Left& one : left) {
    const std::string why = why_left(view, record, one);
    out[view.nodes[one.node].name] =
        fmt::format("{}{}{}", to_string(one.reason), why.empty() ? "" : ": ", why);
  }
  return out;
}

std::vector<std::string> away_of(const View& view) {
  std::vector<std::string> out;
  for (const Node& node : view.nodes)
    if (in_scope(view, node) && is_away(node)) out.push_back(node.name);
  return out;
}

bool is_another_spec(const Error& error) {
  return error.code == Code::invalid || error.code == Code::not_found;
}

}  // namespace

RolloutService::~RolloutService() {
  alive_.end();
  for (const Reactor::TimerId timer : {timer_, clock_timer_})
    if (timer) reactor_.cancel(timer);
}

void RolloutService::begin() {
  begun_ = true;
  watch_clock();
  step();
}

void RolloutService::watch_clock() {
  clock_watch_.sample(reactor_.now(), reactor_.steady());
  clock_timer_ = reactor_.after(kAgain, alive_.wrap([this] { watch_clock(); }));
}

void RolloutService::poke() {
  if (begun_) step();
}

bool RolloutService::load() {
  if (loaded_) return true;
  const auto row = store_.rollout(0);
  if (!row.ok() && row.error().code != Code::not_found) {
    later("the rollout's record cannot be read: " + row.error().message);
    return false;
  }
  if (row.ok()) {
    auto record = record_from_text(row->text);
    if (!record.ok()) {
      trouble_ = "the rollout's record is damaged: " + record.error().message;
      log::error("rollout", {{"error", trouble_}});
      return false;
    }
    record_ = std::move(record).value();
    if (record_->window.length == 0) record_->window = window_of_older(record_->window_until, clocks());
  }
  loaded_ = true;
  return true;
}

void RolloutService::in_turn(Done done, std::function<void(const Done&)> work) {
  const auto turn = [this, done = std::move(done), work = std::move(work)] {
    if (!load()) return done(fail(Code::unavailable, trouble_));
    work(done);
  };
  if (busy_)
    waiting_.push_back(turn);
  else
    turn();
}

void RolloutService::go_on() {
  again_ = true;
  rest();
}

void RolloutService::rest() {
  busy_ = false;
  while (!busy_ && !waiting_.empty()) {
    const Work turn = std::move(waiting_.front());
    waiting_.pop_front();
    turn();
  }
  if (busy_) return;
  if (std::exchange(again_, false)) return reactor_.post(alive_.wrap([this] { step(); }));
  if (going_on() && record_->window.length > 0 && (is_open(record_->window, clocks()) || !is_noted(*record_)))
    look_again();
}

void RolloutService::look_again() {
  if (timer_) return;
  timer_ = reactor_.after(kAgain, alive_.wrap([this] {
    timer_ = 0;
    step();
  }));
}

void RolloutService::later(const std::string& why) {
  if (!why.empty() && why != trouble_)
    log::warning("the rollout's next step will be retried", {{"why", why}});
  trouble_ = why;
  if (!why.empty() && record_ && is_open(record_->window, clocks())) looked_.trouble = why;
  look_again();
  rest();
}

Clocks RolloutService::clocks() const { return {reactor_.now(), boot_clock_()}; }

// The record was written.
void RolloutService::keep(Record next) {
  const auto ended = [](const Record& record) { return record.last_window ? record.last_window->ended : 0; };
  const bool noted = ended(next) != 0 && (!record_ || ended(next) != ended(*record_));
  record_ = std::move(next);
  port_.changed(*record_);
  if (!noted) return;
  const WindowResult& result = *record_->last_window;
  const log::Fields fields = {{"rollout", std::to_string(result.rollout)},
                              {"night", std::to_string(result.night)},
                              {"outcome", std::string(word_of(kWindowOutcomes, result.outcome))},
                              {"why", result.why},
                              {"detail", result.detail},
                              {"batches", std::to_string(result.batches)},
                              {"updated", std::to_string(result.updated)},
                              {"failed", std::to_string(result.failed)},
                              {"idle_windows", std::to_string(idle_windows(result))}};
  const bool fine = result.outcome == WindowOutcome::done || result.outcome == WindowOutcome::progress;
  fine ? log::info("the rollout's window is over", fields)
       : log::warning("the rollout's window is over", fields);
}

void RolloutService::save(Record next, Work then) {
  busy_ = true;
  RolloutRow row{next.id, reactor_.now(), to_text(next)};
  store_.write({std::move(row)},
               alive_.wrap([this, next = std::move(next), then = std::move(then)](Status written) mutable {
                 if (!written.ok())
                   return later("the rollout's record cannot be written: " + written.error().message);
                 keep(std::move(next));
                 then();
               }));
}

void RolloutService::save_for(Record next, const Done& done) {
  busy_ = true;
  std::vector<Write> rows = {RolloutRow{next.id, reactor_.now(), to_text(next)}};
  if (going_on() && next.id != record_->id) {
    Record old = *record_;
    old.row->stage = Stage::stopped;
    old.row->stop = StopReason::replaced;
    old.ended = reactor_.now();
    rows.insert(rows.begin(), RolloutRow{old.id, reactor_.now(), to_text(old)});
  }
  store_.write(std::move(rows), alive_.wrap([this, next = std::move(next), done](Status written) mutable {
    if (written.ok()) keep(std::move(next));
    done(written.ok() ? Result<Json>(record_shown(*record_)) : Result<Json>(written.error()));
    go_on();
  }));
}

bool RolloutService::going_on() const { return record_ && goes_on(*record_); }

void RolloutService::step() {
  if (busy_) {
    again_ = true;
    return;
  }
  if (!load() || !record_ || !record_->row) return;
  busy_ = true;
  if (const auto window = going_on() ? corrected(record_->window, clocks()) : std::nullopt)
    return clock_was_set(*window);
  if (record_->row->batch) return finish_batch(*record_->row->batch);
  if (!going_on()) return rest();
  choose();
}

void RolloutService::clock_was_set(const Window& window) {
  Record next = *record_;
  log::warning("the clock was set since the rollout's window was opened",
               {{"by_ms", std::to_string(window.clock_set)}, {"window_until", to_iso8601(end_of(window))}});
  next.window = window;
  next.window_until = end_of(window);
  save(std::move(next), [this] { go_on(); });
}

void RolloutService::fill_in(SeenCluster& seen, const Row& row) const {
  seen.view.target = target_of(seen.now, seen.view.policy);
  if (record_) recall(seen.view, *record_, reactor_.now());
  seen.view.window_open = record_ && is_open(record_->window, clocks());
  if (row.batch) seen.view.active_run = row.batch->run;
}

// True when the night's time is over, and what came of it is not noted yet.
bool RolloutService::must_note() const {
  const Window& window = record_->window;
  const DurationMs age = age_of(window, clocks());
  return window.length > 0 && age >= std::min(span_of(window), kAnotherWindow) && !is_noted(*record_);
}

void RolloutService::choose() {
  auto looked = port_.look();
  if (!looked.ok() && is_another_spec(looked.error())) return stop_for_another_target();
  if (!looked.ok() && must_note()) {
    looked_.trouble = looked.error().message;
    Record next = *record_;
    note_result(next, false);
    return save(std::move(next), [this] { rest(); });
  }
  if (!looked.ok()) return later(looked.error().message);
  const auto seen = std::make_shared<SeenCluster>(std::move(looked).value());
  if (record_->window.preparing) return prepare(*seen);
  fill_in(*seen, *record_->row);
  // Determining each node's method takes long, and matters only if a batch could begin or if all remaining
  // nodes may have no method.
  const Answer answer = next(seen->view, *record_->row);
  const bool for_nodes = answer.wait == WaitFor::healing || answer.wait == WaitFor::nodes;
  if (answer.what == Do::run || (answer.what == Do::wait && for_nodes)) return find_ways(seen);
  act(*seen, answer);
}

void RolloutService::find_ways(std::shared_ptr<SeenCluster> seen) {
  const auto nodes = to_find_ways_of(seen->view);
  port_.find_ways(nodes, alive_.wrap([this, seen](Result<std::vector<NodeWay>> ways) {
    if (!ways.ok() && !must_note()) return later(ways.error().message);
    if (ways.ok()) ways_ = std::move(ways).value();
    put_ways(seen->view, ways_);
    act(*seen, next(seen->view, *record_->row));
  }));
}

void RolloutService::act(const SeenCluster& seen, const Answer& answer) {
  trouble_.clear();
  const bool due = must_note(), open = seen.view.window_open;
  if (answer.what == Do::run && !due) return order(seen, answer);
  Record next = *record_;
  if (answer.what != Do::run) next.row = with_answer(std::move(*next.row), answer);
  const bool ended = next.row->stage != record_->row->stage || next.row->stop != record_->row->stop;
  if (answer.what == Do::wait && (open || (looked_.wait.empty() && looked_.trouble.empty())))
    looked_ = {std::string(to_string(answer.wait)), "", away_of(seen.view)};
  if (ended) next.ended = reactor_.now();
  const bool for_now = answer.wait == WaitFor::next_window;
  if (ended || due || for_now || answer.wait == WaitFor::resume || (answer.what == Do::wait && !open))
    next.left = reasons_of(seen.view, next, answer.left);
  const bool noted = (due || for_now || ended) && note_result(next, ended);
  if (noted || ended || next.left != record_->left) return save(std::move(next), [this] { rest(); });
  rest();
}

// A night that was noted is noted again only if the rollout ends in it.
bool RolloutService::note_result(Record& next, bool ended) const {
  if (next.window.length == 0) return false;
  if (is_noted(next) && !(ended && is_open(next.window, clocks()))) return false;
  next.last_window = result_of(next, ended ? LastLook{} : looked_, reactor_.now());
  return true;
}

void RolloutService::stop_for_another_target() {
  Record next = *record_;
  next.row->stage = Stage::stopped;
  next.row->stop = next.row->held.empty() ? StopReason::target_changed : StopReason::canary_failed;
  next.ended = reactor_.now();
  next.window.preparing = false;
  note_result(next, true);
  save(std::move(next), [this] { rest(); });
}

// Not queued: it changes nothing, and must not delay a batch that is being planned.
void RolloutService::plan(Done done, std::vector<std::string> canaries) {
  if (!load()) return done(fail(Code::unavailable, trouble_));
  auto looked = port_.look();
  if (!looked.ok()) return done(looked.error());
  const auto seen = std::make_shared<SeenCluster>(std::move(looked).value());
  const auto nodes = to_find_ways_of(seen->view);
  port_.find_ways(nodes, alive_.wrap([this, seen, canaries = std::move(canaries),
                                      done = std::move(done)](Result<std::vector<NodeWay>> ways) {
    if (!ways.ok()) return done(ways.error());
    put_ways(seen->view, *ways);
    done(plan_shown(*seen, canaries));
  }));
}

// What a start would do; where it would be refused, or canaries are named, what it would do after an
// approval.
Json RolloutService::plan_shown(SeenCluster& seen, const std::vector<std::string>& canaries) const {
  const std::string target = target_of(seen.now, seen.view.policy);
  std::string why = !record_                   ? "no approval has been given yet"
                    : !spent(*record_).empty() ? spent(*record_)
                                               : not_covered(record_->approval, seen.now);
  Record next;
  if (why.empty()) {
    next = at_start(*record_, seen.now, target);
    why = all_held(next, seen, reactor_.now());
  }
  if (!why.empty() || !canaries.empty()) {
    Approval approval = seen.now;
    approval.canaries = canaries;
    next = at_start(approved(record_.value_or(Record{}), std::move(approval)), seen.now, target);
  }
  fill_in(seen, *next.row);
  recall(seen.view, next, reactor_.now());
  Json out = forecast_shown(seen.view, forecast(seen.view, *next.row));
  out["approval"] = approval_shown(seen.now);
  out["approved"] = why.empty();
  out["not_approved"] = why;
  out["notes"] = seen.notes;
  out["record"] = record_ ? record_shown(*record_) : Json();
  return out;
}

Json RolloutService::shown_now() {
  if (!record_) return {{"state", "none"}};
  Record shown = *record_;
  if (const auto window = going_on() ? corrected(shown.window, clocks()) : std::nullopt) {
    shown.window = *window;
    shown.window_until = end_of(*window);
  }
  std::erase_if(shown.skips,
                [&](const auto& one) { return !is_skipped(*record_, one.first, reactor_.now()); });
  Json out = record_shown(shown);
  out["window_open"] = going_on() && is_open(shown.window, clocks());
  out["trouble"] = trouble_;
  out["waits_for"] = "";
  out["left"] = Json::array();
  auto seen = port_.look();
  if (!seen.ok()) {
    out["not_covered"] = seen.error().message;
    return out;
  }
  out["not_covered"] = not_covered(record_->approval, seen->now);
  if (!record_->row) return out;
  if (going_on() && record_->window.preparing) {
    out["waits_for"] = to_string(out["window_open"] == true ? WaitFor::images : WaitFor::window);
    return out;
  }
  fill_in(*seen, *record_->row);
  put_ways(seen->view, ways_);
  const Answer now = next(seen->view, *record_->row);
  out["waits_for"] = now.what == Do::wait ? to_string(now.wait) : "";
  out["left"] = left_shown(seen->view, *record_, now.left);
  return out;
}

// Not queued: it changes nothing, and must respond while a plan is being made.
void RolloutService::status(Done done) {
  if (!load()) return done(fail(Code::unavailable, trouble_));
  done(shown_now());
}

}  // namespace muster
