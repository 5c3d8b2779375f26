// The vital product data of a function is read once, and never taken for that of another.
#include "host/vital_data.h"

#include <thread>
#include <vector>

#include "host/rdma_devices.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/sys_tree.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using tests::FakeMachine;

namespace {

const std::string kDevice = "/sys/bus/pci/devices/0000:cb:00.0";

// An InfiniBand adapter with this vital product data.
void add_adapter(const FakeMachine& m, const std::string& vital) {
  m.put("/sys/devices/pci0000:00/0000:cb:00.0/vpd", vital);
  if (m.files().exists(kDevice)) return;
  tests::write_tree(m.files(),
                    R"(/sys/bus/pci/devices/0000:cb:00.0 -> ../../../devices/pci0000:00/0000:cb:00.0
/sys/devices/pci0000:00/0000:cb:00.0/vendor = 0x15b3
/sys/devices/pci0000:00/0000:cb:00.0/class = 0x020700
/sys/class/infiniband/mlx5_0/device -> ../../../devices/pci0000:00/0000:cb:00.0
/sys/class/infiniband/mlx5_0/ports/1/link_layer = InfiniBand)");
}

}  // namespace

TEST_CASE("vital product data is read once for each function, by whichever way it is reached", "[parts]") {
  FakeMachine m;
  add_adapter(m, "PN=A");
  VitalData vital;
  for (const std::string& way : {kDevice, std::string("/sys/class/infiniband/mlx5_0/device"), kDevice})
    CHECK(vital.of(m.files(), way) == "PN=A");
  CHECK(vital.reads() == 1);
  CHECK(vital.of(m.files(), "/sys/bus/pci/devices/0000:99:00.0").empty());
  CHECK(vital.reads() == 1);
}

TEST_CASE("vital product data: another adapter in the same place, and another tree, are read", "[parts]") {
  FakeMachine m, other;
  add_adapter(m, "PN=A");
  add_adapter(other, "PN=C");
  VitalData vital;
  CHECK(vital.of(m.files(), kDevice) == "PN=A");
  CHECK(vital.of(other.files(), kDevice) == "PN=C");
  // The old file is there until the new one is: they cannot have one inode.
  REQUIRE(m.files().write("/sys/devices/pci0000:00/0000:cb:00.0/vpd", "PN=B").ok());
  CHECK(vital.of(m.files(), kDevice) == "PN=B");
  CHECK(vital.reads() == 3);
}

TEST_CASE("vital product data: what could not be read is read again", "[parts]") {
  FakeMachine m;
  VitalData vital;
  m.put(kDevice + "/vpd/not-a-file", "");
  CHECK(vital.of(m.files(), kDevice).empty());
  CHECK(vital.of(m.files(), kDevice).empty());
  CHECK(vital.reads() == 2);
}

TEST_CASE("vital product data: threads share it", "[parts]") {
  FakeMachine m;
  add_adapter(m, "PN=A");
  VitalData vital;
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> threads;
    for (auto& one : seen) threads.emplace_back([&] { one = vital.of(m.files(), kDevice); });
  }
  CHECK(seen == std::vector<std::string>(8, "PN=A"));
  CHECK(vital.reads() == 1);
}

TEST_CASE("the list of rails of a machine in a folder of its own is never an earlier one's", "[parts]") {
  FakeMachine m;
  for (const std::string vital : {"SMDL=SW_MNG", "SMDL=ADAPTR", "SMDL=SW_MNG"}) {
    add_adapter(m, vital);
    REQUIRE(rdma_devices(m.files()).size() == 1);
    CHECK((rdma_devices(m.files())[0].why == Why::manages_nvswitches) == (vital == "SMDL=SW_MNG"));
    CHECK(rdma_parts(m.files()).empty() == (vital == "SMDL=SW_MNG"));
  }
}
