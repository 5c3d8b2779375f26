#include "kernels/common/program.h"

#include <unistd.h>

#include <cstdio>
#include <fmt/format.h>
#include <mutex>

#include "base/json_dump.h"
#include "base/version.h"

namespace muster::kernels {

void add_flip(CLI::App& kernel, std::string& flip) {
  kernel.add_option("--inject-flip", flip,
                    "flip one bit, given as PART:INDEX:BIT, to show that this test detects it");
}

int run_program(CLI::App& app, int argc, char** argv, const std::string& flip, const RunKernel& run) {
  app.set_version_flag("--version", kProgramVersion);
  app.require_subcommand(1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  Flip at;
  if (!flip.empty() && std::sscanf(flip.c_str(), "%zu:%zu:%u", &at.part, &at.index, &at.bit) != 3) {
    fmt::print(stderr, "--inject-flip requires PART:INDEX:BIT, got '{}'\n", flip);
    return 2;
  }
  const double start = seconds_now();
  Measurement measurement =
      run(app.get_subcommands().front()->get_name(), flip.empty() ? std::nullopt : std::optional(at));
  measurement.detail["wall_seconds"] = seconds_now() - start;
  if (!flip.empty()) measurement.detail["injected_flip"] = flip;
  fmt::print("{}\n", dump_json(to_json(measurement)));
  return exit_status(measurement.outcome);
}

void end_program(const Measurement& measurement) {
  static std::mutex first;
  first.lock();  // never unlocked
  fmt::print("{}\n", dump_json(to_json(measurement)));
  std::fflush(stdout);
  ::_exit(exit_status(measurement.outcome));
}

}  // namespace muster::kernels
