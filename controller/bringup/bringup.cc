#include "controller/bringup/bringup.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "controller/bringup/planning_snapshot.h"
#include "controller/bringup/signed_gpu_results.h"
#include "controller/bringup/spec_preview.h"
#include "controller/image/service/image_service.h"
#include "controller/spec/reader/own_playbooks.h"
#include "controller/trust/vault.h"
#include "sys/log.h"
#include "sys/os_release.h"

namespace muster {
namespace {

// How many of the newest plans can be approved: their inputs are kept in memory, about 1 kB per node.
constexpr size_t kMostKept = 16;
constexpr size_t kLongestRow = 1'000'000'000;  // SQLITE_MAX_LENGTH
// How often one approval may plan again: in a large cluster that takes seconds, in which nodes fall silent.
constexpr int kMostPlannedAgain = 5;

Result<PlanRequest> planner_request(const Bringup::Request& request) {
  PlanRequest out;
  out.kind = request.kind;
  out.nodes = request.nodes.empty() ? request.force : request.nodes;
  out.force = {request.force.begin(), request.force.end()};
  out.profile = request.profile;
  out.through_ram = request.through_ram;
  out.reimage = request.reimage;
  out.batch = request.batch;
  if (request.batch && request.kind != RequestKind::reimage)
    return fail(Code::invalid, "a batch of a rollout must be a re-image");
  if (!request.profile.empty() && request.kind != RequestKind::accept && !request.batch)
    return fail(Code::invalid, "a profile can be given only for `accept`; other requests use the spec's");
  for (const auto& name : request.force)
    if (std::find(out.nodes.begin(), out.nodes.end(), name) == out.nodes.end())
      return fail(Code::invalid, "--force names " + name + ", which is not in this plan");
  if (request.reimage && request.kind != RequestKind::up)
    return fail(Code::invalid,
                "`reimage`, which re-images nodes that run an older build of their image, requires `up`");
  if (request.through_ram && request.kind != RequestKind::reimage && !request.reimage)
    return fail(Code::invalid, "`through_ram` is allowed only for a re-image: nothing else is done in place");
  return out;
}

// True if nodes may get a trial boot, whose time limit depends on their last acceptance.
bool needs_accept_times(const PlanRequest& request) {
  return request.kind == RequestKind::reimage || request.kind == RequestKind::rollback || request.reimage;
}

bool may_boot_ram(RequestKind kind) {
  return kind == RequestKind::up || kind == RequestKind::reimage || kind == RequestKind::admit;
}

// Returns the images whose RAM systems the plan boots, or may boot when an action is retried.
std::set<std::string> ram_images(const Plan& plan, const Spec& spec) {
  std::set<std::string> nodes, images;
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::netboot || action.kind == ActionKind::image ||
        action.kind == ActionKind::boot_disk)
      nodes.insert(action.node);
  for (const auto& node : spec.nodes)
    if (nodes.count(node.name) && !node.image.empty()) images.insert(node.image);
  return images;
}

// Rows can be damaged: a plan is carried out only if it matches the approved digest.
Result<std::shared_ptr<const Plan>> read_plan(RunArchive& archive, const std::string& digest) {
  TRY(const auto row, archive.plan(digest));
  TRY(const auto json, parse_json(row.json));
  TRY(auto plan, plan_from_json(json));
  if (plan_digest(plan) != digest)
    return fail(Code::corrupt,
                fmt::format("the plan stored as {} does not match its digest: plan again", digest));
  return std::make_shared<const Plan>(std::move(plan));
}

}  // namespace

Bringup::Bringup(Parts parts)
    : parts_(std::move(parts)),
      playbook_cache_(parts_.options.playbooks, [this] { return parts_.reactor.now(); }),
      worker_(parts_.offload),
      accept_times_(parts_.store, parts_.offload) {}

Bringup::~Bringup() { alive_.end(); }

Result<PlaybookCache::Shared> Bringup::playbooks(const Spec* spec) {
  return spec ? playbook_cache_.with(spec->own_playbooks) : playbook_cache_.shipped();
}

