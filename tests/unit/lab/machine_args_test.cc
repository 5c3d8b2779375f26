#include <algorithm>
#include <set>

#include "lab/apt_proxy.h"
#include "lab/controller.h"
#include "lab/lab_network.h"
#include "lab/qemu_args.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

LabNode node() {
  LabNode n;
  n.name = "node02";
  n.number = 2;
  n.mac = "52:54:00:20:00:02";
  n.bmc_address = "10.20.1.12";
  n.uuid = "00000000-0000-4000-8000-000000000002";
  n.serial = "LAB02";
  n.drives = {{"os", 1 << 20, "OS1", true}, {"fast1", 1 << 20, "F1", false}, {"fast2", 1 << 20, "F2", false}};
  return n;
}

LabDir folder() { return LabDir("/tmp/somelab"); }

// Values of one flag, in order.
std::vector<std::string> values(const std::vector<std::string>& args, const std::string& flag) {
  std::vector<std::string> out;
  for (size_t i = 0; i + 1 < args.size(); ++i)
    if (args[i] == flag) out.push_back(args[i + 1]);
  return out;
}

std::string device(const std::vector<std::string>& args, const std::string& id) {
  for (const auto& d : values(args, "-device"))
    if (d.find("id=" + id + ",") != std::string::npos) return d;
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a machine with one port is started with the very arguments that it always was") {
  const std::vector<std::string> want = {
      "qemu-system-x86_64",
      "-name",
      "muster-lab-node02",
      "-machine",
      "q35",
      "-accel",
      "tcg,thread=multi,tb-size=256",
      "-cpu",
      "qemu64,-cx16",
      "-smp",
      "1,maxcpus=2",  // barriers: see qemu_args.cc
      "-m",
      "1024",
      "-display",
      "none",
      "-vga",
      "none",
      "-nodefaults",
      "-uuid",
      "00000000-0000-4000-8000-000000000002",
      "-smbios",
      "type=1,manufacturer=QEMU,product=muster lab machine (SIMULATED),serial=LAB02",
      "-drive",
      "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
      "-drive",
      "if=pflash,format=raw,file=/tmp/somelab/nodes/node02/vars.fd",
      "-chardev",
      "socket,id=console,path=/tmp/somelab/nodes/node02/console.sock,server=on,wait=off,"
      "logfile=/tmp/somelab/nodes/node02/console.log,logappend=on",
      "-serial",
      "chardev:console",
      "-qmp",
      "unix:/tmp/somelab/nodes/node02/qmp.sock,server=on,wait=off",
      "-device",
      "intel-iommu",
      "-netdev",
      "tap,id=n0,ifname=tap2,script=no,downscript=no",
      "-device",
      "virtio-net-pci,id=net0,netdev=n0,mac=52:54:00:20:00:02,bootindex=2",
      "-device",
      "virtio-rng-pci",
      "-drive",
      "file=/tmp/somelab/nodes/node02/os.img,if=none,id=os,format=raw,cache=unsafe,discard=unmap",
      "-device",
      "nvme,id=nvme-os,drive=os,serial=OS1,bootindex=1",
      "-drive",
      "file=/tmp/somelab/nodes/node02/fast1.img,if=none,id=fast1,format=raw,cache=unsafe,discard=unmap",
      "-device",
      "pcie-root-port,id=rp1,chassis=1,slot=1",
      "-device",
      "nvme,id=nvme-fast1,drive=fast1,serial=F1,bus=rp1",
      "-drive",
      "file=/tmp/somelab/nodes/node02/fast2.img,if=none,id=fast2,format=raw,cache=unsafe,discard=unmap",
      "-device",
      "pcie-root-port,id=rp2,chassis=2,slot=2",
      "-device",
      "nvme,id=nvme-fast2,drive=fast2,serial=F2,bus=rp2"};
  CHECK(qemu_args(folder(), node(), {}, BootFirst::disk) == want);
  CHECK_FALSE(has_dark_ports(node()));
}

