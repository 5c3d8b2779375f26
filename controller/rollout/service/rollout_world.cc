#include "controller/rollout/service/rollout_world.h"

#include <algorithm>
#include <utility>

#include "base/slurm_release.h"
#include "base/utf8.h"
#include "controller/bringup/run_records.h"
#include "controller/image/service/image_service.h"
#include "controller/rollout/survey.h"

namespace muster {

using namespace rollout;

namespace {

using rollout::NodeEnd;
using rollout::Outcome;

NodeEnd end_of_node(const RunRow& run, const RunRecords& records, const std::string& name,
                    const NodeRow& row) {
  const RunRecords::Node& node = records.node(name);
  const bool cancelled = run.state == RunState::cancelled;
  if (row.state == NodeState::quarantined && row.held_by == HeldBy::an_operator)
    return {Outcome::held, row.reason};
  if (!node.reason.empty()) return {Outcome::quarantined, node.reason};
  if (node.back && node.back->there) {
    if (!records.kept_by_jobs(node)) return {Outcome::returned, node.back->reason};
    const bool left = std::any_of(node.actions.begin(), node.actions.end(), [&](const Action* action) {
      return was_denied(records.record(action->id));
    });
    return {left ? Outcome::left : Outcome::jobs, node.back->reason};
  }
  if (!node.stood_down.empty())
    return {cancelled ? Outcome::unfinished : Outcome::not_begun, node.stood_down};
  const bool works = row.state == NodeState::accepted || row.state == NodeState::degraded;
  if (works && row.accepted_run == run.id) return {Outcome::accepted, row.reason};
  if (cancelled) return {Outcome::unfinished, "its run was cancelled"};
  return {Outcome::quarantined,
          row.reason.empty() ? "the batch's run has no result for this node" : row.reason};
}

// Why the node's other slot was not written ahead for the next batch; "" if it was, or that was not tried.
std::string why_unwritten(const RunRecords& records, const RunRecords::Node& node) {
  for (const Action* action : node.actions) {
    const ActionRecord& record = records.record(action->id);
    if (action->kind != ActionKind::write_slot || record.attempt == 0 ||
        record.state == ActionState::succeeded)
      continue;
    return node.back ? node.back->reason : node.reason.empty() ? "its slot was not written" : node.reason;
  }
  return "";
}

// Sections that agents report as healthy: no data is missing or being copied.
std::set<std::string> healthy_sections(const Json& status) {
  std::set<std::string> out;
  for (const Json& section : status)
    if (section.value("healthy", Json()) == true) out.insert(section.value("name", ""));
  return out;
}

}  // namespace

Result<rollout::RunEnd> end_of(const RunSources& run, const std::map<std::string, NodeRow>& nodes) {
  TRY(const auto records, RunRecords::of(*run.plan, run.journal));
  rollout::RunEnd out;
  out.run = run.row.id;
  out.cancelled = run.row.state == RunState::cancelled;
  for (const auto& name : run.plan->nodes) {
    if (run.plan->only_serves(NodeName(name))) {
      const std::string why = out.cancelled ? "" : why_unwritten(records, records.node(name));
      if (!why.empty()) out.unwritten[name] = why;
      continue;
    }
    const auto row = nodes.find(name);
    out.nodes[name] = end_of_node(run.row, records, name, row == nodes.end() ? NodeRow{} : row->second);
  }
  return out;
}

// The plan of the leader's batch has this note too, but that one runs without being read.
std::vector<std::string> notes_of(const Spec& spec, const View& view,
                                  const std::function<std::string(const std::string& digest)>& slurm_of) {
  std::vector<std::string> out;
  const NodeSpec* leader = spec.leader_of("scheduler");
  for (const Node& node : view.nodes) {
    if (!leader || leader->name != node.name || !in_scope(view, node)) continue;
    std::string note = slurm::unread_note(node.name, slurm_of(node.image_now), slurm_of(node.image_wanted));
    if (!note.empty()) out.push_back(std::move(note));
  }
  return out;
}

std::set<std::string> images_in_use(const std::map<std::string, NodeRow>& nodes, const Plan* active) {
  std::set<std::string> out;
  for (const auto& [name, row] : nodes) out.insert(row.image_digest);
  if (active)
    for (const auto& [name, digest] : active->images) out.insert(digest);
  return out;
}

const Serving& RolloutWorld::serving(const SpecPtr& spec) {
  if (served_by_ != spec) {
    serving_ = serving_of(spec->spec);
    served_by_ = spec;
  }
  return serving_;
}

std::map<std::string, ApprovedImage> RolloutWorld::built(const Spec& spec) const {
  std::map<std::string, ApprovedImage> out;
  for (const auto& [name, image] : parts_.images.built(spec))
    out[name] = {image.digest, parts_.images.built_from(name)};
  return out;
}

int64_t RolloutWorld::active_run() const {
  const Executor& executor = parts_.bringup.executor();
  if (executor.active()) return executor.run_id();
  return parts_.run_held() ? -1 : 0;
}

Node RolloutWorld::node(const NodeSpec& declared, const Approval& now, const Serving& serving) const {
  constexpr DurationMs kOnline = kMinute;
  Executor& executor = parts_.bringup.executor();
  const NodeRow row = executor.node_row(declared.name);
  Node out{.name = declared.name, .role = declared.role, .image_now = row.image_digest, .image_wanted = {}};
  if (const auto image = now.images.find(declared.image); image != now.images.end())
    out.image_wanted = image->second.digest;
  out.state = row.state;
  out.held_by = row.held_by;
  const auto silent = executor.silent_for(declared.name);
  const auto mode = executor.mode_of(declared.name);
  out.online = silent && *silent < kOnline && mode == wire::Mode::installed;
  out.on_trial = executor.on_trial(declared.name);
  out.has_bmc = is_switched(declared);
  const SchedulerState word = parts_.reported.scheduler(declared.name);
  out.idle = !word.busy;
  // Only a cancelled run leaves a node that it drained, and as degraded. Reports are up to minutes old:
  // others may show the state before their resume.
  out.maintenance = word.out || (word.paused && row.state == NodeState::degraded);
  if (out.maintenance) out.why_maintenance = short_reason(word.words);
  if (const auto special = serving.special.find(declared.name); special != serving.special.end())
    out.special = special->second;
  if (const auto groups = serving.groups_of.find(declared.name); groups != serving.groups_of.end())
    out.groups = groups->second;
  return out;
}

Result<SeenCluster> RolloutWorld::look() {
  TRY(const SpecPtr current, parts_.spec.get());
  const Spec& spec = current->spec;
  Executor& executor = parts_.bringup.executor();
  if (!executor.machines())
    return fail(Code::unavailable, "the state of the nodes cannot be read from the store");
  SeenCluster out;
  TRY(out.now, to_approve({current->revision, current->digest, spec, built(spec)}));
  out.rollout = *spec.rollout;
  out.view.policy = policy_of(out.rollout);
  const Serving& served = serving(current);
  out.view.groups = served.groups;
  const auto silent = [&](const std::string& name) {
    const auto since = executor.silent_for(NodeName(name));
    return !since || *since >= kMinute;
  };
  const auto healthy = healthy_sections(parts_.reported.status(spec, silent));
  for (size_t i = 0; i < out.view.groups.size(); ++i)
    out.view.groups[i].healed = healthy.count(served.sections[i]) > 0;
  for (const auto& declared : spec.nodes) out.view.nodes.push_back(node(declared, out.now, served));
  out.view.active_run = active_run();
  out.view.unsure = executor.reporting_for() < kMinute;
  for (const auto& [name, image] : out.now.images) out.built_at[name] = parts_.images.built_at(name);
  out.notes =
      notes_of(spec, out.view, [this](const std::string& digest) { return parts_.images.slurm_of(digest); });
  return out;
}

void RolloutWorld::find_ways(const std::vector<std::string>& nodes,
                             std::function<void(Result<std::vector<NodeWay>>)> done) {
  if (nodes.empty()) return done(std::vector<NodeWay>{});
  const auto request = request_for({nodes, {}, 0});
  if (!request.ok()) return done(request.error());
  parts_.bringup.find_ways(*request, std::move(done));
}

// The rollout's own limits apply: a node that needs a longer trial than they allow is skipped.
Result<Bringup::Request> RolloutWorld::request_for(const BatchOrder& order) {
  TRY(const SpecPtr current, parts_.spec.get());
  if (!current->spec.rollout) return fail(Code::conflict, "the spec has changed in the meantime");
  const RolloutSpec& rollout = *current->spec.rollout;
  Bringup::Request out;
  out.kind = RequestKind::reimage;
  out.nodes = order.nodes;
  out.profile = rollout.acceptance;
  out.batch = BatchTerms{{order.prefetch.begin(), order.prefetch.end()},
                         rollout.drain_timeout,
                         rollout.trial,
                         order.failure_budget};
  return out;
}

void RolloutWorld::plan(const BatchOrder& order, std::function<void(Result<PlannedBatch>)> done) {
  const auto request = request_for(order);
  if (!request.ok()) return done(request.error());
  parts_.bringup.plan_and_store(*request, {}, [done = std::move(done)](Result<MadePlanPtr> made) {
    if (!made.ok()) return done(made.error());
    done(PlannedBatch{(*made)->digest, (*made)->plan, (*made)->refusals});
  });
}

void RolloutWorld::start(const std::string& digest, const std::string& by,
                         std::function<void(Result<int64_t>)> done) {
  parts_.bringup.approve(digest, by, std::move(done));
}

void RolloutWorld::build(const std::string& image, std::function<void(Status)> done) {
  const auto current = parts_.spec.get();
  if (!current.ok()) return done(current.error());
  const Spec& spec = (*current)->spec;
  const auto playbooks = parts_.bringup.playbooks(&spec);
  if (!playbooks.ok()) return done(playbooks.error());
  const auto ended = [this, image, done = std::move(done)](const Result<ImageService::Image>& built) {
    parts_.image_event(built.ok() ? Json{{"name", image}, {"digest", built->digest}}
                                  : Json{{"name", image}, {"error", built.error().message}});
    done(built.ok() ? Status(Ok{}) : Status(built.error()));
  };
  const Executor& executor = parts_.bringup.executor();
  const auto active = executor.active() ? executor.shared_plan() : nullptr;
  parts_.images.build(
      &spec, (*playbooks)->all,
      {.name = image, .rebuild = true, .used = images_in_use(executor.node_rows(), active.get())},
      [](const std::string&, double) {}, alive_.wrap(ended));
}

Result<std::optional<int64_t>> RolloutWorld::tagged(const std::string& tag) {
  TRY(const auto runs, parts_.store.runs());
  for (const auto& run : runs)
    if (has_tag(run.approved_by, tag)) return std::optional<int64_t>(run.id);
  return std::optional<int64_t>();
}

Result<bool> RolloutWorld::ended(int64_t run) {
  TRY(const auto row, parts_.store.run(run));
  return row.state != RunState::running;
}

void RolloutWorld::read_end(int64_t run, std::function<void(Result<RunEnd>)> done) {
  const auto row = parts_.store.run(run);
  if (!row.ok()) return done(row.error());
  const auto nodes =
      std::make_shared<const std::map<std::string, NodeRow>>(parts_.bringup.executor().node_rows());
  const auto end =
      std::make_shared<Result<RunEnd>>(fail(Code::failed, "the result of the run could not be read"));
  parts_.offload(
      [end, row = *row, nodes, archive = parts_.store.archive()] {
        auto read = read_run(*archive, row, RunRows::turns);
        *end = read.ok() ? end_of(*read, *nodes) : Result<RunEnd>(read.error());
      },
      alive_.wrap([end, done = std::move(done)] { done(std::move(*end)); }));
}

void RolloutWorld::changed(const Record& record) { parts_.changed(record); }

}  // namespace muster
