// What the RAM system has for the network ports of machines.
#include <algorithm>

#include "controller/image/ram.h"
#include "controller/image/ram_modules.h"
#include "tests/field/case.h"

namespace muster::tests {

FIELD_CASE("ram-drivers") {
  const std::string dep =
      "kernel/drivers/net/ethernet/realtek/r8169.ko: kernel/drivers/net/phy/libphy.ko\n"
      "kernel/drivers/net/phy/realtek.ko: kernel/drivers/net/phy/libphy.ko\n"
      "kernel/drivers/net/phy/libphy.ko:\n"
      "kernel/crypto/a.ko:\nkernel/crypto/b.ko:\n";
  const std::string softdep =
      "# Soft dependencies extracted from modules themselves.\nsoftdep r8169 pre: realtek\n"
      "softdep a pre: b\nsoftdep b post: a\nsoftdep no_such pre: realtek\n";
  const ModuleIndex index(dep, softdep);
  const auto paths = index.closure({"r8169"});
  const auto at = [&](const std::string& end) {
    return std::find_if(paths.begin(), paths.end(),
                        [&](const std::string& path) {
                          return path.size() >= end.size() &&
                                 path.compare(path.size() - end.size(), end.size(), end) == 0;
                        }) -
           paths.begin();
  };
  REQUIRE(paths.size() == 3);
  CHECK(at("libphy.ko") < at("realtek.ko"));
  CHECK(at("realtek.ko") < at("r8169.ko"));
  // modprobe reads it from there.
  const std::string lines = index.dep_lines(paths);
  CHECK(lines.substr(0, lines.find("r8169.ko:")).size() < lines.size());
  CHECK(lines.find("phy/realtek.ko", lines.find("r8169.ko:")) != std::string::npos);
  // Two that name each other are no circle.
  CHECK(index.closure({"a", "b"}).size() == 2);
  // The cards that recipes bring firmware for, and those that hosters and makers of servers build in.
  const auto drivers = ram_network_drivers();
  for (const char* one :
       {"bnx2x", "qlcnic", "enic", "atlantic", "amd_xgbe", "r8169", "realtek", "mlx5_core", "ice"}) {
    CAPTURE(one);
    CHECK(std::count(drivers.begin(), drivers.end(), one) == 1);
  }
}

}  // namespace muster::tests