TEST_CASE("further ports have jumbo frames, root ports before the drives', and nothing to boot from") {
  auto n = node();
  n.ports = make_ports(2, true, 2);
  for (auto first : {BootFirst::disk, BootFirst::network}) {
    const auto args = qemu_args(folder(), n, {}, first);
    for (const auto& port : n.ports) {
      const auto nic = device(args, nic_device_id(port.network));
      CHECK(has(nic, ",mac=" + port.mac + ","));
      CHECK(has(nic, ",host_mtu=9000,"));
      CHECK(has(nic, ",romfile=,"));
      CHECK_FALSE(has(nic, "bootindex"));
      CHECK(has(nic, ",bus=np-" + port.network));
      CHECK(has(device(args, "np-" + port.network), "pcie-root-port,"));
    }
    const auto taps = values(args, "-netdev");
    CHECK(taps == std::vector<std::string>{"tap,id=n0,ifname=tap2,script=no,downscript=no",
                                           "tap,id=n-storage,ifname=tap2-storage,script=no,downscript=no",
                                           "tap,id=n-rail0,ifname=tap2-rail0,script=no,downscript=no",
                                           "tap,id=n-rail1,ifname=tap2-rail1,script=no,downscript=no"});
    // A further drive comes after them: bus numbers, and so the guest's names, stay.
    const auto devices = values(args, "-device");
    const auto place = [&](const std::string& what) {
      return std::find_if(devices.begin(), devices.end(), [&](auto& d) { return has(d, what); }) -
             devices.begin();
    };
    CHECK(place("id=np-rail1,") < place("id=nvme-os,"));
    CHECK(place("id=np-rail1,") < place("id=rp1,"));
  }
  std::set<std::string> slots;
  for (const auto& d : values(qemu_args(folder(), n, {}, BootFirst::disk), "-device"))
    if (has(d, "pcie-root-port,")) CHECK(slots.insert(d.substr(d.find("chassis="))).second);
  CHECK(slots.size() == 5);
  for (const auto& write : boot_index_writes(n, BootFirst::network)) CHECK_FALSE(has(write.device, "rail"));
}

TEST_CASE("a port without cable has its card, and makes the machine wait for its link to be taken down") {
  auto n = node();
  n.ports = make_ports(2, false, 2);
  const auto cabled = qemu_args(folder(), n, {}, BootFirst::disk);
  CHECK_FALSE(has_dark_ports(n));
  n.ports[1].cabled = false;
  CHECK(has_dark_ports(n));
  CHECK(qemu_args(folder(), n, {}, BootFirst::disk) == cabled);
}

TEST_CASE("a port that counts has another adapter in the same place") {
  auto n = node();
  n.ports = make_ports(2, false, 2);
  const auto before = qemu_args(folder(), n, {}, BootFirst::disk);
  n.ports[1].counting = true;
  const auto args = qemu_args(folder(), n, {}, BootFirst::disk);
  const auto nic = device(args, nic_device_id("rail1"));
  CHECK(nic.find("e1000e,") == 0);
  for (const std::string part :
       {",netdev=n-rail1,", ",mac=52:54:00:23:00:02,", ",romfile=,", ",bus=np-rail1"})
    CHECK(has(nic, part));
  CHECK_FALSE(has(nic, "host_mtu"));
  CHECK(device(args, nic_device_id("rail0")).find("virtio-net-pci,") == 0);
  REQUIRE(args.size() == before.size());
  size_t others = 0;
  for (size_t i = 0; i < args.size(); ++i) others += args[i] != before[i] ? 1 : 0;
  CHECK(others == 1);
}

TEST_CASE("data drives sit behind root ports with ACS, the boot drive on the root bus") {
  const auto args = qemu_args(folder(), node(), {}, BootFirst::disk);
  CHECK_FALSE(has(device(args, "nvme-os"), "bus="));
  CHECK(has(device(args, "nvme-fast1"), "bus=rp1"));
  CHECK(has(device(args, "nvme-fast2"), "bus=rp2"));
  const auto devices = values(args, "-device");
  CHECK(std::count_if(devices.begin(), devices.end(), [](auto& d) { return has(d, "pcie-root-port,"); }) ==
        2);
  CHECK(std::find(devices.begin(), devices.end(), "intel-iommu") != devices.end());
  CHECK(has(device(args, "nvme-fast2"), "serial=F2"));
}

