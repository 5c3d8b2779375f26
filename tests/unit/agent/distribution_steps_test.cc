// What steps do on systems that differ: names of packages, cloud-init, needrestart, and Slurm's cgroups.
#include <fmt/format.h>

#include <tuple>

#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"
#include "tests/unit/agent/step_run.h"
#include "tests/unit/plan/shipped.h"

namespace muster {
namespace {

using tests::FakeMachine;
using Run = testing::BootedStepRun;

TEST_CASE("package: more names for one release or one distribution, and for no other word") {
  Run r;
  r.machine.put("/var/lib/dpkg/status", "Package: cuda\nStatus: install ok installed\nVersion: 12.4.1-1\n\n");
  const Json params = {{"names", {"cuda"}}, {"also", {{"ubuntu", {"one"}}, {"jammy", {"two"}}}}};
  r.machine.put("/etc/os-release", "ID=debian\nVERSION_CODENAME=trixie\n");
  CHECK(r.check("package", params)->holds == Holds::yes);
  r.machine.put("/etc/os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n");
  CHECK(r.check("package", params)->diff == "not installed: one");
  r.machine.put("/etc/os-release", "ID=ubuntu\nVERSION_CODENAME=jammy\n");
  CHECK(r.check("package", params)->diff == "not installed: two; not installed: one");
  const Json unknown = {{"names", {"cuda"}}, {"also", {{"nobel", {"one"}}}}};
  CHECK(r.check("package", unknown).error().code == Code::invalid);
}

TEST_CASE("a host with Docker's own packages keeps them", "[containers]") {
  Run r;
  r.machine.put("/etc/os-release", "ID=debian\nVERSION_CODENAME=trixie\n");
  const auto shipped = testing::shipped_playbooks();
  const auto lacks = [&](const char* playbook, const char* step_name, const std::string& what) {
    for (const auto& step : shipped.at(playbook).steps)
      if (step.name == step_name)
        return r.check("package", step.params)->diff.find(what) != std::string::npos;
    FAIL(playbook << " has no step " << step_name);
    return false;
  };
  std::string status;
  for (const char* name : {"docker-ce", "docker-ce-cli", "containerd.io"})
    status += fmt::format("Package: {}\nStatus: install ok installed\nVersion: 5:28.5.1-1\n\n", name);
  for (const auto& [playbook, step, other] :
       {std::tuple{"containers", "engines", "podman"}, std::tuple{"hpc", "packages", "ucx-utils"}}) {
    CAPTURE(playbook);
    r.machine.put("/var/lib/dpkg/status", status);
    CHECK_FALSE(lacks(playbook, step, "docker"));
    CHECK(lacks(playbook, step, other));
    r.machine.put("/var/lib/dpkg/status", "");
    CHECK(lacks(playbook, step, "docker.io"));
    CHECK(lacks(playbook, step, "docker-cli"));
  }
}

// Keeps the environment of the last program.
struct Surroundings : Process {
  std::map<std::string, std::string> env;
  Result<Output> run(const Command& command) override {
    env = command.env;
    return Output{0, "", ""};
  }
};

TEST_CASE("command: a program that installs packages does not prompt, and no service is restarted for it") {
  const FakeMachine machine;
  Files files = machine.files();
  Surroundings program;
  StepContext context{files, program, "node01"};
  const auto* module = find_step_module("command");
  REQUIRE(module->apply(context, {{"argv", {"apt-get"}}, {"creates", "/x"}}).ok());
  CHECK(program.env.at("DEBIAN_FRONTEND") == "noninteractive");
  CHECK(program.env.at("NEEDRESTART_MODE") == "l");
  const Json own = {{"argv", {"apt-get"}}, {"creates", "/x"}, {"env", {{"NEEDRESTART_MODE", "a"}}}};
  REQUIRE(module->apply(context, own).ok());
  CHECK(program.env.at("NEEDRESTART_MODE") == "a");
}

TEST_CASE("hostname: cloud-init keeps off it, and a host without cloud-init is left alone") {
  Run r;
  const Json name = {{"name", "gate01"}};
  r.machine.put("/etc/hostname", "gate01\n");
  r.machine.put("/proc/sys/kernel/hostname", "gate01\n");
  CHECK(r.check("hostname", name)->holds == Holds::yes);
  r.machine.put("/etc/cloud/cloud.cfg", "cloud_init_modules:\n - set_hostname\n - update-hostname\n - ssh\n");
  CHECK(r.check("hostname", name)->holds == Holds::no);  // right today, gone after a boot
  REQUIRE(r.apply("hostname", name).ok());
  CHECK(r.check("hostname", name)->holds == Holds::yes);
  const std::string ours = r.machine.get("/etc/cloud/cloud.cfg.d/zz-muster-hosts.cfg");
  CHECK(ours.find("\npreserve_hostname: true\n") != std::string::npos);
  CHECK(ours.find("\ncloud_init_modules:\n - ssh\n") != std::string::npos);
}

TEST_CASE("slurm_cgroups: only a release that reads no others gets cgroups of version 1") {
  Run r;
  const Json none = Json::object();
  r.machine.put("/proc/cmdline", "root=/dev/sda1 ro\n");
  r.machine.put("/etc/default/grub", "");
  r.machine.put("/usr/sbin/update-grub", "");
  r.machine.put("/versions/slurmd", "slurm-wlm 21.08.5\n");
  CHECK(r.check("slurm_cgroups", none)->holds == Holds::yes);  // the system has version 1
  r.machine.put("/sys/fs/cgroup/cgroup.controllers", "cpu\n");
  for (const char* newer : {"slurm-wlm 22.05.8\n", "slurm-wlm 23.11.4\n", "slurm-wlm 99.05.1\n"}) {
    r.machine.put("/versions/slurmd", newer);
    CHECK(r.check("slurm_cgroups", none)->holds == Holds::yes);
    REQUIRE(r.apply("slurm_cgroups", none).ok());
    CHECK_FALSE(r.machine.files().exists("/run/muster/reboot/kernel_command_line-slurm"));
  }
  r.machine.put("/versions/slurmd", "slurm-wlm 21.08.5\n");
  CHECK(r.check("slurm_cgroups", none)->holds == Holds::no);
  REQUIRE(r.apply("slurm_cgroups", none).ok());
  CHECK(r.check("slurm_cgroups", none)->holds == Holds::yes);  // all that can be done before the restart
  CHECK(r.machine.files().exists("/run/muster/reboot/kernel_command_line-slurm"));
  CHECK(r.machine.get("/etc/default/grub.d/zz-muster-slurm.cfg").find("systemd.unified_cgroup_hierarchy=0") !=
        std::string::npos);
  // systemd did not follow the argument.
  r.machine.put("/proc/cmdline", "root=/dev/sda1 ro systemd.unified_cgroup_hierarchy=0\n");
  CHECK(r.check("slurm_cgroups", none).error().code == Code::conflict);
}

}  // namespace
}  // namespace muster
