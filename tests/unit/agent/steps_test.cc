// What single step modules do beyond what all of them promise (tests/conformance/step_suite_test.cc).
#include "agent/step.h"
#include "agent/steps/modules.h"
#include "agent/steps/two_phase.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

struct Run {
  FakeMachine machine;
  StepContext context = machine.context();
  Status apply(const char* module, const Json& params) { return find_step_module(module)->apply(context, params); }
  Result<CheckResult> check(const char* module, const Json& params) { return find_step_module(module)->check(context, params); }
};

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

TEST_CASE("ufw: a firewall behind which the controller cannot be reached is taken back") {
  Run r;
  r.machine.put("/etc/ufw/ufw.conf", "ENABLED=no\n");
  r.machine.put("/etc/default/ufw", "IPV6=yes\n");
  CHECK(!r.apply("ufw", {{"allow", Json::array()}, {"controller", "https://not-an-address:1"}}).ok());
  CHECK(r.machine.get("/etc/ufw/ufw.conf") == "ENABLED=no\n");
  CHECK(r.machine.called("/lib/ufw/ufw-init force-stop"));
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

TEST_CASE("ufw: rules that somebody flushed are noticed though the files are right") {
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
