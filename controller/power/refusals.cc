#include "controller/power/refusals.h"

#include <fmt/format.h>

#include "base/digest.h"

namespace muster {
namespace {

constexpr DurationMs kRemembered = 10 * kMinute;

std::string digest_of(const PowerTarget& target) {
  return sha256(fmt::format("{}\n{}\n{}", target.address, target.user, target.password));
}

}  // namespace

void RefusedSecrets::add(const PowerTarget& target) { by_node_[target.node] = {digest_of(target), now_()}; }

std::optional<Error> RefusedSecrets::find(const PowerTarget& target) const {
  const auto found = by_node_.find(target.node);
  if (found == by_node_.end() || found->second.digest != digest_of(target)) return std::nullopt;
  const DurationMs left = found->second.at + kRemembered - now_();
  if (left <= 0) return std::nullopt;
  return fail(
      Code::denied,
      fmt::format("BMC {} refused this user and password. It is not asked with them again for {} minutes, "
                  "because BMCs lock an account after a few failed logins. Correct the secret with `muster "
                  "secret set`; setting it, even to the same value, makes the next call ask at once",
                  target.address, (left + kMinute - 1) / kMinute));
}

}  // namespace muster
