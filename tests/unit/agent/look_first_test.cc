// What is seen of a host before it is loaded: others at work, and the share of it that may be used. The texts
// are of real hosts (Debian 12, Ubuntu 22.04, EL 9, Slurm 23.11).
#include "agent/measuring/look_first.h"

#include "base/split.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using tests::FakeMachine;

namespace {

// A host of 128 processors and 1007 GiB on which no user works, without cgroups.
struct Host {
  FakeMachine machine;
  LookInput input;

  Host() {
    process(1, {"/sbin/init"}, 0);
    put("/sys/devices/system/cpu/online", "0-127\n");
    put("/proc/loadavg", "4.11 4.01 3.89 5/154 9184\n");
    put("/proc/uptime", "1001.00 500.00\n");
    input.earlier.uptime = 1000;
    put("/proc/meminfo", "MemTotal:       1056210304 kB\nMemFree:        1000 kB\n");
    put("/proc/self/status", "Name:\tmuster-agent\nCpus_allowed:\tff\nCpus_allowed_list:\t0-255\n");
    put("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max processes             96364                96364                processes \n"
        "Max locked memory         8388608              8388608              bytes     \n");
  }
  void put(const std::string& path, const std::string& text) const { machine.put(path, text); }
  void process(int64_t pid, const std::vector<std::string>& argv, int64_t parent = 1) const {
    std::string cmdline;
    for (const auto& one : argv) cmdline += one + std::string(1, '\0');
    const std::string folder = "/proc/" + std::to_string(pid);
    put(folder + "/cmdline", cmdline);
    put(folder + "/comm", argv[0].substr(argv[0].rfind('/') + 1).substr(0, 15) + "\n");
    put(folder + "/stat", std::to_string(pid) + " (a) b c) S " + std::to_string(parent) + " 1 1 0 -1\n");
  }
  void cgroup(const std::string& text) const { put("/proc/self/cgroup", text); }
  HostLook look() const { return look_first(machine.files(), input); }
  NodeShare share() const { return node_share(machine.files()); }
  // The kinds of what is at work, and one reason's text.
  std::string busy() const {
    std::string out;
    for (const BusyReason& one : look().busy)
      out += std::string(to_string(one.kind)) + ": " + one.text + "\n";
    return out;
  }
};

}  // namespace

TEST_CASE("look: a host on which no user works is not busy", "[look]") {
  Host host;
  host.process(812, {"/usr/sbin/sshd", "-D"});
  // Of every Ubuntu, and of every Slurm with cgroups of version 2.
  host.process(900, {"/usr/bin/python3", "/usr/share/unattended-upgrades/unattended-upgrade-shutdown",
                     "--wait-for-signal"});
  host.process(901, {"/usr/sbin/slurmstepd", "infinity"});
  host.put("/proc/902/cmdline", "");  // a kernel thread
  const HostLook look = host.look();
  CHECK(host.busy() == "");
  CHECK(look.not_looked_at.empty());
  CHECK(share_words(look.share).empty());
  CHECK(look.locked_bytes == uint64_t{8388608});
}

TEST_CASE("look: steps of Slurm jobs, but for those of its own job", "[look]") {
  Host host;
  host.process(100, {"slurmstepd: [4711.extern]"});
  host.process(101, {"slurmstepd: [4711.batch]"});
  host.process(102, {"slurmstepd: [4712+1.0]"});
  host.process(103, {"slurmstepd: [47\x1b[2J.0]"});  // no step is called so
  host.process(104, {"slurmstepd: [.0]"});
  host.process(105, {"vi", "slurmstepd: [9.0]"});
  CHECK(host.busy() ==
        "job: Slurm job 4711 is running (steps batch, extern)\njob: Slurm job 4712+1 is running (steps 0)\n");
  CHECK(host.look().busy.at(0).pids == std::set<int64_t>{100, 101});

  // srun: an ancestor is a step of it, and then all its steps are.
  host.process(200, {"muster-agent", "work"}, 199);
  host.process(199, {"/bin/sh"}, 101);
  host.input.self = 200;
  CHECK(host.busy() == "job: Slurm job 4712+1 is running (steps 0)\n");
  CHECK(host.look().own_jobs == std::set<std::string>{"4711"});

  // pam_slurm_adopt: by the cgroup only.
  host.input.self = 0;
  host.cgroup("0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special\n");
  CHECK(host.busy() == "job: Slurm job 4712+1 is running (steps 0)\n");
  host.cgroup("4:cpuset:/slurm/uid_1000/job_4711/step_extern\n0::/\n");
  CHECK(host.look().busy.size() == 1);
}

