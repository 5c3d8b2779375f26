#include "controller/bringup/accept_times.h"

#include <utility>

namespace muster {
namespace {

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
