#include "controller/run/step_log.h"

#include <optional>

#include "base/json_at.h"

namespace muster {
namespace {

using S = ActionState;

std::optional<S> state_of(const std::string& event) {
  for (const S s : {S::intent, S::started, S::succeeded, S::failed, S::unknown, S::abandoned})
    if (to_string(s) == event) return s;
  return std::nullopt;
}

// The legal transitions: from, to, by how much the attempt number must grow.
struct Transition {
  S from, to;
  int step;
};
constexpr Transition kLegal[] = {
    {S::fresh, S::intent, 1},     {S::intent, S::started, 0},    {S::intent, S::succeeded, 0},
    {S::intent, S::failed, 0},    {S::intent, S::unknown, 0},    {S::started, S::succeeded, 0},
    {S::started, S::failed, 0},   {S::started, S::unknown, 0},   {S::failed, S::intent, 1},
    {S::unknown, S::intent, 1},   {S::unknown, S::succeeded, 0}, {S::unknown, S::failed, 0},
    {S::fresh, S::abandoned, 0},  {S::intent, S::abandoned, 0},  {S::started, S::abandoned, 0},
    {S::failed, S::abandoned, 0}, {S::unknown, S::abandoned, 0},
};

// Whether the agent's result of an action that failed names a step under that key.
bool names_step(const ActionRecord& record, const char* key) {
  if (record.state != S::failed && record.state != S::abandoned) return false;
  return record.result.is_object() && !text_at(record.result.value("result", Json()), key).empty();
}

}  // namespace

std::string_view to_string(ActionState state) {
  switch (state) {
    case S::fresh:
      return "fresh";
    case S::intent:
      return "intent";
    case S::started:
      return "started";
    case S::succeeded:
      return "succeeded";
    case S::failed:
      return "failed";
    case S::unknown:
      return "unknown";
    case S::abandoned:
      return "abandoned";
  }
  return "fresh";
}

bool refused_to_leave(const ActionRecord& record) { return names_step(record, "precondition"); }

bool was_denied(const ActionRecord& record) { return names_step(record, "denied"); }

const ActionRecord& StepLog::of(const std::string& action) const {
  static const ActionRecord kFresh;
  const auto it = actions_.find(action);
  return it == actions_.end() ? kFresh : it->second;
}

Status StepLog::check(const JournalRow& row) const {
  const auto to = state_of(row.event);
  if (row.action.empty() || !to) return Ok{};
  const ActionRecord& now = of(row.action);
  for (const auto& t : kLegal)
    if (t.from == now.state && t.to == *to && row.attempt == now.attempt + t.step) return Ok{};
  return fail(Code::conflict, "illegal transition of " + row.action + ": " +
                                  std::string(to_string(now.state)) + " (attempt " +
                                  std::to_string(now.attempt) + ") -> " + row.event + " (attempt " +
                                  std::to_string(row.attempt) + ")");
}

Status StepLog::apply(const JournalRow& row) {
  TRY_(check(row));
  const auto to = state_of(row.event);
  if (row.action.empty() || !to) return Ok{};
  ActionRecord& record = actions_[row.action];
  record.state = *to;
  record.attempt = row.attempt;
  if (*to == S::intent) {
    record.intent_time = row.time;
    record.intent_data = row.data;
    if (!record.first_intent) record.first_intent = row.time;
  } else if (*to != S::started) {
    record.ended = row.time;
    // A row `abandoned` has a reason but no result: the earlier result is kept.
    if (*to == S::abandoned && record.result.is_object() && row.data.is_object())
      record.result.update(row.data);
    else
      record.result = row.data;
  }
  return Ok{};
}

}  // namespace muster
