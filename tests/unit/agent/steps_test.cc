// What single step modules do beyond what all of them promise (tests/conformance/step_suite_test.cc).
#include <algorithm>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/two_phase.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"
#include "tests/unit/agent/step_run.h"

namespace muster {
namespace {

using tests::FakeMachine;
using Run = testing::StepRun;

const Json kHarden = {{"settings", {{"PasswordAuthentication", "no"}}}, {"port", 0}};

TEST_CASE("two phases: a change that fails is taken back at once") {
  Run r;
  r.machine.put("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
  r.machine.put("/etc/ssh/sshd_config.d/00-muster.conf", "PasswordAuthentication yes\n");
  r.machine.broken = {"/usr/sbin/sshd -t"};
  CHECK(!r.apply("sshd", kHarden).ok());
  CHECK(r.machine.get("/etc/ssh/sshd_config.d/00-muster.conf") == "PasswordAuthentication yes\n");
  CHECK(r.machine.called("systemd-run"));
  CHECK(r.machine.called("systemctl stop muster-rollback-sshd.timer"));
}

TEST_CASE("two phases: what the timer runs puts the files back, new ones included") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  REQUIRE(steps::arm(r.context, {"x", {"/etc/a", "/etc/new"}, {{"touch", "/ran"}}, 60}).ok());
  r.machine.put("/etc/a", "new\n");
  r.machine.put("/etc/new", "new\n");
  REQUIRE(steps::roll_back(r.context.files, r.machine, "x").ok());
  CHECK(r.machine.get("/etc/a") == "old\n");
  CHECK(!r.machine.files().exists("/etc/new"));
  CHECK(r.machine.files().exists("/ran"));
  CHECK(!steps::is_armed(r.machine.files(), "x"));
}

TEST_CASE("two phases: a second attempt remembers the state before the first") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  REQUIRE(steps::arm(r.context, {"x", {"/etc/a"}, {}, 60}).ok());
  r.machine.put("/etc/a", "half\n");
  REQUIRE(steps::arm(r.context, {"x", {"/etc/a"}, {}, 60}).ok());
  REQUIRE(steps::roll_back(r.context.files, r.machine, "x").ok());
  CHECK(r.machine.get("/etc/a") == "old\n");
}

// The power goes when this program would be run.
struct PowerCut : Process {
  struct Off {};
  FakeMachine& machine;
  std::string at;
  PowerCut(FakeMachine& m, std::string call) : machine(m), at(std::move(call)) {}
  Result<Output> run(const Command& command) override {
    std::string words;
    for (const auto& word : command.argv) words += (words.empty() ? "" : " ") + word;
    if (words.starts_with(at)) throw Off();
    return machine.run(command);
  }
};

void cut_off(FakeMachine& machine, const char* module, const Json& params, const std::string& call) {
  PowerCut process(machine, call);
  Files files = machine.files();
  StepContext context{files, process, "gpu01"};
  CHECK_THROWS_AS(find_step_module(module)->apply(context, params), PowerCut::Off);
}

// A boot forgets transient units, and the firewall's service loads what its files say.
void boot(FakeMachine& machine) {
  for (const char* name : {"muster-rollback-ufw.timer", "muster-rollback-sshd.timer"})
    machine.units.erase(name);
  machine.firewall.clear();
  REQUIRE(machine.run({.argv = {"/lib/ufw/ufw-init", "start"}}).ok());
  machine.calls.clear();
}

std::string loaded_rules(FakeMachine& machine) { return machine.run({.argv = {"iptables", "-S"}})->out; }

const Json kDenyAll = {{"allow", Json::array()}};

TEST_CASE("two phases: after a loss of power the agent rolls back what was not confirmed") {
  Run r;
  r.machine.put("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
  r.machine.put("/etc/ssh/sshd_config.d/00-muster.conf", "PasswordAuthentication yes\n");
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "IPV6=yes\n");
  cut_off(r.machine, "sshd", kHarden, "/usr/sbin/sshd -T");
  cut_off(r.machine, "ufw", kDenyAll, "/lib/ufw/ufw-init start");
  boot(r.machine);
  REQUIRE(loaded_rules(r.machine).find("-P INPUT DROP") == 0);  // locked out

  const auto taken = steps::roll_back_orphans(r.context.files, r.machine);
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].result.ok());
  CHECK(taken[1].result.ok());
  CHECK(r.machine.get("/etc/ssh/sshd_config.d/00-muster.conf") == "PasswordAuthentication yes\n");
  CHECK(r.machine.called("systemctl try-reload-or-restart ssh.service"));
  CHECK(r.machine.get("/etc/ufw/ufw.conf") == "ENABLED=no\n");
  CHECK(loaded_rules(r.machine) == FakeMachine().run({.argv = {"iptables", "-S"}})->out);
  CHECK(steps::roll_back_orphans(r.context.files, r.machine).empty());
}

