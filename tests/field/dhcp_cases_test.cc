// What machines get when they boot over the network.
#include <filesystem>

#include "controller/boot/boot.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"

namespace muster::tests {

namespace fs = std::filesystem;

namespace {

BootNetwork two_nodes() {
  BootNetwork out;
  out.interface = "eth1";
  out.address = "10.20.0.1";
  out.cidr = "10.20.0.0/24";
  out.run_dir = "/run/muster";
  out.hosts = {{"52:54:00:00:00:01", "10.20.0.11", "node01"}, {"52:54:00:00:00:02", "10.20.0.12", "node02"}};
  return out;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

FIELD_CASE("ipxe-exit-zero") {
  BootDecision ram;
  ram.ram = true;
  ram.base_url = "http://10.20.0.1:7480";
  ram.url = "https://10.20.0.1:7443";
  ram.pin = ram.token = ram.node = "x";
  for (const std::string& script :
       {std::string(kDiskScript), std::string(kChainScript), ipxe_script({}), ipxe_script(ram)}) {
    CAPTURE(script);
    REQUIRE(script.find("exit") != std::string::npos);
    for (size_t at = 0; (at = script.find("exit", at)) != std::string::npos; ++at)
      CHECK(script.compare(at, 7, "exit 1\n") == 0);
  }
  // There is no other script: each place that hands one out takes it from here.
  for (const char* folder : {"controller", "lab", "cli"})
    for (const auto& file : fs::recursive_directory_iterator(source_dir() + "/" + folder))
      if (file.path().extension() == ".cc" && file.path().filename() != "boot.cc") {
        CAPTURE(file.path().string());
        CHECK(text_of(file.path()).find("#!ipxe") == std::string::npos);
      }
}

FIELD_CASE("dhcp-lease-of-old-mac") {
  const std::string leases =
      "1780000000 52:54:00:00:00:77 10.20.0.11 node01 *\n"  // the port that was replaced
      "1780000000 52:54:00:00:00:02 10.20.0.12 node02 01:52:54:00:00:00:02\n"
      "1780000000 52:54:00:00:00:88 10.20.0.200 * *\n"  // a machine that no spec declares
      "duid 00:01:00:01:2c:aa:bb:cc:52:54:00:00:00:0a\n";
  CHECK(kept_leases(leases, two_nodes().hosts) ==
        "1780000000 52:54:00:00:00:02 10.20.0.12 node02 01:52:54:00:00:00:02\n"
        "1780000000 52:54:00:00:00:88 10.20.0.200 * *\n"
        "duid 00:01:00:01:2c:aa:bb:cc:52:54:00:00:00:0a\n");
  // Two that were declared the wrong way round.
  CHECK(kept_leases("1 52:54:00:00:00:02 10.20.0.11 node01 *\n1 52:54:00:00:00:01 10.20.0.12 node02 *\n",
                    two_nodes().hosts)
            .empty());
  std::vector<BootHost> written_large = {{"52:54:00:AA:00:01", "10.20.0.11", "node01"}};
  CHECK(kept_leases("1 52:54:00:aa:00:01 10.20.0.11 node01 *\n", written_large).size() > 10);
}

FIELD_CASE("dhcp-nak-adopted") {
  BootNetwork network = two_nodes();
  const auto closed = dnsmasq_config(network);
  REQUIRE(closed.ok());
  CHECK(has_line(*closed, "dhcp-ignore=tag:!known"));  // try.sh shows what dnsmasq makes of it
  network.unknown_machines = true;
  const auto open = dnsmasq_config(network);
  REQUIRE(open.ok());
  CHECK_FALSE(has_line(*open, "dhcp-authoritative"));
  CHECK_FALSE(has_line(*open, "dhcp-ignore=tag:!known"));
}

}  // namespace muster::tests
