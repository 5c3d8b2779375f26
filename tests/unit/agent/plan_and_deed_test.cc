// Planner and agent over machines by chance: whatever the plan approves, the agent finds and does exactly
// that; else the plan refuses. Each machine has a few small disks of every sort of identity and content, of
// which a data group selects those of one size, and a stranger beside them that nothing may touch.
#include <algorithm>
#include <random>

#include "agent/disk/disk.h"
#include "agent/steps/disk/mounts.h"
#include "base/disk_source.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/lint.h"
#include "host/disks_under.h"
#include "tests/field/machines.h"

namespace muster::tests {
namespace {

constexpr int kMachines = 32;

// How the disks of a machine say who they are.
enum class Who { each_its_own, one_serial, no_wwid, one_wwid, no_serial, all_alike, kinds };
// What lies on one of them.
enum class What {
  blank,
  ours,
  ours_elsewhere,
  of_node,
  foreign,
  other_level,
  more_members,
  xfs,
  bytes,
  kinds
};

class Chance {
 public:
  explicit Chance(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <typename Kind>
  Kind of() {
    return static_cast<Kind>(below(static_cast<int>(Kind::kinds)));
  }

 private:
  std::mt19937 random_;
};

Json member(const std::string& name, const std::string& id, int level, int members) {
  return {{"name", name}, {"id", id}, {"level", level}, {"members", members}, {"xfs", "scratch"}};
}

Json disk_with(What what, int members) {
  Json out = Json::object();
  if (what == What::ours) out["md"] = member("any:scratch", "1", 0, members);
  if (what == What::ours_elsewhere) out["md"] = member("any:scratch", "2", 0, members);
  if (what == What::of_node) out["md"] = member("node01:scratch", "1", 0, members);
  if (what == What::foreign) out["md"] = member("oldhost:scratch", "3", 0, members);
  if (what == What::other_level) out["md"] = member("any:scratch", "1", 1, members);
  if (what == What::more_members) out["md"] = member("any:scratch", "1", 0, members + 1);
  if (what == What::xfs) out["xfs"] = {{"label", "data"}, {"id", "9"}};
  return out;
}

void identify(Json& disk, Who who, int number) {
  const std::string n = std::to_string(number);
  disk["serial"] = who == Who::no_serial                             ? ""
                   : who == Who::one_serial || who == Who::all_alike ? "SAME"
                                                                     : "S" + n;
  disk["wwid"] = who == Who::no_wwid                             ? ""
                 : who == Who::one_wwid || who == Who::all_alike ? "eui.0000000000000000"
                                                                 : "eui.00000000000000b" + n;
}

struct Machine {
  FakeMachine machine;
  std::vector<std::string> selected;  // kernel names
  bool alike = true;                  // all of them hold the same
  bool is_md = false;

