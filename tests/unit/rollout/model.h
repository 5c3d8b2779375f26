// A cluster over many nights, for the rollout's simulation: nodes with jobs, groups that heal, runs whose
// nodes come through, come back, or fall silent, a Slurm controller and a clock that fail, images that are
// built again, by day or as the first thing of a window, and operators who act beside it. Everything is drawn
// from a seed. What a rollout may do is in checker.h only.
//
// A tick is half an hour; a night is kWindow ticks with the window open and kDay with it closed. From night
// kCalm on nothing goes wrong any more, so that rollouts have to end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/rollout/next.h"
#include "controller/rollout/rollout_record.h"

namespace muster::rollout::sim {

constexpr int kWindow = 16, kDay = 4, kNights = 36, kCalm = 20;
constexpr DurationMs kTick = 30 * kMinute, kLength = kWindow * kTick;

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
  int between(int from, int to) { return from + below(to - from + 1); }
  bool chance(double p) { return static_cast<double>(next() >> 11) < p * 9007199254740992.0; }

 private:
  uint64_t state_;
};

enum class Phase { write, drain, boot, ended };

struct ModelRun {
  int64_t id = 0;
  int64_t rollout = 0, number = 0;  // 0: an operator's
  std::vector<size_t> nodes;
  std::vector<std::string> images;  // of `nodes`, as the spec said when it began
  Phase phase = Phase::write;
  int ticks = 0;  // in this phase
  int budget = 0, failed = 0;
  bool cancelled = false;
  std::vector<Outcome> ends;  // of `nodes`, when it ended
  std::vector<char> over;     // of `nodes`: its end is certain already
};

// What only the model has of a node.
struct Truth {
  int jobs = 0;          // ticks until they end
  bool endless = false;  // its jobs never end
  int silent = 0;        // ticks until it is reachable again; -1: when the calm begins
  bool paused = false;   // drained by muster
  bool broken = false;   // a GPU is missing whenever it boots: it fails until it is repaired
};

class Model {
 public:
  explicit Model(uint64_t seed);

  // One tick of everything but the controller.
  void tick();
  // The run of the row's batch.
  int64_t start_run(const Record& record, const std::vector<size_t>& nodes, int budget);
  ModelRun* run_of(int64_t rollout, int64_t number);
  bool calm() const { return night >= kCalm; }
  TimeMs wall() const { return time + clock_off; }
  // What would be approved, and a name for it.
  Approval declared() const;
  std::string target() const;
  // Every image from another recipe, under another revision of the spec.
  void change_spec();
  // What the operator does to the rollout beside the nodes; called once a tick.
  bool wants_pause() { return !calm() && rng.chance(0.004); }
  bool wants_resume() { return calm() || rng.chance(0.1); }
  bool wants_skip() { return !calm() && rng.chance(0.01); }
  bool wants_approval() { return !calm() && rng.chance(0.002); }
  bool wants_start() { return !calm() && rng.chance(0.005); }
  bool controller_dies() { return rng.chance(0.02); }
  // The images that a window builds first; whether a build ends in this tick, and with a new image.
  std::vector<std::string> due();
  bool build_ends() { return calm() || rng.chance(0.5); }
  bool build(const std::string& image);
  // In this night no window begins: the timer's unit failed, or the controller was down.
  bool misses_night() { return !calm() && rng.chance(0.05); }

  Rng rng;
  View view;  // what the controller sees; its part of it (recall()) is overwritten
  std::vector<Truth> truth;
  std::vector<int> healing;  // per group, ticks
  std::vector<ModelRun> runs;
  int64_t night = 0;
  int tick_of_night = 0;
  TimeMs time = 1'800'000'000'000;  // as it is
  DurationMs clock_off = 0;         // the controller's clock is wrong by
  int64_t boots = 1;                // of the controller's machine
  TimeMs booted = time - kTick;
  int spec = 1;
  std::vector<int> builds = {0, 0, 0};  // per image
  bool rebuilds = false;                // images are built again each day, which the spec covers
  bool window_builds = false;           // by the window
  std::string broken;                   // not empty: what cannot or must not be done was done

 private:
  void draw_nodes(int count);
  void draw_groups();
  void begin_night();
  void repair();
  void jobs();
  void silence();
  void heal();
  void faults();
  void clock();
  void operators();
  void operator_run();
  void build_again(int image);
  void add_run(ModelRun run);
  void advance(ModelRun& run);
  void drain(ModelRun& run);
  void reboot(ModelRun& run);
  void boot(ModelRun& run);
  void end(ModelRun& run);
  void come_to(ModelRun& run, size_t i, Outcome outcome);
  Outcome draw_outcome(ModelRun& run, size_t at);
  ModelRun* active();

  double load_, fault_;
  int drain_timeout_, slurm_away_ = 0, clock_wrong_ = 0;
  std::vector<char> bad_ = {0, 0, 0};  // per image
  std::vector<int> missing_before_;
};

// The index of the image's name.
inline int image_of(const Node& node) { return node.image_wanted[0] - 'a'; }

}  // namespace muster::rollout::sim
