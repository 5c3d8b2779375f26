#include "tests/unit/rollout/nights.h"

#include <algorithm>
#include <utility>

#include "controller/rollout/rollout_record.h"
#include "controller/rollout/service/rollout_window.h"
#include "tests/unit/rollout/checker.h"

namespace muster::rollout::sim {
namespace {

// What the daemon does with the record and next(), and the crashes between its steps.
class Controller {
 public:
  Controller(Model& model, Checker& checker, Nights& out) : m_(model), checker_(checker), out_(out) {
    approve();
  }

  void step();
  void night_begins();
  const Record& record() const { return durable_; }

 private:
  void approve();
  void start(bool by_timer);
  void prepare();
  void write() { durable_ = record_; }
  // Everything but the durable record is lost.
  bool dies() {
    const bool restarted = m_.boots != boots_;
    if (!m_.controller_dies() && !restarted) return false;
    boots_ = m_.boots;
    const std::string text = to_text(durable_);
    const Result<Record> again = record_from_text(text);
    if (!again || to_text(again.value()) != text) checker_.bad = "the record does not survive a restart";
    if (again) record_ = again.value();
    ++out_.restarts;
    return true;
  }
  Clocks clocks() const { return {m_.wall(), {std::to_string(m_.boots), m_.time - m_.booted}}; }
  SeenCluster look();
  void operator_acts();
  void skip_something();
  // False: there is nothing more to do in this tick.
  bool settle_batch();
  void judge(const ModelRun& run);
  void begin_batch(const Answer& answer);
  void count_end(const Answer& answer);