TEST_CASE("two phases: after a loss of power an earlier firewall is loaded again") {
  Run r;
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "");
  REQUIRE(r.apply("ufw", {{"allow", {{{"port", 22}}}}}).ok());
  cut_off(r.machine, "ufw", kDenyAll, "iptables-restore");
  boot(r.machine);
  REQUIRE(loaded_rules(r.machine).find("--dport 22") == std::string::npos);
  REQUIRE(steps::roll_back_orphans(r.context.files, r.machine).size() == 1);
  CHECK(loaded_rules(r.machine).find("-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT") !=
        std::string::npos);
}

TEST_CASE("two phases: an agent that starts leaves a change to its timer while that is pending or at work") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  REQUIRE(steps::arm(r.context, {"x", {"/etc/a"}, {}, 60}).ok());
  r.machine.put("/etc/a", "new\n");
  CHECK(steps::roll_back_orphans(r.context.files, r.machine).empty());
  r.machine.units.erase("muster-rollback-x.timer");
  r.machine.units["muster-rollback-x.service"].active = true;  // it fired
  CHECK(steps::roll_back_orphans(r.context.files, r.machine).empty());
  CHECK(r.machine.get("/etc/a") == "new\n");
  r.machine.units["muster-rollback-x.service"].active = false;  // it was killed half way
  CHECK(steps::roll_back_orphans(r.context.files, r.machine).size() == 1);
  CHECK(r.machine.get("/etc/a") == "old\n");
}

TEST_CASE("two phases: what was taken back cannot be confirmed any more") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  const steps::TwoPhase phases{"x", {"/etc/a"}, {}, 60};
  const auto timer_fires = [&] {
    r.machine.units.erase("muster-rollback-x.timer");
    return steps::roll_back(r.context.files, r.machine, "x");
  };
  const Status done = steps::in_two_phases(r.context, phases, [&] { return timer_fires(); });
  CHECK(done.error().message == "the change to x was not confirmed in time and was rolled back by its timer");
  const Status failed = steps::in_two_phases(r.context, phases, [&]() -> Status {
    REQUIRE(timer_fires().ok());
    return fail(Code::failed, "no answer");
  });
  CHECK(failed.error().message ==
        "no answer; the change to x was not confirmed in time and was rolled back by its timer");

  // Under way: the copies are still there, and confirming would leave half of them.
  REQUIRE(steps::arm(r.context, phases).ok());
  r.machine.units["muster-rollback-x.service"].active = true;
  CHECK(!steps::confirm(r.context, "x").ok());
  CHECK(steps::is_armed(r.context.files, "x"));
}

// The timer fired, and what it started needs so many looks until it has taken the change back.
void fires(Run& r, int looks) {
  r.machine.units.erase("muster-rollback-x.timer");
  r.machine.units["muster-rollback-x.service"].active = true;
  r.machine.before_is_active = [&r, left = looks]() mutable {
    if (--left == 1) r.machine.units["muster-rollback-x.service"].passing = true;
    if (left != 0) return;
    CHECK(steps::roll_back(r.context.files, r.machine, "x").ok());
    r.machine.units.erase("muster-rollback-x.service");
  };
}