TEST_CASE("look: where processes are hidden it is said, and jobs are found by their cgroups", "[look]") {
  Host host;
  REQUIRE(host.machine.files().remove("/proc/1/cmdline").ok());
  const std::string scope = "/sys/fs/cgroup/system.slice/slurmstepd.scope/";
  host.put(scope + "system/cgroup.events", "populated 1\nfrozen 0\n");
  host.put(scope + "job_31/cgroup.events", "populated 1\nfrozen 0\n");
  host.put(scope + "job_31/step_0/cgroup.events", "populated 1\nfrozen 0\n");
  host.put(scope + "job_30/cgroup.events", "populated 0\nfrozen 0\n");
  CHECK(host.busy() == "job: Slurm job 31 is running (steps 0)\n");
  REQUIRE(host.look().not_looked_at.size() == 1);
  CHECK(host.look().not_looked_at[0].find("hidepid") != std::string::npos);
}

TEST_CASE("look: package managers at work, not queries of them", "[look]") {
  const std::vector<std::vector<std::string>> work = {
      {"apt-get", "-y", "install", "x"},
      {"/usr/bin/apt", "update"},
      {"/usr/bin/python3", "/usr/bin/unattended-upgrade"},
      {"/bin/sh", "/usr/lib/apt/apt.systemd.daily", "update"},
      {"/usr/bin/dpkg", "--status-fd", "5", "--no-triggers", "--unpack", "--auto-deconfigure", "x.deb"},
      {"dpkg", "-i", "x.deb"},
      {"/usr/libexec/platform-python", "/usr/bin/dnf", "-y", "upgrade"},
      {"/usr/bin/python3", "-s", "/usr/bin/yum", "install", "x"},
      {"rpm", "-Uvh", "x.rpm"},
      {"rpm", "--erase", "x"},
      {"zypper", "dup"}};
  for (const auto& argv : work) {
    Host host;
    host.process(77, argv);
    INFO(argv[0]);
    REQUIRE(host.look().busy.size() == 1);
    CHECK(host.look().busy[0].kind == Busy::packages);
    CHECK(host.look().busy[0].pids == std::set<int64_t>{77});
  }
  const std::vector<std::vector<std::string>> queries = {
      {"dpkg", "-l"},          {"dpkg-query", "-W"}, {"rpm", "-qa"},        {"rpm", "-V", "x"},
      {"apt-cache", "policy"}, {"apt", "list"},      {"apt-get", "--help"}, {"dnf", "repolist"},
      {"packagekitd"},         {"vi", "apt-get"},    {"python3"},           {"sh", "-c", "apt-get install x"},
      {"grep", "dpkg", "-i"}};
  for (const auto& argv : queries) {
    Host host;
    host.process(77, argv);
    INFO(argv[0]);
    CHECK(host.busy() == "");
  }
  Host host;
  host.process(77, {"apt-get", "upgrade"});
  host.process(78, {"dpkg", "--configure", "-a"});
  CHECK(host.busy() == "packages: apt-get, dpkg are running (pid 77, 78)\n");
}

