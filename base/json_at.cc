#include "base/json_at.h"

namespace muster {
namespace {

// Null if it is missing.
const Json* find_at(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

}  // namespace

std::string text_at(const Json& json, const char* key) {
  const Json* found = find_at(json, key);
  return found && found->is_string() ? found->get<std::string>() : "";
}

bool is_true_at(const Json& json, const char* key) {
  const Json* found = find_at(json, key);
  return found && found->is_boolean() && found->get<bool>();
}

int64_t integer_at(const Json& json, const char* key) {
  const Json* found = find_at(json, key);
  return found && found->is_number_integer() ? found->get<int64_t>() : 0;
}

const Json& list_at(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  const Json* found = find_at(json, key);
  return found && found->is_array() ? *found : kNone;
}

}  // namespace muster
