#include "controller/run/rings.h"

namespace muster {

std::shared_ptr<const Json> Rings::parsed(const ActionParams& params, const char* key) const {
  const auto shared = params.shared().find(key);
  if (shared == params.shared().end())
    return params.contains(key) ? std::make_shared<const Json>(params.value(key, nullptr)) : nullptr;
  std::string text = shared->second.text();
  if (const auto known = kept_.find(text); known != kept_.end()) return known->second;
  if (kept_.size() >= kMostKept) kept_.clear();
  return kept_[std::move(text)] = std::make_shared<const Json>(params.value(key, nullptr));
}

RingsOfOrder Rings::of(const ActionParams& params) const {
  return {parsed(params, "ring"), parsed(params, "rings")};
}

}  // namespace muster
