// Storage as sites have it: exports beside ours, and a Ceph cluster that is fuller or placed otherwise.
#include <fmt/format.h>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

// ---- NFS

// A server that exports /shared for two nodes; what `exportfs -s` shows is the test's.
class NfsServer : public FakeMachine {
 public:
  std::string table = field_input("nfs-nested-export", "clean");
  const Json params = {
      {"name", "shared"},
      {"path", "/shared"},
      {"clients",
       {{{"name", "n1"}, {"address", "10.20.0.11"}}, {{"name", "n2"}, {"address", "10.20.0.12"}}}}};

  NfsServer() {
    units["nfs-server.service"] = {};
    put("/shared/x", "");
    put("/proc/self/mountinfo",
        "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 30 9:127 / /shared rw - xfs /dev/md127 rw\n"
        "41 30 9:126 / /data rw - xfs /dev/md126 rw\n42 30 9:127 / /srv/v4/shared rw - xfs /dev/md127 rw\n");
    REQUIRE(apply());
    REQUIRE(holds());
  }
  Result<Output> run(const Command& command) override {
    auto out = FakeMachine::run(command);
    if (command.argv == std::vector<std::string>{"exportfs", "-s"}) return Output{0, table, ""};
    return out;
  }
  bool apply() {
    StepContext c = context();
    return find_step_module("nfs_server")->apply(c, params).ok();
  }
  bool holds() {
    StepContext c = context();
    const auto out = find_step_module("nfs_server")->check(c, params);
    INFO((out.ok() ? out->diff : out.error().message));
    REQUIRE(out.ok());
    return out->holds == Holds::yes;
  }
};

FIELD_CASE("nfs-nested-export") {
  NfsServer server;
  for (const char* table : {"whole", "below", "squashed", "eased", "kerberos", "insecure", "unknown"}) {
    INFO(table);
    server.table = field_input("nfs-nested-export", table);
    REQUIRE(server.table != field_input("nfs-nested-export", "clean"));
    CHECK_FALSE(server.holds());
    CHECK_FALSE(server.apply());
  }
  server.table = field_input("nfs-nested-export", "clean");
  CHECK(server.holds());
  CHECK(server.apply());
}

FIELD_CASE("nfs-bind-mount-export") {
  NfsServer server;
  server.table = field_input("nfs-bind-mount-export", "table");
  CHECK_FALSE(server.holds());
  CHECK_FALSE(server.apply());
}

FIELD_CASE("nfs-root-without-crossing") {
  NfsServer server;
  server.table = field_input("nfs-root-without-crossing", "table");
  CHECK(server.holds());
  CHECK(server.apply());
}

// ---- Ceph

// A cluster whose monitors report what the files of a case have, whatever the order.
class Ceph : public FakeMachine {
 public:
  explicit Ceph(std::string name) : name_(std::move(name)) {}

  Result<Output> run(const Command& command) override {
    if (command.argv[0] != "ceph") return FakeMachine::run(command);
    calls.push_back(steps::join(command.argv, " "));
    const std::vector<std::string> words(command.argv.begin() + 3, command.argv.end());
    const std::string question = words[0] + (words.size() > 1 && words[0] != "health" ? " " + words[1] : "");
    if (question == "health") return Output{0, R"({"status":"HEALTH_OK","checks":{}})", ""};
    if (question == "pg stat")
      return Output{0, R"({"pg_summary":{"num_pg_by_state":[{"name":"active+clean","num":33}]}})", ""};
    for (const char* what : {"dump", "df", "tree"})
      if (question == std::string("osd ") + what)
        return Output{0, field_input(name_, fmt::format("osd_{}.json", what)), ""};
    return Output{0, "", ""};
  }
  Status drain(const std::string& node, int copies = 2) {
    StepContext c = context();
    return find_step_module("ceph_drain")
        ->apply(c, {{"node", node}, {"state", "out"}, {"copies", copies}, {"deadline_seconds", 0}});
  }

 private:
  const std::string name_;
};

FIELD_CASE("ceph-drain-over-full") {
  Ceph ceph("ceph-drain-over-full");
  CHECK(ceph.drain("node01").error().code == Code::conflict);
  CHECK_FALSE(ceph.called("osd out"));
}

FIELD_CASE("ceph-drain-fits") {
  Ceph ceph("ceph-drain-fits");
  // These monitors never say that it is done.
  CHECK(ceph.drain("node01").error().code == Code::failed);
  CHECK(ceph.called("osd out 0"));
}

FIELD_CASE("ceph-drain-small-node") {
  Ceph ceph("ceph-drain-small-node");
  CHECK(ceph.drain("node01", 3).error().code == Code::conflict);
  CHECK_FALSE(ceph.called("osd out"));
}

FIELD_CASE("ceph-racks") {
  Ceph ceph("ceph-racks");
  StepContext c = ceph.context();
  const Json members = {{{"name", "node01"}}, {{"name", "node02"}}, {{"name", "node03"}}};
  const auto seen = find_step_module("ceph_members")
                        ->check(c, {{"members", members}, {"declared", 3}, {"deadline_seconds", 0}});
  REQUIRE(seen.ok());
  INFO(seen->diff);
  CHECK(seen->holds == Holds::yes);
  CHECK(ceph.drain("node01").error().code == Code::failed);
  CHECK(ceph.called("osd out 0"));
  CHECK(ceph.drain("node09").error().code == Code::not_found);  // below another root
}

}  // namespace
}  // namespace muster::tests
