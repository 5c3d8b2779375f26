// StepAnswers: what the steps of each action of a run came to, over all its attempts.
//
// A success counts alone. Otherwise a later attempt, or a node, that got less far does not remove earlier
// answers: of each step the newest answer counts, and "not run" replaces none. Rounds that isolate the faulty
// node (FollowUp) are other orders of the same action and not its own answers. Pure: rows of the journal in,
// JSON out. Thread: any; values only.
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
    bool rounds = false;  // from now on they are not about the action itself
    void note(const Json& step);
  };
  std::map<std::string, Told> told_;
};

}  // namespace muster
