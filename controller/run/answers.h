// StepAnswers: how the steps of each action of a run ended, over all its attempts.
//
// After a success only its answers count. Otherwise the newest answer of each step counts, except that "not
// run" replaces none: a later attempt that got less far does not remove earlier answers. Rounds that isolate
// the faulty node (FollowUp) are further orders of the same action; their answers do not count. Pure: rows of
// the journal in, JSON out. Thread: any; values only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "controller/store/store.h"

namespace muster {

class StepAnswers {
 public:
  void apply(const JournalRow& row);
  // Records of steps as agents send them ({"step","status","message","ms","result"?}), in the order of first
  // reports. Empty: none.
  const Json& of(const std::string& action) const;

 private:
  struct Told {
    Json steps = Json::array();
    std::map<std::string, size_t> place = {};
    bool rounds = false;  // further orders have begun: later steps are not the action's own
    void note(const Json& step);
  };
  std::map<std::string, Told> told_;
};

}  // namespace muster
