#include "controller/power/sakura/phy_budget.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/json_dump.h"
#include "sys/log.h"
#include "sys/os.h"

namespace muster {
namespace {

// Longer than it takes to fill the whole bucket.
constexpr DurationMs kLongest = 60 * kMinute;

double filled_in(DurationMs span) {
  return static_cast<double>(span) * PhyBudget::kPerMinute / static_cast<double>(kMinute);
}

}  // namespace

PhyBudget::PhyBudget(Options options) : options_(std::move(options)), filled_(options_.now()) { load(); }

void PhyBudget::fill() {
  const TimeMs at = options_.now();
  left_ = std::min<double>(kBurst, left_ + filled_in(at - filled_));
  filled_ = at;
}

DurationMs PhyBudget::take(bool for_order) {
  fill();
  const double needed = for_order ? 1 : 1 + kForOrders;
  if (left_ < needed) return static_cast<DurationMs>(std::ceil((needed - left_) * kMinute / kPerMinute));
  left_ -= 1;
  keep();
  return 0;
}

void PhyBudget::block(DurationMs span) {
  blocked_until_ = std::max(blocked_until_, options_.now() + std::min(span, kLongestBlock));
  keep();
}

DurationMs PhyBudget::blocked() const { return std::max<DurationMs>(0, blocked_until_ - options_.now()); }

void PhyBudget::load() {
  if (options_.folder.empty()) return;
  const auto text = Files(options_.folder).read("/" + options_.name);
  if (!text.ok() && text.error().code == Code::not_found) return;
  left_ = kForOrders;
  const auto kept = text.ok() ? parse_json(*text) : Result<Json>(text.error());
  const auto number = [&](const char* key) {
    const bool there = kept.ok() && kept->is_object() && kept->contains(key) && kept->at(key).is_number();
    return there ? kept->at(key).get<double>() : -1.0;
  };
  const double left = number("left"), at = number("at"), blocked_until = number("blocked_until");
  if (!(left >= 0 && left <= kBurst && at >= 0 && blocked_until >= 0))
    return log::warning("the stored remaining request quota cannot be read: requests are delayed",
                        {{"file", options_.name}});
  const auto now = static_cast<double>(options_.of_day());
  const auto span = [](double ms, DurationMs longest) {
    return static_cast<DurationMs>(std::clamp(ms, 0.0, static_cast<double>(longest)));
  };
  left_ = std::min<double>(kBurst, left + filled_in(span(now - at, kLongest)));
  blocked_until_ = options_.now() + span(blocked_until - now, kLongestBlock);
}

void PhyBudget::keep() {
  if (options_.folder.empty()) return;
  const TimeMs now = options_.of_day();
  const Json kept = {
      {"left", left_}, {"at", now}, {"blocked_until", blocked() > 0 ? now + blocked() : TimeMs{0}}};
  const auto written = Files(options_.folder).write("/" + options_.name, dump_json(kept) + "\n", 0600);
  if (!written.ok() && !complained_)
    log::error("the remaining request quota could not be stored", {{"error", written.error().message}});
  complained_ = !written.ok();
}

}  // namespace muster
