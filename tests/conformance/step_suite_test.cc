// One suite for all step modules: what every module promises in agent/core/step.h. A module without a sample
// here fails the suite.
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

#include "agent/core/step.h"
#include "agent/steps/step_modules.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/acs_config.h"
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
  return {{"target", "/shared"},
          {"fstype", "fuse*"},
          {"source", "*10.20.0.11:9421"},
          {"file", name},
          {"content", content}};
}

void with_mfs(FakeMachine& m) {
  m.put("/etc/passwd", m.get("/etc/passwd") + "mfs:x:" + std::to_string(getuid()) + ":" +
                           std::to_string(getgid()) + "::/var/lib/mfs:/bin/false\n");
  m.put("/etc/group", m.get("/etc/group") + "mfs:x:" + std::to_string(getgid()) + ":\n");
  m.put("/var/lib/mfs/metadata.mfs.empty", "MFSM NEW");
  m.add_disk("nvme3n1", "C");
}
void with_shared(FakeMachine& m) {
  m.put("/proc/self/mountinfo", "40 1 0:50 / /shared rw,nosuid,nodev - fuse mfs\\04310.20.0.11:9421 rw\n");
  m.put("/shared/x", "");
}

void with_ceph(FakeMachine& m) {
  const std::string id = std::to_string(getuid()), group = std::to_string(getgid());
  m.put("/etc/passwd", m.get("/etc/passwd") + "ceph:x:" + id + ":" + group + "::/var/lib/ceph:/bin/false\n");
  m.put("/etc/group", m.get("/etc/group") + "ceph:x:" + group + ":\n");
  m.put("/var/lib/ceph/mon/.keep", "");
  for (const char* kind : {"osd@0", "mon@node01", "mgr@node01", "mds@node01"})
    m.units[std::string("ceph-") + kind + ".service"] = {};
}
// Three object stores on three nodes.
void with_osds(FakeMachine& m) {
  for (const char* n : {"1", "2", "3"})
    m.put(std::string("/ceph/osds/") + n, std::string("u") + n + " node0" + n + " 1 1");
  m.put("/ceph/mons", "node01 node02 node03 ");
  m.put("/ceph/quorum", "node01 node02 node03 ");
}
Json named(std::initializer_list<const char*> names) {
  Json out = Json::array();
  for (const char* name : names)
    out.push_back({{"name", name}, {"address", std::string("10.20.0.1") + name[5]}});
  return out;
}

// The digests of "tarball\n" and "key\n" come from the fake web below.
const std::string kKey = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ==\n-----END PGP PUBLIC KEY BLOCK-----\n";
void booted(FakeMachine& m) { m.put("/run/systemd/system/x", ""); }

// A node that muster installed, in its first slot.
void from_own_disk(FakeMachine& m) {
  m.add_system("nvme0n1", "OS1");
  m.mount_entry("nvme0n1p2", "/", "ext4");
  m.put("/etc/muster/image.json", R"({"name":"cpu","digest":"sha256:1","slot":"a"})");
}

// Two rails, one of them RoCE's first, a storage port, and one without a cable.
void with_ports(FakeMachine& m) {
  booted(m);
  m.units["muster-rail-qos.service"] = {};
  m.units["muster-nccl-conf.service"] = {};
  m.add_port("eth0", "0000:01:00.0", "52:54:00:20:00:01");
  m.add_port("eth1", "0000:02:00.0", "52:54:00:30:00:01", true, "mlx5_0");
  m.add_port("eth2", "0000:03:00.0", "52:54:00:30:00:02", true, "mlx5_1");
  m.add_port("eth3", "0000:04:00.0", "52:54:00:40:00:01");
  m.add_port("eth4", "0000:05:00.0", "52:54:00:50:00:01", false);
  for (const char* n : {"0", "1"}) {
    const std::string gids = std::string("/sys/class/infiniband/mlx5_") + n + "/ports/1/";
    m.put(gids + "gids/0", "fe80:0000:0000:0000:5054:00ff:fe30:0001\n");
    m.put(gids + "gid_attrs/types/0", "RoCE v2\n");
    m.put(gids + "gids/1", std::string("0000:0000:0000:0000:0000:ffff:0a64:0") + n + "0b\n");
    m.put(gids + "gid_attrs/types/1", "RoCE v2\n");
  }
}
Json two_rails() {
  return {
      {"mac", "52:54:00:20:00:01"},
      {"rails",
       {{{"rail", 0}, {"address", "10.100.0.11"}, {"network", "10.100.0.0/24"}, {"port", ""}, {"mtu", 9000}},
        {{"rail", 1},
         {"address", "10.100.1.11"},
         {"network", "10.100.1.0/24"},
         {"gateway", "10.100.1.254"},
         {"mtu", 9000}}}},
      {"storage", {{{"address", "10.30.0.11"}, {"network", "10.30.0.0/24"}, {"port", "0000:04:00.0"}}}},
      {"deadline_seconds", 0}};
}
void with_rails(FakeMachine& m) {
  with_ports(m);
  StepContext context = m.context();
  (void)find_step_module("networks")->apply(context, two_rails());
}

