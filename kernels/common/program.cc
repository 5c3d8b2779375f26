#include "kernels/common/program.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/json_dump.h"
#include "base/version.h"

namespace muster::kernels {
namespace {

constexpr int kLookMs = 1000;

bool lives(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

// Uses pidfd_open() (Linux 5.3); on older kernels it polls once a second.
void wait_for_end(pid_t pid, int fd) {
  pollfd watched{fd, POLLIN, 0};
  while (fd >= 0 && ::poll(&watched, 1, -1) < 0 && errno == EINTR) {
  }
  while (fd < 0 && lives(pid)) ::poll(nullptr, 0, kLookMs);
}

}  // namespace

Status end_with(pid_t pid) {
  const int fd = pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1;
  const bool there = pid > 0 && (fd >= 0 || (errno == ENOSYS && lives(pid)));
  if (!there) return fail(Code::not_found, fmt::format("process {} does not exist", pid));
  std::thread([pid, fd] {
    wait_for_end(pid, fd);
    ::_exit(3);
  }).detach();
  return Ok{};
}

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
