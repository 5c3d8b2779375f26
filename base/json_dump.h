// dump_json: converts JSON values to text everywhere in muster. It never throws: texts from tools, BMCs and
// drives can contain anything, and bytes that are not UTF-8 become U+FFFD. Numbers that JSON does not have
// become null.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/json.h"

namespace muster {

constexpr size_t kLongestNumber = 64;

// Writes the text of a number that is not an integer: the shortest digits that read back as the same value,
// nearly always ("1.0", "1e-07"). Digests of plans and images are made of it. Implemented in base/json.cc.
// Returns how many characters it wrote. The value must be finite.
size_t write_number(double value, std::span<char, kLongestNumber> out);

// One line, or lines indented by `indent` blanks.
std::string dump_json(const Json& json, int indent = -1);
// One line with everything but ASCII escaped, for digests and journals.
std::string dump_ascii(const Json& json);

}  // namespace muster
