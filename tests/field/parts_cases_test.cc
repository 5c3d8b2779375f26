// Field cases of area `parts`: what counts as a GPU, a port, a rail, a drive or a core. Each machine is shown
// to all users of that decision, and they have to agree.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "agent/facts/collect_facts.h"
#include "agent/facts/host_properties.h"
#include "agent/steps/network/port_choice.h"
#include "base/placeholders.h"
#include "base/split.h"
#include "controller/bringup/own_machine_here.h"
#include "controller/plan/cluster_context.h"
#include "host/net_ports.h"
#include "host/rails.h"
#include "host/rdma_devices.h"
#include "host/real_drives.h"
#include "kernels/counters/counters.h"
#include "kernels/cpu/cpu.h"
#include "kernels/drives/drives.h"
#include "kernels/rdma/rdma.h"
#include "kernels/rdma/rdma_job.h"
#include "tests/fakes/sys_tree.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/machines.h"

namespace muster::tests {
namespace {

using Names = std::set<std::string>;

struct Machine {
  TempDir dir;
  Files files = Files(dir.path(""));
  explicit Machine(const std::string& name) { write_tree(files, field_input(name, "sys.txt")); }
  HardwareFacts facts() const {
    const auto seen = collect_facts(files);
    REQUIRE(seen.ok());
    const auto arrived = hardware_facts_from_json(to_json(*seen));
    REQUIRE(arrived.ok());
    return *arrived;
  }
};

Names left_out_of(const HardwareFacts& facts, const std::string& part) {
  Names out;
  for (const auto& one : facts.left_out) {
    CHECK_FALSE(one.reason.empty());
    if (one.part == part) out.insert(one.name);
  }
  return out;
}
Names nics_of(const HardwareFacts& facts) {
  Names out;
  for (const auto& nic : facts.nics) out.insert(nic.name);
  return out;
}
Names gpus_of(const HardwareFacts& facts) {
  Names out;
  for (const auto& gpu : facts.gpus) out.insert(gpu.pci);
  return out;
}
Names rails_of(const Files& files) {
  Names out;
  for (const auto& port : kernels::rdma_ports(files)) out.insert(port.label);
  return out;
}
Names drives_read(const Files& files) {
  Names out;
  for (const Json& part : kernels::run_drives(files, {.seconds = 0.001, .streams = 1}).parts)
    out.insert(part["result"]["detail"]["kernel_name"].get<std::string>());
  return out;
}
Names both(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// The parts of this kind of which counters are kept: {"NIC b8:ce:...", ...}.
Names counted(const Files& files, const std::string& kind) {
  REQUIRE(kernels::run_counters(files, {.save = "/saved.json"}).outcome == kernels::Outcome::measured);
  const Json saved = parse_json(files.read("/saved.json").value_or("")).value_or(Json::object());
  Names out;
  for (const Json& parts : saved)
    for (const auto& [part, count] : parts.items())
      if (part.starts_with(kind)) out.insert(part);
  return out;
}

// The number at the front of a property's text: "8 x x16" -> 8; sums the parts of "1 x A, 2 x B".
int tallied(const Properties& properties, const std::string& name) {
  const auto found = properties.find(name);
  if (found == properties.end()) return 0;
  int out = 0;
  for (const auto& part : split(found->second, ',')) out += std::atoi(part.c_str());
  return out;
}

void check_ports(const Machine& machine, const HardwareFacts& facts) {
  const Files& files = machine.files;
  Names shown, free, joined, counters, macs;
  for (const auto& name : files.list("/sys/class/net")) {
    if (!files.exists("/sys/class/net/" + name + "/device")) continue;
    shown.insert(name);
    REQUIRE(files.write("/sys/class/net/" + name + "/statistics/rx_errors", "0\n").ok());
  }
  for (const auto& port : steps::physical_ports(files)) free.insert(port.name);
  for (const auto& nic : facts.nics) {
    if (files.exists("/sys/class/net/" + nic.name + "/master")) joined.insert(nic.name);
    counters.insert("NIC " + nic.mac);
    if (is_station_address(nic.mac)) macs.insert(nic.mac);
  }
  CHECK(both(nics_of(facts), left_out_of(facts, "port")) == shown);
  CHECK(both(free, joined) == nics_of(facts));
  CHECK(counted(files, "NIC ") == counters);
  CHECK(read_own_machine(files.real("/sys")).macs == macs);
}

void check_rails(const Machine& machine, const HardwareFacts& facts) {
  const Files& files = machine.files;
  Names shown, counters;
  for (const auto& device : files.list("/sys/class/infiniband"))
    for (const auto& port : files.list("/sys/class/infiniband/" + device + "/ports"))
      REQUIRE(files
                  .write(fmt::format("/sys/class/infiniband/{}/ports/{}/counters/symbol_error", device, port),
                         "0\n")
                  .ok());
  for (const auto& port : rdma_devices(files)) shown.insert(port.label());
  for (const auto& port : kernels::rdma_ports(files))
    counters.insert(fmt::format("RDMA port {} {}", port.device, port.port));
  CHECK(both(rails_of(files), left_out_of(facts, "RDMA port")) == shown);
  CHECK(tallied(facts.properties, "RDMA ports") == static_cast<int>(rails_of(files).size()));
  CHECK(counted(files, "RDMA port ") == counters);
}

void check_gpus(const Machine& machine, const HardwareFacts& facts) {
  const Files& files = machine.files;
  const std::map<std::string, std::string> link = {{"current_link_width", "16"},
                                                   {"max_link_width", "16"},
                                                   {"current_link_speed", "32.0 GT/s PCIe"},
                                                   {"max_link_speed", "32.0 GT/s PCIe"}};
  for (const auto& address : files.list("/sys/bus/pci/devices"))
    for (const auto& [file, value] : link)
      for (const std::string end : {"", "/.."})  // of the device, and of the port that it is plugged into
        REQUIRE(files.write("/sys/bus/pci/devices/" + address + end + "/" + file, value).ok());
  Names links;
  for (const Json& part : kernels::run_pcie(files).parts)
    if (part["result"]["detail"]["part"].get<std::string>().starts_with("PCIe link of GPU "))
      links.insert(part["subject"].get<std::string>());
  CHECK(links == gpus_of(facts));
  CHECK(tallied(host_properties(files), "PCIe lanes of GPUs") == static_cast<int>(facts.gpus.size()));
}

void check_drives(const Machine& machine, const HardwareFacts& facts) {
  const Files& files = machine.files;
  Names measured, in_log, log = {};
  for (const auto& disk : facts.disks) measured.insert(disk.name);
  for (const auto& name : left_out_of(facts, "drive")) measured.erase(name);
  CHECK(drives_read(files) == measured);
  in_log = measured;
  for (const auto& one : facts.left_out)
    if (one.reason == word_of(kWhyWords, Why::other_path) || one.reason == word_of(kWhyWords, Why::zoned))
      in_log.insert(one.name);
  std::string text;
  int number = 1;
  for (const auto& name : files.list("/sys/block"))
    text += fmt::format("3,{0},{0},-;I/O error, dev {1}, sector 8 op 0x0:(READ)\n", number++, name);
  REQUIRE(files.write("/dev/kmsg", text).ok());
  for (const auto& line : kernels::read_kernel_log(files, 0).lines)
    if (line.metric == "drive_errors") log.insert(line.part.substr(line.part.find(' ') + 1));
  CHECK(log == in_log);
}

HardwareFacts agreed(const Machine& machine) {
  const HardwareFacts facts = machine.facts();
  check_ports(machine, facts);
  check_rails(machine, facts);
  check_gpus(machine, facts);
  check_drives(machine, facts);
  return facts;
}

// The entry of a node in Slurm's configuration.
Json slurm_entry(const HardwareFacts& facts, const std::vector<std::string>& playbooks,
                 std::optional<int> declared = {}) {
  Spec spec;
  spec.roles["head"] = playbooks;
  spec.nodes.resize(1);
  spec.nodes[0].name = "head01";
  spec.nodes[0].role = "head";
  spec.nodes[0].hardware.gpus = declared;
  const std::map<std::string, const HardwareFacts*> machines = {{"head01", &facts}};
  return ClusterContext(spec, machines).of("").set->machines.at(0);
}

// A machine whose processors are numbered thread by thread, as on x86.
Files processors(const FakeMachine& machine, const std::string& name) {
  const Json shape = parse_json(field_input(name, "topology.json")).value_or(Json());
  REQUIRE(shape.is_object());
  std::string cpuinfo;
  int n = 0;
  for (int thread = 0; thread < shape["threads"].get<int>(); ++thread)
    for (int package = 0; package < shape["packages"].get<int>(); ++package)
      for (int die = 0; die < shape["dies"].get<int>(); ++die)
        for (int core = 0; core < shape["cores"].get<int>(); ++core, ++n) {
          const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", n);
          machine.put(folder + "physical_package_id", std::to_string(package));
          machine.put(folder + "die_id", std::to_string(die));
          machine.put(folder + "core_id", std::to_string(core));
          cpuinfo += fmt::format("processor\t: {}\n{}\n", n, shape["cpuinfo"].get<std::string>());
        }
  machine.put("/proc/cpuinfo", cpuinfo);
  return machine.files();
}

}  // namespace

FIELD_CASE("vf-as-rail") {
  const Machine machine("vf-as-rail");
  const HardwareFacts facts = agreed(machine);
  CHECK(rails_of(machine.files) == Names{"mlx5_0"});
  CHECK(nics_of(facts) == Names{"ens1f0"});
}

FIELD_CASE("switchdev-representors") {
  const Machine machine("switchdev-representors");
  CHECK(nics_of(agreed(machine)) == Names{"ens1f0np0"});
  CHECK(rails_of(machine.files) == Names{"rocep24s0/1"});
}

FIELD_CASE("subfunctions") {
  const Machine machine("subfunctions");
  CHECK(nics_of(agreed(machine)) == Names{"ens1f0np0"});
  CHECK(rails_of(machine.files) == Names{"mlx5_0"});
}

FIELD_CASE("hgx-switch-managers") {
  const Machine machine("hgx-switch-managers");
  CHECK(nics_of(agreed(machine)) == Names{"ibs1"});
  CHECK(rails_of(machine.files) == Names{"mlx5_0"});
  CHECK(rdma_of_interface(machine.files, "ibs1").label() == "mlx5_0");
}

FIELD_CASE("ipoib-partition") {
  const Machine machine("ipoib-partition");
  CHECK(nics_of(agreed(machine)) == Names{"ibs1"});
  CHECK(rails_of(machine.files) == Names{"mlx5_0"});
}

FIELD_CASE("bond-slave-mac") {
  const HardwareFacts facts = agreed(Machine("bond-slave-mac"));
  REQUIRE(facts.nics.size() == 2);
  CHECK(facts.nics[0].mac == "b8:ce:f6:40:00:01");
  CHECK(facts.nics[1].mac == "b8:ce:f6:40:00:02");
}

FIELD_CASE("optical-drive-fails-acceptance") {
  const Machine machine("optical-drive-fails-acceptance");
  CHECK(left_out_of(agreed(machine), "drive") == Names{"fd0", "sr0"});
  CHECK(drives_read(machine.files) == Names{"nvme0n1"});
}

FIELD_CASE("zoned-disks") {
  const Machine machine("zoned-disks");
  const HardwareFacts facts = agreed(machine);
  CHECK(drives_read(machine.files) == Names{"nvme0n1", "sdb"});
  CHECK(named(facts.disks, "sda").zoned);
  CHECK_FALSE(named(facts.disks, "sdb").zoned);
}

FIELD_CASE("zoned-disks: they are refused in the plan") {
  FakeMachine machine;
  for (const char* name : {"sda", "sdb"}) add_disk(machine, {{"name", name}, {"serial", name}});
  for (const auto policy : {DiskPolicy::format_if_blank, DiskPolicy::format})
    CHECK(refused_by(with_fast(scan_disks(machine.files()), 2, policy)).empty());
  machine.put("/sys/block/sdb/queue/zoned", "host-managed\n");
  for (const auto policy : {DiskPolicy::format_if_blank, DiskPolicy::format})
    CHECK(refused_by(with_fast(scan_disks(machine.files()), 2, policy)) == "disk-zoned");
  PlannerInput in = muster::testing::with_nodes(muster::testing::seen_in_ram);
  in.nodes["node02"].facts->disks[0].zoned = true;
  CHECK(refused_by(in) == "disk-zoned");
}

FIELD_CASE("two-paths-to-a-drive") {
  const Machine machine("two-paths-to-a-drive");
  const HardwareFacts facts = agreed(machine);
  CHECK(drives_read(machine.files) == Names{"nvme1n1", "sda"});
  CHECK(left_out_of(facts, "drive") == Names{"nvme1c1n1", "nvme2n1", "sdb"});
  CHECK(named(facts.disks, "nvme2n1").transport == "nvme-tcp");  // it stays in the inventory
  CHECK(named(facts.disks, "sda").multipath == "dm-0");          // a map without a name
  CHECK(named(facts.disks, "nvme1n1").multipath.empty());
}

FIELD_CASE("vgpu-functions-as-gpus") {
  CHECK(gpus_of(agreed(Machine("vgpu-functions-as-gpus"))) == Names{"0000:41:00.0"});
}

FIELD_CASE("gpus-given-to-guests") {
  const HardwareFacts facts = agreed(Machine("gpus-given-to-guests"));
  CHECK(gpus_of(facts) == Names{"0000:41:00.0"});
  CHECK(left_out_of(facts, "GPU") == Names{"0000:05:00.0", "0000:42:00.0"});
}

FIELD_CASE("slurm-display-gpu") {
  const Machine machine("slurm-display-gpu");
  HardwareFacts facts = agreed(machine);
  const Json entry = slurm_entry(facts, {"scheduler"});
  CHECK(entry["gpus"] == 0);
  CHECK(entry["gpu_files"] == "");
  CHECK(compute_gpus(facts) == 0);
  // With a driver, or where the spec declares it, it is a GPU like any other.
  CHECK(slurm_entry(facts, {"scheduler", "gpu"})["gpus"] == 1);
  CHECK(slurm_entry(facts, {"gpu-vendor"})["gpus"] == 1);
  CHECK(slurm_entry(facts, {"scheduler"}, 1)["gpus"] == 1);
  REQUIRE(
      machine.files.write("/proc/driver/nvidia/gpus/0000:41:00.0/information", "Model: \t\t NVIDIA T1000\n")
          .ok());
  facts = machine.facts();
  CHECK(compute_gpus(facts) == 1);
  CHECK(slurm_entry(facts, {"scheduler"})["gpus"] == 1);
}

FIELD_CASE("arm-sockets") {
  const FakeMachine machine;
  const CpuFacts cpus = cpu_facts(processors(machine, "arm-sockets"));
  CHECK(cpus.count == 144);
  CHECK(cpus.sockets == 2);
}

FIELD_CASE("die-core-id") {
  const FakeMachine machine;
  const Files files = processors(machine, "die-core-id");
  CHECK(cpu_facts(files).sockets == 2);
  CHECK(kernels::look_at_machine(files).physical_cores == 112);
  CHECK(kernels::look_at_machine(files, {0, 112}).physical_cores == 1);  // threads of one core
}

FIELD_CASE("efa-not-infiniband") {
  const Machine machine("efa-not-infiniband");
  agreed(machine);
  const auto ports = kernels::rdma_ports(machine.files);
  REQUIRE(ports.size() == 1);
  CHECK(ports[0].layer == LinkLayer::none);
  CHECK_FALSE(kernels::rdma::rail_problem(ports[0]).empty());
}

TEST_CASE("parts: names in the kernel log that sysfs no longer shows are judged by themselves", "[parts]") {
  const TempDir dir;
  const Files files(dir.path(""));
  for (const char* drive : {"sdb", "nvme0n1", "nvme1c1n1", "vda", "xvda", "mmcblk0", "pmem0", "dasda"}) {
    CAPTURE(drive);
    CHECK(is_drive_of_machine(files, drive));
  }
  for (const char* none : {"sr0", "fd0", "nbd3", "loop7", "zram0", "ram1", "dm-0", "md127", "mmcblk0boot0",
                           "mmcblk0rpmb", "rbd0", "mtdblock0", "zd16"}) {
    CAPTURE(none);
    CHECK_FALSE(is_drive_of_machine(files, none));
  }
}

TEST_CASE("parts: a device of each kind that is no port, by what sysfs has of it", "[parts]") {
  const TempDir dir;
  const Files files(dir.path(""));
  const auto why = [&](const std::string& name) -> std::optional<Why> {
    for (const auto& port : net_devices(files))
      if (port.name == name) return port.why;
    return {};
  };
  write_tree(files,
             "/sys/class/net/wlp2s0/device/vendor = 0x8086\n/sys/class/net/wlp2s0/phy80211/name = phy0\n"
             "/sys/class/net/eth1/device/vendor = 0x15b3\n/sys/class/net/eth0/device/class_id = netvsc\n"
             "/sys/class/net/eth1/master -> ../eth0\n"
             "/sys/class/net/thunderbolt0/device/key = network\n"
             "/sys/class/net/thunderbolt0/device/subsystem -> ../../../../bus/thunderbolt\n"
             "/sys/class/net/enx1/device/driver -> ../../../../bus/usb/drivers/r8152\n"
             "/sys/class/net/can0/device/vendor = 0x1\n/sys/class/net/can0/type = 280\n"
             "/sys/class/net/macvlan0/address = b8:ce:f6:00:00:01\n"
             "/sys/class/net/ens2/device/removable = removable\n");
  CHECK(why("wlp2s0") == Why::wireless);
  CHECK(why("eth0") == Why::real);
  CHECK(why("eth1") == Why::beneath_virtual);
  CHECK(why("thunderbolt0") == Why::thunderbolt);
  CHECK(why("enx1") == Why::on_usb);
  CHECK_FALSE(why("can0"));
  CHECK_FALSE(why("macvlan0"));
  CHECK(why("ens2") == Why::real);  // a card in a Thunderbolt case
}

TEST_CASE("parts: disks of a virtual machine count; boot areas, card readers and sticks do not", "[parts]") {
  const TempDir dir;
  const Files files(dir.path(""));
  const auto disk = [&](const std::string& name, const std::string& more = "") {
    write_tree(files,
               fmt::format("/sys/block/{0}/size = 4096\n/sys/block/{0}/device/x = y\n{1}", name, more));
  };
  disk("vda");
  disk("xvdb");
  disk("mmcblk0", "/sys/block/mmcblk0/device/type = MMC\n");
  disk("mmcblk0boot0");
  disk("mmcblk1", "/sys/block/mmcblk1/device/type = SD\n");
  disk("sda", "/sys/block/sda/size = 0\n");
  disk("pmem0");
  CHECK(real_drives(files) == std::vector<std::string>{"mmcblk0", "vda", "xvdb"});
}

}  // namespace muster::tests
