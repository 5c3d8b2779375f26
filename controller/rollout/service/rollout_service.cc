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

std::vector<std::string> names_of(const View& view, const std::vector<size_t>& nodes) {
  std::vector<std::string> out;
  for (const size_t at : nodes) out.push_back(view.nodes[at].name);
  return out;
}

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

bool could_be_canary(const View& view, const std::string& name) {
  return std::any_of(view.nodes.begin(), view.nodes.end(), [&](const Node& node) {
    return node.name == name && in_scope(view, node) && may_fail(node);
  });
}

// In a window longer than this, a later start begins the next one before this one's end.
constexpr DurationMs kAnotherWindow = 20 * 60 * kMinute;

bool is_another_spec(const Error& error) {
  return error.code == Code::invalid || error.code == Code::not_found;
}

}  // namespace

RolloutService::~RolloutService() {
  alive_.end();
  if (timer_) reactor_.cancel(timer_);
}

void RolloutService::begin() {
  begun_ = true;
  step();
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
  if (busy_ || !std::exchange(again_, false)) return;
  reactor_.post(alive_.wrap([this] { step(); }));
}

void RolloutService::later(const std::string& why) {
  if (!why.empty() && why != trouble_)
    log::warning("the rollout's next step will be retried", {{"why", why}});
  trouble_ = why;
  if (!timer_)
    timer_ = reactor_.after(kAgain, alive_.wrap([this] {
      timer_ = 0;
      step();
    }));
  rest();
}

void RolloutService::save(Record next, Work then) {
  busy_ = true;
  RolloutRow row{next.id, reactor_.now(), to_text(next)};
  store_.write({std::move(row)},
               alive_.wrap([this, next = std::move(next), then = std::move(then)](Status written) mutable {
                 if (!written.ok())
                   return later("the rollout's record cannot be written: " + written.error().message);
                 record_ = std::move(next);
                 port_.changed(*record_);
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
    if (written.ok()) {
      record_ = std::move(next);
      port_.changed(*record_);
    }
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
  if (record_->row->batch) return finish_batch(*record_->row->batch);
  if (!going_on()) return rest();
  choose();
}

// Finishes a batch that was begun, possibly before this controller was started.
void RolloutService::finish_batch(const Underway& batch) {
  if (batch.run == 0) {
    const auto found = port_.tagged(run_tag(record_->id, batch.number));
    if (!found.ok()) return later(found.error().message);
    if (*found) return started(batch.number, **found);
    return started(batch.number,
                   fail(Code::failed, "the batch was not started before the controller stopped"));
  }
  const auto over = port_.ended(batch.run);
  if (!over.ok()) return later(over.error().message);
  if (!*over) return later("");  // the end of a held run (held_run.h) is not announced
  port_.read_end(batch.run, alive_.wrap([this](Result<RunEnd> end) { judge(std::move(end)); }));
}

void RolloutService::judge(Result<RunEnd> end) {
  if (!end.ok()) return later(end.error().message);
  auto next = judged(*record_, std::move(end).value(), reactor_.now());
  if (!next.ok()) return later(next.error().message);
  save(std::move(next).value(), [this] { go_on(); });
}

void RolloutService::fill_in(SeenCluster& seen, const Row& row) const {
  seen.view.target = target_of(seen.now, seen.view.policy);
  if (record_) recall(seen.view, *record_, reactor_.now());
  seen.view.window_open = record_ && reactor_.now() < record_->window_until;
  if (row.batch) seen.view.active_run = row.batch->run;
}

void RolloutService::choose() {
  auto looked = port_.look();
  if (!looked.ok() && is_another_spec(looked.error())) return stop_for_another_target();
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
    if (!ways.ok()) return later(ways.error().message);
    ways_ = std::move(ways).value();
    put_ways(seen->view, ways_);
    act(*seen, next(seen->view, *record_->row));
  }));
}

void RolloutService::act(const SeenCluster& seen, const Answer& answer) {
  trouble_.clear();
  if (answer.what == Do::run) return order(seen, answer);
  Record next = *record_;
  next.row = with_answer(std::move(*next.row), answer);
  const bool over = next.row->stage != record_->row->stage || next.row->stop != record_->row->stop;
  const bool for_now = answer.wait == WaitFor::next_window || answer.wait == WaitFor::resume ||
                       (answer.what == Do::wait && !seen.view.window_open);
  if (over) next.ended = reactor_.now();
  if (over || for_now) next.left = reasons_of(seen.view, next, answer.left);
  if (over || next.left != record_->left) return save(std::move(next), [this] { rest(); });
  const bool changes =
      answer.wait == WaitFor::healing || answer.wait == WaitFor::nodes || answer.wait == WaitFor::other_run;
  if (answer.what == Do::wait && changes && seen.view.window_open) return later("");
  rest();
}

void RolloutService::order(const SeenCluster& seen, const Answer& answer) {
  const BatchOrder batch{names_of(seen.view, answer.batch.nodes), names_of(seen.view, answer.batch.prefetch),
                         answer.batch.failure_budget};
  port_.plan(batch, alive_.wrap([this, seen, answer](Result<PlannedBatch> made) {
    planned(seen, answer, std::move(made));
  }));
}

