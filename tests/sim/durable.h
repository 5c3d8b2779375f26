// Durable: what the journal of the newest run holds for certain, kept as its rows become durable: the store
// is read whole only after a crash. Thread: one.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "controller/ports/store.h"
#include "controller/run/step_log.h"

namespace muster::sim {

class Durable {
 public:
  // After a crash, which may have kept what was not reported. Nothing is on its way to the store then.
  void read(Store& store) {
    const auto run = store.run(0);
    begin(run.ok() ? run->id : 0);
    for (const auto& row : store.journal(run_).value_or({})) (void)apply(row);
  }
  void add(const RunRow& row) {
    if (row.id > run_) begin(row.id);
  }
  // conflict: it may not come behind the rows before it.
  Status add(const JournalRow& row) {
    if (row.run < run_) return Ok{};
    if (row.run > run_) begin(row.run);
    return apply(row);
  }
  bool has_intent(const std::string& action, int attempt) const {
    return intents_.count({action, attempt}) > 0;
  }
  const StepLog& log() const { return log_; }

 private:
  void begin(int64_t run) {
    run_ = run;
    log_ = StepLog();
    intents_.clear();
  }
  Status apply(const JournalRow& row) {
    if (row.event == "intent") intents_.insert({row.action, row.attempt});
    return log_.apply(row);
  }

  int64_t run_ = 0;
  std::set<std::pair<std::string, int>> intents_;
  StepLog log_;
};

}  // namespace muster::sim
