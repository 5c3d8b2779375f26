// The common main program of muster-accept and muster-accept-gpu: one kernel per process, its measurement as
// JSON on stdout.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <string>

#include "kernels/kernels.h"

namespace muster::kernels {

// `flip` receives the text of --inject-flip.
void add_flip(CLI::App& kernel, std::string& flip);

// `app` has a subcommand per kernel; `run` gets the name of the one that was called, and the parsed `flip`.
// The exit status: 2 for bad usage, else that of the measurement.
using RunKernel = std::function<Measurement(const std::string& kernel, const std::optional<Flip>& flip)>;
int run_program(CLI::App& app, int argc, char** argv, const std::string& flip, const RunKernel& run);

// Prints this and ends the process at once, whatever its other threads are waiting for; of several calls the
// first one counts.
[[noreturn]] void end_program(const Measurement& measurement);

}  // namespace muster::kernels
