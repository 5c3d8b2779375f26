// Facts of small machines made by hand, and the small parts around the agent's identity.
#include "agent/facts/collect_facts.h"

#include "agent/core/identity.h"
#include "agent/link/http_link.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

namespace muster {
namespace {

using tests::FakeMachine;

TEST_CASE("facts: processors, sockets and their model") {
  FakeMachine m;
  m.put("/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Xeon 8480\nphysical id\t: 0\n\nprocessor\t: 1\nmodel name\t: Xeon "
        "8480\nphysical id\t: 1\n");
  const CpuFacts cpu = cpu_facts(m.files());
  CHECK(cpu.count == 2);
  CHECK(cpu.sockets == 2);
  CHECK(cpu.model == "Xeon 8480");
  CHECK(cpu_facts(FakeMachine().files()).count == 0);
}

TEST_CASE("facts: memory by blocks, else what the kernel manages") {
  FakeMachine m;
  m.put("/proc/meminfo", "MemTotal:        1000 kB\n");
  CHECK(memory_bytes(m.files()) == 1024000);
  m.put("/sys/devices/system/memory/block_size_bytes", "8000000\n");
  m.put("/sys/devices/system/memory/memory0/state", "online\n");
  m.put("/sys/devices/system/memory/memory1/state", "offline\n");
  CHECK(memory_bytes(m.files()) == 0x8000000);
}

TEST_CASE("facts: only network ports with hardware") {
  FakeMachine m;
  m.put("/sys/class/net/lo/address", "00:00:00:00:00:00\n");
  m.put("/sys/class/net/eth0/address", "52:54:00:AA:00:01\n");
  m.put("/sys/class/net/eth0/carrier", "1\n");
  m.put("/sys/class/net/eth0/speed", "-1\n");
  REQUIRE(m.files().symlink("../../../0000:17:00.0", "/sys/class/net/eth0/device").ok());
  m.put("/sys/class/0000:17:00.0/vendor", "0x15b3\n");
  m.put("/sys/0000:17:00.0/vendor", "0x15b3\n");
  const auto nics = nic_facts(m.files());
  REQUIRE(nics.size() == 1);
  CHECK(nics[0].mac == "52:54:00:aa:00:01");
  CHECK(nics[0].pci == "0000:17:00.0");
  CHECK(nics[0].speed_mbps == 0);
  CHECK(nics[0].link_up);
}

TEST_CASE("facts: GPUs count before their driver is loaded") {
  FakeMachine m;
  const auto device = [&](const std::string& address, const char* vendor, const char* kind) {
    m.put("/sys/bus/pci/devices/" + address + "/vendor", std::string(vendor) + "\n");
    m.put("/sys/bus/pci/devices/" + address + "/class", std::string(kind) + "\n");
    m.put("/sys/bus/pci/devices/" + address + "/device", "0x2330\n");
  };
  device("0000:01:00.0", "0x10de", "0x030200");
  device("0000:02:00.0", "0x10de", "0x068000");  // NVSwitch
  device("0000:03:00.0", "0x1a03", "0x030000");  // the BMC's display
  auto gpus = gpu_facts(m.files());
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].model == "10de:2330");
  m.put("/proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-1234\n");
  gpus = gpu_facts(m.files());
  CHECK(gpus[0].model == "NVIDIA H100 80GB HBM3");
  CHECK(gpus[0].uuid == "GPU-1234");
}

TEST_CASE("facts: a whole machine") {
  FakeMachine m;
  m.add_disk("nvme0n1", "S1");
  m.put("/sys/class/dmi/id/product_uuid", "ABCD-1\n");
  m.put("/sys/class/dmi/id/bios_vendor", "EDK II\n");
  m.put("/sys/class/dmi/id/bios_version", "2022.11\n");
  m.put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n");
  const auto facts = collect_facts(m.files());
  REQUIRE(facts.ok());
  CHECK(facts->system.uuid == "abcd-1");
  CHECK(facts->firmware == "EDK II 2022.11");
  CHECK(facts->os == "Debian GNU/Linux 12");
  CHECK(facts->os_id == "debian");
  CHECK_FALSE(facts->uefi);
  REQUIRE(facts->disks.size() == 1);
  CHECK(facts->disks[0].blank);
  CHECK(hardware_facts_from_json(to_json(*facts))->disks[0].content_hash == facts->disks[0].content_hash);
}

TEST_CASE("identity: what is written is read back, and secrets are private") {
  FakeMachine m;
  const Files files = m.files();
  CHECK(!read_credentials(files, "/run/muster").ok());
  REQUIRE(
      write_config(files, "/run/muster", {"node01", "https://10.20.0.1:7443", "sha256:0", wire::Mode::ram})
          .ok());
  REQUIRE(write_credentials(files, "/run/muster", {"KEY", "CERT", "CA"}).ok());
  CHECK(read_config(files, "/run/muster")->mode == wire::Mode::ram);
  CHECK(read_credentials(files, "/run/muster")->key_pem == "KEY");
  CHECK(m.snapshot().at("/run/muster/agent.key").starts_with("100600 "));
}

TEST_CASE("identity: the kernel command line names everything or nothing happens") {
  const std::string full =
      "console=ttyS0 muster.url=https://10.0.0.1:7443 muster.pin=ab muster.token=t=1 muster.node=n1 quiet";
  CHECK(parse_kernel_command_line(full)->token == "t=1");
  CHECK(parse_kernel_command_line("muster.url=u muster.pin=p muster.node=n").error().code == Code::invalid);
}

TEST_CASE("link: pins are SHA-256 and order ids survive a query") {
  const std::string hex = sha256("x").substr(7);
  CHECK(normal_pin(hex).value() == "sha256:" + hex);
  CHECK(normal_pin("sha256:" + hex).value() == "sha256:" + hex);
  CHECK(!normal_pin("").ok());
  CHECK(!normal_pin(hex.substr(1)).ok());
  CHECK(query_value("3/node01/image#1,x") == "3%2Fnode01%2Fimage%231%2Cx");
}

}  // namespace
}  // namespace muster
