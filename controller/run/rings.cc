#include "controller/run/rings.h"

namespace muster {

std::shared_ptr<const Json> Rings::parsed(const ActionParams& params, const char* key) const {
  const auto text = params.shared().find(key);
  if (text == params.shared().end())
    return params.contains(key) ? std::make_shared<const Json>(params[key]) : nullptr;
  const std::string_view whole = text->second.only_piece();
  if (whole.empty()) return std::make_shared<const Json>(params[key]);
  if (kept_.size() >= kMostKept) kept_.clear();
  auto& kept = kept_[{whole.data(), whole.size()}];
  if (!kept) kept = std::make_shared<const Json>(params[key]);
  return kept;
}

RingsOfOrder Rings::of(const ActionParams& params) const {
  return {parsed(params, "ring"), parsed(params, "rings")};
}

}  // namespace muster
