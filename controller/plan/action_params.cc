#include "controller/plan/action_params.h"

#include <set>

#include "base/json_dump.h"

namespace muster {
namespace {

const std::string kStepsKey = "steps";

Json parsed(const SharedText& text) { return parse_json(text.text()).value_or(Json()); }

}  // namespace

ActionParams ActionParams::with_texts(const Json& whole, TextPool& pool) {
  if (!whole.is_object()) return whole;
  ActionParams out;
  for (const auto& [key, value] : whole.items())
    if (key == kStepsKey && value.is_array()) {
      std::vector<SharedText> steps;
      for (const Json& step : value) steps.emplace_back(pool.of(dump_json(step)));
      out.set_steps(std::move(steps));
    } else if (key == "ring" || key == "rings") {
      out.set(key, SharedText(pool.of(dump_json(value))));
    } else {
      out.own_[key] = value;
    }
  return out;
}

void ActionParams::set_steps(std::vector<SharedText> steps) {
  has_steps_ = true;
  steps_ = std::move(steps);
}

void ActionParams::set(const std::string& key, SharedText value) { shared_[key] = std::move(value); }

void ActionParams::set_own(const std::string& key, Json value) { own_[key] = std::move(value); }

Json ActionParams::without_shared() const {
  Json out = own_;
  if (has_steps_) out[kStepsKey] = value(kStepsKey, Json());
  return out;
}

Json ActionParams::json() const {
  Json out = without_shared();
  for (const auto& [key, text] : shared_) out[key] = parsed(text);
  return out;
}

bool ActionParams::contains(const std::string& key) const {
  return own_.contains(key) || shared_.count(key) > 0 || (has_steps_ && key == kStepsKey);
}

Json ActionParams::value(const std::string& key, Json otherwise) const {
  if (has_steps_ && key == kStepsKey) {
    Json out = Json::array();
    for (const auto& step : steps_) out.push_back(parsed(step));
    return out;
  }
  if (const auto text = shared_.find(key); text != shared_.end()) return parsed(text->second);
  const auto own = own_.find(key);
  return own == own_.end() ? std::move(otherwise) : *own;
}

void ActionParams::each_piece(const std::function<void(std::string_view)>& take) const {
  if (!own_.is_object()) return take(dump_json(own_));
  std::set<std::string> keys;
  for (const auto& [key, value] : own_.items()) keys.insert(key);
  for (const auto& [key, text] : shared_) keys.insert(key);
  if (has_steps_) keys.insert(kStepsKey);
  const char* between = "{";
  for (const auto& key : keys) {
    take(std::exchange(between, ","));
    take(dump_json(Json(key)) + ":");
    if (const auto text = shared_.find(key); text != shared_.end()) {
      text->second.each(take);
    } else if (has_steps_ && key == kStepsKey) {
      take("[");
      for (size_t i = 0; i < steps_.size(); ++i) {
        if (i > 0) take(",");
        steps_[i].each(take);
      }
      take("]");
    } else {
      take(dump_json(own_[key]));
    }
  }
  take(keys.empty() ? "{}" : "}");
}

size_t ActionParams::size_of_texts() const {
  size_t out = 0;
  for (const auto& step : steps_) out += step.size() + 1;
  for (const auto& [key, text] : shared_) out += text.size();
  return out;
}

std::string ActionParams::text() const {
  std::string out;
  each_piece([&](std::string_view piece) { out += piece; });
  return out;
}

}  // namespace muster
