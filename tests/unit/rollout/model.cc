#include "tests/unit/rollout/model.h"

#include <algorithm>
#include <cstdio>

namespace muster::rollout::sim {
namespace {

std::string name_of(int image) { return std::string(1, static_cast<char>('a' + image)); }
std::string digest(int image, int build) { return name_of(image) + std::to_string(build); }
bool works(const Node& node) {
  return node.state == NodeState::accepted || node.state == NodeState::degraded;
}
constexpr int kEndless = 1 << 20;

int draw_size(Rng& rng, uint64_t seed) {
  if (seed % 200 == 7) return 1000;
  if (seed % 10 == 3) return rng.between(60, 200);
  return rng.between(3, 30);
}

}  // namespace

Model::Model(uint64_t seed) : rng(seed) {
  load_ = 0.3 * rng.below(4) / 3.0;
  fault_ = 0.01 * rng.below(5);
  drain_timeout_ = rng.between(4, 10);
  draw_nodes(draw_size(rng, seed));
  draw_groups();
  Policy& policy = view.policy;
  policy.roles = rng.chance(0.3) ? std::vector<std::string>{"gpu", "cpu"} : std::vector<std::string>{"gpu"};
  policy.max_unavailable.count = rng.between(1, 6);
  if (rng.chance(0.4)) policy.max_unavailable.percent = rng.between(1, 40);
  policy.canary = rng.between(0, 3);
  policy.failure_budget = rng.between(-1, 4);
  rebuilds = rng.chance(0.4);
  window_builds = rebuilds && rng.chance(0.5);
  change_spec();
  begin_night();
}

Approval Model::declared() const {
  Approval out;
  out.spec_revision = spec;
  out.spec_digest = "spec" + std::to_string(spec);
  out.roles = view.policy.roles;
  out.rebuilt_images = rebuilds;
  for (int image = 0; image < 3; ++image)
    out.images[name_of(image)] = {digest(image, builds[static_cast<size_t>(image)]),
                                  name_of(image) + "@" + std::to_string(spec)};
  return out;
}

std::string Model::target() const {
  std::string out = std::to_string(spec);
  for (const int build : builds) out += " " + std::to_string(build);
  return out;
}

void Model::draw_nodes(int count) {
  const int images = rng.between(1, 3);
  const int without_canary = rng.chance(0.15) ? rng.below(images) : -1;
  const double endless = rng.chance(0.3) ? rng.between(1, 3) / static_cast<double>(count) : 0;
  for (int i = 0; i < count; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "n%04d", i);
    const int image = rng.below(images);
    Node node{.name = name, .role = "gpu", .image_now = "", .image_wanted = digest(image, 0)};
    if (rng.chance(0.15)) node.role = rng.chance(0.5) ? "cpu" : "storage";
    node.image_now = rng.chance(0.01) ? "" : node.image_wanted;
    node.state = rng.chance(0.1) ? NodeState::degraded : NodeState::accepted;
    node.online = true;
    node.has_bmc = image != without_canary && rng.chance(0.7);
    node.way = rng.chance(0.2) ? Way::through_ram : rng.chance(0.02) ? Way::none : Way::in_place;
    if (rng.chance(1.5 / count)) node.special = static_cast<Special>(rng.between(1, 3));
    view.nodes.push_back(node);
    truth.emplace_back();
    truth.back().endless = rng.chance(endless);
  }
}

void Model::draw_groups() {
  const int count = static_cast<int>(view.nodes.size());
  const int groups = rng.below(4);
  for (int g = 0; g < groups; ++g) {
    view.groups.push_back({"g" + std::to_string(g), GroupKind::storage, rng.below(4), true});
    const int members = std::min(rng.between(1, 8), count);
    for (int m = 0; m < members; ++m) {
      Node& node = view.nodes[static_cast<size_t>(rng.below(count))];
      const auto place = static_cast<size_t>(g);
      if (std::count(node.groups.begin(), node.groups.end(), place) == 0) node.groups.push_back(place);
    }
  }
  healing.assign(view.groups.size(), 0);
  missing_before_.assign(view.groups.size(), 0);
}

// A bad image fails nearly everywhere.
void Model::change_spec() {
  ++spec;
  for (char& bad : bad_) bad = !calm() && rng.chance(0.15);
  for (int image = 0; image < 3; ++image) build_again(image);
}