  Model& m_;
  Checker& checker_;
  Nights& out_;
  Record record_, durable_;
  int64_t boots_ = 1;
};

SeenCluster Controller::look() {
  SeenCluster out{m_.view, m_.declared(), {}};
  out.view.target = target_of(out.now, out.view.policy);
  out.rollout.window = kLength;
  return out;
}

// Where all that could be an image's canary failed before, the operator names one.
void Controller::approve() {
  if (record_.row && record_.row->batch) return;
  Approval approval = m_.declared();
  approval.canaries = checker_.to_name();
  checker_.approved(approval.canaries);
  record_ = approved(record_, std::move(approval));
  write();
}

// Also a start in a window that is open changes nothing. In the calm builds take no time.
void Controller::start(bool by_timer) {
  auto next = opened(record_, look(), clocks(), {.by_timer = by_timer});
  if (!next.ok()) return checker_.refused(record_.row && record_.row->batch);
  if (is_joined(record_, *next, clocks())) return;
  const bool same = record_.row && next->id == record_.id;
  const std::vector<std::string> due = m_.due();
  if (!due.empty()) next = with_builds(record_, std::move(next).value(), due);
  if (!next.ok()) return checker_.refused(record_.row && record_.row->batch);
  out_.rollouts += next->id != record_.id || !record_.row;
  record_ = *next;
  checker_.opened(same);
  if (!record_.window.preparing) checker_.prepared(record_.id);
  write();
  while (m_.calm() && goes_on(record_) && record_.window.preparing) prepare();
}

// As RolloutService::prepare().
void Controller::prepare() {
  const Approval now = m_.declared();
  if (!not_covered(record_.approval, now).empty()) {
    record_.row->stage = Stage::stopped;
    record_.row->stop = StopReason::target_changed;
    record_.window.preparing = false;
    if (dies()) return;
    write();
    return checker_.unprepared();
  }
  const auto image = next_build(record_.window.builds);
  if (!image) {
    record_ = after_builds(record_, now, target_of(now, m_.view.policy));
    if (dies()) return;
    write();
    return checker_.prepared(record_.id);
  }
  if (!is_open(record_.window, clocks()) || !m_.build_ends()) return;
  Build& build = record_.window.builds[*image];
  ++build.tries;
  build.ended = m_.wall();
  if (!m_.build(*image)) build.error = "drawn";
  ++(build.error.empty() ? out_.built : out_.unbuilt);
  if (!dies()) write();
}

void Controller::skip_something() {
  const auto at = static_cast<size_t>(m_.rng.below(static_cast<int>(m_.view.nodes.size())));
  const std::string& name = m_.view.nodes[at].name;
  if (record_.skips.erase(name) > 0) {
    checker_.unskips(at);
  } else {
    const TimeMs until = m_.rng.chance(0.7) ? m_.wall() + m_.rng.between(1, 100) * kTick : 0;
    record_.skips[name] = {"a demo", "ada", m_.wall(), until};
    checker_.skips(at, until);
  }
  write();
}

void Controller::operator_acts() {
  if (m_.wants_skip()) skip_something();
  if (m_.wants_approval()) approve();
  if (m_.wants_start()) start(false);
  if (!goes_on(record_)) return;
  const bool pause = !record_.row->paused && m_.wants_pause();
  const bool resume = record_.row->paused && m_.wants_resume();
  if (!pause && !resume) return;
  record_.row->paused = pause;
  checker_.paused(pause);
  write();
}

// The timer. In the calm, operators see to all that keeps nodes from their image.
void Controller::night_begins() {
  if (m_.misses_night()) return;
  if (m_.calm()) {
    record_.skips.clear();
    checker_.unskips();
    if (record_.row) record_.row->paused = false;
    checker_.paused(false);
    write();
  }
  const bool held = record_.row && !record_.row->held.empty();
  const bool stopped = record_.row && record_.row->stop == StopReason::budget;
  const bool covered = not_covered(record_.approval, m_.declared()).empty();
  const bool stuck = held || stopped || !covered || !checker_.to_name().empty();
  if (stuck && (m_.calm() || m_.rng.chance(0.5))) {
    if ((held || stopped) && !m_.calm() && m_.rng.chance(0.5)) m_.change_spec();
    approve();
  }
  start(true);
}

void Controller::judge(const ModelRun& run) {
  RunEnd end{run.id, 0, run.cancelled, {}};
  for (size_t i = 0; i < run.nodes.size(); ++i)
    end.nodes[m_.view.nodes[run.nodes[i]].name] = {run.ends[i], "drawn"};
  Result<Record> next = judged(record_, end, m_.wall());
  if (!next) {
    checker_.bad = "a run that ended is not taken";
    return;
  }
  record_ = std::move(next).value();
  if (dies()) return;
  write();
  checker_.judged(run);
  if (judged(record_, end, m_.wall()).ok()) checker_.bad = "a run is judged twice";
}

bool Controller::settle_batch() {
  if (!record_.row || !record_.row->batch) return true;
  Row& row = *record_.row;
  const ModelRun* run = m_.run_of(record_.id, row.batch->number);
  if (row.batch->run == 0) {
    row = (run ? with_run(row, run->id) : without_batch(row)).value();
    if (dies()) return false;
    write();
  }
  if (row.batch && run->phase == Phase::ended) judge(*run);
  return true;
}

void Controller::begin_batch(const Answer& answer) {
  record_ = with_batch(record_, m_.view, answer);
  if (dies()) return;
  write();
  if (dies()) return;
  const int64_t run = m_.start_run(record_, answer.batch.nodes, answer.batch.failure_budget);
  if (dies()) return;
  record_.row = with_run(*record_.row, run).value();
  write();
}

void Controller::count_end(const Answer& answer) {
  out_.finished += answer.what == Do::done;
  if (answer.what != Do::stop) return;
  out_.stopped_by_canary += answer.stop == StopReason::canary_failed;
  out_.stopped_by_budget += answer.stop == StopReason::budget;
  out_.stopped_by_target += answer.stop == StopReason::target_changed;
}

void Controller::step() {
  if (dies() || !checker_.bad.empty()) return;
  if (const auto window = goes_on(record_) ? corrected(record_.window, clocks()) : std::nullopt) {
    record_.window = *window;
    write();
  }
  operator_acts();
  if (!settle_batch() || !record_.row) return;
  if (goes_on(record_) && record_.window.preparing) return prepare();
  m_.view.target = target_of(m_.declared(), m_.view.policy);
  m_.view.window_open = is_open(record_.window, clocks());
  recall(m_.view, record_, m_.wall());
  const Answer answer = next(m_.view, *record_.row);
  checker_.answer(*record_.row, answer);
  ++out_.steps;
  if (answer.what == Do::run) return begin_batch(answer);
  const bool ends = answer.what == Do::stop || answer.what == Do::done;
  if (!ends || !goes_on(record_)) return;
  record_.row = with_answer(*record_.row, answer);
  if (dies()) return;
  write();
  count_end(answer);
}

}  // namespace

Nights simulate(uint64_t seed) {
  Nights out;
  Model model(seed);
  Checker checker(model);
  Controller controller(model, checker, out);
  out.nodes = static_cast<int>(model.view.nodes.size());
  int64_t night = 0;
  while (checker.bad.empty() && model.broken.empty()) {
    model.tick();
    if (model.night != night) {
      checker.record(controller.record());
      checker.dawn(goes_on(controller.record()));
      if (model.night > kNights || !checker.bad.empty()) break;
      night = model.night;
      controller.night_begins();
      checker.dusk();
    }
    controller.step();
  }
  if (checker.bad.empty() && goes_on(controller.record())) checker.end();
  out.bad = checker.bad.empty() ? model.broken : checker.bad;
  out.counts = checker.counts;
  return out;
}

}  // namespace muster::rollout::sim
