#include "agent/boot/ram_init.h"

#include <stdlib.h>

#include <filesystem>

#include "agent/boot/kernel_modules.h"
#include "tests/catch.h"

using namespace muster;

namespace {

struct Machine {
  std::string path;
  Files files;
  static std::string make() {
    char name[] = "/tmp/muster-ram-XXXXXX";
    return ::mkdtemp(name);
  }
  Machine() : path(make()), files(path) {}
  ~Machine() { std::filesystem::remove_all(path); }
  void put(const std::string& at, const std::string& content) { REQUIRE(files.write(at, content)); }
};

}  // namespace

TEST_CASE("kernel command line values") {
  const std::string line = "initrd=initrd quiet muster.mac=52:54:00:00:01:01 muster.ip=10.20.0.11/24";
  CHECK(cmdline_value(line, "muster.ip") == "10.20.0.11/24");
  CHECK(cmdline_value(line, "ip").empty());
  CHECK(cmdline_value(line, "quiet").empty());
}

TEST_CASE("the boot network is what the command line says, or what is wrong with it") {
  const auto network = ram_network("quiet muster.ip=10.20.0.200/24 muster.mac=52:54:00:00:01:09");
  REQUIRE(network);
  CHECK(network->cidr == "10.20.0.200/24");
  CHECK(network->mac == "52:54:00:00:01:09");
  const auto wrong = [](const std::string& line) {
    const auto none = ram_network(line);
    return none ? std::string("taken") : none.error().message;
  };
  CHECK(wrong("muster.ip=10.20.0.200/24").find("no muster.mac") != std::string::npos);
  CHECK(wrong("muster.mac=52:54:00:00:01:09").find("no muster.ip") != std::string::npos);
  // What iPXE leaves when it has no address to write in.
  CHECK(wrong("muster.ip=/24 muster.mac=52:54:00:00:01:09").find("'/24'") != std::string::npos);
  CHECK(wrong("muster.ip=10.20.0.200 muster.mac=52:54:00:00:01:09").find("with a prefix") !=
        std::string::npos);
  CHECK(wrong("muster.ip=10.20.0.200/99 muster.mac=52:54:00:00:01:09").find("with a prefix") !=
        std::string::npos);
}

TEST_CASE("the boot interface is the hardware port with the MAC, not a bridge that repeats it") {
  Machine m;
  m.put("/sys/class/net/br0/address", "52:54:00:00:01:01\n");
  CHECK(interface_with_mac(m.files, "52:54:00:00:01:01").error().code == Code::not_found);
  m.put("/sys/class/net/eth0/address", "52:54:00:00:01:01\n");
  m.put("/sys/class/net/eth0/device/vendor", "0x1af4\n");
  const auto name = interface_with_mac(m.files, "52-54-00-00-01-01");
  REQUIRE(name);
  CHECK(*name == "eth0");
}

TEST_CASE("a bad address is refused before anything is touched") {
  CHECK(configure_ipv4("nonexistent0", "10.20.0/24").error().code == Code::invalid);
  CHECK(configure_ipv4("nonexistent0", "10.20.0.1/33").error().code == Code::invalid);
  CHECK(configure_ipv4("a-name-that-is-too-long-for-linux", "10.20.0.1/24").error().code == Code::invalid);
}

TEST_CASE("drivers are loaded by what devices ask for, bus drivers first, each once") {
  Machine m;
  const std::string dir = "/usr/lib/modules/6.1";
  m.put(dir + "/modules.dep",
        "kernel/virtio_pci.ko: kernel/virtio.ko kernel/virtio_ring.ko\nkernel/virtio.ko: "
        "kernel/virtio_ring.ko\n"
        "kernel/virtio_ring.ko:\nkernel/virtio_net.ko: kernel/virtio.ko "
        "kernel/virtio_ring.ko\nkernel/other.ko:\n");
  m.put(dir + "/modules.alias",
        "alias pci:v00001AF4d*sv*sd*bc*sc*i* virtio_pci\nalias virtio:d00000001v* virtio_net\n");
  m.put("/sys/bus/pci/devices/0000:00:03.0/modalias",
        "pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00\n");
  std::vector<std::string> loaded;
  ModuleLoader loader(m.files, dir, [&](const std::string& path) -> Status {
    loaded.push_back(path.substr(path.find_last_of('/') + 1));
    // The bus driver makes the device behind it appear.
    if (loaded.back() == "virtio_pci.ko")
      m.put("/sys/bus/virtio/devices/virtio0/modalias", "virtio:d00000001v00001AF4\n");
    return Ok{};
  });
  CHECK(loader.load_for_devices().empty());
  CHECK(loaded == std::vector<std::string>{"virtio_ring.ko", "virtio.ko", "virtio_pci.ko", "virtio_net.ko"});
  CHECK(loader.load("built_in"));
  CHECK(loaded.size() == 4);
}

TEST_CASE("a driver that fails is reported and does not stop the others") {
  Machine m;
  m.put("/lib/modules.dep", "kernel/a.ko:\nkernel/b.ko:\n");
  m.put("/lib/modules.alias", "alias pci:A* a\nalias pci:B* b\n");
  m.put("/sys/bus/pci/devices/1/modalias", "pci:A1\n");
  m.put("/sys/bus/pci/devices/2/modalias", "pci:B1\n");
  std::vector<std::string> loaded;
  ModuleLoader loader(m.files, "/lib", [&](const std::string& path) -> Status {
    if (path.find("a.ko") != std::string::npos) return fail(Code::failed, "a.ko: broken");
    loaded.push_back(path);
    return Ok{};
  });
  CHECK(loader.load_for_devices() == std::vector<std::string>{"a.ko: broken"});
  CHECK(loaded.size() == 1);
}