TEST_CASE("look: another measurement is named with its user and its start", "[look]") {
  Host host;
  host.process(50, {"muster-accept", "dgemm"});
  host.put("/proc/50/status", "Name:\tmuster-accept\nUid:\t1007\t1007\t1007\t1007\n");
  host.put("/etc/passwd", "root:x:0:0::/root:/bin/sh\nbob:x:1007:1007::/home/bob:/bin/sh\n");
  REQUIRE(host.look().busy.size() == 1);
  CHECK(host.look().busy[0].kind == Busy::measurement);
  CHECK(host.look().busy[0].pids == std::set<int64_t>{50});
  CHECK(has(host.look().busy[0].text, "pid 50"));
  CHECK(has(host.look().busy[0].text, "user bob"));
  host.process(50, {"muster-accept-nvml"});
  CHECK(host.look().busy.empty());
  host.input.no_lock = "the kernel does not allow it";
  CHECK(host.look().not_looked_at.size() == 1);
}

TEST_CASE("look: without two readings of the processors, load is not looked at", "[look]") {
  Host host;
  CHECK(host.look().not_looked_at.empty());
  host.put("/proc/uptime", "\n");
  CHECK(host.look().busy.empty());
  CHECK(host.look().not_looked_at.size() == 1);
}

TEST_CASE("look: memory of GPUs that others hold", "[look]") {
  Host host;
  host.process(4242, {"python3", "train.py"});
  host.input.self = 77;
  host.input.holders = {{"3", 4242, uint64_t{61440}}, {"0", 77, uint64_t{512}}, {"4", 9999, {}}};
  CHECK(host.busy() ==
        "gpu_memory: in use: 61440 MiB of GPU 3 by pid 4242, \"python3\"; memory of GPU 4 by pid 9999, "
        "process not found\n");
  host.put("/proc/4242/comm", "a\x1b[2J\n");
  CHECK(host.busy().find('\x1b') == std::string::npos);
  host.input.holders = {{"0", 77, uint64_t{512}}};
  CHECK(host.busy() == "");
  host.input.gpus_looked_at = false;
  CHECK(host.look().not_looked_at.size() == 1);
}

TEST_CASE("share: a whole node is none, whatever processors could be plugged in", "[look]") {
  Host host;
  CHECK(share_like(host.share()) == "");
  CHECK(host.share().cores == 128);
  host.cgroup("0::/user.slice/user-1000.slice/session-3.scope\n");
  host.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  host.put("/sys/fs/cgroup/cpuset.cpus.effective", "0-127\n");
  host.put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  host.put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  CHECK(share_like(host.share()) == "");
  // What Slurm keeps for the system.
  host.put("/sys/fs/cgroup/user.slice/memory.max", "1056000000000\n");
  CHECK(share_like(host.share()) == "");
  CHECK(share_like(node_share(FakeMachine().files())) == "");
}

TEST_CASE("share: cgroups of version 2, where each level limits", "[look]") {
  Host host;
  const std::string job = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_31";
  host.cgroup("0::/system.slice/slurmstepd.scope/job_31/step_0/user/task_0\n");
  host.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  host.put("/sys/fs/cgroup/cpuset.cpus.effective", "0-127\n");
  host.put(job + "/cpuset.cpus.effective", "0-15,64-79\n");
  host.put(job + "/memory.max", "68719476736\n");
  host.put(job + "/step_0/user/memory.max", "max\n");
  CHECK(share_like(host.share()) == "32 of 128 cores (cpuset), 64 of 1007 GiB of memory");
  host.put(job + "/step_0/cpu.max", "250000 100000\n");
  CHECK(host.share().cores == 2.5);
  CHECK(host.share().cores_by == "cpu.max");
  CHECK(share_words(host.share()).at(0) == "2.5 of 128 cores (cpu.max)");
  // Nearer than the job's.
  host.put(job + "/step_0/cpuset.cpus.effective", "3\n");
  CHECK(host.share().cores == 1);
}

