#include "controller/rollout/rebuild.h"

namespace muster::rollout {
namespace {

constexpr DurationMs kHalfADay = 12 * 60 * kMinute;

}  // namespace

DurationMs least_age(Rebuild rebuild) { return (rebuild == Rebuild::weekly ? 13 : 1) * kHalfADay; }

bool is_due(Rebuild rebuild, TimeMs built_at, TimeMs now) {
  if (rebuild == Rebuild::never) return false;
  return built_at == 0 || built_at > now || now - built_at >= least_age(rebuild);
}

std::vector<std::string> due_images(Rebuild rebuild, const std::map<std::string, TimeMs>& built_at,
                                    TimeMs now) {
  std::vector<std::string> out;
  for (const auto& [image, at] : built_at)
    if (is_due(rebuild, at, now)) out.push_back(image);
  return out;
}

std::optional<std::string> next_build(const Builds& builds) {
  for (const auto& [image, build] : builds)
    if (build.ended == 0) return image;
  return std::nullopt;
}

bool may_pass(const Error& error) {
  return error.code == Code::failed || error.code == Code::timeout || error.code == Code::unavailable ||
         error.code == Code::conflict;
}

}  // namespace muster::rollout
