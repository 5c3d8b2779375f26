#include "controller/bringup/accept_times.h"

#include "tests/catch.h"

using namespace muster;

namespace {

Plan plan_with(std::vector<std::pair<std::string, ActionKind>> actions) {
  Plan plan;
  for (auto& [name, kind] : actions) {
    Action a;
    a.id = "n1/" + name;
    a.node = "n1";
    a.kind = kind;
    a.phase = name;
    a.when_failed = name == "resume-old";
    plan.actions.push_back(a);
  }
  return plan;
}

JournalRow row(const std::string& name, const std::string& event, TimeMs time) {
  JournalRow out;
  out.node = "n1";
  out.action = "n1/" + name;
  out.event = event;
  out.time = time;
  return out;
}

}  // namespace

TEST_CASE("accept times search: what the node did itself, and not what it waited for others", "[bringup]") {
  Plan plan = plan_with({{"pause", ActionKind::steps},
                         {"boot", ActionKind::boot_slot},
                         {"configure", ActionKind::steps},
                         {"accept", ActionKind::check},
                         {"look", ActionKind::inventory},
                         {"resume", ActionKind::steps},
                         {"resume-old", ActionKind::steps}});
  const std::vector<JournalRow> journal = {
      row("pause", "intent", 100),         row("pause", "succeeded", 900),
      row("boot", "intent", 1000),         row("boot", "succeeded", 2000),
      row("configure", "intent", 2100),    row("configure", "failed", 2200),
      row("configure", "intent", 2500),    row("configure", "succeeded", 3000),
      row("accept", "intent", 6000),       row("accept", "succeeded", 7000),
      row("look", "succeeded", 9000),      row("resume", "intent", 9100),
      row("resume", "succeeded", 9800),    row("resume-old", "intent", 9850),
      row("resume-old", "succeeded", 9900)};
  CHECK(accept_times(plan, journal) == std::map<std::string, DurationMs>{{"n1", 1500}});
  plan.kind = PlanKind::accept;  // perhaps of another profile
  CHECK(accept_times(plan, journal).empty());
}

TEST_CASE("accept times search: what the journal does not show to its end is not counted", "[bringup]") {
  const Plan plan = plan_with({{"configure", ActionKind::steps}, {"accept", ActionKind::check}});
  const auto took = [&](const std::vector<JournalRow>& journal) {
    const auto times = accept_times(plan, journal);
    return times.count("n1") ? times.at("n1") : 0;
  };
  CHECK(took({row("configure", "intent", 10), row("configure", "succeeded", 60)}) == 50);
  CHECK(took({row("configure", "intent", 10), row("accept", "succeeded", 60)}) == 0);
  CHECK(took({row("configure", "intent", 60), row("configure", "succeeded", 10)}) == 0);
  CHECK(took({}) == 0);
}

TEST_CASE("accept times search: each node's own actions count for it, and no other node's word on them",
          "[bringup]") {
  Plan plan = plan_with({{"configure", ActionKind::steps}});
  Action other = plan.actions.front();
  other.id = "n2/configure";
  other.node = "n2";
  plan.actions.push_back(other);
  JournalRow begins = row("configure", "intent", 5), ends = row("configure", "succeeded", 905);
  begins.action = ends.action = "n2/configure";
  const std::vector<JournalRow> claimed = {begins, ends};  // as n1
  CHECK(accept_times(plan, claimed).empty());
  begins.node = ends.node = "n2";
  const std::vector<JournalRow> both = {row("configure", "intent", 10), begins, ends,
                                        row("configure", "succeeded", 60)};
  CHECK(accept_times(plan, both) == std::map<std::string, DurationMs>{{"n1", 50}, {"n2", 900}});
}

TEST_CASE(
    "accept times search: behind a run that only measured, the newest one that configured the node counts",
    "[bringup]") {
  const auto run_with = [](PlanKind kind, TimeMs took, bool accepted = true) {
    Plan plan = plan_with({{"configure", ActionKind::steps}, {"accept", ActionKind::check}});
    plan.kind = kind;
    std::vector<JournalRow> journal = {row("configure", "intent", 10),
                                       row("configure", "succeeded", 10 + took)};
    if (accepted) journal.push_back(row("accept", "succeeded", 20 + took));
    return DoneRun{plan, journal};
  };
  std::map<int64_t, DoneRun> runs = {
      {3, run_with(PlanKind::install, 300)},        {4, run_with(PlanKind::apply, 400)},
      {5, run_with(PlanKind::reimage, 500, false)}, {6, run_with(PlanKind::drain, 600)},
      {8, run_with(PlanKind::accept, 800)},         {9, run_with(PlanKind::accept, 900)}};
  std::map<int64_t, int> reads;
  const auto times = [&](std::map<std::string, int64_t> accepted) {
    return accept_times(accepted, [&](int64_t id) -> std::optional<DoneRun> {
      ++reads[id];
      const auto found = runs.find(id);
      return found == runs.end() ? std::nullopt : std::optional(found->second);
    });
  };
  // Its own run; behind two that only measured (7 is gone) neither a drain counts nor one it went back in.
  CHECK(times({{"n1", 4}}) == std::map<std::string, DurationMs>{{"n1", 400}});
  CHECK(times({{"n1", 9}}) == std::map<std::string, DurationMs>{{"n1", 400}});
  CHECK(times({{"n2", 9}}).empty());  // that run was not about it
  CHECK(times({{"n1", 7}}).empty());
  CHECK(times({}).empty());
  reads.clear();
  CHECK(times({{"n1", 9}, {"n2", 8}}).size() == 1);
  for (const auto& [id, times_read] : reads) CHECK(times_read == 1);
  // Not for ever.
  runs = {{1, run_with(PlanKind::install, 100)},
          {50, run_with(PlanKind::accept, 1)},
          {52, run_with(PlanKind::accept, 1)}};
  CHECK(times({{"n1", 50}}).size() == 1);
  CHECK(times({{"n1", 52}}).empty());
}
