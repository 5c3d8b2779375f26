#include "controller/report/bounds.h"

#include <fmt/format.h>

#include <utility>

#include "controller/report/measured.h"

namespace muster {

void set_failed(Check& check, std::string reason) {
  check.verdict = check.mandatory ? Verdict::fail : Verdict::degraded;
  check.reason = std::move(reason);
}

void Bounds::say(const std::string& words) { words_ += (words_.empty() ? "" : "; ") + words; }

void Bounds::cannot(const std::string& lack, const std::string& words, const std::string& of) {
  if (lack_.empty()) lack_ = lack;
  if (of_.empty()) of_ = of;
  lacks_figure_ = true;
  say(words);
}

void Bounds::cannot_compare(const std::string& lack) {
  if (lack_.empty()) lack_ = lack;
  say(lack);
}

void Bounds::floor(Verdict verdict, double value, const std::string& words, const std::string& source) {
  say(words);
  auto& limit = verdict == Verdict::fail ? fail_below_ : degraded_below_;
  if (!limit || value > limit->value) limit = {value, words, source};
}

void Bounds::ceiling(Verdict verdict, double value, const std::string& words, const std::string& source) {
  say(words);
  auto& limit = verdict == Verdict::fail ? fail_above_ : degraded_above_;
  if (!limit || value < limit->value) limit = {value, words, source};
}

void Bounds::proven_floor(double value, const std::string& words, const std::string& source) {
  floor(Verdict::fail, value, words, source);
  if (!proven_ || value > *proven_) proven_ = value;
}

void Bounds::hold(Check& check, const std::optional<Limit>& low, const std::optional<Limit>& high) const {
  if (low) check.expected = low->value, check.expected_text = "at least " + amount(low->value, unit_);
  if (high) {
    if (!low) check.expected = high->value, check.lower_is_better = true;
    check.expected_text += fmt::format("{}at most {}", low ? ", " : "", amount(high->value, unit_));
  }
  for (const auto* limit : {&low, &high}) {
    if (!*limit) continue;
    check.because += (check.because.empty() ? "" : "; ") + (*limit)->words;
    if (check.source != (*limit)->source)
      check.source += (check.source.empty() ? "" : "; ") + (*limit)->source;
  }
}

void Bounds::apply(Check& check) const {
  std::optional<Limit> low = fail_below_, high = fail_above_;
  if (degraded_below_ && (!low || degraded_below_->value > low->value)) low = degraded_below_;
  if (degraded_above_ && (!high || degraded_above_->value < high->value)) high = degraded_above_;
  check.derivation = words_;
  hold(check, low, high);
  if (!check.measured) return;
  const double value = *check.measured;
  const std::string text = amount(value, unit_);
  if (fail_below_ && value < fail_below_->value) {
    set_failed(check, fmt::format("{} is below {}", text, amount(fail_below_->value, unit_)));
    const bool proven = proven_ && value < *proven_;
    if (check.verdict == Verdict::fail && !proven) check.missed_floor = fail_below_->value;
  } else if (fail_above_ && value > fail_above_->value) {
    set_failed(check, fmt::format("{} is above {}", text, amount(fail_above_->value, unit_)));
  } else if (low && value < low->value) {
    check.verdict = Verdict::degraded;
    check.reason = fmt::format("{} is below {}", text, amount(low->value, unit_));
  } else if (high && value > high->value) {
    check.verdict = Verdict::degraded;
    check.reason = fmt::format("{} is above {}", text, amount(high->value, unit_));
  } else if (!low && !high && !lack_.empty()) {
    check.verdict = Verdict::not_judged;
    check.reason = lack_;
    check.uncompared = !lacks_figure_;
    check.no_figure_for = of_;
  }
}

}  // namespace muster