void RolloutService::planned(const SeenCluster& seen, const Answer& answer, Result<PlannedBatch> made) {
  if (!waiting_.empty()) return go_on();  // a request, such as a pause, comes before the run
  const bool again =
      !made.ok() && (made.error().code == Code::unavailable || made.error().code == Code::conflict ||
                     made.error().code == Code::timeout);
  if (again) return later(made.error().message);
  if (!made.ok()) return hold("the next batch cannot be planned: " + made.error().message);
  BatchNodes nodes;
  for (const auto& name : names_of(seen.view, answer.batch.nodes)) nodes.nodes.insert(name);
  for (const auto& name : names_of(seen.view, answer.batch.prefetch)) nodes.prefetch.insert(name);
  const auto refusals = made->refusals.empty() ? beyond(seen.now, *made->plan, nodes) : made->refusals;
  if (!refusals.empty()) return refused(answer, seen.view, refusals);
  begin_run(seen, answer, made->digest);
}

// A refusal that names none of the batch's nodes leaves all of them for this window, and the others go on.
void RolloutService::refused(const Answer& answer, const View& view, const std::vector<Refusal>& refusals) {
  std::map<std::string, std::string> reasons;
  for (const auto& node : names_of(view, answer.batch.nodes))
    for (const Refusal& refusal : refusals)
      if (refusal.node == node) reasons.emplace(node, refusal.rule + ": " + refusal.message);
  const Refusal& first = refusals.front();
  if (reasons.empty())
    for (const auto& node : names_of(view, answer.batch.nodes))
      reasons[node] =
          fmt::format("{}: {}{}{}", first.rule, first.node, first.node.empty() ? "" : ": ", first.message);
  save(refused_in(*record_, view, reasons, reactor_.now()), [this] { go_on(); });
}

void RolloutService::begin_run(const SeenCluster& seen, const Answer& answer, const std::string& digest) {
  Record next = with_batch(*record_, seen.view, answer);
  const int64_t number = next.row->batch->number;
  const std::string by = fmt::format("{}, approved by {}", run_tag(next.id, number), next.approval.by);
  save(std::move(next), [this, digest, by, number] {
    port_.start(digest, by,
                alive_.wrap([this, number](Result<int64_t> run) { started(number, std::move(run)); }));
  });
}

void RolloutService::started(int64_t number, Result<int64_t> run) {
  Record next = *record_;
  if (!run.ok()) {
    next.row = without_batch(std::move(*next.row)).value();
    log::warning("a batch did not begin", {{"batch", std::to_string(number)}, {"why", run.error().message}});
    return save(std::move(next), [this, why = run.error().message] { later(why); });
  }
  const Underway& batch = *next.row->batch;
  next.runs.push_back({batch.number, *run, batch.canary, batch.images});
  next.row = with_run(std::move(*next.row), *run).value();
  save(std::move(next), [this] { go_on(); });  // a short run may already have ended
}

void RolloutService::hold(const std::string& why) {
  Record next = *record_;
  next.row->paused = true;
  next.why_paused = why;
  log::warning("the rollout is paused until an operator acts", {{"why", why}});
  save(std::move(next), [this] { rest(); });
}

void RolloutService::stop_for_another_target() {
  Record next = *record_;
  next.row->stage = Stage::stopped;
  next.row->stop = next.row->held.empty() ? StopReason::target_changed : StopReason::canary_failed;
  next.ended = reactor_.now();
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
  out["record"] = record_ ? record_shown(*record_) : Json();
  return out;
}

void RolloutService::approve(ToApprove what, Done done) {
  in_turn(std::move(done), [this, what = std::move(what)](const Done& answer) {
    const auto seen = port_.look();
    if (!seen.ok()) return answer(seen.error());
    for (const auto& name : what.canaries)
      if (!could_be_canary(seen->view, name))
        return answer(fail(Code::invalid, fmt::format("{} cannot be a canary: a node of the roles is needed "
                                                      "that has a BMC, serves no storage and leads nothing",
                                                      name)));
    if (digest_of(seen->now) != what.digest)
      return answer(fail(Code::conflict, "the rollout to approve has changed: see `muster rollout plan`"));
    if (record_ && record_->row && record_->row->batch)
      return answer(
          fail(Code::conflict,
               fmt::format(
                   "batch {} is in progress: run `muster rollout pause`, and approve once its run has ended",
                   record_->row->batch->number)));
    Approval approval = seen->now;
    approval.by = what.by;
    approval.time = reactor_.now();
    approval.canaries = what.canaries;
    save_for(approved(record_.value_or(Record{}), std::move(approval)), answer);
  });
}

void RolloutService::start(Done done) {
  in_turn(std::move(done), [this](const Done& answer) {
    const auto seen = port_.look();
    if (!seen.ok()) return answer(seen.error());
    auto next = opened(record_, *seen, reactor_.now());
    if (!next.ok()) return answer(next.error());
    const TimeMs now = reactor_.now(), until = record_->window_until;
    const bool already = next->id == record_->id && going_on() &&
                         now < std::min(until, until - seen->rollout.window + kAnotherWindow);
    if (!already)
      return save_for(std::move(next).value(), [answer](Result<Json> shown) {
        if (shown.ok()) (*shown)["begun"] = true;
        answer(std::move(shown));
      });
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

Json RolloutService::shown_now() {
  if (!record_) return {{"state", "none"}};
  Json out = record_shown(*record_);
  out["window_open"] = going_on() && reactor_.now() < record_->window_until;
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
  out["left"] = left_shown(seen->view, *record_, now.left);
  return out;
}

// Not queued: it changes nothing, and must respond while a plan is being made.
void RolloutService::status(Done done) {
  if (!load()) return done(fail(Code::unavailable, trouble_));
  done(shown_now());
}

}  // namespace muster
