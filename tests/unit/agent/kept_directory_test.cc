// kept_directory: what survives a re-image, and what happens to what is at the path already.
#include <unistd.h>

#include <filesystem>

#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

struct Leader {
  FakeMachine machine;
  StepContext context = machine.context();
  Json params = {{"path", "/var/lib/q"}, {"name", "q"}, {"mode", "0700"}, {"services", {"q"}}};
  Leader() {
    machine.put("/run/systemd/system/x", "");
    machine.put("/state/muster/id", "");
    start();
  }
  void start() {
    machine.units["q.service"].enabled = true;
    machine.units["q.service"].active = true;
  }
  bool runs() { return machine.units["q.service"].active; }
  Status apply() { return find_step_module("kept_directory")->apply(context, params); }
  Result<CheckResult> check() { return find_step_module("kept_directory")->check(context, params); }
  bool is_kept() { return check()->holds == Holds::yes; }
  std::string link() const { return machine.files().read_link("/var/lib/q").value_or(""); }
  // The root slot of another image, in which the package has made the directory.
  void reimage() {
    std::filesystem::remove_all(machine.files().real("/var/lib"));
    REQUIRE(machine.files().make_directories("/var/lib/q").ok());
    start();
  }
};

TEST_CASE("kept_directory: content that is in the root slot moves to /state, with its services stopped") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK_FALSE(leader.runs());
  CHECK(leader.link() == "/state/q");
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK(leader.machine.get("/var/lib/q.before-muster/jobs") == "17");  // nothing is deleted
  // Once more: its services are left alone.
  leader.start();
  REQUIRE(leader.apply().ok());
  CHECK(leader.runs());
}

TEST_CASE("kept_directory: after a re-image the content from before is used") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  REQUIRE(leader.apply().ok());
  leader.machine.put("/state/q/jobs", "18");
  leader.reimage();
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK_FALSE(leader.runs());
  CHECK(leader.machine.get("/state/q/jobs") == "18");
}

TEST_CASE(
    "kept_directory: content in both, as after a trial that rolled back, is an error and changes nothing") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  leader.machine.put("/state/q/jobs", "1");
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK(leader.runs());
  CHECK(leader.machine.get("/var/lib/q/jobs") == "17");
  CHECK(leader.machine.get("/state/q/jobs") == "1");
}

TEST_CASE("kept_directory: a copy that was interrupted is made again, and not used as it is") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  leader.machine.put("/state/q.muster-part/half", "");
  leader.machine.broken = {"cp"};
  CHECK_FALSE(leader.apply().ok());
  CHECK(leader.runs());  // as before the attempt
  CHECK_FALSE(leader.machine.files().exists("/state/q"));
  leader.machine.broken.clear();
  REQUIRE(leader.apply().ok());
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK_FALSE(leader.machine.files().exists("/state/q/half"));
}

TEST_CASE("kept_directory: killed when the copy was complete and its source moved aside") {
  Leader leader;
  leader.machine.put("/state/q.muster-part/jobs", "17");
  REQUIRE(leader.apply().ok());
  CHECK(leader.machine.get("/state/q/jobs") == "17");
  CHECK(leader.link() == "/state/q");
}

TEST_CASE("kept_directory: killed between moving the directory aside and making the link") {
  Leader leader;
  leader.machine.put("/state/q/jobs", "17");
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.link() == "/state/q");
  CHECK(leader.machine.get("/state/q/jobs") == "17");
}

TEST_CASE("kept_directory: a link whose content is lost is an error, not an empty start") {
  Leader leader;
  leader.machine.put("/var/lib/q/jobs", "17");
  REQUIRE(leader.apply().ok());
  leader.start();
  std::filesystem::remove_all(leader.machine.files().real("/state/q"));
  CHECK(leader.check().error().code == Code::conflict);
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK_FALSE(leader.machine.files().exists("/state/q"));
  CHECK(leader.runs());
  REQUIRE(leader.machine.files().remove("/var/lib/q").ok());  // as the message says
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
}

TEST_CASE("kept_directory: a file in the way is an error, and nothing is stopped") {
  Leader leader;
  SECTION("at the path") { leader.machine.put("/var/lib/q", "x"); }
  SECTION("in /state") { leader.machine.put("/state/q", "x"); }
  CHECK(leader.apply().error().code == Code::conflict);
  CHECK(leader.runs());
}

TEST_CASE("kept_directory: an operator's own disk or link stays") {
  Leader leader;
  SECTION("a mount point") {
    leader.machine.put("/var/lib/q/jobs", "17");
    leader.machine.mount_entry("nvme1n1", "/var/lib/q", "xfs");
  }
  SECTION("a link") {
    leader.machine.put("/usr/share/q/jobs", "17");
    REQUIRE(leader.machine.files().symlink("/usr/share", "/var/lib/q").ok());
  }
  SECTION("a relative link") {
    leader.machine.put("/var/lib/big/jobs", "17");
    REQUIRE(leader.machine.files().symlink("big", "/var/lib/q").ok());
  }
  const std::string link = leader.link();
  CHECK(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.runs());
  CHECK(leader.link() == link);
  CHECK_FALSE(leader.machine.files().exists("/state/q"));
}

TEST_CASE("kept_directory: a plain directory where there is no /state") {
  Leader leader;
  std::filesystem::remove_all(leader.machine.files().real("/state"));
  CHECK_FALSE(leader.is_kept());
  REQUIRE(leader.apply().ok());
  CHECK(leader.is_kept());
  CHECK(leader.link().empty());
}

TEST_CASE("kept_directory: the accounts of another image have other numbers") {
  Leader leader;
  leader.machine.put("/state/q/jobs", "17");
  leader.params["owner"] = std::to_string(getuid() + 1);
  leader.params["group"] = std::to_string(getgid() + 1);
  (void)leader.apply();  // denied unless root
  CHECK(leader.machine.called("chown -R -h " + std::to_string(getuid() + 1) + ":" +
                              std::to_string(getgid() + 1) + " /state/q"));
}

TEST_CASE("kept_directory: a name that leaves /state, and the agent's own") {
  Leader leader;
  const char* name = GENERATE("../x", "a/b", "muster", "");
  leader.params["name"] = name;
  CHECK(leader.apply().error().code == Code::invalid);
}

}  // namespace
}  // namespace muster