TEST_CASE("the boot order is one of NIC and boot drive, never of a data drive") {
  const auto disk = qemu_args(folder(), node(), {}, BootFirst::disk);
  CHECK(has(device(disk, "nvme-os"), "bootindex=1"));
  CHECK(has(device(disk, "net0"), "bootindex=2"));
  const auto network = qemu_args(folder(), node(), {}, BootFirst::network);
  CHECK(has(device(network, "nvme-os"), "bootindex=2"));
  CHECK(has(device(network, "net0"), "bootindex=1"));
  CHECK_FALSE(has(device(network, "nvme-fast1"), "bootindex"));
}

TEST_CASE("boot indexes are rewritten without two devices ever holding the same one") {
  for (auto from : {BootFirst::disk, BootFirst::network}) {
    for (auto to : {BootFirst::disk, BootFirst::network}) {
      std::map<std::string, int> held;
      for (const auto& write : boot_index_writes(node(), from)) held[write.device] = write.index;
      for (const auto& write : boot_index_writes(node(), to)) {
        for (const auto& [other, index] : held)
          if (other != write.device) CHECK(index != write.index);
        held[write.device] = write.index;
      }
      CHECK(held[to == BootFirst::network ? "net0" : "nvme-os"] == 1);
    }
  }
}

TEST_CASE("guests get the CPU that is sound under each accelerator") {
  CHECK(values(qemu_args(folder(), node(), {}, BootFirst::disk), "-cpu").at(0) == "qemu64,-cx16");
  CHECK(has(values(qemu_args(folder(), node(), {}, BootFirst::disk), "-accel").at(0),
            "tcg,thread=multi,tb-size=256"));
  QemuHost host;
  host.accel = Accel::kvm;
  CHECK(values(qemu_args(folder(), node(), host, BootFirst::disk), "-accel").at(0) == "kvm");
}

TEST_CASE("everything a machine opens lies in the lab's folder, which also marks its process") {
  const auto args = qemu_args(folder(), node(), {}, BootFirst::disk);
  int paths = 0;
  for (const auto& arg : args) {
    for (const auto* key : {"file=", "path=", "logfile=", "unix:"}) {
      const auto at = arg.find(key);
      if (at == std::string::npos || has(arg, "readonly=on")) continue;
      CHECK(arg.compare(at + std::string(key).size(), 25, "/tmp/somelab/nodes/node02") == 0);
      ++paths;
    }
  }
  CHECK(paths >= 7);
}

TEST_CASE("a lab folder must be short, plain and not the root") {
  CHECK(LabDir::at("/tmp/x/").value().root() == "/tmp/x");
  CHECK(LabDir::at("/").error().code == Code::invalid);
  CHECK(LabDir::at("/tmp/with space").error().code == Code::invalid);
  CHECK(LabDir::at("/" + std::string(80, 'x')).error().code == Code::invalid);
}

TEST_CASE("network commands stay inside the named namespace") {
  LabSpec spec;
  spec.cluster = "t";
  spec.provisioning_cidr = "10.20.0.0/24";
  spec.controller = "10.20.0.1";
  auto commands = bridge_commands(spec, "muster-t");
  const auto more = node_commands(node(), "muster-t");
  commands.insert(commands.end(), more.begin(), more.end());
  for (const auto& argv : commands) {
    REQUIRE(argv.size() > 3);
    CHECK((argv[0] == "ip" && argv[1] == "-n" && argv[2] == "muster-t"));
  }
  CHECK(std::find(more.back().begin(), more.back().end(), "10.20.1.12/32") != more.back().end());
}