void Model::build_again(int image) {
  const int number = ++builds[static_cast<size_t>(image)];
  for (Node& node : view.nodes)
    if (image_of(node) == image) node.image_wanted = digest(image, number);
}

void Model::begin_night() {
  ++night;
  tick_of_night = 0;
  if (calm()) repair();
  for (int image = 0; image < 3; ++image)
    if (!window_builds && (rebuilds ? rng.chance(0.8) : !calm() && rng.chance(0.02))) build_again(image);
}

std::vector<std::string> Model::due() {
  std::vector<std::string> out;
  for (int image = 0; window_builds && image < 3; ++image)
    if (rng.chance(0.8)) out.push_back(name_of(image));
  return out;
}

bool Model::build(const std::string& image) {
  if (!calm() && rng.chance(0.3)) return false;
  build_again(image[0] - 'a');
  return true;
}

// Each day operators bring back what is not in service, as the spec says. Broken GPUs are found once.
void Model::repair() {
  for (char& bad : bad_) bad = 0;
  clock_off = 0;
  clock_wrong_ = slurm_away_ = 0;
  for (size_t at = 0; at < view.nodes.size(); ++at) {
    Node& node = view.nodes[at];
    truth[at].silent = truth[at].silent < 0 ? 2 : std::min(truth[at].silent, 2);
    if (!truth[at].endless) truth[at].jobs = std::min(truth[at].jobs, 3);
    truth[at].broken = truth[at].broken && (night > kCalm || rng.chance(0.3));
    node.maintenance = node.on_trial = truth[at].paused = false;
    if (works(node)) continue;
    node.state = NodeState::accepted;
    node.held_by = HeldBy::nobody;
  }
}

void Model::tick() {
  time += kTick;
  if (++tick_of_night > kWindow + kDay) begin_night();
  jobs();
  silence();
  if (!calm()) clock();
  if (!calm()) faults();
  if (!calm()) operators();
  view.active_run = 0;
  if (ModelRun* run = active()) advance(*run);
  if (const ModelRun* run = active()) view.active_run = run->id;
  heal();
}

// The controller's clock is set wrong, and right again; its machine is restarted. Slurm's controller is away.
void Model::clock() {
  if (slurm_away_ > 0) --slurm_away_;
  if (rng.chance(0.004)) slurm_away_ = rng.between(1, 12);
  if (rng.chance(0.002)) ++boots, booted = time;
  if (clock_wrong_ > 0 && --clock_wrong_ == 0) clock_off = 0;
  if (!rng.chance(0.004)) return;
  clock_off = rng.between(1, 60) * kTick * (rng.chance(0.1) ? 200 : 1) * (rng.chance(0.5) ? 1 : -1);
  clock_wrong_ = rng.between(1, 30);
}

void Model::jobs() {
  for (size_t at = 0; at < view.nodes.size(); ++at) {
    Truth& t = truth[at];
    Node& node = view.nodes[at];
    if (t.jobs > 0) --t.jobs;
    const bool takes = node.online && works(node) && !t.paused && !node.maintenance;
    if (t.jobs == 0 && takes && load_ > 0 && rng.chance(load_))
      t.jobs = calm() ? rng.between(1, 3) : rng.chance(0.03) ? rng.between(40, 200) : rng.between(1, 12);
    if (t.endless && takes) t.jobs = kEndless;
    node.idle = t.jobs == 0 && slurm_away_ == 0;
  }
}

void Model::silence() {
  for (size_t at = 0; at < view.nodes.size(); ++at)
    if (truth[at].silent > 0 && --truth[at].silent == 0) view.nodes[at].online = true;
}

void Model::heal() {
  std::vector<int> missing(view.groups.size(), 0);
  for (const Node& node : view.nodes)
    if (!node.groups.empty() && (!node.online || !works(node)))
      for (const size_t g : node.groups) ++missing[g];
  for (size_t g = 0; g < view.groups.size(); ++g) {
    if (missing[g] != missing_before_[g])
      healing[g] = rng.between(1, 4);
    else if (healing[g] > 0)
      --healing[g];
    view.groups[g].healed = healing[g] == 0;
  }
  missing_before_ = missing;
}

