#include "agent/image/boot_network.h"

#include "tests/catch.h"

using namespace muster;

namespace {

wire::ImageJob job() {
  wire::ImageJob job;
  job.address_cidr = "172.16.3.7/22";
  job.gateway = "172.16.0.1";
  job.mac = "b8:ce:f6:00:00:01";
  return job;
}
bool has(const std::map<std::string, std::string>& files, const std::string& name, const std::string& line) {
  const auto found = files.find("/etc/systemd/network/" + name);
  return found != files.end() && ("\n" + found->second).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("a new system has its address on the declared port", "[kexec][image]") {
  const auto files = network_files(job(), {"b8:ce:f6:00:00:01", "172.16.3.7/22"});
  CHECK(files.size() == 1);
  CHECK(has(files, "10-muster.network", "MACAddress=b8:ce:f6:00:00:01"));
  CHECK(has(files, "10-muster.network", "Address=172.16.3.7/22"));
  CHECK(has(files, "10-muster.network", "Gateway=172.16.0.1"));
  CHECK(files == network_files(job(), {}));
}

TEST_CASE("bond and VLAN over which it is installed are the new system's, too", "[kexec][image]") {
  RamNetwork way{"b8:ce:f6:00:00:01", "172.16.3.7/22"};
  way.vlan = 120;
  SECTION("a VLAN on a port") {
    const auto files = network_files(job(), way);
    CHECK(has(files, "10-muster-vlan.netdev", "Id=120"));
    CHECK(has(files, "09-muster-tagged.network", "PermanentMACAddress=b8:ce:f6:00:00:01"));
    CHECK(has(files, "09-muster-tagged.network", "VLAN=vlan120"));
    CHECK(has(files, "10-muster.network", "Name=vlan120"));
    CHECK(has(files, "10-muster.network", "Address=172.16.3.7/22"));
    CHECK(files.size() == 3);
  }
  SECTION("a VLAN on a bond") {
    way.bond_mode = "802.3ad";
    way.ports = {"b8:ce:f6:00:00:01", "b8:ce:f6:00:00:02"};
    way.mtu = 9000;
    const auto files = network_files(job(), way);
    CHECK(has(files, "10-muster-bond.netdev", "Mode=802.3ad"));
    CHECK(has(files, "09-muster-port-0.network", "PermanentMACAddress=b8:ce:f6:00:00:01"));
    CHECK(has(files, "09-muster-port-1.network", "PermanentMACAddress=b8:ce:f6:00:00:02"));
    CHECK(has(files, "09-muster-port-1.network", "Bond=bond0"));
    CHECK(has(files, "09-muster-tagged.network", "Name=bond0"));
    CHECK(has(files, "10-muster.network", "Name=vlan120"));
    for (const auto& [name, text] : files)
      if (name.find(".network") != std::string::npos) CHECK(text.find("MTUBytes=9000") != std::string::npos);
  }
}
