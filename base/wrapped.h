// Text in lines of at most a width, for help and manuals. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Breaks text at blanks. Each line of `text` begins a line, and those that follow from it are indented as it
// is. A word that is wider than `width` has a line of its own. ASCII.
std::vector<std::string> wrapped(const std::string& text, size_t width);

// Breaks a command at blanks outside of quotes, with " \" at the ends: a shell reads the lines as one
// command.
std::vector<std::string> wrapped_command(const std::string& command, size_t width);

}  // namespace muster