SpecNames Bringup::names() {
  SpecNames out;
  out.recipes = parts_.images.recipes();
  out.builder = os_release(Files()).id;
  const auto shipped = playbook_cache_.shipped();
  if (!shipped.ok()) return out;
  const std::string folder = "acceptance/";
  for (const auto& [name, playbook] : (*shipped)->all)
    if (name.starts_with(folder))
      out.profiles.push_back(name.substr(folder.size()));
    else {
      out.playbooks.push_back(name);
      if (!playbook.only_for.distribution.empty()) out.only_for[name] = playbook.only_for;
      if (!playbook.optional_vars.empty()) out.optional_vars[name] = playbook.optional_vars;
    }
  return out;
}

Result<std::vector<SpecError>> Bringup::check_playbooks(const Spec& spec) {
  if (spec.own_playbooks.empty()) return std::vector<SpecError>{};
  TRY(const auto shipped, playbook_cache_.shipped());
  auto all = shipped->all;
  return add_own_playbooks(spec.own_playbooks, all);
}

NodeObservation Bringup::observe(const NodeName& name) {
  NodeObservation seen;
  const LookedAt at = read_node(name, seen);
  add_facts(seen, name, at);
  return seen;
}

LookedAt Bringup::read_node(const NodeName& name, NodeObservation& seen) {
  const NodeRow row = parts_.executor.node_row(name);
  seen.state = row.state;
  seen.held_by = row.held_by;
  seen.reason = row.reason;
  seen.image_digest = row.image_digest;
  seen.slurm = parts_.images.slurm_of(row.image_digest);
  seen.gpu_driver = parts_.images.gpu_driver_of(row.image_digest);
  seen.config_digest = row.config_digest;
  seen.product_uuid = row.product_uuid;
  seen.mode = parts_.executor.mode_of(name);
  const auto silent = parts_.executor.silent_for(name);
  seen.online = silent && *silent < kOnline &&
                seen.mode;  // an agent that polls without reporting its mode may run in any system
  seen.doubtful = parts_.executor.outdated(name);
  // A silent node's trial does not count: it may be rebooting or hung, and is woken like any silent node.
  seen.on_trial = seen.online && parts_.executor.on_trial(name);
  seen.slot = parts_.executor.running_slot(name);
  return {row.facts, written_since(row.disk_written, row.facts_time)};
}

Result<PlanningSnapshot> Bringup::cluster_inputs(SpecPtr revision) {
  PlanningSnapshot out;
  out.spec = std::move(revision);
  const Spec& spec = out.spec->spec;
  TRY(out.playbooks, playbooks(&spec));
  PlannerInput& in = out.in;
  in.images = parts_.images.built(spec);
  const Json values = parts_.vault.public_values();
  for (const auto& [name, value] : values.items()) in.public_values[name] = value.get<std::string>();
  // Without the programs no re-image is planned in place, and a note in the plan says so.
  if (auto programs = parts_.images.programs().list(); programs.ok())
    in.programs = std::move(programs).value();
  in.kernel_options = parts_.options.kernel_options;
  in.lab = parts_.options.lab;
  in.authority = parts_.authority;
  in.own = parts_.own;
  TRY_(add_gpu_results(out));
  in.controller_address = parts_.options.listen.empty() ? controller_address(spec) : parts_.options.listen;
  in.metrics_address = parts_.options.metrics;
  in.own.addresses.insert({in.controller_address, controller_address(spec)});
  return out;
}

Status Bringup::add_gpu_results(PlanningSnapshot& snapshot) {
  if (gpu_results_of_ != snapshot.spec) {
    TRY(gpu_results_, gpu_results_of(snapshot.spec->spec));
    gpu_results_of_ = snapshot.spec;
  }
  snapshot.in.gpu_results = gpu_results_;
  return Ok{};
}

Result<PlanningSnapshot> Bringup::snapshot_of(const Request& request) {
  TRY(const auto current, parts_.spec.get());
  return snapshot_of(current, request);
}

Result<PlanningSnapshot> Bringup::snapshot_of(const Proposal& proposal) {
  TRY(PlanningSnapshot out, snapshot_of(proposal.spec, proposal.request));
  for (const auto& [node, observation] : proposal.seen) {
    out.in.nodes[node] = observation;
    out.looked_at.erase(node);
  }
  return out;
}

