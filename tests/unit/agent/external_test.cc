// Storage of the site: mounted and asserted, never made, and a server that is gone never holds up the agent.
#include "agent/core/step.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

struct Site {
  FakeMachine machine;
  StepContext context = machine.context();
  const StepModule* module = find_step_module("external_mount");
  Json params = {{"name", "data"},
                 {"fstype", "nfs4"},
                 {"source", "10.0.0.5:/export"},
                 {"server", "10.0.0.5"},
                 {"target", "/data"}};
  Site() { machine.put("/usr/sbin/mount.nfs4", ""); }
  Result<CheckResult> check() { return module->check(context, params); }
  Status apply() { return module->apply(context, params); }
  Status verify() { return module->verify(context, params); }
  std::string unit() const { return machine.get("/etc/systemd/system/muster-external-data.service"); }
  bool unit_has(const std::string& text) const { return unit().find(text) != std::string::npos; }
  bool mounted() const { return machine.get("/proc/self/mountinfo").find(" /data ") != std::string::npos; }
};

bool names(const Error& error, const std::string& what) {
  return error.message.find(what) != std::string::npos;
}

TEST_CASE("external: mounted by a unit that tries again, hard, without set-user-id and devices") {
  Site site;
  REQUIRE(site.apply().ok());
  CHECK(site.unit_has(
      "ExecStart=/usr/bin/mount -t nfs4 -o hard,retry=0,noatime,nosuid,nodev 10.0.0.5:/export /data\n"));
  CHECK(site.unit_has("Restart=on-failure\n"));
  CHECK(site.unit_has("TimeoutStartSec=30\n"));
  CHECK(site.machine.units["muster-external-data.service"].enabled);
  CHECK(site.mounted());
  CHECK(site.check()->holds == Holds::yes);
  CHECK(site.verify().ok());
}

TEST_CASE("external: a declared option replaces ours on the same subject") {
  Site site;
  site.params["options"] = "softerr,relatime,suid,dev,retry=1,ro";
  REQUIRE(site.apply().ok());
  CHECK(site.unit_has(" -o softerr,relatime,suid,dev,retry=1,ro "));
  CHECK(site.check()->holds == Holds::yes);  // nosuid and nodev are not asked for
  Site ceph;
  ceph.params.update({{"fstype", "ceph"}, {"source", "u@f.fs=/"}, {"options", "secretfile=/etc/ceph/k"}});
  ceph.machine.put("/sbin/mount.ceph", "");
  REQUIRE(ceph.apply().ok());
  CHECK(ceph.unit_has("-t ceph -o noatime,nosuid,nodev,secretfile=/etc/ceph/k u@f.fs=/ /data\n"));
}

TEST_CASE("external: what is mounted there must be what was declared, with its flags in force") {
  for (const char* mount : {"nfs4 10.0.0.6:/export", "nfs 10.0.0.5:/export", "xfs /dev/sdb1"}) {
    INFO(mount);
    Site site;
    site.machine.put("/proc/self/mountinfo",
                     std::string("41 1 0:51 / /data rw,nosuid,nodev - ") + mount + " rw\n");
    const auto before = site.machine.snapshot();
    CHECK(site.check()->holds == Holds::no);
    CHECK(site.apply().error().code == Code::conflict);
    CHECK(site.machine.snapshot() == before);
  }
  Site site;
  REQUIRE(site.apply().ok());
  site.machine.put("/proc/self/mountinfo", "41 1 0:51 / /data rw,nosuid - nfs4 10.0.0.5:/export rw\n");
  CHECK(site.check()->holds == Holds::no);
  CHECK(site.apply().ok());
  CHECK(site.check()->holds == Holds::yes);
}

TEST_CASE(
    "external: a server that is not there is named, in mount's words, and all goes well once it is back") {
  Site site;
  site.machine.put("/site/gone", "");
  const Status refused = site.apply();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::failed);
  CHECK(names(refused.error(), "10.0.0.5:/export"));
  CHECK(names(refused.error(), "Connection timed out"));
  CHECK(site.check()->holds == Holds::no);
  CHECK(site.machine.units["muster-external-data.service"].enabled);  // it is tried again, at boot too
  site.machine.files().remove("/site/gone").ok();
  REQUIRE(site.apply().ok());
  CHECK(site.check()->holds == Holds::yes);
}

