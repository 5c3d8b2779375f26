#include "kernels/common/program.h"

#include <unistd.h>

#include <cstdio>
#include <fmt/format.h>
#include <mutex>

#include "base/json_dump.h"
#include "base/version.h"

namespace muster::kernels {

void add_flip(Verb& kernel, std::string& flip) {
  kernel.add_option("--inject-flip", &flip,
                    "flip one bit, given as PART:INDEX:BIT, to show that this test detects it");
}

int run_program(Verb& app, int argc, char** argv, const std::string& flip, const RunKernel& run) {
  app.add_version(kProgramVersion);
  app.needs_verb();
  const Parsed parsed = parse_command_line(app, argc, argv);
  if (parsed.ended) return parsed.status == 0 ? 0 : 2;
  Flip at;
  if (!flip.empty() && std::sscanf(flip.c_str(), "%zu:%zu:%u", &at.part, &at.index, &at.bit) != 3) {
    fmt::print(stderr, "--inject-flip requires PART:INDEX:BIT, got '{}'\n", flip);
    return 2;
  }
  const double start = seconds_now();
  Measurement measurement = run(parsed.verb, flip.empty() ? std::nullopt : std::optional(at));
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
