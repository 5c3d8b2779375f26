#include "controller/bringup/bringup.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/json_dump.h"
#include "base/log.h"
#include "base/os.h"
#include "controller/bringup/signed_gpu_results.h"
#include "controller/image/image_service.h"
#include "controller/plan/lint.h"
#include "controller/bringup/run_view.h"
#include "controller/spec/own_playbooks.h"
#include "controller/trust/vault.h"

namespace muster {
namespace {

Status load_folder(const Files& files, const std::string& folder, const std::string& prefix,
                   std::map<std::string, Playbook>& into) {
  const std::string suffix = ".yaml";
  for (const auto& entry : files.list(folder)) {
    if (entry.size() <= suffix.size() ||
        entry.compare(entry.size() - suffix.size(), suffix.size(), suffix) != 0)
      continue;
    const std::string path = folder + "/" + entry;
    TRY(const auto text, files.read(path));
    auto parsed = parse_own_playbook({prefix + entry, text});
    if (!parsed.errors.empty()) {
      parsed.errors.front().file = path;
      return fail(Code::invalid, to_string(parsed.errors.front(), path));
    }
    if (parsed.playbook.overlay)
      return fail(Code::invalid, path + ": only a spec's own playbook can be an overlay");
    into[prefix + entry.substr(0, entry.size() - suffix.size())] = std::move(parsed.playbook);
  }
  return Ok{};
}

}  // namespace

Result<std::map<std::string, Playbook>> Bringup::playbooks(const Spec* spec) const {
  std::map<std::string, Playbook> all;
  if (parts_.options.playbooks.empty())
    return fail(Code::not_found, "no playbooks found: start musterd with --playbooks DIR");
  const Files files;
  TRY_(load_folder(files, parts_.options.playbooks, "", all));
  TRY_(load_folder(files, parts_.options.playbooks + "/acceptance", "acceptance/", all));
  if (!spec) return all;
  const auto errors = add_own_playbooks(spec->own_playbooks, all);
  if (!errors.empty()) return fail(Code::invalid, to_string(errors.front(), "cluster.yaml"));
  return all;
}

SpecNames Bringup::names() const {
  SpecNames out;
  const auto shipped = playbooks(nullptr);
  if (!shipped.ok()) return out;
  const std::string folder = "acceptance/";
  for (const auto& [name, playbook] : *shipped)
    if (name.rfind(folder, 0) == 0)
      out.profiles.push_back(name.substr(folder.size()));
    else
      out.playbooks.push_back(name);
  return out;
}

Result<std::vector<SpecError>> Bringup::check_playbooks(const Spec& spec) const {
  if (spec.own_playbooks.empty()) return std::vector<SpecError>{};
  TRY(auto shipped, playbooks(nullptr));
  return add_own_playbooks(spec.own_playbooks, shipped);
}

// Each journal is read once.
Written Bringup::disks_written(TimeMs since) {
  Written last;
  const auto runs = parts_.store.runs();
  if (!runs.ok()) return last;
  for (const auto& run : *runs) {
    if (run.ended != 0 && run.ended <= since) continue;
    const auto journal = parts_.store.journal(run.id);
    if (!journal.ok()) continue;
    const bool begun = std::any_of(journal->begin(), journal->end(), [since](const JournalRow& row) {
      return row.event == "intent" && row.time > since;
    });
    if (!begun) continue;
    auto plan = plan_of_run(parts_.store, run);
    note_written(plan.ok() ? std::optional(std::move(plan).value()) : std::nullopt, *journal, since, last);
  }
  return last;
}

NodeObservation Bringup::observe(const std::string& name) {
  return observe(name, disks_written(parts_.executor.node_row(name).facts_time));
}

NodeObservation Bringup::observe(const std::string& name, const Written& written) {
  const NodeRow row = parts_.executor.node_row(name);
  NodeObservation seen;
  seen.state = row.state;
  seen.held_by = row.held_by;
  seen.reason = row.reason;
  seen.image_digest = row.image_digest;
  seen.config_digest = row.config_digest;
  seen.product_uuid = row.product_uuid;
  seen.mode = parts_.executor.mode_of(name);
  const auto silent = parts_.executor.silent_for(name);
  seen.online = silent && *silent < kOnline &&
                seen.mode;  // what asks for orders and does not say what it is may be anything
  seen.doubtful = parts_.executor.outdated(name);
  // One that fell silent may be on its way back, or hang: it is woken like any other.
  seen.on_trial = seen.online && parts_.executor.on_trial(name);
  seen.slot = parts_.executor.running_slot(name);
  if (row.facts.empty()) return seen;
  const auto json = parse_json(row.facts);
  if (!json.ok()) return seen;
  auto facts = hardware_facts_from_json(*json);
  if (facts.ok()) {
    seen.machine = *facts;
    seen.facts = still_known(std::move(facts).value(), row.facts_time, name, written);
  } else
    log::warning("stored facts unreadable, the node counts as never seen", {{"node", name}});
  return seen;
}

// The input without the nodes and the request.
Result<PlannerInput> Bringup::surroundings(const Spec& spec) const {
  PlannerInput in;
  in.spec = spec;
  TRY(in.playbooks, playbooks(&spec));
  in.images = parts_.images.built(in.spec);
  const Json values = parts_.vault.public_values();
  for (const auto& [name, value] : values.items()) in.public_values[name] = value.get<std::string>();
  // Without them nothing is planned in place, and the plan says so.
  if (auto programs = parts_.images.programs().list(); programs.ok())
    in.programs = std::move(programs).value();
  in.kernel_options = parts_.options.kernel_options;
  in.lab = parts_.options.lab;
  in.authority = parts_.authority;
  in.own = parts_.own;
  TRY(in.gpu_results, gpu_results_of(in.spec));
  in.controller_address = parts_.options.listen.empty() ? controller_address(in.spec) : parts_.options.listen;
  in.own.addresses.insert({in.controller_address, controller_address(in.spec)});
  return in;
}

Result<PlannerInput> Bringup::input(const Request& request) {
  TRY(const auto current, parts_.spec.get());
  return input(request, current->spec, current->revision);
}

Result<PlannerInput> Bringup::input(const Request& request, const Spec& spec, int64_t revision) {
  // Rows made up from nothing would say that no node was ever installed.
  if (!parts_.executor.machines())
    return fail(Code::unavailable,
                "what is known of the nodes cannot be read from the store: nothing is planned");
  TRY(PlannerInput in, surroundings(spec));
  in.revision = revision;
  const auto newest = parts_.store.run(0);
  if (!newest.ok() && newest.error().code != Code::not_found) return newest.error();
  in.follows = fmt::format("{}/{}", parts_.store.history(), newest.ok() ? newest->id : 0);
  TimeMs oldest = parts_.reactor.now();
  for (const auto& node : in.spec.nodes) {
    const NodeRow row = parts_.executor.node_row(node.name);
    if (!row.facts.empty()) oldest = std::min(oldest, row.facts_time);
  }
  const auto written = disks_written(oldest);
  for (const auto& node : in.spec.nodes) in.nodes[node.name] = observe(node.name, written);
  in.request.kind = request.kind;
  in.request.nodes = request.nodes;
  in.request.profile = request.profile;
  if (!request.profile.empty() && in.request.kind != RequestKind::accept)
    return fail(Code::invalid, "a profile is named for `accept` only; the spec's is used otherwise");
  in.request.force = {request.force.begin(), request.force.end()};
  if (in.request.nodes.empty()) in.request.nodes = request.force;
  for (const auto& name : request.force)
    if (std::find(in.request.nodes.begin(), in.request.nodes.end(), name) == in.request.nodes.end())
      return fail(Code::invalid, "--force names " + name + ", which is not among the nodes of this plan");
  in.request.through_ram = request.through_ram;
  in.request.reimage = request.reimage;
  const bool writes = in.request.kind == RequestKind::reimage || request.reimage;
  if (request.reimage && in.request.kind != RequestKind::up)
    return fail(Code::invalid,
                "`reimage` goes with `up`: it is for those that run an older build of their image");
  if (request.through_ram && !writes)
    return fail(Code::invalid, "`through_ram` goes with `reimage`: nothing else is done in place");
  if (writes || in.request.kind == RequestKind::rollback) add_proving_times(in);
  return in;
}

std::optional<DoneRun> Bringup::done_run(int64_t id) const {
  const auto run = parts_.store.run(id);
  if (!run.ok()) return {};
  auto plan = plan_of_run(parts_.store, *run);
  auto journal = parts_.store.journal(id);
  if (!plan.ok() || !journal.ok()) return {};
  return DoneRun{std::move(plan).value(), std::move(journal).value()};
}

// Of the nodes that may get a trial.
void Bringup::add_proving_times(PlannerInput& in) const {
  std::map<std::string, int64_t> accepted;
  for (const auto& [name, seen] : in.nodes) {
    const auto& named = in.request.nodes;
    if (!named.empty() && std::find(named.begin(), named.end(), name) == named.end()) continue;
    if (const int64_t run = parts_.executor.node_row(name).accepted_run; run > 0) accepted[name] = run;
  }
  for (const auto& [name, took] : proving_times(accepted, [this](int64_t id) { return done_run(id); }))
    in.nodes[name].proving_took = took;
}

Result<Bringup::Made> Bringup::made_of(const PlannerInput& in) {
  TRY(auto outcome, make_plan(in));
  Made made;
  made.refusals = std::move(outcome.refusals);
  if (!made.refusals.empty()) return made;
  made.plan = std::move(outcome.plan);
  for (const auto& problem : lint_plan(made.plan)) made.refusals.push_back({"", "lint", problem});
  made.digest = plan_digest(made.plan);
  return made;
}

Result<Bringup::Made> Bringup::plan(const Request& request) {
  TRY(const auto in, input(request));
  return made_of(in);
}

Result<Bringup::Made> Bringup::trial(const Spec& spec, const std::string& node,
                                     const NodeObservation& seen) const {
  TRY(PlannerInput in, surroundings(spec));
  in.nodes[node] = seen;
  in.request.nodes = {node};
  return made_of(in);
}

Result<Bringup::Made> Bringup::plan_under(const Spec& spec, int64_t revision, const Request& request,
                                          const std::map<std::string, NodeObservation>& seen) {
  TRY(PlannerInput in, input(request, spec, revision));
  for (const auto& [node, observation] : seen) in.nodes[node] = observation;
  return made_of(in);
}

int64_t Bringup::coming_revision(bool take) {
  const auto newest = parts_.store.spec(0);
  if (coming_revision_ == 0 || (newest.ok() && newest->revision >= coming_revision_))
    coming_revision_ = parts_.store.next_spec_revision();
  return take ? std::exchange(coming_revision_, 0) : coming_revision_;
}

void Bringup::plan_and_store(const Request& request, std::function<void(Result<Made>)> done) {
  auto made = plan(request);
  if (!made.ok() || !made->refusals.empty() || made->plan.empty()) return done(std::move(made));
  requests_[made->digest] = request;
  PlanRow row;
  row.digest = made->digest;
  row.kind = to_string(made->plan.kind);
  row.spec_revision = made->plan.spec_revision;
  row.time = parts_.reactor.now();
  row.json = dump_json(to_json(made->plan));
  parts_.store.write({row}, [done = std::move(done), made = std::move(made).value()](Status written) {
    if (!written.ok()) return done(std::move(written).error());
    done(made);
  });
}

// An approval is for one run. A request that comes again, and a plan that would be the same once more, is not
// approved by it.
Status Bringup::carried_out(const std::string& digest) const {
  TRY(const auto runs, parts_.store.runs());
  for (const auto& run : runs)
    if (run.plan_digest == digest)
      return fail(
          Code::conflict,
          fmt::format("this plan was carried out already, as run {}: an approval counts once, plan again",
                      run.id));
  return Ok{};
}

void Bringup::approve(const std::string& digest, const std::string& by,
                      std::function<void(Result<int64_t>)> done) {
  const auto row = parts_.store.plan(digest);
  if (!row.ok()) return done(row.error());
  if (const auto used = carried_out(row->digest); !used.ok()) return done(used.error());
  const auto request = requests_.find(row->digest);
  if (request == requests_.end())
    return done(fail(Code::conflict, "this plan was made before the controller was started: plan again"));
  const auto now = plan(request->second);
  if (!now.ok()) return done(now.error());
  if (!now->refusals.empty() || now->digest != row->digest)
    return done(fail(Code::conflict,
                     fmt::format("the world changed since {} was planned ({} now): plan again", row->digest,
                                 now->refusals.empty() ? now->digest : now->refusals.front().message)));
  std::set<std::string> images;
  for (const auto& [name, image] : now->plan.images) images.insert(name);
  // Discovery plans name no image, but their nodes boot the RAM system of one.
  const auto current = parts_.spec.get();
  if (!current.ok()) return done(current.error());
  if (request->second.kind != RequestKind::adopt)
    for (const auto& node : (*current)->spec.nodes)
      if (!node.image.empty()) images.insert(node.image);
  parts_.images.prepare_ram(images, [this, asked = request->second, approved = *now, by,
                                     done = std::move(done)](Status ready) {
    if (!ready.ok()) return done(std::move(ready).error().with("the RAM system"));
    // That may have taken minutes, in which a spec was stored or a node was quarantined.
    const auto still = plan(asked);
    if (!still.ok()) return done(still.error());
    if (!still->refusals.empty() || still->digest != approved.digest)
      return done(fail(Code::conflict, "the world changed while the RAM system was prepared: plan again"));
    parts_.executor.start(approved.plan, by, done);
  });
}

}  // namespace muster