Result<PlanningSnapshot> Bringup::snapshot_of(SpecPtr spec, const Request& request) {
  parts_.reactor.label("inputs of a plan");
  // If unreadable rows counted as empty, all nodes would seem never to have been installed.
  if (!parts_.executor.machines())
    return fail(Code::unavailable,
                "the state of the nodes cannot be read from the store: nothing was planned");
  TRY(PlanningSnapshot out, cluster_inputs(std::move(spec)));
  const auto newest = parts_.store.run(0);
  if (!newest.ok() && newest.error().code != Code::not_found) return newest.error();
  out.in.follows = fmt::format("{}/{}", parts_.store.history(), newest.ok() ? newest->id : 0);
  for (const auto& node : out.spec->spec.nodes)
    out.looked_at[node.name] = read_node(node.name, out.in.nodes[node.name]);
  TRY(out.in.request, planner_request(request));
  for (const auto& [node, run] : accepted_runs(out.spec->spec, out.in.request))
    out.in.nodes[node].accept_took = accept_times_.of(node, run);
  return out;
}

// Empty if the request needs none.
AcceptTimes::Accepted Bringup::accepted_runs(const Spec& spec, const PlanRequest& request) const {
  AcceptTimes::Accepted out;
  if (!needs_accept_times(request)) return out;
  const std::set<std::string> named(request.nodes.begin(), request.nodes.end());
  for (const auto& node : spec.nodes) {
    if (!named.empty() && !named.count(node.name)) continue;
    if (const int64_t run = parts_.executor.node_row(node.name).accepted_run; run > 0) out[node.name] = run;
  }
  return out;
}

void Bringup::find_accept_times(const Request& request, std::function<void()> then) {
  const auto current = parts_.spec.get();
  const auto requested = planner_request(request);
  if (!current.ok() || !requested.ok()) return then();  // planning reports the error
  accept_times_.find(accepted_runs((*current)->spec, *requested), std::move(then));
}

Result<PlanningSnapshot> Bringup::snapshot_to_plan(const Request& request) {
  TRY(auto out, snapshot_of(request));
  for (const auto& [node, run] : accepted_runs(out.spec->spec, out.in.request))
    if (!accept_times_.looked_for(node, run))
      return fail(Code::conflict,
                  fmt::format("run {} has accepted {} in the meantime: plan again", run, node));
  return out;
}

void Bringup::trial(Spec spec, const NodeName& node, const NodeObservation& seen, Done done) {
  const auto look_at_it = [this, spec = std::make_shared<SpecRevision>(SpecRevision{0, "", std::move(spec)}),
                           node, seen]() -> Result<PlanningSnapshot> {
    TRY(PlanningSnapshot out, cluster_inputs(spec));
    out.in.nodes[node] = seen;
    out.in.request.nodes = {node};
    return out;
  };
  worker_.make(look_at_it, {}, std::move(done));
}

void Bringup::plan_proposal(const Proposal& proposal, Render render, Done done) {
  worker_.make([this, proposal] { return snapshot_of(proposal); }, std::move(render), std::move(done));
}

void Bringup::preview(const Proposal& proposal, const std::shared_ptr<PreviewSources>& sources, Done done) {
  const auto look = [this, proposal, sources]() -> Result<PlanningSnapshot> {
    TRY(PlanningSnapshot out, snapshot_of(proposal));
    if (const auto current = parts_.spec.get(); current.ok())
      if (auto before = snapshot_of(*current, proposal.request); before.ok())
        sources->before = std::move(before).value();
    TRY(const auto secrets, parts_.vault.list());
    for (const auto& secret : secrets) sources->secrets.insert(secret.name);
    for (const auto& node : out.spec->spec.nodes)
      sources->facts_times[node.name] = parts_.executor.node_row(node.name).facts_time;
    return out;
  };
  const auto make = [sources, options = &parts_.options](const PlanningSnapshot& after) {
    return preview_of(after, *sources, *options);
  };
  find_accept_times(proposal.request, [this, look, make, done] { worker_.carry_out(look, make, done); });
}

void Bringup::find_ways(const Request& request, WaysFound done) {
  find_accept_times(request, [this, request, done = std::move(done)] {
    auto seen = snapshot_of(request);
    if (!seen.ok()) return done(seen.error());
    const auto ways = std::make_shared<Result<std::vector<NodeWay>>>(
        fail(Code::failed, "the nodes' re-image methods could not be determined: see the controller's log"));
    parts_.offload([ways, snapshot = std::make_shared<const PlanningSnapshot>(
                              std::move(seen).value())] { *ways = ways_of(planner_input(*snapshot)); },
                   alive_.wrap([ways, done] { done(std::move(*ways)); }));
  });
}

