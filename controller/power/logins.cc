#include "controller/power/logins.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"

namespace muster {
namespace {

constexpr DurationMs kRemembered = 10 * kMinute;
constexpr DurationMs kBetween = 10 * kSecond, kBetweenTrusted = 20 * kSecond;
constexpr int kMost = 2;

std::string account_of(const PowerTarget& target) { return target.address + "\n" + target.user; }
std::string digest_of(const PowerTarget& target) {
  return sha256(
      fmt::format("{}\n{}{}", account_of(target), target.password, target.as_operator ? "\noperator" : ""));
}
long minutes(DurationMs span) { return static_cast<long>((span + kMinute - 1) / kMinute); }

}  // namespace

bool Logins::lately(TimeMs at) const { return now_() - at < kRemembered; }

const Logins::Tried* Logins::tried(const PowerTarget& target) const {
  const auto account = accounts_.find(account_of(target));
  if (account == accounts_.end()) return nullptr;
  const auto found = account->second.find(digest_of(target));
  return found == account->second.end() ? nullptr : &found->second;
}

// BMCs count failed logins per account, not per password: a new password after two failures gets one try.
int Logins::failures(const PowerTarget& target) const {
  if (const Tried* own = tried(target); own && (own->failed > 0 || own->let_in))
    return lately(own->at) ? own->failed : 0;
  const auto account = accounts_.find(account_of(target));
  if (account == accounts_.end()) return 0;
  const bool spent = std::any_of(account->second.begin(), account->second.end(), [this](const auto& one) {
    const bool all = one.second.failed >= kMost || (one.second.at_once && one.second.failed > 0);
    return all && lately(one.second.at);
  });
  return spent ? kMost - 1 : 0;
}

Logins::Tried& Logins::count(const PowerTarget& target, int failed) {
  const bool begins = failures(target) == 0;
  Tried& one = accounts_[account_of(target)][digest_of(target)];
  if (begins) one.trusted = one.let_in && lately(*one.let_in);
  one.failed = failed;
  one.at = now_();
  one.at_once = false;
  return one;
}

void Logins::let_in(const PowerTarget& target) {
  const std::lock_guard hold(mutex_);
  Tried& one = accounts_[account_of(target)][digest_of(target)];
  one = {};
  one.let_in = now_();
  rejected_suites_.erase(account_of(target));
}

void Logins::failed(const PowerTarget& target) {
  const std::lock_guard hold(mutex_);
  count(target, std::min(failures(target) + 1, kMost));
}

void Logins::refused(const PowerTarget& target) {
  const std::lock_guard hold(mutex_);
  count(target, kMost);
}

std::optional<Error> Logins::find(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  const Tried* one = tried(target);
  if (!one || failures(target) < kMost) return std::nullopt;
  const long left = minutes(one->at + kRemembered - now_());
  if (one->trusted && one->let_in)
    return fail(
        Code::unavailable,
        fmt::format(
            "BMC {} rejected this user and password twice, {} minutes after it accepted them. The next login "
            "is tried in {} minutes, because BMCs lock an account after a few failed logins. If the password "
            "was changed on the BMC, run `muster secret set`; after that the next call tries at once",
            target.address, minutes(now_() - *one->let_in), left));
  return fail(Code::denied,
              fmt::format("BMC {} rejected this user and password. No login is tried for {} minutes, because "
                          "BMCs lock an account after a few failed logins. Correct the secret with `muster "
                          "secret set`; after that, even with the same value, the next call tries at once",
                          target.address, left));
}

Status Logins::may_log_in(const PowerTarget& target, DurationMs left,
                          const std::function<void(DurationMs)>& pause) const {
  if (const auto refused = find(target)) return *refused;
  const DurationMs wait = this->pause(target);
  if (wait == 0) return Ok{};
  if (wait >= left)
    return fail(Code::unavailable,
                fmt::format("BMC {} rejected the user and password, and no time is left to try again",
                            target.address));
  pause(wait);
  return Ok{};
}

Status Logins::failed_login(const PowerTarget& target) {
  failed(target);
  const auto refused = find(target);
  if (!refused && target.one_login)
    return fail(Code::denied, "BMC " + target.address + " rejected this user and password");
  if (!refused) return Ok{};
  if (refused->code == Code::denied && target.on_refused) target.on_refused();
  return *refused;
}

bool Logins::took(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  const Tried* one = tried(target);
  return one && one->failed == 0 && one->let_in && lately(*one->let_in);
}

bool Logins::rejected(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  const Tried* one = tried(target);
  return one && one->failed > 0 && lately(one->at);
}

DurationMs Logins::pause(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  const Tried* one = tried(target);
  if (!one || one->at_once || one->failed == 0) return 0;
  return std::max<DurationMs>(0, one->at + (one->trusted ? kBetweenTrusted : kBetween) - now_());
}

void Logins::once_more() {
  const std::lock_guard hold(mutex_);
  for (auto& [name, account] : accounts_)
    for (auto& [digest, one] : account) {
      one.at_once = true;
      one.failed = std::min(one.failed, kMost - 1);
    }
}

void Logins::wants_session(const PowerTarget& target) {
  const std::lock_guard hold(mutex_);
  sessions_.insert(target.address);
}

bool Logins::has_session(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  return sessions_.count(target.address) > 0;
}

void Logins::wants_time(const PowerTarget& target) {
  const std::lock_guard hold(mutex_);
  slow_.insert(target.address);
}

bool Logins::needs_time(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  return slow_.count(target.address) > 0;
}

void Logins::has_suite(const PowerTarget& target, int suite) {
  const std::lock_guard hold(mutex_);
  suites_[target.address] = suite;
}

int Logins::suite(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  const auto found = suites_.find(target.address);
  return found == suites_.end() ? 0 : found->second;
}

void Logins::rejects_suite(const PowerTarget& target, int suite) {
  const std::lock_guard hold(mutex_);
  RejectedSuite& first = rejected_suites_[account_of(target)];
  if (first.suite == 0 || !lately(first.at)) first = {suite, now_()};
}

int Logins::rejected_suite(const PowerTarget& target) const {
  const std::lock_guard hold(mutex_);
  const auto found = rejected_suites_.find(account_of(target));
  return found == rejected_suites_.end() || !lately(found->second.at) ? 0 : found->second.suite;
}

}  // namespace muster