TEST_CASE("two phases: the next attempt waits until the one before has been taken back") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  const steps::TwoPhase phases{"x", {"/etc/a"}, {}, 60};
  REQUIRE(steps::arm(r.context, phases).ok());
  r.machine.put("/etc/a", "half\n");
  fires(r, 2);
  REQUIRE(steps::arm(r.context, phases).ok());
  CHECK(r.machine.get("/etc/a") == "old\n");  // and not over what comes next
  // This attempt is covered by a record of its own.
  r.machine.put("/etc/a", "new\n");
  REQUIRE(steps::is_armed(r.context.files, "x"));
  REQUIRE(steps::roll_back(r.context.files, r.machine, "x").ok());
  CHECK(r.machine.get("/etc/a") == "old\n");
}

TEST_CASE("two phases: a change that fails while its timer takes it back is taken back once") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  const steps::TwoPhase phases{"x", {"/etc/a"}, {{"touch", "/ran"}}, 60};
  const Status done = steps::in_two_phases(r.context, phases, [&]() -> Status {
    r.machine.put("/etc/a", "new\n");
    fires(r, 3);
    return fail(Code::failed, "no answer");
  });
  CHECK(done.error().message ==
        "no answer; the change to x was not confirmed in time and was rolled back by its timer");
  CHECK(r.machine.get("/etc/a") == "old\n");
  CHECK(!steps::is_armed(r.context.files, "x"));
}

// As long as `silent`, systemd does not answer.
struct MuteSystemd : Process {
  explicit MuteSystemd(FakeMachine& all) : machine(all) {}
  FakeMachine& machine;
  bool silent = false;
  Result<Output> run(const Command& command) override {
    if (silent && command.argv[0] == "systemctl") return fail(Code::timeout, "systemctl did not end");
    return machine.run(command);
  }
};

TEST_CASE("two phases: a change that fails is rolled back also where systemd does not answer by then") {
  Run r;
  r.machine.put("/etc/a", "old\n");
  MuteSystemd process(r.machine);
  StepContext context{r.context.files, process, "node01"};
  const Status done = steps::in_two_phases(context, {"x", {"/etc/a"}, {}, 60}, [&]() -> Status {
    r.machine.put("/etc/a", "new\n");
    process.silent = true;
    return fail(Code::failed, "no answer");
  });
  CHECK_FALSE(done.ok());
  CHECK(r.machine.get("/etc/a") == "old\n");
  CHECK_FALSE(steps::is_armed(r.context.files, "x"));
}

TEST_CASE("ufw: a firewall behind which the controller cannot be reached is taken back") {
  Run r;
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "IPV6=yes\n");
  CHECK(!r.apply("ufw", {{"allow", Json::array()}, {"controller", "https://not-an-address:1"}}).ok());
  CHECK(r.machine.get("/etc/ufw/ufw.conf") == "ENABLED=no\n");
  CHECK(loaded_rules(r.machine) == FakeMachine().run({.argv = {"iptables", "-S"}})->out);
}

TEST_CASE("ufw: networks that the spec does not declare are left out, wrong ones refused") {
  Run r;
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "");
  REQUIRE(r.apply("ufw", {{"allow", {{{"port", 22}}, {{"from", ""}}}}}).ok());
  CHECK(r.machine.get("/etc/ufw/user.rules").find("-A ufw-user-input -j ACCEPT") == std::string::npos);
  CHECK(r.apply("ufw", {{"allow", {{{"from", "somewhere"}}}}}).error().code == Code::invalid);
  CHECK(r.apply("ufw", {{"allow", {{{"ports", "1:99999"}}}}}).error().code == Code::invalid);
  CHECK(r.apply("ufw", {{"allow", {{{"form", "10.0.0.0/8"}}}}}).error().code == Code::invalid);
}

