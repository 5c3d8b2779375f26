// Parses JSON without a large part that is not needed. Implemented next to parse_json(), in base/json.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace muster {

// Parses an object as parse_json() does, but drops the member `key` of its member `parent`.
Result<Json> parse_json_without(std::string_view text, const std::string& parent, const std::string& key);

}  // namespace muster
