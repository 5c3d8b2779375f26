// Kernel command lines, as far as both sides write them: the controller for the RAM system, the agent for the
// installed one. Thread: pure functions.
#pragma once

#include <string>

namespace muster {

// A system that panics restarts after half a minute; else it stands until somebody comes, and every wait for
// it runs out.
inline constexpr const char* kRestartAfterPanic = "panic=30";

// The last argument with that key, "panic=0" of "quiet panic=0"; "" when there is none. The kernel, too,
// takes the last one.
std::string kernel_argument(const std::string& options, const std::string& key);
// What is wrong with options that are to stand on a kernel's command line; "" when nothing is. What decides
// what boots, or speaks to muster's own programs, is not for them.
std::string wrong_kernel_options(const std::string& options);
// Consoles as people declare them: "ttyS0,115200"; several, of which the last is /dev/console: "tty0
// ttyS0,115200" or "tty0 console=ttyS0,115200"; none: "". What is wrong with them; "" when nothing is.
std::string wrong_console(const std::string& consoles);
// " console=tty0 console=ttyS0,115200", with the blank in front; "" without consoles.
std::string console_arguments(const std::string& consoles);
// kRestartAfterPanic, unless `options` say what is to happen after a panic; then their own argument for it.
std::string panic_argument(const std::string& options);

}  // namespace muster
