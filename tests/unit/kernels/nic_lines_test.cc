// Lines of the kernel's log about a port whose transmit queue was not emptied in time.
#include "kernels/counters/log_lines.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::kernels;

namespace {

struct Ports {
  TempDir dir = {};
  Files files{dir.path("")};

  void add(const std::string& name, const std::string& device) const {
    const std::string folder = "/sys/class/net/" + name;
    REQUIRE(files.write("/sys/devices/" + device + "/vendor", "0x8086\n").ok());
    REQUIRE(files.write(folder + "/type", "1\n").ok());
    REQUIRE(files.write(folder + "/address", "02:00:00:00:00:01\n").ok());
    REQUIRE(files.symlink("../../../devices/" + device, folder + "/device").ok());
  }
};

}  // namespace

TEST_CASE("a transmit queue that timed out is a fault of its port, in the forms of each kernel",
          "[counters]") {
  const Ports ports;
  ports.add("ens1f0np0", "pci0000:80/0000:b1:00.0");
  ports.add("eth0", "virtio0");
  NicLines lines(ports.files);
  const auto fault = [&](const std::string& text) {
    const NicLine line = lines.read(text);
    CHECK(line.fault == !line.address.empty());
    return line.address;
  };
  CHECK(fault("NETDEV WATCHDOG: ens1f0np0 (ice): transmit queue 14 timed out") == "0000:b1:00.0");
  CHECK(fault("NETDEV WATCHDOG: ens1f0np0 (ice): transmit queue 14 timed out 5016 ms") == "0000:b1:00.0");
  CHECK(fault("ice 0000:b1:00.0 ens1f0np0: NETDEV WATCHDOG: CPU: 38: transmit queue 14 timed out 8069 ms") ==
        "0000:b1:00.0");
  CHECK(fault("virtio_net virtio0 eth0: NETDEV WATCHDOG: CPU: 1: transmit queue 0 timed out 5500 ms") ==
        "eth0");
  // No port of this machine: a tunnel, a bridge, the interface of a container.
  CHECK(fault("NETDEV WATCHDOG: tun0 (tun): transmit queue 0 timed out").empty());
  // Programs that crash, by their names and their libraries' names.
  const std::string crash = "[4711]: segfault at 0 ip 00007f11 sp 00007ffc error 4 in ";
  for (const char* name : {"NETDEV WATCHDOG", "a b eth0: NETDE", "ice b1 eth0: NE"})
    for (const char* library : {"NETDEV WATCHDOG: eth0 (ice): transmit queue 1 timed out",
                                "ice 1 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 1 timed out 9 ms"})
      CHECK(fault(name + crash + library).empty());
}
