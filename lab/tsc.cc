#include "lab/tsc.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "sys/os.h"

namespace muster::lab {
namespace {

using Clock = std::chrono::steady_clock;

struct Moment {
  Clock::time_point time;
  uint64_t ticks = 0;
};

// Of several readings the one that took the shortest: between two a busy host takes the processor away.
Moment now() {
  Moment best;
  auto shortest = Clock::duration::max();
  for (int i = 0; i < 16; ++i) {
    const auto before = Clock::now();
    const uint64_t ticks = __builtin_ia32_rdtsc();
    const auto took = Clock::now() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, ticks};
  }
  return best;
}

}  // namespace

int64_t measure_tsc_khz() {
  const auto first = now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto last = now();
  const double seconds = std::chrono::duration<double>(last.time - first.time).count();
  return static_cast<int64_t>(static_cast<double>(last.ticks - first.ticks) / seconds / 1000 + 0.5);
}

Result<int64_t> tsc_khz(const LabDir& dir) {
  const auto path = dir.path("tsc-khz");
  auto text = Files("/").read(path);
  if (text) {
    int64_t kept = 0;
    const auto end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, kept);
    if (error == std::errc() && std::string_view(rest, end) == "\n" && kept > 0) return kept;
    return fail(Code::corrupt, path + ": not a rate in kHz; `muster lab down` removes it");
  }
  if (text.error().code != Code::not_found) return std::move(text).error();
  const auto measured = measure_tsc_khz();
  TRY_(Files("/").write(path, fmt::format("{}\n", measured)));
  return measured;
}

}  // namespace muster::lab
