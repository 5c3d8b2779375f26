// Kernel command lines, as far as both sides write them: the controller for the RAM system, the agent for the
// installed one. Thread: pure functions.
#pragma once

#include <string>

namespace muster {

// A system that panics restarts after half a minute; otherwise it stays down until a person comes, and every
// wait for it times out.
inline constexpr const char* kRestartAfterPanic = "panic=30";

// The last argument with that key, "panic=0" of "quiet panic=0"; "" when there is none. The kernel uses the
// last one, too.
std::string kernel_argument(const std::string& options, const std::string& key);
// The error in options for a kernel's command line; "" if valid. Arguments that decide what boots, or are for
// muster's own programs, are not allowed.
std::string wrong_kernel_options(const std::string& options);
// Consoles as people declare them: "ttyS0,115200"; several, of which the last is /dev/console: "tty0
// ttyS0,115200" or "tty0 console=ttyS0,115200"; none: "". The error in them; "" if valid.
std::string wrong_console(const std::string& consoles);
// " console=tty0 console=ttyS0,115200", with the blank in front; "" without consoles.
std::string console_arguments(const std::string& consoles);
// kRestartAfterPanic, unless `options` have an argument for a panic; then that.
std::string panic_argument(const std::string& options);

}  // namespace muster
