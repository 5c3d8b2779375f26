#include "base/record.h"

#include <algorithm>

namespace muster::record {
namespace {

constexpr size_t kMostNamed = 20;  // a hostile message may have any number of them

}  // namespace

std::string Place::text() const {
  if (!outer) return std::string(key);
  if (index != SIZE_MAX) return outer->text() + "[" + std::to_string(index) + "]";
  return outer->text() + "." + std::string(key);
}

void Problems::add(const Place& at, const std::string& what) {
  if (texts_.size() < kMostNamed)
    texts_.push_back(at.text() + ": " + what);
  else
    ++unnamed_;
}

void Problems::wrong_type(const Place& at, const Json& found) {
  add(at, std::string("wrong type (") + found.type_name() + ")");
}

Status Problems::status() const {
  if (texts_.empty()) return Ok{};
  std::string all;
  for (const std::string& text : texts_) all += (all.empty() ? "" : "; ") + text;
  if (unnamed_ > 0) all += "; and " + std::to_string(unnamed_) + " more";
  return fail(Code::invalid, all);
}

Object::Object(const Json& json, const Place& place, Problems& found)
    : at(place), problems(found), json_(json) {
  if (!json.is_object()) problems.add(at, std::string("expected an object, got ") + json.type_name());
}

const Json* Object::find(const char* key, bool required) {
  known_.push_back(key);
  if (!json_.is_object()) return nullptr;
  const auto field = json_.find(key);
  if (field != json_.end()) return ++found_, &*field;
  if (required) problems.add(Place{&at, key}, "missing");
  return nullptr;
}

void Object::finish() {
  if (allow_unknown_ || !json_.is_object() || found_ == json_.size()) return;
  for (const auto& [key, value] : json_.items())
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      problems.add(Place{&at, key}, "unknown key");
}

}  // namespace muster::record
