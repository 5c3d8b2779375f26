// One suite for all step modules: what every module promises in agent/step.h. A module without a sample here fails the suite.
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

#include "agent/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

struct Sample {
  std::function<void(FakeMachine&)> prepare;
  std::function<Json(FakeMachine&)> params;
};

Json mfs_mount() { return {{"name", "shared"}, {"master", "10.20.0.11"}, {"target", "/shared"}}; }

Json shared_file(const std::string& name, const std::string& content) {
  return {{"target", "/shared"}, {"fstype", "fuse*"}, {"source", "*10.20.0.11:9421"}, {"file", name}, {"content", content}};
}

void with_mfs(FakeMachine& m) {
  m.put("/etc/passwd", m.get("/etc/passwd") + "mfs:x:" + std::to_string(getuid()) + ":" + std::to_string(getgid()) + "::/var/lib/mfs:/bin/false\n");
  m.put("/etc/group", m.get("/etc/group") + "mfs:x:" + std::to_string(getgid()) + ":\n");
  m.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
  m.add_disk("nvme3n1", "C");
}
void with_shared(FakeMachine& m) { m.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw - fuse mfs\\04310.20.0.11:9421 rw\n"); }

// Modules that change something, and how to ask for it.
const std::map<std::string, Sample>& changing() {
  const auto nothing = [](FakeMachine&) {};
  static const std::map<std::string, Sample> samples = {
      {"file", {nothing, [](FakeMachine&) { return Json{{"path", "/etc/x.conf"}, {"content", "a\n"}, {"mode", "0640"}}; }}},
      {"directory", {nothing, [](FakeMachine&) { return Json{{"path", "/srv/x"}, {"mode", "0750"}}; }}},
      {"line", {[](FakeMachine& m) { m.put("/etc/x", "a 1\nb 2\n"); }, [](FakeMachine&) { return Json{{"path", "/etc/x"}, {"line", "a 3"}, {"prefix", "a "}}; }}},
      {"package", {[](FakeMachine& m) { m.put("/var/lib/dpkg/status", ""); }, [](FakeMachine&) { return Json{{"names", {"fio"}}}; }}},
      {"service", {[](FakeMachine& m) { m.units["chrony.service"] = {}; }, [](FakeMachine&) { return Json{{"names", {"chrony"}}, {"enabled", true}}; }}},
      {"user", {nothing, [](FakeMachine&) { return Json{{"name", "ops"}, {"keys", {"ssh-ed25519 AAAA ops"}}, {"sudo", true}}; }}},
      {"group", {nothing, [](FakeMachine&) { return Json{{"name", "hpc"}, {"gid", 950}}; }}},
      {"sysctl", {[](FakeMachine& m) { m.put("/proc/sys/net/core/somaxconn", ""); }, [](FakeMachine&) { return Json{{"values", {{"net.core.somaxconn", 4096}}}}; }}},
      {"hostname", {[](FakeMachine& m) { m.put("/proc/sys/kernel/hostname", ""); }, [](FakeMachine&) { return Json{{"name", "node01"}}; }}},
      {"command", {nothing, [](FakeMachine&) { return Json{{"argv", {"touch", "/var/done"}}, {"creates", "/var/done"}}; }}},
      {"ufw", {[](FakeMachine& m) {
         m.put("/etc/ufw/ufw.conf", "ENABLED=no\nLOGLEVEL=low\n");
         m.put("/etc/default/ufw", "IPV6=no\nDEFAULT_INPUT_POLICY=\"ACCEPT\"\nIPT_MODULES=\"\"\n");
       }, [](FakeMachine&) { return Json{{"allow", {{{"port", 22}}, {{"from", "10.20.0.0/24"}, {"ports", "1024:65535"}, {"proto", "udp"}}}}}; }}},
      {"sshd", {[](FakeMachine& m) { m.put("/etc/ssh/sshd_config", "# x\nInclude /etc/ssh/sshd_config.d/*.conf\n"); },
                [](FakeMachine&) { return Json{{"settings", {{"PasswordAuthentication", "no"}}}, {"port", 0}}; }}},
      {"raid", {[](FakeMachine& m) { m.add_disk("nvme1n1", "A"), m.add_disk("nvme2n1", "B"); },
                [](FakeMachine& m) { return Json{{"name", "scratch"}, {"disks", {m.approved("A"), m.approved("B")}}}; }}},
      {"filesystem", {[](FakeMachine& m) { m.add_disk("nvme1n1", "A"); },
                      [](FakeMachine& m) { return Json{{"label", "data"}, {"disks", Json::array({m.approved("A")})}}; }}},
      {"mount", {[](FakeMachine& m) {
         m.add_disk("nvme1n1", "A");
         (void)m.run({.argv = {"mkfs.xfs", "-L", "data", "/dev/nvme1n1"}});
       }, [](FakeMachine&) { return Json{{"source", "LABEL=data"}, {"target", "/scratch"}}; }}},
      {"moosefs_disks", {with_mfs, [](FakeMachine& m) { return Json{{"disks", Json::array({m.approved("C")})}}; }}},
      {"moosefs_master", {with_mfs, [](FakeMachine&) { return Json{{"network", "10.20.0.0/24"}}; }}},
      {"moosefs_metalogger", {with_mfs, [](FakeMachine&) { return Json{{"master", "10.20.0.11"}}; }}},
      {"moosefs_chunkserver", {with_mfs, [](FakeMachine& m) { return Json{{"master", "10.20.0.11"}, {"disks", Json::array({m.approved("C")})}}; }}},
      {"moosefs_mount", {nothing, [](FakeMachine&) { return mfs_mount(); }}},
      {"moosefs_policy", {with_shared, [](FakeMachine&) { return mfs_mount(); }}},
      {"moosefs_drain", {[](FakeMachine& m) {
         with_mfs(m);
         m.put("/mfs/servers", "10.20.0.12 10.20.0.13 10.20.0.14");
         m.put("/mfs/own", "10.20.0.14");
       }, [](FakeMachine& m) { return Json{{"master", "10.20.0.11"}, {"address", "10.20.0.14"}, {"disks", Json::array({m.approved("C")})}}; }}},
      {"slurm_node", {[](FakeMachine& m) { m.put("/slurm/node01", "idle|none"); },
                      [](FakeMachine&) { return Json{{"node", "node01"}, {"state", "drain"}}; }}},
      {"nfs_server", {[](FakeMachine& m) { m.units["nfs-server.service"] = {}; },
                      [](FakeMachine&) { return Json{{"name", "home"}, {"path", "/export"}, {"network", "10.20.0.0/24"}}; }}},
      {"shared_write", {with_shared, [](FakeMachine&) { return shared_file("node01", "x\n"); }}},
  };
  return samples;
}

// Pure tests and measurements, which have tests of their own.
const std::set<std::string> kNoChange = {"probe", "wait_for", "ssh_probe", "moosefs_members", "slurm_nodes", "slurm_mpi", "prometheus_targets", "shared_read", "accept", "accept_links", "accept_mpi"};

TEST_CASE("steps: every module is in the suite or changes nothing") {
  for (const auto& module : step_modules()) {
    INFO(module.name);
    const bool pure = kNoChange.count(module.name) > 0;
    CHECK(pure != (changing().count(module.name) > 0));
    CHECK(!module.help.empty());
    if (pure) CHECK(!module.apply);
    else CHECK(module.apply);
    CHECK((module.check || module.measure));
  }
}

TEST_CASE("steps: check sees, apply makes it so, and twice is once") {
  for (const auto& [name, sample] : changing()) {
    INFO(name);
    const StepModule* module = find_step_module(name);
    REQUIRE(module);
    FakeMachine machine;
    sample.prepare(machine);
    const Json params = sample.params(machine);
    StepContext context = machine.context();
    REQUIRE(check_parameters(*module, params).ok());

    const auto before = machine.snapshot();
    const auto first = module->check(context, params);
    REQUIRE(first.ok());
    CHECK(first->holds == Holds::no);
    CHECK(!first->diff.empty());
    CHECK(machine.snapshot() == before);   // a check writes nothing

    const Status applied = module->apply(context, params);
    INFO((applied.ok() ? "" : applied.error().message));
    REQUIRE(applied.ok());
    const auto second = module->check(context, params);
    REQUIRE(second.ok());
    INFO(second->diff);
    CHECK(second->holds == Holds::yes);
    if (module->verify) CHECK(module->verify(context, params).ok());

    const auto made = machine.snapshot();
    REQUIRE(module->apply(context, params).ok());
    auto again = machine.snapshot();
    CHECK(again == made);   // applying what holds changes nothing
    if (module->check_many) {
      const auto many = module->check_many(context, {params, params});
      REQUIRE(many.size() == 2);
      CHECK((many[0].ok() && many[0]->holds == Holds::yes));
    }
  }
}

TEST_CASE("steps: an unknown or missing parameter is refused") {
  for (const auto& module : step_modules()) {
    INFO(module.name);
    CHECK(check_parameters(module, {{"no_such_parameter", 1}}).ok() == false);
  }
}

TEST_CASE("steps: a tool that fails makes the step fail, and it can be done again") {
  const std::map<std::string, std::string> tools = {{"package", "apt-get"}, {"service", "systemctl enable"}, {"user", "useradd"},
      {"group", "groupadd"}, {"command", "touch"}, {"ufw", "/lib/ufw/ufw-init start"}, {"sshd", "/usr/sbin/sshd -t"}, {"raid", "mdadm --create"},
      {"filesystem", "mkfs.xfs"}, {"mount", "mount"}, {"moosefs_disks", "mkfs.xfs"}, {"moosefs_policy", "mfssetgoal"},
      {"nfs_server", "exportfs -ra"},
      {"moosefs_drain", "systemctl reload"}, {"slurm_node", "scontrol"}};
  for (const auto& [name, tool] : tools) {
    INFO(name);
    FakeMachine machine;
    changing().at(name).prepare(machine);
    const Json params = changing().at(name).params(machine);
    StepContext context = machine.context();
    const StepModule* module = find_step_module(name);
    machine.broken = {tool};
    CHECK(!module->apply(context, params).ok());
    CHECK(module->check(context, params)->holds == Holds::no);
    machine.broken.clear();
    const Status later = module->apply(context, params);
    INFO((later.ok() ? "" : later.error().message));
    CHECK(later.ok());
    CHECK(module->check(context, params)->holds == Holds::yes);
  }
}

}  // namespace
}  // namespace muster
