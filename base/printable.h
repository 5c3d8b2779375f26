// Text from nodes, programs and users, made safe for a terminal: it stays one line, and controls nothing.
// Thread safety: a stateless function.
#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns the text with `instead` in place of control characters (C0, DEL and C1), of characters that set the
// direction of text, and of what is not UTF-8.
std::string printable(std::string_view text, char instead = ' ');

}  // namespace muster
