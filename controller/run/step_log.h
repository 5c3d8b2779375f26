// StepLog: the state of every action of a run, computed from the run's journal rows. Has the only table of
// legal transitions.
//
//   (new) -> intent -> started -> succeeded | failed | unknown          attempt n
//            failed, unknown -> intent (attempt n+1)                    retry
//            unknown -> succeeded | failed                              determined later
//            anything not final -> abandoned                            its node was quarantined or the run
//            was cancelled
// `intent` is durable before the effect, `succeeded`/`failed` after it. Any other sequence is Code::conflict
// and changes nothing. Rows with other events (step, quarantined, note ...) are not transitions and are
// ignored. No I/O. Thread: the reactor's.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "controller/ports/store.h"

namespace muster {

enum class ActionState { fresh, intent, started, succeeded, failed, unknown, abandoned };
std::string_view to_string(ActionState state);

struct ActionRecord {
  ActionState state = ActionState::fresh;
  int attempt = 0;
  TimeMs intent_time = 0;  // of the newest attempt
  TimeMs first_intent = 0, ended = 0;
  Json intent_data = Json::object();
  Json result = Json();  // `data` of the row succeeded, failed or unknown, plus that of abandoned
};

// True if its agent refused the action's order because of a precondition (wire::WorkOrder): the node did not
// leave its system, and nothing was changed.
bool refused_to_leave(const ActionRecord& record);
// True if it failed in a step, or for a precondition, that ended with Code::denied. In a pause and behind it
// that means that others have taken the node out of its scheduler.
bool was_denied(const ActionRecord& record);

class StepLog {
 public:
  // Ok if the row may come next or is not a transition, else Code::conflict.
  Status check(const JournalRow& row) const;
  Status apply(const JournalRow& row);
  const ActionRecord& of(const std::string& action) const;
  const std::map<std::string, ActionRecord>& all() const { return actions_; }

 private:
  std::map<std::string, ActionRecord> actions_;
};

}  // namespace muster
