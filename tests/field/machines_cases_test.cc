// Which machine is which: addresses, UUIDs, names, and what a spec may say of them.
#include <algorithm>

#include <fmt/format.h>

#include "base/kernel_line.h"
#include "base/machine_uuid.h"
#include "base/port_address.h"
#include "controller/boot/boot.h"
#include "controller/bringup/own_machine_here.h"
#include "controller/plan/own_machine.h"
#include "controller/spec/spec.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

struct Written {
  std::string name = "node01", mac = "\"52:54:00:00:00:01\"", vars = "{}", node_vars = "{}";
};
ParsedSpec spec_with(const Written& written) {
  return parse_spec(fmt::format(
      "cluster: gaggle\n"
      "network: {{ provisioning: {{ cidr: 10.20.0.0/24, dhcp: managed }}, bmc: {{ cidr: 10.20.1.0/24 }} }}\n"
      "vars: {}\n"
      "images: {{ node: {{ recipe: debian-12, kernel: cloud }} }}\n"
      "nodes:\n"
      "  - {{ name: \"{}\", role: cpu, power: {{ driver: redfish, address: 10.20.1.11, secret: bmc }}, mac: "
      "{},\n"
      "      address: 10.20.0.11, image: node, vars: {},\n"
      "      disks: {{ os: {{ match: {{ serial: A1 }}, policy: format-if-blank }} }} }}\n"
      "roles: {{ cpu: {{ playbooks: [ base ] }} }}\n",
      written.vars, written.name, written.mac, written.node_vars));
}
// The path of the first error; "" for a valid spec.
std::string refused_at(const Written& written) {
  const auto parsed = spec_with(written);
  return parsed.errors.empty() ? "" : parsed.errors[0].path;
}

}  // namespace

FIELD_CASE("bmc-usb-nic-mac") {
  const TempDir sys;
  const Files files(sys.path(""));
  const std::string port = "b8:ce:f6:00:00:01", bmc = "be:3a:f2:b6:05:9f", sold_twice = "00:e0:4c:53:44:58";
  const auto put_port = [&](const std::string& name, const std::string& mac, const std::string& bus) {
    REQUIRE(files.write("/class/net/" + name + "/address", mac + "\n").ok());
    REQUIRE(files.make_directories("/class/net/" + name + "/device").ok());
    std::filesystem::create_symlink("../../../../bus/" + bus,
                                    sys.path("class/net/" + name + "/device/subsystem"));
  };
  put_port("eno1", "b8:ce:f6:00:0c:01", "pci");
  put_port("usb0", bmc, "usb");
  put_port("enx0", sold_twice, "usb");
  put_port("eno2", "00:00:00:00:00:00", "pci");
  put_port("eno1v0", "02:aa:00:00:00:07", "pci");
  REQUIRE(files.make_directories("/class/net/eno1v0/device/physfn").ok());
  OwnMachine own = read_own_machine(sys.path(""), sys.path("no-proc"));
  CHECK(own.macs == std::set<std::string>{"b8:ce:f6:00:0c:01"});

  HardwareFacts facts;
  facts.nics.resize(2);
  facts.nics[0].mac = port;
  facts.nics[1].mac = bmc;
  NodeSpec node;
  node.mac = port;
  CHECK(sign_of_own_machine(own, node, "", &facts).empty());
  // Also where the controller was not told the bus.
  own.macs.insert({bmc, sold_twice});
  CHECK(sign_of_own_machine(own, node, "", &facts).empty());
  facts.nics[1].mac = sold_twice;
  CHECK(sign_of_own_machine(own, node, "", &facts).empty());
  // A port that is the controller's indeed, and an address that the spec declares, as a lab's.
  facts.nics[1].mac = "B8:CE:F6:00:0C:01";
  CHECK_FALSE(sign_of_own_machine(own, node, "", &facts).empty());
  own.macs = {"52:54:00:20:00:09"};
  node.mac = "52:54:00:20:00:09";
  CHECK_FALSE(sign_of_own_machine(own, node, "", nullptr).empty());
}

FIELD_CASE("redfish-placeholder-uuid") {
  for (const char* uuid : {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "",
                           "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
                           "12345678-1234-5678-90AB-CDDEEFAABBCC", "00000000-0000-0000-0000-000000000001",
                           "4c4c4544-0000-2010-8020-80c04f202020"}) {
    CAPTURE(uuid);
    CHECK_FALSE(names_one_machine(uuid));
  }
  for (const char* uuid : {"4c4c4544-0042-3510-8054-b8c04f4d3232", "00000000-0000-0000-0000-ac1f6b0a1b2c",
                           "6b1c0000-0000-4000-8000-000000000001"}) {
    CAPTURE(uuid);
    CHECK(names_one_machine(uuid));
  }
}

