#include "controller/power/wrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace muster {

namespace {

constexpr DurationMs kFirstPause = kSecond, kLongestPause = 15 * kSecond;
// Longest time that a read after an unknown outcome may use.
constexpr DurationMs kLook = 10 * kSecond;

class Retrying : public Power {
 public:
  Retrying(std::unique_ptr<Power> driver, Waiter waiter, uint64_t seed, std::optional<DurationMs> retries_for)
      : driver_(std::move(driver)), waiter_(std::move(waiter)), random_(seed), retries_for_(retries_for) {}

  Result<PowerState> state(DurationMs deadline) override {
    return read<PowerState>(deadline, [this](DurationMs left) { return driver_->state(left); });
  }
  Result<Json> describe(DurationMs deadline) override {
    return read<Json>(deadline, [this](DurationMs left) { return driver_->describe(left); });
  }
  Status on(DurationMs deadline) override {
    return change(deadline, PowerState::on, [this](DurationMs left) { return driver_->on(left); });
  }
  Status off(DurationMs deadline, bool graceful) override {
    return change(deadline, PowerState::off,
                  [this, graceful](DurationMs left) { return driver_->off(left, graceful); });
  }
  // Setting the same value twice is harmless, and drivers read it back: an unknown outcome may be retried.
  Status can_boot_network(DurationMs deadline) override {
    return read<Ok>(deadline, [this](DurationMs left) { return driver_->can_boot_network(left); });
  }
  Status boot_once_network(DurationMs deadline) override {
    return read<Ok>(deadline, [this](DurationMs left) { return driver_->boot_once_network(left); });
  }

 private:
  using Attempt = std::function<Status(DurationMs)>;

  // Pauses before the next attempt; false if no time is left for one.
  bool pause(int attempt, TimeMs end) {
    const DurationMs full = std::min(kLongestPause, kFirstPause << std::min(attempt, 8));
    const DurationMs span =
        full / 2 + static_cast<DurationMs>(random_() % static_cast<uint64_t>(full / 2 + 1));
    if (waiter_.now() + span >= end) return false;
    waiter_.sleep(span);
    return true;
  }

  template <typename T>
  Result<T> read(DurationMs deadline, const std::function<Result<T>(DurationMs)>& attempt) {
    const TimeMs begin = waiter_.now(), end = begin + deadline;
    const TimeMs last = begin + std::min(deadline, retries_for_.value_or(deadline));
    for (int i = 0;; ++i) {
      Result<T> out = attempt(end - waiter_.now());
      const bool again =
          !out.ok() && (out.error().code == Code::unavailable || out.error().code == Code::timeout);
      if (!again) return out;
      if (pause(i, last)) continue;
      if (!retries_for_) return out;
      return fail(out.error().code, fmt::format("{} (attempts: {}, in {})", out.error().message, i + 1,
                                                to_human(waiter_.now() - begin)));
    }
  }

  Status change(DurationMs deadline, PowerState wanted, const Attempt& attempt) {
    const TimeMs end = waiter_.now() + deadline;
    for (int i = 0;; ++i) {
      Status out = attempt(end - waiter_.now());
      if (out.ok()) return out;
      const Code code = out.error().code;
      if (code != Code::unavailable && code != Code::timeout) return out;
      if (code == Code::timeout) {
        const auto now = driver_->state(std::max<DurationMs>(kSecond, std::min(kLook, end - waiter_.now())));
        if (now.ok() && *now == wanted) return Ok{};
        if (!now.ok() || *now == PowerState::unknown) return out;  // still unknown: the caller decides
      }
      if (!pause(i, end)) return out;
    }
  }

  std::unique_ptr<Power> driver_;
  Waiter waiter_;
  std::mt19937_64 random_;
  const std::optional<DurationMs> retries_for_;
};

}  // namespace

std::unique_ptr<Power> with_retries(std::unique_ptr<Power> driver, Waiter waiter, uint64_t seed,
                                    std::optional<DurationMs> retries_for) {
  return std::make_unique<Retrying>(std::move(driver), std::move(waiter), seed, retries_for);
}

PowerDriver with_retries(PowerDriver driver) {
  auto make = driver.make;
  driver.make = [make](PowerTarget target) -> Result<std::unique_ptr<Power>> {
    const uint64_t seed = std::hash<std::string>{}(target.node + "@" + target.address);
    Waiter waiter = waiter_of(target);
    const auto retries_for = target.retries_for;
    TRY(auto power, make(std::move(target)));
    return with_retries(std::move(power), std::move(waiter), seed, retries_for);
  };
  return driver;
}

}  // namespace muster
