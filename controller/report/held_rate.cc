#include "controller/report/held_rate.h"

#include <fmt/format.h>

#include "controller/report/measured.h"

namespace muster {

void pass_held_to(const HeldRate& held, const std::string& unit, Check& check) {
  check.verdict = Verdict::pass;
  check.expected = held.value;
  check.expected_text = "at least " + amount(held.value, unit);
  check.because = held.because;
  check.source = held.source;
  check.derivation = fmt::format("{} ({})", held.because, held.source);
}

Check unjudged(Check check, const std::string& why, const std::string& of) {
  check.no_figure_for = of;
  check.verdict = Verdict::not_judged;
  check.mandatory = false;
  check.reason = why;
  check.derivation = "not judged: " + why;
  return check;
}

}  // namespace muster