TEST_CASE(
    "each network beside the provisioning one is a bridge of its own with jumbo frames and no address") {
  LabSpec spec;
  spec.cluster = "t";
  spec.provisioning_cidr = "10.20.0.0/24";
  spec.controller = "10.20.0.1";
  const auto plain = bridge_commands(spec, "muster-t");
  CHECK(node_commands(node(), "muster-t").size() == 4);
  auto with = node();
  with.ports = make_ports(2, true, 1);
  spec.nodes = {with};
  const auto lines = [](const std::vector<Argv>& commands) {
    std::vector<std::string> out;
    for (const auto& argv : commands) {
      CHECK((argv[0] == "ip" && argv[1] == "-n" && argv[2] == "muster-t"));
      std::string line;
      for (size_t i = 3; i < argv.size(); ++i) line += (i == 3 ? "" : " ") + argv[i];
      out.push_back(line);
    }
    return out;
  };
  auto bridges = lines(bridge_commands(spec, "muster-t"));
  CHECK(std::equal(plain.begin(), plain.end(), bridge_commands(spec, "muster-t").begin()));
  bridges.erase(bridges.begin(), bridges.begin() + static_cast<long>(plain.size()));
  CHECK(bridges == std::vector<std::string>{
                       "link add br-storage type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                       "link set br-storage mtu 9000 addrgenmode none", "link set br-storage up",
                       "link add br-rail0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                       "link set br-rail0 mtu 9000 addrgenmode none", "link set br-rail0 up"});
  auto taps = lines(node_commands(with, "muster-t"));
  taps.erase(taps.begin(), taps.begin() + 8);
  CHECK(taps == std::vector<std::string>{"tuntap add tap2-rail0 mode tap", "link set tap2-rail0 mtu 9000",
                                         "link set tap2-rail0 master br-rail0", "link set tap2-rail0 up"});
  const auto gone = lines(node_removal_commands(with, "muster-t"));
  CHECK(std::count(gone.begin(), gone.end(), "link del tap2-rail0") == 1);
  CHECK(std::count(gone.begin(), gone.end(), "link del tap2-storage") == 1);
}

TEST_CASE("the package proxy serves the host's plain-HTTP mirrors, each once, the first as default") {
  const auto hosts = mirror_hosts(
      "http://deb.example.org/debian/\nhttps://tls.example.org/x/\nhttp://deb.example.org/debian-security/\n"
      "http://other.example.org/y\n");
  REQUIRE(hosts == std::vector<std::string>{"deb.example.org", "other.example.org"});
  const auto config = host_side_config(folder(), hosts);
  CHECK(has(config, "listen unix:/tmp/somelab/apt/apt.sock default_server;\n  server_name deb.example.org"));
  CHECK(has(config, "proxy_pass http://other.example.org;"));
  LabSpec spec;
  spec.controller = "10.20.0.1";
  CHECK(has(lab_side_config(folder(), spec), "listen 10.20.0.1:3142;"));
}

TEST_CASE("the lab's musterd is a lab's by its command line, and by no variable") {
  LabSpec spec;
  spec.controller = "10.20.0.1";
  const auto arguments = controller_arguments(LabDir("/tmp/somelab"), spec, "/usr/sbin/musterd");
  CHECK(arguments.front() == "/usr/sbin/musterd");
  CHECK(std::count(arguments.begin(), arguments.end(), "--lab") == 1);
  CHECK(controller_environment(spec, true, 2596135).count("MUSTER_LAB") == 0);
}

TEST_CASE("the lab's machines boot without the timer check that a busy host makes them fail, and can panic") {
  LabSpec spec;
  spec.controller = "10.20.0.1";
  const auto alone = controller_environment(spec, false, 2596135);
  CHECK(alone.at("MUSTER_KERNEL_OPTIONS") ==
        "no_timer_check tsc=reliable unknown_nmi_panic norandmaps tsc_early_khz=2596135");
  CHECK(alone.count("MUSTER_APT_PROXY") == 0);
  CHECK(controller_environment(spec, true, 2596135).at("MUSTER_APT_PROXY") == "http://10.20.0.1:3142");
}