TEST_CASE("ufw: what two rules say is loaded once") {
  Run r;
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "");
  const Json twice = {
      {"allow",
       {{{"port", 22}, {"comment", "ssh"}}, {{"port", 22}, {"comment", "adopted by"}}, {{"port", 2222}}}}};
  REQUIRE(r.apply("ufw", twice).ok());
  const std::string rules = r.machine.get("/etc/ufw/user.rules");
  CHECK(rules.find("--dport 22 ") == rules.rfind("--dport 22 "));
  CHECK(rules.find("--dport 2222 ") != std::string::npos);
  CHECK(r.check("ufw", twice)->holds == Holds::yes);
}

TEST_CASE("ufw: rules that were flushed are noticed though the files are right") {
  Run r;
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "");
  const Json params = {{"allow", {{{"port", 22}}}}};
  REQUIRE(r.apply("ufw", params).ok());
  CHECK(r.check("ufw", params)->holds == Holds::yes);
  REQUIRE(r.machine.run({.argv = {"/lib/ufw/ufw-init", "force-stop"}}).ok());
  CHECK(r.check("ufw", params)->holds == Holds::no);
}

TEST_CASE("sshd: a drop-in that is read before muster's is refused") {
  Run r;
  r.machine.put("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
  r.machine.put("/etc/ssh/sshd_config.d/00-a.conf", "PasswordAuthentication yes\n");
  CHECK(r.apply("sshd", kHarden).error().code == Code::conflict);
}

TEST_CASE("sshd: a server that its socket started is restarted, by a rollback too") {
  Run r;
  r.machine.put("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
  r.machine.units["ssh.socket"].active = true;
  r.machine.broken = {"/usr/sbin/sshd -T"};
  CHECK_FALSE(r.apply("sshd", kHarden).ok());
  const auto& calls = r.machine.calls;
  CHECK(std::count(calls.begin(), calls.end(), "systemctl try-restart ssh.service") == 2);
  CHECK_FALSE(r.machine.called("systemctl try-reload-or-restart"));
}

TEST_CASE("user: keys are the complete set, and a broken sudoers file is never put in place") {
  Run r;
  REQUIRE(r.apply("user", {{"name", "ops"}, {"keys", {"a", "b"}}}).ok());
  REQUIRE(r.apply("user", {{"name", "ops"}, {"keys", {"b"}}}).ok());
  CHECK(r.machine.get("/home/ops/.ssh/authorized_keys") == "b\n");
  r.machine.broken = {"visudo"};
  CHECK(!r.apply("user", {{"name", "ops"}, {"sudo", true}}).ok());
  CHECK(r.machine.files().list("/etc/sudoers.d").empty());
}

TEST_CASE("file: private content is not shown, and a folder is not replaced") {
  Run r;
  r.machine.put("/etc/key", "old secret\n");
  const Json params = {{"path", "/etc/key"}, {"content", "new secret\n"}, {"mode", "0600"}};
  CHECK(r.check("file", params)->diff.find("secret") == std::string::npos);
  CHECK(r.apply("file", {{"path", "/etc"}, {"content", ""}}).error().code == Code::conflict);
}

TEST_CASE("command: without a way to see that it is done it is refused") {
  Run r;
  CHECK(r.check("command", {{"argv", {"touch", "/x"}}}).error().code == Code::invalid);
}

TEST_CASE("package: what the image must hold is not installed live") {
  Run r;
  r.machine.put("/var/lib/dpkg/status", "Package: fio\nStatus: deinstall ok config-files\nVersion: 3\n\n");
  CHECK(r.check("package", {{"names", {"fio"}}})->holds == Holds::no);
  CHECK(!r.apply("package", {{"names", {"fio"}}, {"install", false}}).ok());
  CHECK(!r.machine.called("apt-get"));
}

}  // namespace
}  // namespace muster