TEST_CASE("share: cgroups of version 1, alone and beside version 2", "[look]") {
  Host host;
  host.cgroup(
      "9:name=systemd:/\n8:pids:/\n4:memory:/slurm/uid_1000/job_7\n3:cpuset:/slurm/uid_1000/job_7/step_0\n"
      "1:cpu,cpuacct:/slurm\n0::/\n");
  host.put("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-127\n");
  host.put("/sys/fs/cgroup/cpuset/slurm/uid_1000/job_7/cpuset.cpus", "0-31\n");
  host.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  host.put("/sys/fs/cgroup/memory/slurm/uid_1000/job_7/memory.limit_in_bytes", "68719476736\n");
  host.put("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "-1\n");
  host.put("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n");
  CHECK(share_like(host.share()) == "32 of 128 cores (cpuset), 64 of 1007 GiB of memory");
  host.put("/sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "1600000\n");
  CHECK(share_words(host.share()).at(0) == "16 of 128 cores (cpu.max)");
  // A container shows the host's path and its own cgroup.
  host.cgroup("3:cpuset:/docker/0123456789ab\n");
  host.put("/sys/fs/cgroup/cpuset/cpuset.cpus", "8-11\n");
  CHECK(share_like(host.share()) == "4 of 128 cores (cpuset)");
}

TEST_CASE("share: namespaces, affinity and GPUs", "[look]") {
  Host host;
  host.cgroup("0::/../../other\n");
  host.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
  host.put("/sys/fs/cgroup/cpuset.cpus.effective", "0-63\n");
  CHECK(host.share().cores == 64);
  host.put("/proc/self/status", "Cpus_allowed_list:\t5,7\n");
  CHECK(share_like(host.share()) == "2 of 128 cores (affinity)");
  host.input.gpus = 2;
  host.input.of_gpus = 8;
  const HostLook look = host.look();
  CHECK(share_words(look.share).back() == "2 of 8 GPUs");
  const Json json = to_json(look);
  CHECK(json.at("share").at("cores") == 2);
  CHECK(json.at("share").at("gpus") == 2);
  CHECK(json.at("busy").empty());
  CHECK(json.at("locked_memory_bytes") == 8388608);
  host.put("/proc/self/limits",
           "Max locked memory         unlimited            unlimited            bytes\n");
  CHECK(to_json(host.look()).at("locked_memory_bytes") == "unlimited");
  host.put("/proc/self/limits", "Max locked memory\n");
  CHECK(!host.look().locked_bytes);
}

TEST_CASE("share: lists of processors", "[look]") {
  CHECK(cpu_list("0-2,8\n").empty());  // trimmed by who reads it
  CHECK(cpu_list("0-2,8") == std::set<int>{0, 1, 2, 8});
  CHECK(cpu_list("").empty());
  CHECK(cpu_list("3-1").empty());
  CHECK(cpu_list("a-b").empty());
  CHECK(cpu_list("1,x").empty());
  CHECK(cpu_list("0-99999999999999999999").empty());
  CHECK(cpu_list("0-4294967295").size() == 65536);
}

TEST_CASE("look: a job or package manager that another user only pretends is named with its user", "[look]") {
  Host host;
  host.put("/etc/passwd", "root:x:0:0::/root:/bin/sh\neve:x:1009:1009::/:/bin/sh\n");
  host.process(100, {"slurmstepd: [4711.batch]"});
  host.process(77, {"apt-get", "upgrade"});
  const auto owned_by = [&](const std::string& user) {
    for (const char* pid : {"100", "77"})
      host.put(std::string("/proc/") + pid + "/status", "Name:\tx\nUid:\t" + user + "\t0\t0\t0\n");
    return host.busy();
  };
  CHECK_FALSE(has(owned_by("0"), "user"));
  const std::string forged = owned_by("1009");
  CHECK(has(forged, "pid 100 of user eve"));
  CHECK(has(forged, "pid 77, of user eve"));
}