Status Bringup::still_holds(const MadePlan& made, const Proposal& proposal) {
  TRY(const auto now, snapshot_of(proposal));
  const auto changed = changed_inputs(made.inputs, inputs_of(now));
  if (changed.empty()) return Ok{};
  return fail(Code::conflict,
              fmt::format("the cluster changed since the plan was made ({}): nothing was done, plan again",
                          in_one_line(changed)));
}

int64_t Bringup::coming_revision(bool take) {
  const auto newest = parts_.store.spec(0);
  if (coming_revision_ == 0 || (newest.ok() && newest->revision >= coming_revision_))
    coming_revision_ = parts_.store.next_spec_revision();
  return take ? std::exchange(coming_revision_, 0) : coming_revision_;
}

// Packing a RAM system takes a while if the agent has changed. It is done before planning, so that no
// approval waits for it while the cluster changes. Errors are reported on approval.
void Bringup::prepare_ram_for(const Request& request, std::function<void()> then) {
  const auto current = parts_.spec.get();
  if (!may_boot_ram(request.kind) || !current.ok() || parts_.executor.active()) return then();
  const auto requested = planner_request(request);
  if (!requested.ok()) return then();  // planning reports the error
  const std::set<std::string> named(requested->nodes.begin(), requested->nodes.end());
  const auto built = parts_.images.built((*current)->spec);
  std::set<std::string> images;
  for (const auto& node : (*current)->spec.nodes)
    if (built.count(node.image) && (named.empty() || named.count(node.name))) images.insert(node.image);
  if (images.empty()) return then();
  parts_.images.prepare_ram(images, alive_.wrap([then = std::move(then)](Status ready) {
    if (!ready.ok()) log::warning("RAM systems are not ready", {{"error", ready.error().message}});
    then();
  }));
}

void Bringup::keep(const Request& request, const MadePlan& made) {
  for (auto& [digest, older] : kept_) older.plan.reset();
  kept_[made.digest] = {request, made.inputs, made.plan, ++made_};
  while (kept_.size() > kMostKept)
    kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                                 [](const auto& a, const auto& b) { return a.second.made < b.second.made; }));
}

void Bringup::plan_and_store(const Request& request, Render render, Done done) {
  const auto store = [this, request, done](Result<MadePlanPtr> made) {
    if (!made.ok() || !(*made)->refusals.empty() || (*made)->plan->empty()) return done(std::move(made));
    if ((*made)->json.size() > kLongestRow)
      return done(fail(
          Code::invalid,
          fmt::format(
              "this plan is {} MB, but the database can store at most {} MB: plan fewer nodes with --limit",
              (*made)->json.size() / 1'000'000, kLongestRow / 1'000'000)));
    PlanRow row;
    row.digest = (*made)->digest;
    row.kind = to_string((*made)->plan->kind);
    row.spec_revision = (*made)->plan->spec_revision;
    row.time = parts_.reactor.now();
    row.json = std::move((*made)->json);  // for a large cluster, hundreds of megabytes,
    std::vector<Write> rows;              // which an initializer list would copy
    rows.emplace_back(std::move(row));
    parts_.store.write(std::move(rows),
                       alive_.wrap([this, request, done, made = std::move(made).value()](Status written) {
                         if (!written.ok()) return done(std::move(written).error());
                         keep(request, *made);
                         done(made);
                       }));
  };
  const auto plan = [this, request, show = std::move(render), store] {
    worker_.make([this, request] { return snapshot_to_plan(request); }, show, store);
  };
  prepare_ram_for(request, [this, request, plan] { find_accept_times(request, plan); });
}

// An approval is valid for one run: not for a repeated request or an identical later plan.
Status Bringup::carried_out(const std::string& digest) const {
  TRY(const auto runs, parts_.store.runs());
  for (const auto& run : runs)
    if (run.plan_digest == digest)
      return fail(
          Code::conflict,
          fmt::format(
              "this plan was already carried out as run {}: an approval is valid for one run, plan again",
              run.id));
  return Ok{};
}

