// The JSON that BMCs send, made readable: decompressed if it comes as gzip although that was not requested,
// and without bytes that are invalid in JSON. Vendors print the raw memory of a part, and an unneeded text
// must not hide the state of the machine.
//
// Bytes that are not UTF-8, and control characters inside a text, become U+FFFD; outside of texts control
// characters are left out. Valid JSON stays as it is. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace muster {

// `encoding`: the header Content-Encoding, "" for none. `most`: bytes after decompression. Code::invalid
// describes what came instead of JSON.
Result<Json> parse_bmc_json(std::string_view body, const std::string& encoding, size_t most);

// Field access that survives any JSON: "" or null where the shape differs.
std::string json_text(const Json& json, const char* key);
const Json& json_at(const Json& json, const std::vector<std::string>& path);

}  // namespace muster
