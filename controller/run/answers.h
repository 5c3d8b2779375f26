// StepAnswers: what the steps of each action of a run came to, over all its attempts.
//
// A success counts alone. Else nothing that was once told is lost because a later attempt, or the node, did
// not come as far: of each step the newest answer stands, and "not run" takes none back. Rounds that look for
// who is guilty (FollowUp) are other orders of the same action and no answers of its own. Pure: rows of the
// journal in, JSON out. Thread: any; values only.
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
  // Records of steps as agents send them ({"step","status","message","ms","result"?}), as they were first
  // told of. Empty: nothing was.
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
