// Tolerant parsing of JSON from BMCs: decompresses gzip that was not requested, and replaces bytes that are
// invalid in JSON. Some vendors output a part's raw memory as text, and an unneeded text must not make the
// state of the machine unreadable.
//
// Invalid UTF-8 and control characters inside a string become U+FFFD; outside of strings control characters
// are removed. Valid JSON is not changed. Pure functions, no I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace muster {

// `encoding`: the header Content-Encoding, "" for none. `most`: limit in bytes after decompression.
// Code::invalid: the body is not JSON; the message describes it.
Result<Json> parse_bmc_json(std::string_view body, const std::string& encoding, size_t most);

// Safe field access: return "" or null if the JSON has a different structure.
std::string json_text(const Json& json, const char* key);
const Json& json_at(const Json& json, const std::vector<std::string>& path);

}  // namespace muster