void with_gpus(FakeMachine& m) {
  booted(m);
  for (const char* path : {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/usr/bin/nvidia-smi"})
    m.put(path, "");
  std::string known = "2 libs found in cache `/etc/ld.so.cache'\n";
  for (const char* library : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    m.put(std::string("/usr/lib/") + library, "");
    known += std::string("\t") + library + " (libc6,x86-64) => /usr/lib/" + library + "\n";
  }
  m.put("/ldconfig", known);
}

using Samples = std::map<std::string, Sample>;

void nothing(FakeMachine&) {}

Samples samples_of_configuration() {
  return {
      {"file",
       {nothing,
        [](FakeMachine&) {
          return Json{{"path", "/etc/x.conf"}, {"content", "a\n"}, {"mode", "0640"}};
        }}},
      {"directory",
       {nothing,
        [](FakeMachine&) {
          return Json{{"path", "/srv/x"}, {"mode", "0750"}};
        }}},
      {"kept_directory",
       {[](FakeMachine& m) {
          booted(m);
          m.put("/state/muster/id", "");
          m.put("/var/lib/q/jobs", "17");
          m.units["q.service"] = {};
          m.units["q.service"].active = true;
        },
        [](FakeMachine&) {
          return Json{{"path", "/var/lib/q"}, {"name", "q"}, {"mode", "0700"}, {"services", {"q"}}};
        }}},
      {"line",
       {[](FakeMachine& m) { m.put("/etc/x", "a 1\nb 2\n"); },
        [](FakeMachine&) {
          return Json{{"path", "/etc/x"}, {"line", "a 3"}, {"prefix", "a "}};
        }}},
      {"package",
       {[](FakeMachine& m) { m.put("/var/lib/dpkg/status", ""); },
        [](FakeMachine&) {
          return Json{{"names", {"fio"}}};
        }}},
      {"service",
       {[](FakeMachine& m) { m.units["chrony.service"] = {}; },
        [](FakeMachine&) {
          return Json{{"names", {"chrony"}}, {"enabled", true}};
        }}},
      {"user",
       {nothing,
        [](FakeMachine&) {
          return Json{{"name", "ops"}, {"keys", {"ssh-ed25519 AAAA ops"}}, {"sudo", true}};
        }}},
      {"subordinate_ids",
       {[](FakeMachine& m) {
          m.put("/etc/passwd", m.get("/etc/passwd") + "alice:x:1001:1001::/home/alice:/bin/bash\n");
        },
        [](FakeMachine&) {
          return Json{{"users", {"alice"}}};
        }}},
      {"group",
       {nothing,
        [](FakeMachine&) {
          return Json{{"name", "hpc"}, {"gid", 950}};
        }}},
      {"sysctl",
       {[](FakeMachine& m) { m.put("/proc/sys/net/core/somaxconn", ""); },
        [](FakeMachine&) {
          return Json{{"values", {{"net.core.somaxconn", 4096}}}};
        }}},
      {"time_servers",
       {[](FakeMachine& m) {
          booted(m);
          m.put("/etc/chrony/chrony.conf", "pool a.example iburst\nsourcedir /run/chrony-dhcp\n");
        },
        [](FakeMachine&) {
          return Json{{"file", "/etc/chrony/sources.d/muster.sources"}};
        }}},
      {"hostname",
       {[](FakeMachine& m) { m.put("/proc/sys/kernel/hostname", ""); },
        [](FakeMachine&) {
          return Json{{"name", "node01"}};
        }}},
      {"command",
       {nothing,
        [](FakeMachine&) {
          return Json{{"argv", {"touch", "/var/done"}}, {"creates", "/var/done"}};
        }}},
      {"apt_mirror",
       {[](FakeMachine& m) { m.put("/etc/os-release", "ID=debian\nVERSION_CODENAME=trixie\n"); },
        [](FakeMachine&) {
          return Json{{"mirror", "http://m.example/debian"},
                      {"security_mirror", "http://m.example/debian-security"}};
        }}},
      {"apt_repository",
       {[](FakeMachine& m) { m.web["https://example.org/key"] = kKey; },
        [](FakeMachine&) {
          return Json{
              {"name", "tools"},
              {"uris", {"https://example.org/debian"}},
              {"suites", {"stable"}},
              {"components", {"main"}},
              {"key_url", "https://example.org/key"},
              {"key_sha256", sha256(kKey)},
              {"pins", Json::array({{{"packages", "*"}, {"pin", "origin example.org"}, {"priority", 90}}})}};
        }}},
      {"docker_settings",
       {[](FakeMachine& m) { m.put("/etc/docker/daemon.json", R"({"log-driver":"journald"})"); },
        [](FakeMachine&) {
          return Json{{"settings", {{"iptables", false}}}};
        }}},
      {"download",
       {[](FakeMachine& m) { m.web["https://example.org/a.tar"] = "tarball\n"; },
        [](FakeMachine&) {
          return Json{{"url", "https://example.org/a.tar"},
                      {"path", "/opt/a.tar"},
                      {"sha256", sha256("tarball\n")},
                      {"mode", "0600"}};
        }}},
      {"archive",
       {[](FakeMachine& m) { m.put("/opt/a.tar", "tarball\n"); },
        [](FakeMachine&) {
          return Json{
              {"source", "/opt/a.tar"}, {"into", "/opt/tool"}, {"sha256", sha256("tarball\n")}, {"strip", 1}};
        }}},
  };
}

Samples samples_of_the_system() {
  return {
      {"kernel_module",
       {[](FakeMachine& m) {
          booted(m), m.put("/usr/sbin/update-initramfs", ""), m.put("/sys/module/nouveau/refcnt", "0\n");
        },
        [](FakeMachine&) {
          return Json{{"name", "gpu"},
                      {"load", {"nvidia-peermem"}},
                      {"blacklist", {"nouveau"}},
                      {"options", {{"nvidia", "x=1"}}}};
        }}},
      {"kernel_command_line",
       {[](FakeMachine& m) {
          booted(m), from_own_disk(m);
          m.put("/proc/cmdline", "root=PARTUUID=1 rw quiet iommu=on\n");
          m.put("/boot/efi/loader/entries/muster-a.conf",
                "title x\noptions root=PARTUUID=1 rw quiet iommu=on\n");
        },
        [](FakeMachine&) {
          return Json{{"present", {"iommu=pt"}}, {"absent", {"quiet"}}};
        }}},
      {"own_devices",
       {[](FakeMachine& m) {
          from_own_disk(m);
          m.put("/etc/fstab",
                "PARTLABEL=muster-esp /boot/efi vfat noauto,umask=0077 0 0\nLABEL=mine /mine ext4 rw 0 2\n");
        },
        [](FakeMachine&) { return Json::object(); }}},
      {"udev_rule",
       {booted,
        [](FakeMachine&) {
          return Json{
              {"name", "nics"}, {"rules", {"SUBSYSTEM==\"net\", NAME=\"rail0\""}}, {"subsystems", {"net"}}};
        }}},
      {"config",
       {[](FakeMachine& m) { m.put("/etc/x.ini", "# kept\n[a]\nk=1\n[b]\nk=1\n"); },
        [](FakeMachine&) {
          return Json{{"path", "/etc/x.ini"},
                      {"format", "ini"},
                      {"section", "b"},
                      {"values", {{"k", 2}, {"new", "x"}}}};
        }}},
      {"reboot",
       {[](FakeMachine& m) {
          booted(m), m.put("/run/muster/reboot/kernel_module-gpu", "nouveau is in use\n");
        },
        [](FakeMachine&) { return Json::object(); }}},
      {"acs",
       {[](FakeMachine& m) {
          booted(m), m.units["muster-acs.service"] = {}, m.units["muster-acs.timer"] = {};
          m.put("/sys/bus/pci/devices/0000:00:02.0/config", tests::acs_config(0x001d));
        },
        [](FakeMachine&) {
          return Json{{"bridges", {"00:02.0"}}};
        }}},
      {"limits",
       {booted,
        [](FakeMachine&) {
          return Json{{"values", {{"memlock", "unlimited"}, {"nofile", 1048576}}},
                      {"services", {{"memlock", "unlimited"}}}};
        }}},
      {"timer",
       {[](FakeMachine& m) { booted(m), m.units["health.timer"] = {}; },
        [](FakeMachine&) {
          return Json{{"name", "health"}, {"argv", {"/usr/bin/true", "50% \"$x\""}}, {"calendar", "hourly"}};
        }}},
      {"ufw",
       {[](FakeMachine& m) {
          m.put("/etc/ufw/ufw.conf", "ENABLED=no\nLOGLEVEL=low\n");
          m.put("/etc/default/ufw", "IPV6=no\nDEFAULT_INPUT_POLICY=\"ACCEPT\"\nIPT_MODULES=\"\"\n");
        },
        [](FakeMachine&) {
          return Json{
              {"allow",
               {{{"port", 22}}, {{"from", "10.20.0.0/24"}, {"ports", "1024:65535"}, {"proto", "udp"}}}}};
        }}},
      {"sshd",
       {[](FakeMachine& m) { m.put("/etc/ssh/sshd_config", "# x\nInclude /etc/ssh/sshd_config.d/*.conf\n"); },
        [](FakeMachine&) {
          return Json{{"settings", {{"PasswordAuthentication", "no"}}}, {"port", 0}};
        }}},
  };
}

Samples samples_of_disks() {
  return {
      {"raid",
       {[](FakeMachine& m) { m.add_disk("nvme1n1", "A"), m.add_disk("nvme2n1", "B"); },
        [](FakeMachine& m) {
          return Json{{"name", "scratch"}, {"disks", {m.approved("A"), m.approved("B")}}};
        }}},
      {"filesystem",
       {[](FakeMachine& m) { m.add_disk("nvme1n1", "A"); },
        [](FakeMachine& m) {
          return Json{{"label", "data"}, {"disks", Json::array({m.approved("A")})}};
        }}},
      {"partition",
       {[](FakeMachine& m) { m.add_disk("nvme1n1", "A", 48 << 20), m.add_disk("nvme2n1", "B", 48 << 20); },
        [](FakeMachine& m) {
          return Json{{"partitions",
                       {{{"name", "cache"}, {"size_mib", 8}},
                        {{"name", "log"}, {"size_mib", 8}, {"type", "raid"}},
                        {{"name", "data"}}}},
                      {"disks", {m.approved("A"), m.approved("B")}}};
        }}},
      {"mount",
       {[](FakeMachine& m) {
          m.add_disk("nvme1n1", "A");
          (void)m.run({.argv = {"mkfs.xfs", "-L", "data", "/dev/nvme1n1"}});
        },
        [](FakeMachine& m) {
          return Json{{"label", "data"}, {"target", "/scratch"}, {"disks", Json::array({m.approved("A")})}};
        }}},
      {"mount_flags",
       {[](FakeMachine& m) {
          m.put("/proc/self/mountinfo", "40 1 0:50 / /beegfs rw,relatime - beegfs beegfs_nodev rw\n");
        },
        [](FakeMachine&) {
          return Json{{"target", "/beegfs"}};
        }}},
  };
}

Samples samples_of_moosefs() {
  return {
      {"moosefs_disks",
       {with_mfs,
        [](FakeMachine& m) {
          return Json{{"disks", Json::array({m.approved("C")})}};
        }}},
      {"moosefs_master",
       {with_mfs,
        [](FakeMachine& m) {
          return Json{{"address", "10.20.0.11"},
                      {"clients", Json::array()},
                      {"may_create", true},
                      {"disks", Json::array({m.approved("C")})}};
        }}},
      {"moosefs_retired",
       {[](FakeMachine& m) {
          m.put("/var/lib/mfs/master/metadata.mfs.back", "of before");
          m.units["moosefs-master.service"] = {.enabled = true, .active = true};
        },
        [](FakeMachine&) { return Json::object(); }}},
      {"moosefs_metalogger",
       {with_mfs,
        [](FakeMachine&) {
          return Json{{"master", "10.20.0.11"}};
        }}},
      {"moosefs_chunkserver",
       {with_mfs,
        [](FakeMachine& m) {
          return Json{{"master", "10.20.0.11"}, {"disks", Json::array({m.approved("C")})}};
        }}},
      {"moosefs_maintenance",
       {[](FakeMachine& m) { m.put("/mfs/servers", "10.20.0.11 10.20.0.12"); },
        [](FakeMachine&) {
          return Json{
              {"master", "10.20.0.11"}, {"address", "10.20.0.11"}, {"state", "on"}, {"deadline_seconds", 0}};
        }}},
      {"moosefs_mount", {nothing, [](FakeMachine&) { return mfs_mount(); }}},
      {"moosefs_policy", {with_shared, [](FakeMachine&) { return mfs_mount(); }}},
      {"moosefs_drain",
       {[](FakeMachine& m) {
          with_mfs(m);
          m.put("/mfs/servers", "10.20.0.12 10.20.0.13 10.20.0.14");
          m.put("/mfs/own", "10.20.0.14");
        },
        [](FakeMachine& m) {
          return Json{{"master", "10.20.0.11"},
                      {"address", "10.20.0.14"},
                      {"disks", Json::array({m.approved("C")})},
                      {"deadline_seconds", 0}};
        }}},
  };
}

Samples samples_of_other_storage() {
  return {
      {"external_mount",
       {[](FakeMachine& m) { m.put("/usr/sbin/mount.nfs4", ""); },
        [](FakeMachine&) {
          return Json{{"name", "data"},       {"fstype", "nfs4"},  {"source", "10.0.0.5:/export"},
                      {"server", "10.0.0.5"}, {"target", "/data"}, {"options", "nconnect=8"},
                      {"writable", true}};
        }}},
      {"ceph_mon",
       {[](FakeMachine& m) { with_ceph(m), m.add_disk("nvme3n1", "C"); },
        [](FakeMachine& m) {
          Json disk = m.approved("C");
          disk["uuid"] = "aaaaaaaa-2222-8333-a444-555555555555";
          return Json{{"name", "node01"},     {"fsid", "f"},        {"mons", named({"node01"})},
                      {"fs", "shared"},       {"mon_key", "K1"},    {"admin_key", "K2"},
                      {"client_key", "K3"},   {"may_create", true}, {"disks", Json::array({disk})},
                      {"deadline_seconds", 0}};
        }}},
      {"ceph_daemons",
       {with_ceph,
        [](FakeMachine&) {
          return Json{{"name", "node01"}};
        }}},
      {"ceph_osds",
       {[](FakeMachine& m) { with_ceph(m), m.add_disk("nvme3n1", "C"); },
        [](FakeMachine& m) {
          Json disk = m.approved("C");
          disk["uuid"] = "aaaaaaaa-2222-8333-a444-555555555555";
          return Json{{"disks", Json::array({disk})}, {"deadline_seconds", 0}};
        }}},
      {"ceph_mount",
       {nothing,
        [](FakeMachine&) {
          return Json{{"name", "shared"}, {"fsid", "f"}, {"target", "/shared"}, {"deadline_seconds", 0}};
        }}},
      {"ceph_fs",
       {with_osds,
        [](FakeMachine&) {
          return Json{
              {"name", "shared"}, {"copies", 2}, {"min_copies", 1}, {"standbys", 1}, {"deadline_seconds", 0}};
        }}},
      {"ceph_left",
       {[](FakeMachine& m) {
          with_osds(m), m.put("/ceph/osds/3", "u3 node03 0 1"), m.put("/ceph/quorum", "node01 node02 ");
        },
        [](FakeMachine&) {
          return Json{
              {"members", named({"node01", "node02"})}, {"mons", named({"node01"})}, {"deadline_seconds", 0}};
        }}},
      {"ceph_noout",
       {with_osds,
        [](FakeMachine&) {
          return Json{{"node", "node03"}, {"state", "set"}, {"deadline_seconds", 0}};
        }}},
      {"ceph_drain",
       {with_osds,
        [](FakeMachine&) {
          return Json{{"node", "node03"}, {"state", "out"}, {"copies", 2}, {"deadline_seconds", 0}};
        }}},
      {"slurm_cgroups",
       {[](FakeMachine& m) {
          booted(m);
          m.put("/versions/slurmd", "slurm-wlm 21.08.5\n");
          m.put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
          m.put("/proc/cmdline", "root=/dev/sda1 ro\n");
          m.put("/etc/default/grub", "");
          m.put("/usr/sbin/update-grub", "");
        },
        [](FakeMachine&) { return Json::object(); }}},
      {"slurm_node",
       {[](FakeMachine& m) { m.put("/slurm/node01", "idle|none"); },
        [](FakeMachine&) {
          return Json{{"node", "node01"}, {"state", "drain"}, {"deadline_seconds", 0}};
        }}},
      {"nfs_server",
       {[](FakeMachine& m) {
          m.units["nfs-server.service"] = {};
          m.put("/export/x", "");
          m.put("/proc/self/mountinfo", "40 1 259:1 / /export rw - xfs /dev/nvme1n1 rw\n");
        },
        [](FakeMachine&) {
          return Json{{"name", "home"},
                      {"path", "/export"},
                      {"clients", Json::array({{{"name", "node02"}, {"address", "10.20.0.12"}}})}};
        }}},
      {"shared_write", {with_shared, [](FakeMachine&) { return shared_file("node01", "x\n"); }}},
  };
}

Samples samples_of_networks() {
  return {
      {"networks", {with_ports, [](FakeMachine&) { return two_rails(); }}},
      {"cdi",
       {with_gpus,
        [](FakeMachine&) {
          return Json{{"gpus", 2}};
        }}},
      {"nccl_conf", {with_rails, [](FakeMachine&) { return Json::object(); }}},
      {"rail_qos",
       {with_rails,
        [](FakeMachine&) {
          return Json{{"pfc", {3}}, {"dscp", {{"26", 3}}}, {"ets", {{"3", 60}}}};
        }}},
      {"sys_values",
       {[](FakeMachine& m) {
          booted(m);
          m.units["muster-sys-governor.service"] = {};
          for (const char* n : {"0", "1"})
            m.put(std::string("/sys/devices/system/cpu/cpu") + n + "/cpufreq/scaling_governor", "");
        },
        [](FakeMachine&) {
          return Json{{"name", "governor"},
                      {"values", {{"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "performance"}}}};
        }}},
  };
}

// Modules that change something, and how to ask for it.
const Samples& changing() {
  static const Samples samples = [] {
    Samples all;
    for (Samples some : {samples_of_configuration(), samples_of_the_system(), samples_of_disks(),
                         samples_of_moosefs(), samples_of_other_storage(), samples_of_networks()})
      all.merge(some);
    return all;
  }();
  return samples;
}

// Pure tests and measurements, which have tests of their own.
// Needs a disk with two systems: tests/unit/agent/slot_step_test.cc.
const std::set<std::string> kOwnBench = {"slot"};
const std::set<std::string> kNoChange = {
    "probe",        "not_applicable",     "wait_for",        "ssh_probe",
    "ceph_members", "moosefs_heir",       "moosefs_members", "slurm_nodes",
    "slurm_mpi",    "prometheus_targets", "rdma_ports",      "shared_read",
    "accept",       "accept_links",       "accept_mpi",      "accept_rdma",
    "accept_group", "accept_group_serve"};

TEST_CASE("steps: every module is in the suite or changes nothing") {
  for (const auto& module : step_modules()) {
    INFO(module.name);
    const bool pure = kNoChange.count(module.name) > 0;
    CHECK(pure != (changing().count(module.name) + kOwnBench.count(module.name) > 0));
    CHECK(!module.help.empty());
    if (pure)
      CHECK(!module.apply);
    else
      CHECK(module.apply);
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
    CHECK(machine.snapshot() == before);  // a check writes nothing

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
    CHECK(again == made);  // applying what holds changes nothing
    if (module->check_many) {
      const auto many = module->check_many(context, {params, params});
      REQUIRE(many.size() == 2);
      CHECK((many[0].ok() && many[0]->holds == Holds::yes));
    }
  }
}

TEST_CASE("steps: what may be a secret is in no argument of a program", "[secrets]") {
  const std::string secret = "a planted secret";  // begins as the sample's line has to
  size_t planted = 0;
  for (const auto& [name, sample] : changing())
    for (const Json& parameter : find_step_module(name)->parameters) {
      if (!parameter.value("secret", false)) continue;
      const std::string of = parameter.value("name", "");
      INFO(name << "." << of);
      FakeMachine machine;
      sample.prepare(machine);
      Json params = sample.params(machine);
      params[of] = parameter["type"] == "object" ? Json::object({{"key", secret}}) : Json(secret);
      StepContext context = machine.context();
      context.secrets = SecretMask(std::vector<std::string>{secret});
      const StepModule* module = find_step_module(name);
      CHECK(module->check(context, params)->holds == Holds::no);
      const Status applied = module->apply(context, params);
      INFO((applied.ok() ? "" : applied.error().message));
      CHECK(applied.ok());
      CHECK_FALSE(machine.called(secret));
      ++planted;
    }
  CHECK(planted >= 8);
}

TEST_CASE("steps: an unknown or missing parameter is refused") {
  for (const auto& module : step_modules()) {
    INFO(module.name);
    CHECK(check_parameters(module, {{"no_such_parameter", 1}}).ok() == false);
  }
}

TEST_CASE("steps: a tool that fails makes the step fail, and it can be done again") {
  const std::map<std::string, std::string> tools = {
      {"package", "apt-get"},
      {"kept_directory", "cp"},
      {"ceph_noout", "ceph --connect-timeout 30 osd set-group"},
      {"moosefs_maintenance", "mfscli -H 10.20.0.11 -n -s | -CM1"},
      {"service", "systemctl enable"},
      {"user", "useradd"},
      {"group", "groupadd"},
      {"command", "touch"},
      {"ufw", "/lib/ufw/ufw-init start"},
      {"sshd", "/usr/sbin/sshd -t"},
      {"raid", "mdadm --create"},
      {"external_mount", "systemctl restart"},
      {"apt_mirror", "apt-get -q update"},
      {"apt_repository", "apt-get -q update"},
      {"download", "/usr/lib/apt/apt-helper"},
      {"archive", "tar"},
      {"kernel_module", "update-initramfs"},
      {"kernel_command_line", "mount -t vfat -o rw"},
      {"udev_rule", "udevadm trigger"},
      {"reboot", "systemctl --no-block reboot"},
      {"acs", "systemctl enable"},
      {"networks", "networkctl reload"},
      {"rail_qos", "dcb ets set"},
      {"sys_values", "systemctl enable"},
      {"limits", "systemctl daemon-reexec"},
      {"timer", "systemctl enable"},
      {"time_servers", "systemctl try-restart"},
      {"filesystem", "mkfs.xfs"},
      {"partition", "sfdisk"},
      {"mount", "mount"},
      {"mount_flags", "mount"},
      {"moosefs_disks", "mkfs.xfs"},
      {"moosefs_policy", "mfssetgoal"},
      {"nfs_server", "exportfs -ra"},
      {"moosefs_drain", "systemctl reload"},
      {"slurm_node", "scontrol"},
      {"ceph_mon", "ceph-mon --mkfs"},
      {"ceph_daemons", "systemctl enable"},
      {"ceph_osds", "ceph-osd --mkfs"},
      {"ceph_mount", "systemctl start"},
      {"ceph_fs", "ceph --connect-timeout 30 fs new"},
      {"ceph_left", "ceph --connect-timeout 30 osd purge"},
      {"ceph_drain", "ceph --connect-timeout 30 osd out"}};
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

// What a label would choose a device by.
bool chooses_by_label(const std::string& text) {
  for (const char* way : {"LABEL=", "/by-label/", "/by-partlabel/", "name=any:"})
    if (text.find(way) != std::string::npos) return true;
  return false;
}

TEST_CASE("steps: no module chooses a device by a label, in what it calls and in what it writes") {
  for (const auto& [name, sample] : changing()) {
    INFO(name);
    FakeMachine machine;
    sample.prepare(machine);
    const Json params = sample.params(machine);
    std::set<std::string> before;  // lines of the host's own
    for (const auto& [path, digest] : machine.snapshot())
      if (path.starts_with("/etc/") || path.starts_with("/boot/"))
        for (const auto& line : split_lines(machine.get(path))) before.insert(line);
    machine.calls.clear();
    StepContext context = machine.context();
    const StepModule* module = find_step_module(name);
    (void)module->check(context, params).ok();
    REQUIRE(module->apply(context, params).ok());
    for (const auto& call : machine.calls) {
      INFO(call);
      CHECK_FALSE(chooses_by_label(call));
    }
    for (const auto& [path, digest] : machine.snapshot()) {
      if (!path.starts_with("/etc/") && !path.starts_with("/boot/")) continue;
      for (const auto& line : split_lines(machine.get(path))) {
        INFO(path << ": " << line);
        CHECK((before.count(line) > 0 || !chooses_by_label(line)));
      }
    }
  }
}

// Runs `apply` with the fault that `hurt` sets up, then on the machine as it stands: it must hold in the end.
void survives(const std::string& name, const std::function<void(FakeMachine&)>& hurt) {
  FakeMachine machine;
  changing().at(name).prepare(machine);
  const Json params = changing().at(name).params(machine);
  StepContext context = machine.context();
  const StepModule* module = find_step_module(name);
  hurt(machine);
  const Status first = module->apply(context, params);
  INFO("with the fault: " << (first.ok() ? "applied" : first.error().message));
  machine.dies_at = machine.loses_reply_at = -1;
  const auto between = machine.snapshot();
  const auto looked = module->check(context, params);
  CHECK(machine.snapshot() == between);
  if (looked.ok() && looked->holds == Holds::yes && module->verify)
    CHECK(module->verify(context, params).ok());
  const Status again = module->apply(context, params);
  INFO((again.ok() ? "" : again.error().message));
  REQUIRE(again.ok());
  const auto after = module->check(context, params);
  REQUIRE(after.ok());
  INFO(after->diff);
  CHECK(after->holds == Holds::yes);
  if (module->verify) CHECK(module->verify(context, params).ok());
}

TEST_CASE(
    "steps: the machine dies at any program call, or its answer is lost, and the step goes on from there") {
  for (const auto& [name, sample] : changing()) {
    FakeMachine machine;
    sample.prepare(machine);
    const Json params = sample.params(machine);
    StepContext context = machine.context();
    const size_t before = machine.calls.size();
    REQUIRE(find_step_module(name)->apply(context, params).ok());
    for (size_t call = before; call < machine.calls.size(); ++call) {
      INFO(name << " at call " << call << ": " << machine.calls[call]);
      survives(name, [&](FakeMachine& m) { m.dies_at = static_cast<int>(call); });
      survives(name, [&](FakeMachine& m) { m.loses_reply_at = static_cast<int>(call); });
    }
  }
}

}  // namespace
}  // namespace muster