  explicit Machine(Chance& chance) {
    const int count = 1 + chance.below(3);
    const Who who = chance.of<Who>();
    const What first = chance.of<What>();
    const bool mixed = chance.one_in(3);
    for (int i = 0; i < count; ++i) {
      const What what = mixed ? chance.of<What>() : first;
      alike = alike && what == first;
      Json d = disk_with(what, count);
      is_md = d.contains("md");
      d["name"] = "nvme" + std::to_string(i + 1) + "n1";
      d["read_only"] = chance.one_in(12);
      identify(d, who, i);
      add_disk(machine, d);
      selected.push_back(d["name"].get<std::string>());
      if (what == What::bytes) machine.write_disk(selected.back(), 20 << 20, "somebody's");
    }
    Json stranger = disk_with(chance.of<What>(), count);
    stranger["name"] = "nvme9n1", stranger["mib"] = 64;
    identify(stranger, who, 9);
    add_disk(machine, stranger);
  }
  void assemble() {
    std::vector<std::string> argv = {"mdadm", "--assemble", "/dev/md127"};
    for (const auto& name : selected) argv.push_back("/dev/" + name);
    REQUIRE(machine.run({.argv = argv})->ok());
  }
  std::string digest(const std::string& name) const { return machine.snapshot().at("/dev/" + name); }
};

// The plan was approved: it is carried out, and came to what it says.
void carry_out(Machine& m, const Plan& plan) {
  const Json disks = disks_in(plan);
  REQUIRE(disks.size() == m.selected.size());
  const auto destroyed = static_cast<size_t>(std::count_if(
      plan.destroys.begin(), plan.destroys.end(), [](const Destruction& d) { return d.group == "fast"; }));
  CHECK((destroyed == 0 || destroyed == m.selected.size()));
  const std::string stranger = m.digest("nvme9n1");
  m.machine.calls.clear();
  const Status done = set_up(m.machine, disks);
  INFO((done.ok() ? "" : done.error().message));
  REQUIRE(done.ok());
  CHECK(m.machine.called("mdadm --create") == (destroyed > 0));
  CHECK(m.machine.called("mkfs") == (destroyed > 0));
  CHECK(m.digest("nvme9n1") == stranger);
  CHECK_FALSE(m.machine.called("nvme9n1"));
  // On these disks, and no others, lies what is mounted.
  const auto entry = find_mount(m.machine.files(), "/scratch");
  REQUIRE(entry);
  std::vector<DiskFacts> those;
  for (const auto& d : scan_identities(m.machine.files()))
    if (std::count(m.selected.begin(), m.selected.end(), d.name)) those.push_back(d);
  CHECK(disks_under(m.machine.files(), entry->source.substr(5)) == m.selected);
  CHECK(lies_on(m.machine.files(), entry->source, disk_source(those)).ok());
  // Again, with what the next plan gives: nothing is left to do, and nothing is destroyed.
  m.machine.calls.clear();
  Json next = disks;
  for (auto& disk : next) disk["content_hash"] = "";
  CHECK(set_up(m.machine, next).ok());
  CHECK_FALSE(m.machine.called("mdadm --create"));
  CHECK_FALSE(m.machine.called("mkfs"));
}

}  // namespace

TEST_CASE("what a plan approves on a machine by chance, the agent does; else the plan refuses") {
  std::map<std::string, int> came;
  for (int seed = 1; seed <= kMachines; ++seed) {
    Chance chance(static_cast<unsigned>(seed));
    Machine m(chance);
    const auto policy = static_cast<DiskPolicy>(chance.below(3));
    const bool before = m.alike && m.is_md && chance.one_in(3), meanwhile = !before && chance.one_in(2);
    INFO("machine " << seed << ", policy " << static_cast<int>(policy));
    if (before) m.assemble();
    const auto seen = scan_disks(m.machine.files());
    const PlannerInput in = with_fast(seen, m.selected.size(), policy);
    const std::string rule = refused_by(in);
    CHECK(rule.find("error") == std::string::npos);
    ++came[rule.empty() ? "approved" : "refused"];
    if (!rule.empty()) continue;
    const Plan plan = muster::testing::planned(in);
    CHECK(lint_plan(plan).empty());
    if (meanwhile && m.alike && m.is_md) m.assemble();
    carry_out(m, plan);
  }
  // Both happen often enough to say something.
  CHECK(came["approved"] >= kMachines / 8);
  CHECK(came["refused"] >= kMachines / 8);
}

TEST_CASE("what a plan refuses to tell apart, the agent would not find either") {
  for (const Who who :
       {Who::all_alike, Who::each_its_own, Who::one_serial, Who::no_wwid, Who::one_wwid, Who::no_serial}) {
    FakeMachine machine;
    for (int i = 0; i < 2; ++i) {
      Json d = {{"name", "nvme" + std::to_string(i + 1) + "n1"}};
      identify(d, who, i);
      add_disk(machine, d);
    }
    const auto seen = scan_disks(machine.files());
    const bool refused = !refused_by(with_fast(seen, 2, DiskPolicy::format_if_blank)).empty();
    const bool found = std::all_of(seen.begin(), seen.end(), [&](const DiskFacts& d) {
      const auto again = find_disk(seen, d);
      return again.ok() && again->name == d.name;
    });
    CHECK(refused != found);
    CHECK(refused == (who == Who::all_alike));
  }
}

}  // namespace muster::tests
