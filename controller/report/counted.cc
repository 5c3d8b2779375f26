#include "controller/report/counted.h"

#include "controller/report/measured.h"

namespace muster {

bool is_of_counts(const Json& expectation) {
  for (const char* other : {"min", "max", "degraded_below", "derive", "fleet_min_ratio", "history_min_ratio"})
    if (expectation.contains(other)) return false;
  return expectation.contains("degraded_above");
}

void hold_open(Check& check, const MeasuredStep& step, const std::string& metric) {
  const Json& why = field(field(field(step.result, "detail"), "at_least"), metric.c_str());
  if (!why.is_string() || !check.measured) return;
  check.measured_text = "at least " + check.measured_text;
  if (check.verdict != Verdict::pass) return;
  check.verdict = Verdict::not_looked_at;
  check.reason = text_of(why);
}

}  // namespace muster
