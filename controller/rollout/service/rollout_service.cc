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

std::map<std::string, std::string> reasons_of(const View& view, const std::vector<Left>& left,
                                              const Record& record) {
  std::map<std::string, std::string> out;
  for (const Left& one : left) {
    std::string& reason = out[view.nodes[one.node].name] = std::string(to_string(one.reason));
    if (one.group >= 0) reason += ": " + view.groups[static_cast<size_t>(one.group)].name;
    if (one.reason == Reason::no_way) reason += ": " + view.nodes[one.node].way_reason;
    const auto back = record.row->postponed.find(view.nodes[one.node].name);
    if (is_of_this_window(one.reason) && back != record.row->postponed.end())
      reason += ": " + back->second.reason;
    if (one.reason == Reason::skipped) reason += ": " + record.skips.at(view.nodes[one.node].name).reason;
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

// Returns the record's row if it can be continued with this target, else a new one.
Row row_for(const std::optional<Record>& record, const std::string& target) {
  const bool same = record && record->row && record->row->target == target && spent(*record).empty();
  return same ? *record->row : begun(0, target);
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

bool RolloutService::going_on() const {
  if (!record_ || !record_->row) return false;
  const Stage stage = record_->row->stage;
  return stage == Stage::canary || stage == Stage::batches;
}

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
  seen.view.night = record_ ? record_->night : 0;
  seen.view.window_open = record_ && is_open(record_->window, clocks());
  for (Node& node : seen.view.nodes)
    node.skipped = record_ && is_skipped(*record_, node.name, reactor_.now());
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
    next.left = reasons_of(seen.view, answer.left, next);
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
  const auto of_canary = [](const auto& failed) { return failed.second.canary; };
  const bool canary = std::any_of(next.row->failed.begin(), next.row->failed.end(), of_canary);
  next.row->stop = canary ? StopReason::canary_failed : StopReason::target_changed;
  next.ended = reactor_.now();
  note_result(next, true);
  save(std::move(next), [this] { rest(); });
}

// Not queued: it changes nothing, and must not delay a batch that is being planned.
void RolloutService::plan(Done done) {
  if (!load()) return done(fail(Code::unavailable, trouble_));
  auto looked = port_.look();
  if (!looked.ok()) return done(looked.error());
  const auto seen = std::make_shared<SeenCluster>(std::move(looked).value());
  const auto nodes = to_find_ways_of(seen->view);
  port_.find_ways(nodes, alive_.wrap([this, seen, done = std::move(done)](Result<std::vector<NodeWay>> ways) {
    if (!ways.ok()) return done(ways.error());
    put_ways(seen->view, *ways);
    done(plan_shown(*seen));
  }));
}

Json RolloutService::plan_shown(SeenCluster& seen) const {
  const Row row = row_for(record_, target_of(seen.now, seen.view.policy));
  fill_in(seen, row);
  Json out = forecast_shown(seen.view, forecast(seen.view, row));
  out["approval"] = approval_shown(seen.now);
  const std::string why = !record_                   ? "no approval has been given yet"
                          : !spent(*record_).empty() ? spent(*record_)
                                                     : not_covered(record_->approval, seen.now);
  out["approved"] = why.empty();
  out["not_approved"] = why;
  out["record"] = record_ ? record_shown(*record_) : Json();
  return out;
}

void RolloutService::approve(const std::string& digest, const std::string& by, Done done) {
  in_turn(std::move(done), [this, digest, by](const Done& answer) {
    const auto seen = port_.look();
    if (!seen.ok()) return answer(seen.error());
    if (digest_of(seen->now) != digest)
      return answer(fail(Code::conflict, "the rollout to approve has changed: see `muster rollout plan`"));
    if (record_ && record_->row && record_->row->batch)
      return answer(
          fail(Code::conflict,
               fmt::format(
                   "batch {} is in progress: run `muster rollout pause`, and approve once its run has ended",
                   record_->row->batch->number)));
    Record next;
    next.id = record_ ? record_->id + 1 : 1;
    next.approval = seen->now;
    next.approval.by = by;
    next.approval.time = reactor_.now();
    save_for(std::move(next), answer);
  });
}

void RolloutService::start(Start how, Done done) {
  // The clock was last looked at up to a minute before it was set.
  const SteadyMs now = reactor_.steady(), due = now - how.late - 2 * kAgain;
  if (how.by_timer) how.late += clock_watch_.forward_since(due, reactor_.now(), now);
  in_turn(std::move(done), [this, late = how.late](const Done& answer) {
    const auto refuse = [&](const Error& error) {
      if (error.code == Code::denied || error.message != refused_)
        log::warning("the rollout's window was not opened", {{"why", error.message}});
      refused_ = error.message;
      answer(error);
    };
    const auto seen = port_.look();
    if (!seen.ok()) return refuse(seen.error());
    auto next = opened(record_, *seen, clocks(), late);
    if (!next.ok()) return refuse(next.error());
    const bool already = next->id == record_->id && going_on() && is_same_window(record_->window, clocks());
    if (!already) {
      looked_ = {}, refused_.clear();
      return save_for(std::move(next).value(), [answer](Result<Json> shown) {
        if (shown.ok()) (*shown)["begun"] = true;
        answer(std::move(shown));
      });
    }
    Json shown = record_shown(*record_);
    shown["begun"] = false;
    answer(std::move(shown));
    poke();
  });
}

void RolloutService::pause(const std::string& by, Done done) {
  in_turn(std::move(done), [this, by](const Done& answer) {
    if (!going_on()) return answer(fail(Code::conflict, "no rollout is in progress"));
    Record next = *record_;
    next.row->paused = true;
    if (next.why_paused.empty()) next.why_paused = "by " + by;
    save_for(std::move(next), answer);
  });
}

void RolloutService::resume(Done done) {
  in_turn(std::move(done), [this](const Done& answer) {
    if (!record_ || !record_->row || !record_->row->paused)
      return answer(fail(Code::conflict, "the rollout is not paused"));
    Record next = *record_;
    next.row->paused = false;
    next.why_paused.clear();
    save_for(std::move(next), answer);
  });
}

void RolloutService::skip(const std::string& node, Skip skip, Done done) {
  in_turn(std::move(done), [this, node, skip = std::move(skip)](const Done& answer) mutable {
    if (skip.reason.empty()) return answer(fail(Code::invalid, "a reason is required"));
    if (skip.until != 0 && skip.until <= reactor_.now())
      return answer(fail(Code::invalid, fmt::format("{} is over", to_iso8601(skip.until))));
    if (!record_)
      return answer(fail(Code::conflict, "no rollout is approved yet: run `muster rollout approve` first"));
    const auto seen = port_.look();
    if (!seen.ok()) return answer(seen.error());
    const auto named = [&](const Node& one) { return one.name == node; };
    const auto found = std::find_if(seen->view.nodes.begin(), seen->view.nodes.end(), named);
    if (found == seen->view.nodes.end())
      return answer(fail(Code::not_found, fmt::format("no node '{}'", node)));
    if (!in_scope(seen->view, *found))
      return answer(
          fail(Code::invalid, fmt::format("no rollout takes {}: its role is not in `rollout.roles`, "
                                          "or it has no image",
                                          node)));
    Record next = *record_;
    skip.since = reactor_.now();
    next.skips[node] = std::move(skip);
    save_for(std::move(next), answer);
  });
}

void RolloutService::unskip(const std::string& node, Done done) {
  in_turn(std::move(done), [this, node](const Done& answer) {
    Record next = record_.value_or(Record{});
    if (next.skips.erase(node) == 0)
      return answer(fail(Code::not_found, fmt::format("node '{}' is not skipped", node)));
    save_for(std::move(next), answer);
  });
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
  fill_in(*seen, *record_->row);
  put_ways(seen->view, ways_);
  const Answer now = next(seen->view, *record_->row);
  out["waits_for"] = now.what == Do::wait ? to_string(now.wait) : "";
  out["left"] = left_shown(seen->view, now.left);
  return out;
}

// Not queued: it changes nothing, and must respond while a plan is being made.
void RolloutService::status(Done done) {
  if (!load()) return done(fail(Code::unavailable, trouble_));
  done(shown_now());
}

}  // namespace muster
