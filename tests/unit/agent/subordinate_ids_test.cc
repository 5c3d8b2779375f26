// Ranges of subordinate ids on machines made by hand.
#include "agent/steps/system/subordinate_ids.h"

#include "tests/catch.h"
#include "tests/unit/agent/step_run.h"

namespace muster {
namespace {

const Json kBoth = {{"users", {"alice", "bob"}}};
const std::string kAlice = "alice:165536:65536\n", kBob = "bob:231072:65536\n";
const std::string kSpare = "alice:3866724000:65536\n";  // behind all that follow from UIDs

struct Run : testing::StepRun {
  Run() {
    add_account("alice", "1001");
    add_account("bob", "1002");
  }
  void add_account(const std::string& name, const std::string& id) const {
    machine.put("/etc/passwd", machine.get("/etc/passwd") + name + ":x:" + id + ":" + id + "::/home/" + name +
                                   ":/bin/bash\n");
    machine.put("/etc/group", machine.get("/etc/group") + name + ":x:" + id + ":\n");
  }
  // Applies it on /etc/subuid with this text, and returns the new one.
  std::string settled(const std::string& text, const Json& params = kBoth) {
    machine.put("/etc/subuid", text);
    REQUIRE(apply("subordinate_ids", params).ok());
    CHECK(check("subordinate_ids", params)->holds == Holds::yes);
    return machine.get("/etc/subuid");
  }
};

TEST_CASE("subordinate_ids: the range follows from the UID, in both files", "[steps]") {
  Run r;
  CHECK(r.check("subordinate_ids", kBoth)->holds == Holds::no);
  REQUIRE(r.apply("subordinate_ids", kBoth).ok());
  CHECK(r.machine.get("/etc/subuid") == kAlice + kBob);
  CHECK(r.machine.get("/etc/subgid") == kAlice + kBob);
  CHECK(r.check("subordinate_ids", kBoth)->holds == Holds::yes);
  // As the planner gives users, and in another order.
  CHECK(r.settled("", {{"users", {{{"name", "bob"}, {"uid", 1002}}, {{"name", "alice"}, {"uid", 1001}}}}}) ==
        kAlice + kBob);
}

TEST_CASE("subordinate_ids: what accounts have is kept", "[steps]") {
  Run r;
  // Of an account that is not listed, by name and by UID; a comment; a small range beside a full one.
  const std::string have =
      "# site\ncarol:400000:65536\n1002:500000:65536\nalice:700000:65536\nalice:90000:10\n";
  CHECK(r.settled(have) == have);
  CHECK(r.settled("alice:90000:1000\n" + kBob) == "alice:90000:1000\n" + kBob + kAlice);
}

TEST_CASE("subordinate_ids: ranges that overlap are taken apart", "[steps]") {
  Run r;
  CHECK(r.settled("carol:170000:1000\n" + kBob) == "carol:170000:1000\n" + kBob + kSpare);
  CHECK(r.settled("carol:165536:65536\nalice:165536:65536\n" + kBob) ==
        "carol:165536:65536\n" + kBob + kSpare);
  CHECK(r.settled("bob:231072:65536\nalice:231072:65536\n") == "alice:231072:65536\nbob:3866724000:65536\n");
  r.add_account("dave", "165600");  // its id lies in what follows from alice's
  CHECK(r.settled(kAlice + kBob) == kBob + kSpare);
}

TEST_CASE("subordinate_ids: accounts that cannot have any are named", "[steps]") {
  Run r;
  r.add_account("daemon", "999");
  r.add_account("guest", "70000");
  for (const char* name : {"daemon", "guest"}) {
    const Json params = {{"users", {"alice", name}}};
    const auto seen = r.check("subordinate_ids", params);
    REQUIRE_FALSE(seen.ok());
    CHECK(seen.error().code == Code::invalid);
    CHECK(seen.error().message.find(name) != std::string::npos);
    CHECK_FALSE(r.apply("subordinate_ids", params).ok());
  }
  const Json later = {{"users", {"erin"}}};
  CHECK(r.check("subordinate_ids", later)->holds == Holds::no);
  CHECK(r.apply("subordinate_ids", later).error().code == Code::not_found);
  CHECK(r.apply("subordinate_ids", {{"users", {7}}}).error().code == Code::invalid);
  CHECK_FALSE(r.machine.files().exists("/etc/subuid"));
}

TEST_CASE("subordinate_ids: each UID of a spec has a range of 32-bit ids, and no two overlap", "[steps]") {
  CHECK(steps::subordinate_start(1000) == 100000);
  CHECK(*steps::subordinate_start(59999) + steps::kSubordinateIds - 1 < steps::kLastSubordinateId);
  CHECK(*steps::subordinate_start(1001) == *steps::subordinate_start(1000) + steps::kSubordinateIds);
  CHECK_FALSE(steps::subordinate_start(999));
}

TEST_CASE("user: useradd puts the subordinate ids where they follow from the UID", "[steps]") {
  testing::StepRun r;
  REQUIRE(r.apply("user", {{"name", "ops"}}).ok());
  CHECK_FALSE(r.machine.called("SUB_UID_MIN"));
  REQUIRE(r.apply("user", {{"name", "alice"}, {"uid", 1001}}).ok());
  CHECK(r.machine.called(" -K SUB_UID_MIN=165536 "));
  CHECK(r.machine.called(" -K SUB_GID_MIN=165536 "));
}

}  // namespace
}  // namespace muster
