// Storage as sites have it: exports beside ours, and a Ceph cluster that is fuller or placed otherwise.
#include <fmt/format.h>

#include "agent/step.h"
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

}  // namespace
}  // namespace muster::tests
