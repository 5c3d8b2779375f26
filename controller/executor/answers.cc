#include "controller/executor/answers.h"

#include "base/json_at.h"

namespace muster {
namespace {

const Json& steps_in(const Json& data) {
  static const Json kNone = Json::array();
  const auto result = data.is_object() ? data.find("result") : data.end();
  if (!data.is_object() || result == data.end() || !result->is_object()) return kNone;
  const auto steps = result->find("steps");
  return steps != result->end() && steps->is_array() ? *steps : kNone;
}

}  // namespace

void StepAnswers::Reported::note(const Json& step) {
  const std::string id = text_at(step, "step");
  if (id.empty()) return;
  const auto [at, news] = place.emplace(id, steps.size());
  if (news)
    steps.push_back(step);
  else if (text_at(step, "status") != "incomplete" || text_at(steps[at->second], "status") == "incomplete")
    steps[at->second] = step;
}

void StepAnswers::apply(const JournalRow& row) {
  if (row.action.empty() || (row.event != "step" && row.event != "failed" && row.event != "succeeded"))
    return;
  Reported& reported = reported_[row.action];
  if (row.event == "succeeded") {
    reported = Reported{};
    for (const Json& step : steps_in(row.data)) reported.note(step);
    return;
  }
  if (reported.rounds) return;
  if (row.event == "step") return reported.note(row.data);
  for (const Json& step : steps_in(row.data)) reported.note(step);
  const auto follow_up = row.data.is_object() ? row.data.find("follow_up") : row.data.end();
  reported.rounds = row.data.is_object() && follow_up != row.data.end() && *follow_up == true;
}

const Json& StepAnswers::of(const std::string& action) const {
  static const Json kNone = Json::array();
  const auto it = reported_.find(action);
  return it == reported_.end() ? kNone : it->second.steps;
}

}  // namespace muster
