#include "controller/bringup/proving_times.h"

#include <utility>

namespace muster {

const ProvingTimes::Known* ProvingTimes::known(const std::string& node, int64_t run) const {
  const auto found = known_.find(node);
  return found == known_.end() || found->second.run != run ? nullptr : &found->second;
}

bool ProvingTimes::looked_for(const std::string& node, int64_t run) const {
  return known(node, run) != nullptr;
}

DurationMs ProvingTimes::of(const std::string& node, int64_t run) const {
  const Known* found = known(node, run);
  return found ? found->took : 0;
}

void ProvingTimes::find(const Accepted& accepted, std::function<void()> then) {
  Accepted open;
  std::set<int64_t> running;
  for (const auto& [node, id] : accepted)
    if (const Known* found = known(node, id); !found || !found->readable) {
      open[node] = id;
      const auto run = store_.run(id);
      if (run.ok() && run->ended == 0) running.insert(id);
    }
  Looking looking{ProvingSearch(std::move(open)), std::move(running), ++searches_};
  go_on(std::make_shared<Looking>(std::move(looking)), then);
}

void ProvingTimes::go_on(const Search& looking, const std::function<void()>& then) {
  ProvingSearch* search = &looking->search;
  while (const auto open = search->next()) {
    auto stored = read(*open);
    if (!stored || !stored->all) {
      search->judge(*open, stored ? run_from(*std::move(stored)) : std::nullopt);
      continue;
    }
    return offload_(
        [looking, open = *open, stored = std::make_shared<Stored>(*std::move(stored))] {
          looking->search.judge(open, run_from(std::move(*stored)));
        },
        [this, alive = alive_, looking, then] {
          if (*alive) go_on(looking, then);
        });
  }
  keep(*looking);
  then();
}

std::optional<ProvingTimes::Stored> ProvingTimes::read(const ProvingSearch::Open& open) {
  const auto run = store_.run(open.run);
  if (!run.ok()) return {};
  const auto head = store_.plan_head(run->plan_digest);
  if (!head.ok()) return {};
  const auto kind = plan_kind_from_string(head->kind);
  if (!kind.ok()) return {};
  Stored out{*kind, ProvingSearch::matters(open, *kind)};
  if (!out.all) return out;
  auto plan = store_.plan(run->plan_digest);
  auto journal = store_.journal_times(open.run);
  if (!plan.ok() || !journal.ok()) return {};
  out.plan = std::move(plan->json);
  out.journal = std::move(journal).value();
  return out;
}

std::optional<DoneRun> ProvingTimes::run_from(Stored stored) {
  DoneRun out;
  out.plan.kind = stored.kind;
  if (!stored.all) return out;
  const auto json = parse_json(stored.plan);
  if (!json.ok()) return {};
  auto plan = plan_from_json(*json);
  if (!plan.ok()) return {};
  return DoneRun{std::move(plan).value(), std::move(stored.journal)};
}

// Two may look at once, and the one that began first end last: what the other found stays.
void ProvingTimes::keep(const Looking& looking) {
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
