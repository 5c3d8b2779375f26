// dump_json: how a JSON value becomes text everywhere in muster. It never throws: texts of tools, BMCs and
// drives can contain anything, and bytes that are not UTF-8 become U+FFFD. (Json::dump() throws on them;
// tests/tidy_test.cc forbids it outside this unit.)
#pragma once

#include <string>

#include "base/json.h"

namespace muster {

// One line, or indented by `indent` blanks.
std::string dump_json(const Json& json, int indent = -1);
// One line with everything but ASCII escaped: for digests and journals.
std::string dump_ascii(const Json& json);

}  // namespace muster
