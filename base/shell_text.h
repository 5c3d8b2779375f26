// Text for shells on other machines: a word, and a first line that every login shell reads alike.
//
// A user's login shell may be bash, dash, zsh, ksh, fish, csh or a restricted one, and these agree on hardly
// more than a program's name and a word in single quotes. So it is given no command, but the text of
// run_next_line(), which starts a POSIX shell; that shell reads the real command as the next line of its
// input, and no byte behind it. Thread safety: stateless functions.
#pragma once

#include <string>

namespace muster {

// Returns a word for a POSIX shell, in single quotes.
std::string shell_word(const std::string& text);

// Returns the text that starts `shell` ("sh"; a restricted shell allows no path) to run `before`, and then
// the next line of its input. `before`: commands that end with "; ", without quotes and backslashes, or "".
std::string run_next_line(const std::string& shell, const std::string& before);

// Encodes a command as that line, with the end of the line.
std::string as_next_line(const std::string& command);

}  // namespace muster
