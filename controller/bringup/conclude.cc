#include "controller/bringup/conclude.h"

#include <algorithm>
#include <utility>

#include "base/facts.h"
#include "base/json_at.h"
#include "base/version.h"
#include "controller/bringup/acceptance.h"
#include "controller/bringup/run_records.h"
#include "controller/executor/answers.h"
#include "controller/plan/disk_selection.h"
#include "controller/report/floors.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/link_faults.h"
#include "controller/report/port_rates.h"
#include "controller/report/report_causes.h"
#include "controller/report/signature.h"
#include "controller/report/verdict.h"
#include "controller/spec/drive_models.h"
#include "controller/spec/hardware.h"
#include "controller/spec/reader/parse_spec.h"
#include "sys/log.h"

namespace muster {
namespace {

// A discovery that ended at most this long before an installation began belongs to the same bring-up.
constexpr DurationMs kSameBringup = 30 * kMinute;
constexpr size_t kHistoryRuns = 20;

struct ReportSources {
  RunSources run;
  SpecRow spec;
  const std::map<std::string, NodeRow>& nodes;
  const AddedToRun& added;
  std::vector<ReportRow> before;             // reports of earlier runs, newest first
  std::optional<RunSources> discovery = {};  // the preceding discovery of the same bring-up
};

struct Sources {
  const RunRow& run;
  const Plan& plan;
  const std::map<std::string, NodeRow>& nodes;
  RunRecords records = {};
  StepAnswers answers = {};
  Spec spec = {};
};

Result<Sources> gather(const ReportSources& from) {
  Sources s{from.run.row, *from.run.plan, from.nodes};
  TRY(s.records, RunRecords::of(s.plan, from.run.journal));
  for (const auto& row : from.run.journal) s.answers.apply(row);
  s.spec = parse_spec(from.spec.text).spec;
  return s;
}

const NodeRow& row_of(const std::map<std::string, NodeRow>& nodes, const std::string& name) {
  static const NodeRow kNone;
  const auto found = nodes.find(name);
  return found == nodes.end() ? kNone : found->second;
}

// "" if no group selects this disk.
std::string group_of(const NodeSpec* declared, const DiskFacts& disk) {
  if (declared)
    for (const auto& [name, group] : declared->disks)
      if (disk_matches(group.match, disk)) return name;
  return "";
}

void add_hardware(NodeReport& node, const NodeSpec* declared, const NodeRow& row) {
  node.image_digest = row.image_digest;
  node.config_digest = row.config_digest;
  const auto facts = row.facts.facts();
  if (declared) node.checks = judge_hardware(*declared, facts ? &*facts : nullptr);
  if (!facts) return;
  node.vendor = facts->system.vendor;
  node.product = facts->system.product;
  node.serial = facts->system.serial;
  node.uuid = facts->system.uuid;
  node.kernel = facts->kernel;
  node.firmware = facts->firmware;
  node.share = share_of(*facts);
  for (const auto& disk : facts->disks) node.disks.push_back({disk, group_of(declared, disk)});
  for (const auto& nic : facts->nics)
    if (!nic.driver.empty()) node.drivers["nic " + nic.mac] = nic.driver;
  node.facts = to_json(*facts);
}

void add_steps(NodeReport& node, const Sources& s, const Action& action) {
  for (const Json& step : s.answers.of(action.id))
    node.steps.push_back({text_at(step, "step"), action.phase, text_at(step, "status"),
                          text_at(step, "message"), integer_at(step, "ms")});
}

void add_phases(NodeReport& node, const RunRecords& records) {
  for (const auto& p : records.phases(node.name))
    node.phases.push_back({p.phase, p.start, p.end > p.start ? p.end - p.start : 0, p.outcome});
}

NodeVerdict verdict_of(const Sources& s, const std::string& node, bool quarantined, bool returned) {
  if (quarantined) return NodeVerdict::quarantined;
  if (returned) return NodeVerdict::returned;
  for (const Action* action : s.records.node(node).actions)
    if (!action->when_failed && s.records.record(action->id).state != ActionState::succeeded)
      return NodeVerdict::failed;
  return NodeVerdict::accepted;
}

// Adds the discovery of the same bring-up: its digest, its start, and its phases for each node.
void add_discovery(Report& report, const RunSources& before) {
  report.plan_digests.insert(report.plan_digests.begin(), before.row.plan_digest);
  report.started = before.row.started;
  const auto records = RunRecords::of(*before.plan, before.journal);
  if (!records.ok()) return;
  for (auto& node : report.nodes) {
    NodeReport earlier;
    earlier.name = node.name;
    add_phases(earlier, *records);
    node.phases.insert(node.phases.begin(), earlier.phases.begin(), earlier.phases.end());
  }
}

NodeReport node_report(const Sources& s, const std::string& name) {
  NodeReport node;
  node.name = name;
  const NodeSpec* declared = s.spec.node(name);
  if (declared) {
    node.role = declared->role;
    node.address = declared->address;
    node.image = declared->image;
    node.rack = declared->rack;
    node.network_switch = declared->network_switch;
  }
  const RunRecords::Node& records = s.records.node(name);
  node.reason = records.reason;
  const bool quarantined = !node.reason.empty();
  const auto& back = records.back;
  if (!quarantined) node.reason = back ? back->reason : records.stood_down;
  node.verdict = verdict_of(s, name, quarantined, back && back->there);
  add_hardware(node, declared, row_of(s.nodes, name));
  for (const Action* action : records.actions)
    if (action->kind == ActionKind::steps) add_steps(node, s, *action);
  add_phases(node, s.records);
  return node;
}

History history_of(const std::vector<ReportRow>& before, const AddedToRun& known) {
  History history;
  for (const auto& row : before)
    if (const auto added = add_history(history, row.run, row.measured); !added.ok())
      log::warning("the run was left out of the history",
                   {{"run", std::to_string(row.run)}, {"error", added.error().message}});
  for (const auto& [node, last] : known.history_after) drop_until(history, node, last);
  return history;
}

void add_measurements(Report& report, const Sources& s, const ReportSources& from) {
  std::vector<MeasuredStep> steps;
  Inventories facts([&s](const std::string& node) { return row_of(s.nodes, node).facts; });
  const GpuHosts hosts = gpu_hosts(
      s.plan.simulated, [&facts](const std::string& node) { return facts.of(node); }, &s.spec);
  for (const auto& action : s.plan.actions)
    if (action.kind == ActionKind::check)
      for (auto& step : measured_steps(action.node, planned_steps(action), s.answers.of(action.id), hosts)) {
        step.own_affair =
            !step.members.empty() && s.records.record(action.id).state != ActionState::succeeded;
        steps.push_back(std::move(step));
      }
  if (steps.empty()) return;
  const History history = history_of(from.before, from.added);
  Comparison with;
  with.history = &history;
  with.drives = drive_models_of(s.spec);
  with.rates = declared_rates(s.spec);
  for (const auto& node : report.nodes)
    if (const auto* found = facts.of(node.name)) with.facts[node.name] = found;
  auto judged = judge_measurements(steps, with);
  for (auto& question : question_floors(judged, s.plan.profile, history))
    report.notes.push_back(std::move(question));
  std::map<std::string, std::string> by_address;
  for (const auto& node : s.spec.nodes) by_address[node.address] = node.name;
  report.links = link_matrix(steps, s.plan.nodes, by_address);
  find_link_faults(
      judged, steps,
      [&](const std::string& name) {
        const NodeSpec* node = s.spec.node(name);
        return node && !node->mac.empty() ? "NIC " + node->mac : "";
      },
      with.facts);
  const auto checked = checked_for_gpus(s.plan);
  for (auto& node : report.nodes) {
    for (auto& check : judged[node.name]) node.checks.push_back(std::move(check));
    if (auto missing = unplanned_gpus(checked, node.name, facts.of(node.name)))
      node.checks.push_back(std::move(*missing));
    compare_hardware(node, history);
    carry_over(node, history);
    if (const auto* found = facts.of(node.name)) say_simulated(*found, node.checks);
  }
}

void add_not_measured(Report& report, const AddedToRun& added) {
  if (added.not_measured.empty()) return;
  for (const auto& [name, why] : added.not_measured) {
    NodeReport node;
    node.name = name;
    node.reason = why;
    report.nodes.push_back(std::move(node));
  }
  std::stable_sort(report.nodes.begin(), report.nodes.end(),
                   [](const NodeReport& a, const NodeReport& b) { return a.name < b.name; });
}

// Only an acceptance checks whether nodes of a group are alike; any other run has just changed some of them.
Drift drift_among(const Report& report, const Sources& s) {
  std::vector<HostProperties> hosts;
  if (s.plan.kind != PlanKind::accept) return {};
  for (const auto& node : report.nodes)
    if (const auto facts = row_of(s.nodes, node.name).facts.facts())
      hosts.push_back(drift_host(node.name, node.role, *facts));
  return drift_of_run(hosts);
}

Result<Report> make_report(const ReportSources& from) {
  TRY(const auto s, gather(from));
  Report report;
  report.cluster = s.plan.cluster;
  report.simulated = s.plan.simulated;
  report.kind = to_string(s.plan.kind);
  report.run = s.run.id;
  report.spec_revision = s.plan.spec_revision;
  report.spec_digest = from.spec.digest;
  report.plan_digests = {s.run.plan_digest};
  report.images = s.plan.images;
  report.approved_by = s.run.approved_by;
  report.profile = s.plan.profile;
  report.version = kProgramVersion;
  report.running = !s.spec.nodes.empty() && is_generated(s.spec.nodes.front());
  report.started = s.run.started;
  report.ended = s.run.ended;
  report.notes = s.plan.notes;
  report.notes.insert(report.notes.end(), from.added.notes.begin(), from.added.notes.end());
  for (const auto& name : s.plan.nodes)
    if (!s.plan.only_serves(NodeName(name)) || !s.records.node(name).reason.empty())
      report.nodes.push_back(node_report(s, name));
  add_measurements(report, s, from);
  for (const auto& d : s.plan.destroys) report.destroyed.push_back({d, d.node, d.group, d.content, d.why});
  if (from.discovery) add_discovery(report, *from.discovery);
  report.drift = drift_among(report, s);
  add_not_measured(report, from.added);
  settle(report);
  return report;
}

bool accepts(const std::string& kind) {
  for (const PlanKind other : {PlanKind::discover, PlanKind::wake, PlanKind::none})
    if (kind == to_string(other)) return false;
  return true;
}

// Reads only the plan of a discovery of the same bring-up: others may be large.
std::optional<RunSources> discovery_before(RunArchive& archive, const RunSources& of) {
  if (of.row.id < 2 || of.plan->kind == PlanKind::discover) return std::nullopt;
  const auto before = archive.run(of.row.id - 1);
  if (!before.ok() || of.row.started - before->ended > kSameBringup) return std::nullopt;
  const auto head = archive.plan_head(before->plan_digest);
  if (!head.ok() || head->kind != to_string(PlanKind::discover)) return std::nullopt;
  auto read = read_run(archive, *before, RunRows::turns);
  return read.ok() ? std::optional(std::move(*read)) : std::nullopt;
}

Result<Report> make_report(RunArchive& archive, const KnownOfRun& known) {
  TRY(auto run, read_run(archive, known.row, RunRows::all, known.plan));
  TRY(auto spec, archive.spec(run.plan->spec_revision));
  ReportSources from{std::move(run), std::move(spec), known.nodes, known.added, {}};
  if (auto before = archive.reports(known.row.id, kHistoryRuns); before.ok())
    from.before = std::move(*before);
  from.discovery = discovery_before(archive, from.run);
  return make_report(from);
}

}  // namespace

KnownOfRun known_of(const Executor& executor, const RunRow& run) {
  return {run, executor.run_id() == run.id ? executor.shared_plan() : nullptr, executor.node_rows(), {}};
}

Conclusion conclude(RunArchive& archive, const KnownOfRun& known, const pki::KeyPair& key) {
  Conclusion out;
  const RunRow& run = known.row;
  auto report = make_report(archive, known);
  if (!report.ok()) {
    log::error("the run's report could not be created",
               {{"run", std::to_string(run.id)}, {"error", report.error().message}});
    return out;
  }
  if (!accepts(report->kind)) return out;
  for (auto& node : report->nodes) {
    if (node.verdict != NodeVerdict::accepted) out.faulty_parts[NodeName(node.name)] = located_part(node);
    // A node on which no load ran stays in service, and is not accepted.
    if (node.verdict == NodeVerdict::degraded || node.verdict == NodeVerdict::looked_at)
      out.nodes.push_back({NodeName(node.name), false, node.reason});
    // Without a profile nothing is tested; with one, a node that did not pass is not accepted. A node that
    // failed without a reason did not reach acceptance.
    if (node.verdict != NodeVerdict::failed || node.reason.empty() || report->profile.empty()) continue;
    if (known.added.not_measured.count(node.name)) continue;
    out.nodes.push_back({NodeName(node.name), true, node.reason});
    node.verdict = NodeVerdict::quarantined;
  }
  const std::string body = to_json_text(*report);
  const auto public_key = key_line(key.certificate_pem);
  const auto signature = pki::sign(key.key_pem, body);
  if (!public_key.ok() || !signature.ok()) {
    log::error("the report could not be signed",
               {{"error", (signature.ok() ? public_key.error() : signature.error()).message}});
    return out;
  }
  out.rows.push_back(
      ReportRow{run.id, run.ended, sign_block(body, *public_key, *signature), measured_text(*report)});
  return out;
}

ExecutorHooks acceptance_hooks(const AcceptanceParts& parts) {
  const auto kept = std::make_shared<KeptOfPlan>();
  ExecutorHooks made;
  made.judge = [parts, kept](const Action& action, const Json& result) {
    return judge(parts.spec, *kept, parts.executor, action, result);
  };
  made.reservation = [parts, kept](const Action& action, const Json& result) {
    return reservation(parts.spec, *kept, parts.executor, action, result);
  };
  made.follow_up = [parts, kept](const Action& action, const std::vector<Json>& results) {
    return follow_up(parts.spec, *kept, parts.executor, action, results);
  };
  made.conclude = [parts](const RunRow& run, ExecutorHooks::Concluded done) {
    struct Work {
      KnownOfRun run;
      std::shared_ptr<RunArchive> archive;
      pki::KeyPair key;
      Conclusion conclusion = {};
    };
    const auto work =
        std::make_shared<Work>(Work{known_of(parts.executor, run), parts.store.archive(), parts.key});
    if (parts.added) work->run.added = parts.added();
    parts.offload([work] { work->conclusion = conclude(*work->archive, work->run, work->key); },
                  [work, done = std::move(done)] { done(std::move(work->conclusion)); });
  };
  return made;
}

Result<std::string> signed_report(RunArchive& archive, int64_t run) {
  TRY(const auto row, archive.run(run));
  TRY(auto stored, archive.report(row.id));
  return stored.json.text();
}

Result<Report> report_from_signed(const std::string& text) {
  TRY(const auto parts, split_signature(text));
  TRY(const auto json, parse_json(parts.body));
  TRY(auto report, report_from_json(json));
  report.digest = parts.digest;
  report.signed_by = key_fingerprint(parts.public_key);
  return report;
}

Result<Report> report_of(RunArchive& archive, const KnownOfRun& run) {
  if (const auto text = signed_report(archive, run.row.id); text.ok()) return report_from_signed(*text);
  return make_report(archive, run);
}

}  // namespace muster
