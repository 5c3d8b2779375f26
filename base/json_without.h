// Reading JSON of which a large part is not needed. Implemented with parse_json(), in base/json.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace muster {

// parse_json() of an object without the member `key` of its member `parent`.
Result<Json> parse_json_without(std::string_view text, const std::string& parent, const std::string& key);

}  // namespace muster