FIELD_CASE("zero-mac") {
  CHECK(refused_at({}).empty());
  CHECK(refused_at({.mac = "\"00:00:00:00:00:00\""}) == "nodes[0].mac");
  CHECK(refused_at({.mac = "\"01:00:5e:00:00:01\""}) == "nodes[0].mac");
  CHECK(refused_at({.mac = "\"ff:ff:ff:ff:ff:ff\""}) == "nodes[0].mac");
  for (const char* shared :
       {"00:00:5e:00:01:07", "00:00:0c:07:ac:01", "00:11:22:33:44:55", "52:54:00:00:00:01"})
    CHECK_FALSE(names_one_port(shared));
  CHECK(names_one_port("B8:CE:F6:00:00:01"));
}

FIELD_CASE("name-64") {
  const std::string stem(60, 'a');
  CHECK(refused_at({.name = stem + "[099-100]"}).empty() == false);  // two nodes with one address
  const auto of_name = [](const std::string& name) {
    const auto parsed = spec_with({.name = name});
    return std::any_of(parsed.errors.begin(), parsed.errors.end(),
                       [](const SpecError& e) { return e.path == "nodes[0].name"; });
  };
  CHECK_FALSE(of_name(stem + "001"));
  CHECK(of_name(stem + "0001"));
  CHECK(of_name(stem + "[999-1000]"));
  CHECK_FALSE(of_name(stem + "[001-002]"));
}

FIELD_CASE("name-localhost") {
  for (const char* name : {"localhost", "localdomain", "ip6-localhost", "ip6-allnodes"}) {
    CAPTURE(name);
    CHECK(refused_at({.name = name}) == "nodes[0].name");
  }
  CHECK(refused_at({.name = "localhost01"}).empty());
}

FIELD_CASE("node-named-ignore") {
  for (const char* name : {"ignore", "infinite", "default", "all"}) {
    CAPTURE(name);
    CHECK(refused_at({.name = name}) == "nodes[0].name");
  }
  CHECK(refused_at({.name = "ignored"}).empty());
}

FIELD_CASE("kernel-options-unchecked") {
  for (const char* options : {"root=/dev/sda2 init=/bin/sh", "initrd=/old.img", "muster.url=x", "quiet $x",
                              "isolcpus=1-3\\nnohz_full=1-3"}) {
    CAPTURE(options);
    const std::string vars = fmt::format("{{ kernel_options: \"{}\" }}", options);
    CHECK(refused_at({.vars = vars}) == "vars.kernel_options");
    CHECK(refused_at({.node_vars = vars}) == "nodes[0].vars.kernel_options");
  }
  CHECK(refused_at({.vars = "{ kernel_options: \"isolcpus=1-3 nohz_full=1-3\" }"}).empty());
}

FIELD_CASE("two-consoles") {
  const auto parsed = spec_with({.vars = "{ console: \"tty0 console=ttyS0,115200\" }"});
  REQUIRE(parsed.errors.empty());
  BootDecision armed;
  armed.ram = true;
  armed.base_url = "http://10.20.0.1:7480";
  armed.url = "https://10.20.0.1:7443";
  armed.pin = armed.token = armed.node = "x";
  armed.console = declared_variable(parsed.spec, nullptr, "console", "");
  CHECK(ipxe_script(armed).find(" console=tty0 console=ttyS0,115200 ") != std::string::npos);
  // Other ways to write the same, and none.
  CHECK(console_value("tty0  ttyS0,115200") == armed.console);
  CHECK(console_value("console=tty0 console=ttyS0,115200") == armed.console);
  armed.console = "";
  CHECK(ipxe_script(armed).find("console=") == std::string::npos);
  // What no kernel takes is said when the spec is read, and not by a machine that boots its disk.
  for (const char* wrong : {"ttyS0;reboot", "$console", "ttyS0=1", "0"}) {
    CAPTURE(wrong);
    CHECK(refused_at({.vars = fmt::format("{{ console: \"{}\" }}", wrong)}) == "vars.console");
  }
}

}  // namespace muster::tests
