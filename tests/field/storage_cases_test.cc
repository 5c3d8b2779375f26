// Storage clusters and servers as sites have them, through the step modules.
#include <map>

#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

// Ceph's program: gives the recorded answers, and keeps what it was ordered to do. Any other order succeeds.
class Monitors : public Process {
 public:
  std::map<std::string, std::string> answers = {
      {"osd dump", R"({"osds":[{"osd":0,"uuid":"u0","up":1,"in":1},{"osd":1,"uuid":"u1","up":1,"in":1},
                               {"osd":2,"uuid":"u2","up":1,"in":1}]})"},
      {"osd tree", R"({"nodes":[{"id":-1,"name":"default","type":"root","children":[-2,-3,-4]},
                                {"id":-2,"name":"node01","type":"host","children":[0]},
                                {"id":-3,"name":"node02","type":"host","children":[1]},
                                {"id":-4,"name":"node03","type":"host","children":[2]}]})"},
      {"pg stat", R"({"pg_summary":{"num_pg_by_state":[{"name":"active+clean","num":64}]}})"}};
  std::vector<std::string> orders = {};

  Result<Output> run(const Command& command) override {
    std::string words;
    for (size_t i = 3; i < command.argv.size(); ++i) words += (i > 3 ? " " : "") + command.argv[i];
    for (const auto& [question, answer] : answers)
      if (words.rfind(question, 0) == 0) return Output{0, answer, ""};
    orders.push_back(words);
    return Output{0, "{}", ""};
  }
};

Status drain(Monitors& monitors, const std::string& node, const FakeMachine& machine) {
  Files files = machine.files();
  StepContext context{files, monitors, "node01"};
  return find_step_module("ceph_drain")
      ->apply(context, {{"node", node}, {"state", "out"}, {"copies", 2}, {"deadline_seconds", 0}});
}

}  // namespace

FIELD_CASE("ceph-drain-over-full") {
  const FakeMachine machine;
  Monitors monitors;
  monitors.answers["osd df"] = field_input("ceph-drain-over-full", "osd-df.json");
  CHECK(drain(monitors, "node01", machine).error().code == Code::conflict);
  CHECK(monitors.orders.empty());
  // With room for it the same node goes.
  monitors.answers["osd df"] = field_input("ceph-drain-over-full", "osd-df-room.json");
  CHECK(drain(monitors, "node01", machine).ok());
  REQUIRE(!monitors.orders.empty());
  CHECK(monitors.orders[0] == "osd out 0");
  // A site that lowered the ratio means it.
  monitors.orders.clear();
  monitors.answers["osd dump"].insert(1, R"("backfillfull_ratio":0.30,)");
  CHECK(drain(monitors, "node01", machine).error().code == Code::conflict);
  CHECK(monitors.orders.empty());
}

FIELD_CASE("ceph-racks") {
  const FakeMachine machine;
  Monitors monitors;
  monitors.answers["osd tree"] = field_input("ceph-racks", "osd-tree.json");
  monitors.answers["osd dump"] = R"({"osds":[{"osd":0,"up":1,"in":1},{"osd":1,"up":1,"in":1},
                                             {"osd":2,"up":1,"in":1},{"osd":3,"up":1,"in":1}]})";
  monitors.answers["osd df"] = field_input("ceph-drain-over-full", "osd-df-room.json");
  CHECK(drain(monitors, "node03", machine).ok());
  REQUIRE(!monitors.orders.empty());
  CHECK(monitors.orders[0] == "osd out 2");
  CHECK(drain(monitors, "old01", machine).error().code == Code::not_found);  // of another root
}

FIELD_CASE("nfs-nested-export") {
  FakeMachine machine;
  machine.units["nfs-server.service"] = {};
  StepContext context = machine.context();
  const StepModule* server = find_step_module("nfs_server");
  const Json params = {{"name", "shared"},
                       {"path", "/shared"},
                       {"clients", {{{"address", "10.20.0.11"}}, {{"address", "10.20.0.12"}}}}};
  machine.put("/shared/x", "");
  machine.put("/proc/self/mountinfo", "40 1 259:1 / /shared rw - xfs /dev/nvme1n1 rw\n");
  REQUIRE(server->apply(context, params).ok());
  REQUIRE(server->check(context, params)->holds == Holds::yes);
  const auto beside = [&](const std::string& line) {
    machine.put("/etc/exports", line + "\n");
    (void)machine.run({.argv = {"exportfs", "-ra"}}).ok();
    const Holds holds = server->check(context, params)->holds;
    machine.put("/etc/exports", "");
    (void)machine.run({.argv = {"exportfs", "-ra"}}).ok();
    return holds;
  };
  CHECK(beside("/ *(fsid=0,crossmnt,no_root_squash)") == Holds::no);
  CHECK(beside("/shared/projects *(no_root_squash)") == Holds::no);
  CHECK(beside("/shared/ *(rw)") == Holds::no);
  CHECK(beside("/shared 10.20.0.11(rw,sync,mountpoint,all_squash)") == Holds::no);
  CHECK(beside("/shared 10.20.0.11(rw,async,mountpoint)") == Holds::no);
  CHECK(beside("/shared 10.20.0.11(rw,sync,mountpoint,sec=krb5)") == Holds::no);
  // What is exported elsewhere is the site's own affair.
  CHECK(beside("/sharedold *(rw)") == Holds::yes);
  CHECK(beside("/ *(fsid=0,ro)") == Holds::yes);
}

}  // namespace muster::tests
