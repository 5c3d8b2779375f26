#include "tests/unit/rollout/nights.h"

#include <algorithm>

#include "controller/rollout/rollout_record.h"
#include "tests/unit/rollout/checker.h"

namespace muster::rollout::sim {
namespace {

// What the daemon does with next(), and the crashes between its steps.
class Controller {
 public:
  Controller(Model& model, Checker& checker, Nights& out) : m_(model), checker_(checker), out_(out) {
    begin_rollout();
  }

  void step();
  void night_begins();
  const Row& row() const { return durable_; }

 private:
  void begin_rollout() {
    row_ = begun(++rollouts_, m_.view.target);
    checker_.new_rollout(row_.id);
    ++out_.rollouts;
    write();
  }
  void write() { durable_ = row_; }
  // Everything but the durable row is lost.
  bool dies() {
    if (!m_.controller_dies()) return false;
    const std::string text = to_text(durable_);
    const Result<Row> again = row_from_text(text);
    if (!again || to_text(again.value()) != text) checker_.bad = "the row does not survive a restart";
    if (again) row_ = again.value();
    ++out_.restarts;
    return true;
  }
  void operator_acts();
  // False: there is nothing more to do in this tick.
  bool settle_batch();
  void judge(const ModelRun& run);
  void begin_batch(const Answer& answer);
  void count_end(const Answer& answer);

  Model& m_;
  Checker& checker_;
  Nights& out_;
  int64_t rollouts_ = 0;
  Row row_, durable_;
};

void Controller::operator_acts() {
  const bool pause = !row_.paused && m_.wants_pause();
  const bool resume = row_.paused && m_.wants_resume();
  if (!pause && !resume) return;
  row_.paused = pause;
  checker_.paused(pause);
  write();
}

// Also a second `start`, which changes nothing: it is the same night.
void Controller::night_begins() {
  if (row_.stage == Stage::stopped) {
    if (m_.calm() || m_.rng.chance(0.5)) {
      if (row_.stop != StopReason::target_changed) m_.change_spec();
      begin_rollout();
    }
    return;
  }
  if (Result<Row> again = started_again(row_, m_.view.target)) {
    row_ = again.value();
    write();
  } else if (!row_.batch) {
    begin_rollout();
  }
}

void Controller::judge(const ModelRun& run) {
  RunEnd end{run.id, m_.view.night, run.cancelled, {}};
  for (size_t i = 0; i < run.nodes.size(); ++i)
    end.nodes[m_.view.nodes[run.nodes[i]].name] = {run.ends[i], "drawn"};
  Result<Row> judged_row = judged(row_, end);
  if (!judged_row) {
    checker_.bad = "a run that ended is not taken";
    return;
  }
  row_ = std::move(judged_row).value();
  if (dies()) return;
  write();
  checker_.judged(run);
  if (judged(row_, end).ok()) checker_.bad = "a run is judged twice";
}

bool Controller::settle_batch() {
  if (!row_.batch) return true;
  const ModelRun* run = m_.run_of(row_.id, row_.batch->number);
  if (row_.batch->run == 0) {
    row_ = (run ? with_run(row_, run->id) : without_batch(row_)).value();
    if (dies()) return false;
    write();
  }
  if (row_.batch && run->phase == Phase::ended) judge(*run);
  return true;
}

void Controller::begin_batch(const Answer& answer) {
  row_ = with_batch(with_answer(row_, answer), m_.view, answer);
  if (dies()) return;
  write();
  if (dies()) return;
  const int64_t run = m_.start_run(row_, answer.batch.nodes, answer.batch.failure_budget);
  if (dies()) return;
  row_ = with_run(row_, run).value();
  write();
}

void Controller::count_end(const Answer& answer) {
  out_.finished += answer.what == Do::done;
  if (answer.what != Do::stop) return;
  out_.stopped_by_canary += answer.stop == StopReason::canary_failed;
  out_.stopped_by_budget += answer.stop == StopReason::budget;
  out_.stopped_by_spec += answer.stop == StopReason::target_changed;
  out_.refused += answer.stop == StopReason::no_canary;
}

void Controller::step() {
  if (dies() || !checker_.bad.empty()) return;
  operator_acts();
  if (!settle_batch()) return;
  const Answer answer = next(m_.view, row_);
  checker_.answer(row_, answer);
  ++out_.steps;
  if (answer.what == Do::run) return begin_batch(answer);
  const bool ends = answer.what == Do::stop || answer.what == Do::done;
  if (!ends || row_.stage == Stage::stopped || row_.stage == Stage::done) return;
  row_ = with_answer(row_, answer);
  if (dies()) return;
  write();
  count_end(answer);
}

bool is_over(const Row& row) { return row.stage == Stage::stopped || row.stage == Stage::done; }

// In the calm, each night brings the cluster nearer to the spec, or there is nothing to bring.
void check_progress(const Controller& controller, Checker& checker, int before) {
  if (checker.updated == before && !is_over(controller.row())) checker.bad = "a calm night without progress";
}

}  // namespace

Nights simulate(uint64_t seed) {
  Nights out;
  Model model(seed);
  Checker checker(model);
  Controller controller(model, checker, out);
  out.nodes = static_cast<int>(model.view.nodes.size());
  int64_t night = model.view.night;
  int before = 0;
  while (checker.bad.empty() && model.broken.empty()) {
    model.tick();
    if (model.view.night != night) {
      checker.row(controller.row());
      if (night > kCalm) check_progress(controller, checker, before);
      if (model.view.night > kNights || !checker.bad.empty()) break;
      night = model.view.night;
      before = checker.updated;
      controller.night_begins();
    }
    controller.step();
  }
  if (checker.bad.empty() && out.nodes <= 20 && !is_over(controller.row())) checker.bad = "it does not end";
  out.bad = checker.bad.empty() ? model.broken : checker.bad;
  out.batches = checker.batches;
  out.canaries = checker.canaries;
  out.updated = checker.updated;
  out.prefetched = checker.prefetched;
  return out;
}

}  // namespace muster::rollout::sim
