// The rule that says when others' work on the processors makes a host busy, by itself.
#include "agent/measuring/other_load.h"

#include "tests/catch.h"

using namespace muster;

namespace {

ProcessUse of_user(double cores, int64_t pid = 7) { return {pid, "user bob", "ring", false, cores}; }
ProcessUse daemon(double cores) { return {3, "user root", "slurmd", true, cores}; }

struct Row {
  const char* what;
  std::vector<ProcessUse> others;
  double cores;  // of the share and the machine
  double load;
  std::string expected;  // "busy", "note", ""
};

std::string verdict_of(const LoadVerdict& verdict) {
  CHECK((verdict.busy.empty() || verdict.note.empty()));
  if (!verdict.busy.empty()) return "busy";
  return verdict.note.empty() ? "" : "note";
}

}  // namespace

TEST_CASE("load: a tenth of the cores makes a host busy, and at least half a core", "[look]") {
  const std::vector<Row> rows = {
      {"idle", {}, 64, 0.5, ""},
      {"one rank for each core", std::vector<ProcessUse>(64, of_user(1)), 64, 64, "busy"},
      {"and the load average has not grown yet", std::vector<ProcessUse>(64, of_user(1)), 64, 0, "busy"},
      {"one busy core of 64", {of_user(1)}, 64, 1, "note"},
      {"a tenth of them", std::vector<ProcessUse>(64, of_user(0.101)), 64, 1, "busy"},
      {"a little less", std::vector<ProcessUse>(63, of_user(0.1)), 64, 1, "note"},
      {"most of one of two cores", {of_user(0.6)}, 2, 1, "busy"},
      {"a third of one of two cores", {of_user(0.33)}, 2, 1, ""},
      {"a compiler run by root", {daemon(1)}, 4, 1, "busy"},
      {"many idle daemons", std::vector<ProcessUse>(60, daemon(0.04)), 4, 1, ""},
      {"many small processes of a user", std::vector<ProcessUse>(60, of_user(0.04)), 4, 1, "busy"},
      {"the load of a job that has ended", {}, 64, 64, "note"},
      {"and below the cores", {}, 64, 63, ""},
      {"hidden processes", {{0, "hidden", "", false, 30}}, 64, 30, "busy"},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    const LoadVerdict verdict = judge_load({row.others, row.cores, row.load, row.cores});
    CHECK(verdict_of(verdict) == row.expected);
  }
}

TEST_CASE("load: a share is judged by its own cores", "[look]") {
  CHECK(verdict_of(judge_load({{of_user(1)}, 2, 1, 64})) == "busy");
  CHECK(verdict_of(judge_load({{}, 2, 40, 64})) == "");  // the average belongs to the machine
}

TEST_CASE("load: pids are those of what counts", "[look]") {
  const auto verdict = judge_load({{of_user(3, 11), of_user(2, 12), daemon(0.01)}, 8, 5, 8});
  CHECK(verdict.pids == std::set<int64_t>{11, 12});
  CHECK(judge_load({{{0, "hidden", "", false, 30}}, 64, 30, 64}).pids.empty());
}

TEST_CASE("load: only what was used between two readings, and by the same process", "[look]") {
  ProcessTable before, after;
  before.uptime = 100, after.uptime = 102;
  before.used = 1000, after.used = 1400;
  const auto at = [](uint64_t started, uint64_t used) {
    RunningProcess out;
    out.started = started, out.used = used;
    return out;
  };
  before.all[5] = at(10, 700);
  after.all[5] = at(10, 900);
  before.all[6] = at(20, 5000);
  after.all[6] = at(10100, 50);  // its number was given away again
  after.all[7] = at(30, 0);
  after.all[8] = at(10150, 30);
  after.all[8].kernel = true;
  const auto used = used_between(Files("/nowhere"), before, after, {});
  REQUIRE(used.size() == 2);
  CHECK(used[0].cores == Approx(1.0));
  CHECK(used[1].cores == Approx(0.25));
  CHECK(used_between(Files("/nowhere"), before, after, {5}).size() == 1);
  CHECK(hidden_use(before, after) == Approx(0.6));  // 400 in all, 280 of them seen
}