TEST_CASE("external: a mount whose server went away is touched by another process only, and fails the step") {
  Site site;
  site.params["writable"] = true;
  REQUIRE(site.apply().ok());
  site.machine.put("/site/gone", "");
  site.machine.calls.clear();
  const auto seen = site.check();
  REQUIRE(seen.ok());
  CHECK(seen->holds == Holds::no);
  CHECK(seen->diff.find("10.0.0.5 does not answer") != std::string::npos);
  const Status still = site.apply();
  REQUIRE_FALSE(still.ok());
  CHECK(names(still.error(), "10.0.0.5 does not answer"));
  CHECK_FALSE(site.verify().ok());
  CHECK_FALSE(site.machine.called("umount"));
  CHECK_FALSE(site.machine.called("systemctl restart"));  // that would take it from the jobs that wait for it
  CHECK(site.mounted());
}

TEST_CASE("external: written to where that is declared and nowhere else, and nothing stays") {
  Site reads;
  REQUIRE(reads.apply().ok());
  CHECK(reads.verify().ok());
  CHECK_FALSE(reads.machine.called("dd "));
  Site writes;
  writes.params["writable"] = true;
  REQUIRE(writes.apply().ok());
  CHECK(writes.check()->holds == Holds::yes);
  CHECK_FALSE(writes.machine.called("dd "));  // a check writes nothing
  CHECK(writes.verify().ok());
  CHECK(writes.machine.called("dd of=/data/.muster-probe.node01 conv=excl,fsync"));
  CHECK_FALSE(writes.machine.files().exists("/data/.muster-probe.node01"));
  writes.machine.put("/site/closed", "");
  CHECK(names(writes.verify().error(), "10.0.0.5"));
}

TEST_CASE("external: a client that is not there is said, and Lustre's is the site's to bring") {
  Site site;
  site.params.update({{"fstype", "lustre"}, {"source", "10.0.0.5@tcp:/scratch"}});
  site.machine.put("/proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
  site.machine.put("/usr/sbin/mount.lustre", "");
  CHECK(site.check()->holds == Holds::no);
  CHECK(names(site.apply().error(), "there is no module 'lustre' for this node's kernel 6.1.0-30-amd64"));
  CHECK(site.machine.units.empty());
  site.machine.put("/lib/modules/6.1.0-30-amd64/modules.dep", "updates/fs/lustre.ko: updates/net/lnet.ko\n");
  CHECK(site.apply().ok());
  Site bare;
  bare.params["fstype"] = "ceph";
  CHECK(names(bare.apply().error(), "package ceph-common"));
}

TEST_CASE("external: a changed option changes the unit, and no running mount") {
  Site site;
  REQUIRE(site.apply().ok());
  site.params["options"] = "nconnect=4";
  CHECK(site.check()->holds == Holds::no);
  site.machine.calls.clear();
  REQUIRE(site.apply().ok());
  CHECK(site.unit_has("nodev,nconnect=4"));
  CHECK(site.machine.called("systemctl daemon-reload"));
  CHECK_FALSE(site.machine.called("systemctl restart"));
  CHECK(site.check()->holds == Holds::yes);
}

TEST_CASE("external: words that would be more than words in a unit are refused") {
  for (const auto& [key, value] : std::map<std::string, std::string>{{"source", "10.0.0.5:/x y"},
                                                                     {"options", "rw;reboot"},
                                                                     {"target", "data"},
                                                                     {"name", "../x"},
                                                                     {"fstype", "xfs"},
                                                                     {"options ", ""}}) {
    Site site;
    INFO(key);
    if (value.empty())
      site.params["source"] = "%n:/x";
    else
      site.params[key] = value;
    CHECK(site.check().error().code == Code::invalid);
    CHECK(site.apply().error().code == Code::invalid);
    CHECK(site.machine.calls.empty());
  }
}

}  // namespace
}  // namespace muster
