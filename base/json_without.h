// Reading JSON of which a large part is not needed. Implemented with parse_json(), in base/json.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace muster {

// parse_json() without the members `key` of objects that lie `depth` objects or arrays deep (0: the whole).
Result<Json> parse_json_without(std::string_view text, const std::string& key, int depth);

}  // namespace muster
