// What is decided of a drive by its name or its controller alone.
#include "host/real_drives.h"

#include <string>
#include <tuple>

#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using tests::FakeMachine;

TEST_CASE("drives: media and RAM disks are not searched for file systems, all other devices are", "[parts]") {
  for (const std::string name : {"sr0", "fd0", "nbd3", "ram1", "zram0"}) CHECK(is_never_searched(name));
  for (const std::string name : {"sda", "sda1", "nvme0n1p2", "vda", "mmcblk0p1", "mmcblk0boot0", "md127",
                                 "dm-0", "loop0", "rbd0", "pmem0"})
    CHECK_FALSE(is_never_searched(name));
}

TEST_CASE("drives: an NVMe controller over a network is another host's", "[parts]") {
  const FakeMachine m;
  for (const auto& [controller, transport, local] :
       {std::tuple("nvme0", "pcie", true), std::tuple("nvme1", "apple-nvme", true),
        std::tuple("nvme2", "tcp", false), std::tuple("nvme3", "rdma", false)}) {
    m.put(std::string("/sys/class/nvme/") + controller + "/transport", std::string(transport) + "\n");
    CHECK(is_local_nvme(m.files(), controller) == local);
  }
  CHECK(is_local_nvme(m.files(), "nvme9"));  // removed after it failed
}
