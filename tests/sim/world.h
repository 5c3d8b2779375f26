// World: the one clock, the one source of randomness and the options of a simulated cluster. Everything that
// differs between two runs of one seed would be a bug; `hash` proves that nothing does. Thread: one.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/fakes/manual_reactor.h"

namespace muster::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t range(int64_t from, int64_t to) {
    return from + static_cast<int64_t>(next() % static_cast<uint64_t>(to - from + 1));
  }
  bool chance(double p) { return static_cast<double>(next() >> 11) < p * 9007199254740992.0; }

 private:
  uint64_t state_;
};

// Derived from the seed, so that different seeds stress different things.
struct Options {
  uint64_t seed = 1;
  int nodes = 8;
  double lost = 0, doubled = 0;  // of messages between agent and controller
  DurationMs delay = 200;        // most of one message
  double bmc_busy = 0, bmc_silent = 0, bmc_lies = 0, bmc_idle = 0;  // of power calls
  double step_fails = 0;
  double resumed = 0;                                            // of drained nodes, before they reboot
  double stop_hangs = 0;                                         // of orderly stops
  DurationMs node_fault_every = 0, controller_killed_every = 0;  // 0: never
  double killed_at_effect = 0;
  double store_fails = 0;  // > 0: the disk of the controller is full now and then
  int dead = 0, bad = 0;   // nodes that never boot; nodes whose acceptance fails
  int parallel_imaging = 16, parallel_netboot = 16;
  DurationMs stagger = 0;
  double probed_dies = 0;  // a node loses power, or its network for a while, just when another one probes it
  DurationMs clock_set_every =
      0;  // the controller's clock on the wall is set, by less than what ends a run at a restart
  DurationMs faults_end = 40 * kMinute;
  bool in_place = false;  // nodes are at work, and are re-imaged in place, some with images that are bad
  std::string plant;      // a bug on purpose: stale | early | outside | again | blind | hard | unmarked
  bool log = false;
};

inline Options options_for(uint64_t seed, int nodes) {
  Random r(seed ^ 0x5eed);
  Options o;
  o.seed = seed;
  o.nodes = nodes > 0 ? nodes : static_cast<int>(r.range(3, 12));
  const auto some = [&](double most) {
    return r.chance(0.6) ? most * static_cast<double>(r.range(1, 100)) / 100.0 : 0.0;
  };
  o.lost = some(0.15);
  o.doubled = some(0.15);
  o.delay = r.range(20, 4000);
  o.bmc_busy = some(0.4);
  o.bmc_silent = some(0.3);
  o.bmc_lies = some(0.2);
  o.bmc_idle = some(0.2);
  o.step_fails = some(0.02);
  o.node_fault_every = r.chance(0.7) ? r.range(30, 600) * kSecond : 0;
  o.controller_killed_every = r.chance(0.7) ? r.range(20, 600) * kSecond : 0;
  o.killed_at_effect = some(0.05);
  o.store_fails = some(0.01);
  o.dead = r.chance(0.5) ? static_cast<int>(r.range(0, o.nodes / 3)) : 0;
  o.bad = r.chance(0.3) ? 1 : 0;
  o.parallel_imaging = static_cast<int>(r.range(1, o.nodes));
  o.parallel_netboot = static_cast<int>(r.range(1, o.nodes));
  o.stagger = r.chance(0.5) ? r.range(1, 5) * kSecond : 0;
  o.probed_dies = some(0.5);
  o.stop_hangs = some(0.5);
  o.clock_set_every = r.chance(0.5) ? r.range(10, 30) * kMinute : 0;
  return o;
}

// The same faults over nodes that are re-imaged in place.
inline Options options_in_place(uint64_t seed, int nodes) {
  Options o = options_for(seed, nodes);
  o.in_place = true;
  o.dead = o.bad = 0;
  o.resumed = 0.1;
  o.probed_dies = 0;
  return o;
}

// Under a sanitizer everything takes several times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The reactor of the controller and of all machines. What an event costs in real CPU time is measured.
class SimReactor : public ManualReactor {
 public:
  bool step(int64_t end) {
    bool ran = false;
    watch.run("an event", [&] { ran = ManualReactor::step(end); });
    return ran;
  }
  void label(std::string_view name) override { watch.label(name); }

  ReactorWatch watch;
};

class World {
 public:
  explicit World(Options o) : options(std::move(o)), random(options.seed) {
    if (kSanitized) return;
    reactor.watch.on_slow([this](const std::string& name, DurationMs took) {
      violated("R1",
               fmt::format("{} took {} ms of CPU time, and {} ms are the limit", name, took, kLongestTask));
    });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Options options;
  SimReactor reactor;
  const SteadyMs begin = reactor.steady();
  Random random;
  // Since the beginning, whatever a clock on a wall shows.
  TimeMs now() const { return reactor.steady() - begin; }
  bool faults = true;
  std::function<bool(const std::string& address, bool begins)>
      answers;                  // a probe of a node, as the network sees it
  std::set<std::string> blind;  // nodes whose last failed probe failed because they were cut off themselves
  std::vector<std::string> violations;
  uint64_t hash = 0xcbf29ce484222325ull;

  bool chance(double p) { return faults && p > 0 && random.chance(p); }
  // One message over the network: late, doubled or lost.
  void send(std::function<void()> message) {
    const int copies = chance(options.lost) ? 0 : chance(options.doubled) ? 2 : 1;
    for (int i = 0; i < copies; ++i) reactor.after(random.range(1, faults ? options.delay : 20), message);
  }
  void trace(const std::string& node, const std::string& what) {
    const std::string line = fmt::format("{:>10} {:<8} {}", now(), node, what);
    for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    if (options.log) fmt::print("{}\n", line);
  }
  void violated(const std::string& checker, const std::string& what) {
    trace("", "VIOLATION " + checker + ": " + what);
    violations.push_back(checker + ": " + what);
  }
};

}  // namespace muster::sim
