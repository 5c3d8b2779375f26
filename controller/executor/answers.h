// StepAnswers: the result that each step of a run's actions ended with, over all attempts of the action.
// After a success only that attempt's results count. Otherwise the newest result of each step counts, except
// that "not run" replaces none: a later attempt that stopped earlier does not remove earlier results. Rounds
// that isolate the faulty node (FollowUp) are further orders of the same action; their results do not count.
// Pure: takes journal rows, returns JSON. Thread safety: plain value types.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/ports/store.h"

namespace muster {

class StepAnswers {
 public:
  void apply(const JournalRow& row);
  // Returns the action's step records as agents send them ({"step","status","message","ms","result"?}), in
  // the order in which they were first reported; empty if there are none.
  const Json& of(const std::string& action) const;

 private:
  struct Reported {
    Json steps = Json::array();
    std::map<std::string, size_t> place = {};
    bool rounds = false;  // rounds that isolate the faulty node have begun: later results do not count
    void note(const Json& step);
  };
  std::map<std::string, Reported> reported_;
};

}  // namespace muster
