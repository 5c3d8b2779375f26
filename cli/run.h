// Entry point of the `muster` command, callable from tests.
#pragma once

namespace muster::cli {

// Returns the exit code: 0 accepted, 1 failed, 2 bad usage or invalid input, 3 partial, 4 refused for safety,
// 5 accepted with degraded nodes, 6 a report signed by another key.
int run(int argc, const char* const* argv);

}  // namespace muster::cli
