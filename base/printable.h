// Text from nodes, programs, BMCs and users, made safe for terminals, log files and pages: it controls
// nothing.
//
// Cleaned once, where it arrives: events of agents (controller/link/link_hub.cc), answers of BMCs
// (controller/power/bmc_json.cc), output of programs. What shows text cleans it again, since texts of older
// versions are stored, too. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_value.h"

namespace muster {

// True for control characters (C0, DEL and C1), characters that set the direction of text, and separators of
// lines and paragraphs. The only list.
bool controls_display(uint32_t unicode);

// Returns the text as one line, with `instead` in place of such characters and of what is not UTF-8.
std::string printable(std::string_view text, char instead = ' ');
// Likewise, but line ends and tabs stay.
std::string printable_lines(std::string_view text, char instead = ' ');
// printable_lines() of all texts in a value, also of the names of members: of two that become equal, one
// stays.
void make_printable(Json& value);

}  // namespace muster