void Model::faults() {
  if (!rng.chance(fault_ * 5)) return;
  const auto at = static_cast<size_t>(rng.below(static_cast<int>(view.nodes.size())));
  Node& node = view.nodes[at];
  const int what = rng.below(12);
  if (what < 5 && node.online) {
    node.online = false;
    truth[at].silent = rng.chance(0.1) ? -1 : rng.between(1, 30);
    truth[at].jobs = 0;
  } else if (what == 5 && !view.active_run && works(node)) {
    node.state = NodeState::quarantined;
    node.held_by = HeldBy::run;
  } else if (what == 6 && !view.active_run && works(node)) {
    node.state = rng.chance(0.5) ? NodeState::installing : NodeState::discovered;
  } else if (what == 7) {
    node.on_trial = !view.active_run && !node.on_trial && rng.chance(0.5);
  } else if (what == 8) {
    node.has_bmc = !node.has_bmc;
  } else if (what == 9 && rng.chance(0.2)) {
    node.role = node.role == "gpu" ? "storage" : "gpu";
  } else if (what == 10) {
    truth[at].broken = true;  // works on until its next boot
  } else if (what == 11) {
    node.maintenance = true;  // registered in Slurm with less than declared, or down there
  }
}

void Model::operators() {
  ModelRun* run = active();
  if (run && rng.chance(0.004)) run->cancelled = true;
  if (rng.chance(0.0015)) change_spec();
  if (!run && rng.chance(0.01)) operator_run();
  if (!rng.chance(0.1)) return;
  const auto at = static_cast<size_t>(rng.below(static_cast<int>(view.nodes.size())));
  Node& node = view.nodes[at];
  const bool of_run = run && std::count(run->nodes.begin(), run->nodes.end(), at) > 0;
  const int what = rng.below(10);
  if (what < 3) {
    if (works(node)) node.state = NodeState::quarantined, node.held_by = HeldBy::an_operator;
  } else if (what < 5) {  // drains it, or resumes it: also what muster has drained for a run
    node.maintenance = !node.maintenance && (!truth[at].paused || rng.chance(0.5));
    if (!node.maintenance) truth[at].paused = false;
  } else if (!run && what == 5 && works(node)) {
    node.state = NodeState::drained;
  } else {  // brings everything back that a look shows
    for (Node& back : view.nodes)
      if (!run && !works(back) && rng.chance(0.7))
        back.state = NodeState::accepted, back.held_by = HeldBy::nobody;
    node.maintenance = node.on_trial = truth[at].broken = false;
    truth[at].paused = truth[at].paused && of_run;
  }
}

// `up` or `reimage` of a few nodes, without asking the rollout.
void Model::operator_run() {
  ModelRun run;
  run.budget = -1;
  for (int i = rng.between(1, 3); i > 0; --i) {
    const auto at = static_cast<size_t>(rng.below(static_cast<int>(view.nodes.size())));
    const Node& node = view.nodes[at];
    if (node.online && !node.on_trial && std::count(run.nodes.begin(), run.nodes.end(), at) == 0)
      run.nodes.push_back(at);
  }
  if (!run.nodes.empty()) add_run(std::move(run));
}

void Model::add_run(ModelRun run) {
  run.id = view.active_run = static_cast<int64_t>(runs.size()) + 1;
  run.ends.assign(run.nodes.size(), Outcome::unfinished);
  run.over.assign(run.nodes.size(), 0);
  for (const size_t at : run.nodes) run.images.push_back(view.nodes[at].image_wanted);
  runs.push_back(std::move(run));
}

int64_t Model::start_run(const Record& record, const std::vector<size_t>& nodes, int budget) {
  if (active()) broken = "a run was started beside another";
  if (run_of(record.id, record.row->batch->number)) broken = "a batch ran twice";
  ModelRun run;
  run.rollout = record.id;
  run.number = record.row->batch->number;
  run.nodes = nodes;
  run.budget = budget;
  add_run(std::move(run));
  return view.active_run;
}

ModelRun* Model::run_of(int64_t rollout, int64_t number) {
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    if (run->rollout == rollout && run->number == number) return &*run;
  return nullptr;
}

// One at a time, so it is the newest.
ModelRun* Model::active() {
  return runs.empty() || runs.back().phase == Phase::ended ? nullptr : &runs.back();
}

