#include "controller/bringup/accept_times.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster {
namespace {

constexpr int64_t kLookBack = 50;

bool configures(PlanKind kind) {
  switch (kind) {
    case PlanKind::install:
    case PlanKind::apply:
    case PlanKind::reimage:
    case PlanKind::admit:
    case PlanKind::rollback:
      return true;
    case PlanKind::discover:
    case PlanKind::wake:
    case PlanKind::adopt:
    case PlanKind::accept:
    case PlanKind::drain:
    case PlanKind::undrain:
    case PlanKind::none:
      return false;
  }
  return false;
}

// Nodes of which all actions, except reserve actions, succeeded.
std::set<std::string> accepted_in(const DoneRun& run) {
  std::set<std::string> out;
  if (!configures(run.plan.kind)) return out;
  const std::set<std::string> serving(run.plan.serving.begin(), run.plan.serving.end());
  std::map<std::string, const NodeName*> open;  // node, by action
  for (const auto& action : run.plan.actions) {
    if (action.when_failed || serving.count(action.node)) continue;
    open[action.id] = &action.node;
    out.insert(action.node);
  }
  for (const auto& row : run.journal)
    if (row.event == "succeeded") open.erase(row.action);
  for (const auto& [action, node] : open) out.erase(*node);
  return out;
}

std::optional<DoneRun> read_done(RunArchive& archive, int64_t run) {
  const auto row = archive.run(run);
  if (!row.ok()) return {};
  const auto stored = archive.plan(row->plan_digest);
  auto journal = archive.journal_times(run);
  if (!stored.ok() || !journal.ok()) return {};
  const auto json = parse_json(stored->json);
  if (!json.ok()) return {};
  auto plan = plan_from_json(*json);
  if (!plan.ok()) return {};
  return DoneRun{std::move(plan).value(), std::move(journal).value()};
}

}  // namespace

std::map<std::string, DurationMs> accept_times(const Plan& plan, const std::vector<JournalRow>& journal) {
  std::map<std::string, DurationMs> sums;
  if (plan.kind == PlanKind::accept) return sums;
  std::map<std::string, const NodeName*> counted;  // node, by action
  for (const auto& action : plan.actions) {
    const bool counts = action.kind == ActionKind::steps || action.kind == ActionKind::check;
    const bool on_trial = !action.when_failed && action.phase != "pause" && action.phase != "resume";
    if (counts && on_trial) counted[action.id] = &action.node;
  }
  std::map<std::string, TimeMs> begun;
  for (const auto& row : journal) {
    const auto action = counted.find(row.action);
    if (action == counted.end() || *action->second != row.node) continue;
    if (row.event == "intent") begun[row.action] = row.time;
    if (row.event != "succeeded" || begun.count(row.action) == 0) continue;
    // If the clock was set back in the meantime, the action seems to have ended before it began.
    sums[row.node] += std::max<DurationMs>(row.time - begun[row.action], 0);
  }
  return sums;
}

AcceptTimesSearch::AcceptTimesSearch(Accepted accepted) : accepted_(std::move(accepted)) {
  for (const auto& [node, id] : accepted_) open_[id].push_back(node);
}

std::optional<AcceptTimesSearch::Open> AcceptTimesSearch::next() {
  if (open_.empty()) return {};
  const auto newest = std::prev(open_.end());
  Open out{newest->first, std::move(newest->second)};
  open_.erase(newest);
  out.last = std::any_of(out.nodes.begin(), out.nodes.end(),
                         [&](const std::string& node) { return accepted_.at(node) == out.run; });
  return out;
}

bool AcceptTimesSearch::matters(const Open& open, PlanKind kind) {
  return configures(kind) || (open.last && kind != PlanKind::accept);
}

void AcceptTimesSearch::judge(const Open& open, const std::optional<DoneRun>& run) {
  const auto times = run ? accept_times(run->plan, run->journal) : std::map<std::string, DurationMs>{};
  const auto accepted = run ? accepted_in(*run) : std::set<std::string>{};
  for (const auto& node : open.nodes) {
    const int64_t last = accepted_.at(node);
    const bool own = open.run == last;
    const bool counts = run && (own ? run->plan.kind != PlanKind::accept : accepted.count(node) > 0);
    if (counts)
      found_[node] = times.count(node) ? times.at(node) : 0;
    else if (!run && own)
      unreadable_.insert(node);
    else if (open.run > 1 && last - open.run < kLookBack)
      open_[open.run - 1].push_back(node);
  }
}

std::map<std::string, DurationMs> accept_times(const AcceptTimesSearch::Accepted& accepted,
                                               const RunOf& run_of) {
  AcceptTimesSearch search(accepted);
  while (const auto open = search.next()) search.judge(*open, run_of(open->run));
  return search.found();
}

const AcceptTimes::Known* AcceptTimes::known(const std::string& node, int64_t run) const {
  const auto found = known_.find(node);
  return found == known_.end() || found->second.run != run ? nullptr : &found->second;
}

bool AcceptTimes::looked_for(const std::string& node, int64_t run) const {
  return known(node, run) != nullptr;
}

DurationMs AcceptTimes::of(const std::string& node, int64_t run) const {
  const Known* found = known(node, run);
  return found ? found->took : 0;
}

void AcceptTimes::find(const Accepted& accepted, std::function<void()> then) {
  Accepted open;
  std::set<int64_t> running;
  for (const auto& [node, id] : accepted)
    if (const Known* found = known(node, id); !found || !found->readable) {
      open[node] = id;
      const auto run = store_.run(id);
      if (run.ok() && run->ended == 0) running.insert(id);
    }
  Looking looking{AcceptTimesSearch(std::move(open)), std::move(running), ++searches_};
  go_on(std::make_shared<Looking>(std::move(looking)), then);
}

void AcceptTimes::go_on(const Search& looking, const std::function<void()>& then) {
  AcceptTimesSearch* search = &looking->search;
  while (const auto open = search->next()) {
    const auto kind = kind_of(open->run);
    if (!kind || !AcceptTimesSearch::matters(*open, *kind)) {
      DoneRun without_rows;
      if (kind) without_rows.plan.kind = *kind;
      search->judge(*open, kind ? std::optional(std::move(without_rows)) : std::nullopt);
      continue;
    }
    return offload_(
        [looking, open = *open, archive = store_.archive()] {
          looking->search.judge(open, read_done(*archive, open.run));
        },
        alive_.wrap([this, looking, then] { go_on(looking, then); }));
  }
  keep(*looking);
  then();
}

std::optional<PlanKind> AcceptTimes::kind_of(int64_t run) {
  const auto row = store_.run(run);
  if (!row.ok()) return {};
  const auto head = store_.plan_head(row->plan_digest);
  if (!head.ok()) return {};
  const auto kind = plan_kind_from_string(head->kind);
  return kind.ok() ? std::optional(*kind) : std::nullopt;
}

// Two lookups may overlap, and the earlier one may end last: the result of the later one is kept.
void AcceptTimes::keep(const Looking& looking) {
  const auto& [search, running, number] = looking;
  for (const auto& [node, run] : search.accepted()) {
    Known& entry = known_[node];
    if (entry.found_by > number) continue;
    const auto took = search.found().find(node);
    const bool whole = search.unreadable().count(node) == 0 && running.count(run) == 0;
    entry = {run, took == search.found().end() ? 0 : took->second, whole, number};
  }
}

}  // namespace muster
