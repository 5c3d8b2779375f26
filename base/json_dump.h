// dump_json: converts JSON values to text everywhere in muster. It never throws: texts from tools, BMCs and
// drives can contain anything, and bytes that are not UTF-8 become U+FFFD. Numbers that JSON does not have
// become null.
#pragma once

#include <string>

#include "base/json.h"

namespace muster {

// Returns one line, or lines indented by `indent` blanks.
std::string dump_json(const Json& json, int indent = -1);
// Returns one line with everything but ASCII escaped, for digests and journals.
std::string dump_ascii(const Json& json);

}  // namespace muster
