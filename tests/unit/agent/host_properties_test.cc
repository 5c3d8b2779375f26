// What should be equal on equal machines, read from text of /proc and /sys; nothing that differs by nature.
#include "agent/facts/host_properties.h"

#include "agent/facts/collect_facts.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using tests::FakeMachine;

TEST_CASE("properties: nothing of what cannot be read", "[agent][drift]") {
  const FakeMachine nothing;
  CHECK(Json(host_properties(nothing.files())).dump() == "{}");
}

TEST_CASE("properties: settings of BIOS and kernel", "[agent][drift]") {
  FakeMachine m;
  const std::string cpus = "/sys/devices/system/cpu/";
  m.put("/sys/class/dmi/id/bios_date", "06/12/2024\n");
  m.put("/proc/cpuinfo",
        "processor\t: 0\nmicrocode\t: 0x2b000603\n\nprocessor\t: 1\nmicrocode\t: 0x2b000603\n");
  m.put(cpus + "smt/active", "1\n");
  m.put(cpus + "cpu0/cpufreq/scaling_governor", "performance\n");
  m.put(cpus + "cpu1/cpufreq/scaling_governor", "powersave\n");
  m.put(cpus + "intel_pstate/no_turbo", "1\n");
  m.put(cpus + "cpu0/cpuidle/state0/name", "POLL\n");
  m.put(cpus + "cpu0/cpuidle/state1/name", "C6\n");
  m.put(cpus + "cpu0/cpuidle/state1/disable", "1\n");
  m.put(cpus + "vulnerabilities/meltdown", "Not affected\n");
  m.put("/sys/devices/system/node/node0/cpulist", "0\n");
  m.put("/sys/devices/system/node/node1/cpulist", "1\n");
  m.put("/sys/devices/system/node/possible", "0-1\n");
  m.put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  const auto found = host_properties(m.files());
  CHECK(found.at("BIOS date") == "06/12/2024");
  CHECK(found.at("microcode") == "0x2b000603");
  CHECK(found.at("SMT") == "on");
  CHECK(found.at("CPU governor") == "performance, powersave");
  CHECK(found.at("turbo") == "off");
  CHECK(found.at("C-states") == "POLL, C6 (off)");
  CHECK(found.at("mitigation of meltdown") == "Not affected");
  CHECK(found.at("NUMA nodes") == "2");
  CHECK(found.at("transparent huge pages") == "madvise");
}

TEST_CASE("properties: firmware and drivers of devices, by model", "[agent][drift]") {
  FakeMachine m;
  m.put("/sys/module/nvidia/version", "550.54.15\n");
  m.put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15\n");
  for (const char* gpu : {"0000:1b:00.0", "0000:43:00.0"})
    m.put(std::string("/proc/driver/nvidia/gpus/") + gpu + "/information",
          "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-1\nVideo BIOS: \t 96.00.74.00.1a\n");
  const std::string rdma = "/sys/class/infiniband/mlx5_0/";
  m.put(rdma + "board_id", "MT_0000000838\n");
  m.put(rdma + "fw_ver", "28.39.1002\n");
  m.put(rdma + "ports/1/rate", "400 Gb/sec (4X NDR)\n");
  m.put(rdma + "ports/1/link_layer", "InfiniBand\n");
  m.put("/sys/block/nvme0n1/device/model", "SAMSUNG MZQL2\n");
  m.put("/sys/block/nvme0n1/device/firmware_rev", "GDC5902Q\n");
  m.put("/sys/block/nvme0n1/device/serial", "S64H\n");
  REQUIRE(m.files().symlink("libnccl.so.2.21.5", "/usr/lib/x86_64-linux-gnu/libnccl.so.2").ok());
  for (const char* gpu : {"0000:1b:00.0", "0000:43:00.0"}) {
    m.put(std::string("/sys/bus/pci/devices/") + gpu + "/class", "0x030200\n");
    m.put(std::string("/sys/bus/pci/devices/") + gpu + "/current_link_width", "16\n");
  }
  const auto found = host_properties(m.files());
  CHECK(found.at("GPU driver") == "550.54.15 (open)");
  CHECK(found.at("GPU VBIOS") == "96.00.74.00.1a");
  CHECK(found.at("firmware of RDMA device MT_0000000838") == "28.39.1002");
  CHECK(found.at("RDMA ports") == "1 x InfiniBand 400 Gb/sec (4X NDR)");
  CHECK(found.at("firmware of drives SAMSUNG MZQL2") == "GDC5902Q");
  CHECK(found.at("NCCL") == "2.21.5 in /usr/lib/x86_64-linux-gnu");
  CHECK(found.at("PCIe lanes of GPUs") == "2 x x16");
  CHECK(found.at("GPU memory for RDMA") == "no module");
  for (const auto& [name, value] : found) {
    CAPTURE(name, value);
    CHECK(value.find("S64H") == std::string::npos);
    CHECK(value.find("GPU-1") == std::string::npos);
  }
}