void Model::advance(ModelRun& run) {
  ++run.ticks;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const Node& node = view.nodes[run.nodes[i]];
    if (!run.over[i] && node.state == NodeState::quarantined && node.held_by == HeldBy::an_operator)
      come_to(run, i, Outcome::held);  // it boots all the same
  }
  if (run.cancelled) return end(run);
  if (run.phase == Phase::write && slurm_away_ == 0) {
    run.phase = Phase::drain;
    for (size_t i = 0; i < run.nodes.size(); ++i) truth[run.nodes[i]].paused = !run.over[i];
  }
  if (run.phase == Phase::boot)
    boot(run);
  else
    drain(run);
}

// Jobs that do not end in time, and a Slurm that does not answer in time, give nodes back.
void Model::drain(ModelRun& run) {
  bool busy = run.phase == Phase::write || slurm_away_ > 0, left = false;
  const bool late = run.ticks > drain_timeout_;
  const bool unknown = busy;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    if (run.over[i]) continue;
    const bool has_jobs = unknown || truth[run.nodes[i]].jobs > 0;
    if (has_jobs && late)
      come_to(run, i, Outcome::jobs);
    else
      busy = busy || has_jobs, left = true;
  }
  if (!left) return end(run);
  if (!busy) reboot(run);
}

// A node that was resumed meanwhile, and may have jobs at any moment, is given back; by a rollout also one
// that others have drained.
void Model::reboot(ModelRun& run) {
  run.phase = Phase::boot;
  run.ticks = 0;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const size_t at = run.nodes[i];
    if (run.over[i]) continue;
    const bool left = run.rollout != 0 && view.nodes[at].maintenance;
    if (left || !truth[at].paused) {
      come_to(run, i, left ? Outcome::left : Outcome::jobs);
      continue;
    }
    view.nodes[at].online = false;
    if (truth[at].jobs > 0) broken = "a job was ended";
  }
  if (std::count(run.over.begin(), run.over.end(), 0) == 0) end(run);
}

void Model::boot(ModelRun& run) {
  if (run.ticks < 2) return;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    if (run.over[i]) continue;
    Node& node = view.nodes[run.nodes[i]];
    node.online = true;
    truth[run.nodes[i]].silent = 0;
    come_to(run, i, draw_outcome(run, run.nodes[i]));
  }
  end(run);
}

Outcome Model::draw_outcome(ModelRun& run, size_t at) {
  const Node& node = view.nodes[at];
  if (run.budget >= 0 && run.failed > run.budget && node.way == Way::through_ram && rng.chance(0.5))
    return Outcome::not_begun;
  const double fails = bad_[static_cast<size_t>(image_of(node))] ? 0.9 : calm() ? 0 : 0.02;
  if (!truth[at].broken && !rng.chance(fails)) return Outcome::accepted;
  ++run.failed;
  return node.way == Way::in_place && rng.chance(0.8) ? Outcome::returned : Outcome::quarantined;
}

void Model::come_to(ModelRun& run, size_t i, Outcome outcome) {
  const size_t at = run.nodes[i];
  Node& node = view.nodes[at];
  run.over[i] = 1;
  run.ends[i] = outcome;
  truth[at].paused = false;
  if (outcome == Outcome::held && !node.online && truth[at].silent == 0) truth[at].silent = 2;
  if (outcome == Outcome::accepted) {
    node.image_now = run.images[i];
    node.state = rng.chance(0.1) ? NodeState::degraded : NodeState::accepted;
  }
  if (outcome == Outcome::returned && truth[at].broken && !calm() && rng.chance(0.3)) node.maintenance = true;
  if (outcome == Outcome::quarantined) {
    node.state = NodeState::quarantined;
    node.held_by = HeldBy::run;
    node.online = rng.chance(0.5);
    truth[at].silent = node.online ? 0 : -1;
  }
}

void Model::end(ModelRun& run) {
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    if (run.over[i]) continue;
    Node& node = view.nodes[run.nodes[i]];
    if (run.phase == Phase::boot) node.online = true, truth[run.nodes[i]].silent = 0;
    const bool drained = run.phase != Phase::write;
    if (drained && works(node)) node.state = NodeState::degraded;
    come_to(run, i, Outcome::unfinished);
    if (drained) node.maintenance = truth[run.nodes[i]].paused = true;  // until a person acts
  }
  run.phase = Phase::ended;
}

}  // namespace muster::rollout::sim
