// Kernel command lines: the parts used by both the controller (for the RAM system) and the agent (for the
// installed system). Thread safety: stateless functions.
#pragma once

#include <string>

namespace muster {

// A system that panics restarts after 30 seconds; otherwise it stays down until an operator acts, and every
// wait for it times out.
inline constexpr const char* kRestartAfterPanic = "panic=30";

// The last argument with that key, as in the kernel: "panic=0" from "quiet panic=0"; "" if there is none.
std::string kernel_argument(const std::string& options, const std::string& key);
// Returns the error in options for a kernel command line; "" if valid. Arguments that determine what boots,
// or that are for muster's own programs, are not allowed.
std::string wrong_kernel_options(const std::string& options);
// Returns the error in declared consoles; "" if valid. Examples: "", "ttyS0,115200", "tty0 ttyS0,115200",
// "tty0 console=ttyS0,115200". The last console becomes /dev/console.
std::string wrong_console(const std::string& consoles);
// Returns " console=tty0 console=ttyS0,115200", with a leading blank; "" without consoles.
std::string console_arguments(const std::string& consoles);
// The `panic=` argument in `options`, else kRestartAfterPanic.
std::string panic_argument(const std::string& options);

}  // namespace muster