TEST_CASE("properties: the kernel's command line without what names a machine", "[agent][drift]") {
  CHECK(comparable_kernel_line(
            "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1234 ro quiet iommu=pt rd.luks.uuid=7 "
            "ip=10.0.0.7::10.0.0.1 cryptkey=PARTUUID=9 console=ttyS0,115200 muster.token=x") ==
        "ro quiet iommu=pt console=ttyS0,115200");
  CHECK(comparable_kernel_line("").empty());
}

TEST_CASE("properties: options of real file systems that stay", "[agent][drift]") {
  FakeMachine m;
  m.put("/proc/self/mounts",
        "proc /proc proc rw 0 0\n"
        "tmpfs /tmp tmpfs rw 0 0\n"
        "/dev/nvme0n1p2 / ext4 rw,relatime 0 0\n"
        "/dev/md0 /scratch xfs rw,noatime,inode64 0 0\n"
        "/dev/loop3 /snap/core/1 squashfs ro 0 0\n"
        "/dev/nvme0n1p2 /var/lib/docker/x ext4 rw 0 0\n"
        "fs01:/home /home nfs4 rw,vers=4.2,clientaddr=10.0.0.7,addr=10.0.0.1 0 0\n"
        "auto.data /data autofs rw 0 0\n"
        "fs01:/d /data/alice nfs4 rw 0 0\n");
  const auto found = mount_properties(m.files());
  CHECK(found == std::map<std::string, std::string>{{"mount /", "ext4 relatime,rw"},
                                                    {"mount /home", "nfs4 rw,vers=4.2"},
                                                    {"mount /scratch", "xfs inode64,noatime,rw"},
                                                    {"mounts", "/, /home, /scratch"}});
}

TEST_CASE("facts: the machine-id is reported only as a digest of it, and a share in words",
          "[agent][drift]") {
  FakeMachine m;
  CHECK(hidden_machine_id(m.files()).empty());
  const std::string id = "0123456789abcdef0123456789abcdef";
  m.put("/etc/machine-id", id + "\n");
  m.put("/sys/devices/system/cpu/online", "0-127\n");
  m.put("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-31\n");
  const auto facts = collect_facts(m.files());
  REQUIRE(facts.ok());
  CHECK(facts->machine_id.size() == 32);
  CHECK(facts->machine_id != id);
  CHECK(facts->machine_id == hidden_machine_id(m.files()));
  CHECK(facts->share.cores == 32);
  CHECK(facts->share.cores_by == "affinity");
  CHECK(share_of(*facts) == "32 of 128 cores (affinity)");
  m.put("/etc/machine-id", "uninitialized\n");
  CHECK(hidden_machine_id(m.files()).empty());
  m.put("/etc/machine-id", std::string(32, '0') + "\n");
  CHECK(hidden_machine_id(m.files()).empty());
}