// Plans again if inputs have changed: in a large cluster they often do, mostly without effect on the plan.
void Bringup::hold_against_now(const ApprovalPtr& approval, const std::string& since,
                               std::function<void()> then) {
  if (parts_.executor.active())
    return approval->done(
        fail(Code::conflict, fmt::format("run {} is still active", parts_.executor.run_id())));
  const auto now = snapshot_of(approval->kept.request);
  if (!now.ok()) return approval->done(now.error());
  const auto changed = changed_inputs(approval->kept.inputs, inputs_of(*now));
  if (changed.empty()) return then();
  const Error conflict = fail(
      Code::conflict, fmt::format("the cluster changed {} ({}): plan again", since, in_one_line(changed)));
  if (++approval->planned_again > kMostPlannedAgain) return approval->done(conflict);
  plan_again(approval, conflict);
}

void Bringup::plan_again(const ApprovalPtr& approval, const Error& changed) {
  const auto compare = [this, approval, changed](Result<MadePlanPtr> made) {
    if (!made.ok() && made.error().code == Code::unavailable) return approval->done(made.error());
    if (!made.ok() || (*made)->digest != approval->digest) return approval->done(changed);
    approval->kept.plan = (*made)->plan;
    approval->kept.inputs = (*made)->inputs;
    approval->read = Ok{};
    if (const auto kept = kept_.find(approval->digest); kept != kept_.end())
      kept->second.inputs = std::move((*made)->inputs);
    prepare(approval);
  };
  find_accept_times(approval->kept.request, [this, request = approval->kept.request, compare] {
    worker_.make([this, request] { return snapshot_to_plan(request); }, {}, compare);
  });
}

void Bringup::approve(const std::string& digest, const std::string& by, Started done) {
  const auto head = parts_.store.plan_head(digest);
  if (!head.ok()) return done(head.error());
  if (const auto used = carried_out(head->digest); !used.ok()) return done(used.error());
  const auto kept = kept_.find(head->digest);
  if (kept == kept_.end())
    return done(fail(Code::conflict, fmt::format("this plan is too old: the controller has since been "
                                                 "restarted or has made {} newer plans; plan again",
                                                 kMostKept)));
  const auto approval = std::make_shared<Approval>(Approval{head->digest, by, std::move(done), kept->second});
  hold_against_now(approval, "since plan " + head->digest + " was made", [this, approval] {
    if (!approval->kept.plan) return read(approval);
    approval->read = Ok{};
    prepare(approval);
  });
}

void Bringup::read(const ApprovalPtr& approval) {
  parts_.offload(
      [approval, archive = parts_.store.archive()] {
        auto plan = read_plan(*archive, approval->digest);
        approval->read = plan.ok() ? Status(Ok{}) : Status(plan.error());
        if (plan.ok()) approval->kept.plan = std::move(plan).value();
      },
      alive_.wrap([this, approval] { prepare(approval); }));
}

void Bringup::prepare(const ApprovalPtr& approval) {
  if (!approval->read.ok()) return approval->done(approval->read.error());
  const auto current = parts_.spec.get();
  if (!current.ok()) return approval->done(current.error());
  const auto images = ram_images(*approval->kept.plan, (*current)->spec);
  if (images.empty()) return begin(approval);
  for (const auto& image : images)
    if (!parts_.images.has(image))
      return approval->done(
          fail(Code::invalid, fmt::format("image '{0}' is not built: run `muster image build {0}`", image)));
  parts_.images.prepare_ram(images, alive_.wrap([this, approval](Status ready) {
    if (!ready.ok()) return approval->done(std::move(ready).error().with("the RAM system"));
    begin(approval);
  }));
}

// Checks again: reading the plan and preparing the RAM system may have taken minutes, in which a spec was
// stored or a node was quarantined.
void Bringup::begin(const ApprovalPtr& approval) {
  hold_against_now(approval, "while the run was being prepared", [this, approval] {
    parts_.executor.start(approval->kept.plan, Digest(approval->digest), approval->by,
                          alive_.wrap([this, approval](Result<int64_t> run) {
                            if (run.ok()) kept_.erase(approval->digest);  // used up
                            approval->done(std::move(run));
                          }));
  });
}

}  // namespace muster
