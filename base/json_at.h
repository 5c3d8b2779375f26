// Values at a key of JSON that others sent: a missing key and a wrong type are an empty value. What must be
// there and right is read with JsonReader (base/json.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

namespace muster {

std::string text_at(const Json& json, const char* key);
bool is_true_at(const Json& json, const char* key);
int64_t integer_at(const Json& json, const char* key);
const Json& list_at(const Json& json, const char* key);

}  // namespace muster
