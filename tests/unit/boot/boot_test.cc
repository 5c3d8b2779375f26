#include "controller/boot/boot.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "controller/boot/dnsmasq.h"
#include "controller/boot/service/dhcp_service.h"
#include "controller/spec/reader/parse_spec.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

BootNetwork sample() {
  BootNetwork n;
  n.interface = "br0";
  n.address = "10.20.0.1";
  n.cidr = "10.20.0.0/24";
  n.hosts = {{"52:54:00:00:01:01", "10.20.0.11", "node01"}, {"52:54:00:00:01:02", "10.20.0.12", "node02"}};
  n.run_dir = "/var/lib/muster/run";
  return n;
}

bool has(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

BootDecision ram() {
  BootDecision d;
  d.ram = true;
  d.base_url = "http://10.20.0.1:7480";
  d.console = "ttyS0";
  d.url = "https://10.20.0.1:7443";
  d.pin = "ab12";
  d.token = "t0k3n";
  d.node = "node01";
  d.ip = "10.20.0.11/24";
  d.mac = "52:54:00:00:01:01";
  return d;
}

}  // namespace

TEST_CASE("dnsmasq serves one interface, known hosts, and no DNS") {
  const auto c = dnsmasq_config(sample());
  REQUIRE(c);
  CHECK(has(*c, "port=0"));
  CHECK(has(*c, "interface=br0"));
  CHECK(has(*c, "bind-dynamic"));
  CHECK(has(*c, "dhcp-host=52:54:00:00:01:01,10.20.0.11,node01,12h"));
  CHECK(has(*c, "dhcp-range=10.20.0.0,static,255.255.255.0,12h"));
  CHECK(has(*c, "no-ping"));
  CHECK(has(*c, "dhcp-boot=tag:ipxe,http://10.20.0.1:7480/boot.ipxe"));
  CHECK(has(*c, "dhcp-boot=tag:!ipxe,tag:efi,snponly.efi"));
  CHECK(has(*c, "ra-param=br0,high,10,0"));
  CHECK(has(*c, "dhcp-option=option:router"));  // none
}

TEST_CASE("unknown machines get no address unless that is on; a proxy gives none at all") {
  BootNetwork n = sample();
  // Only the declared ones: no line gives away a range.
  CHECK(dnsmasq_config(n)->find("dhcp-range=10.20.0.191") == std::string::npos);
  n.unknown_machines = true;
  const auto open = dnsmasq_config(n);
  REQUIRE(open);
  CHECK(has(*open, "dhcp-range=10.20.0.0,static,255.255.255.0,12h"));
  CHECK(has(*open, "dhcp-range=10.20.0.191,10.20.0.253,255.255.255.0,12h"));
  CHECK(has(*open, "dhcp-host=52:54:00:00:01:01,10.20.0.11,node01,12h"));
  CHECK_FALSE(has(*open, "no-ping"));
  n.mode = "proxy";
  const auto c = dnsmasq_config(n);
  REQUIRE(c);
  CHECK(has(*c, "dhcp-range=10.20.0.0,proxy,255.255.255.0"));
  CHECK_FALSE(has(*c, "dhcp-authoritative"));
  n.mode = "external";
  CHECK(dnsmasq_config(n).error().code == Code::invalid);
}

TEST_CASE("an unknown machine never gets an address in use") {
  BootNetwork n = sample();
  n.unknown_machines = true;
  n.gateway = "10.20.0.253";
  n.taken = {"10.20.0.191", "10.20.0.200", "10.20.0.201", "10.30.0.7", "not an address"};
  n.hosts[1].address = "10.20.0.240";
  const auto c = dnsmasq_config(n);
  REQUIRE(c);
  std::string pool;
  for (size_t at = c->find("12h\n"); (at = c->find("dhcp-range=10.20.0.", at)) != std::string::npos; ++at)
    pool += c->substr(at, c->find('\n', at) - at) + "\n";
  CHECK(pool ==
        "dhcp-range=10.20.0.192,10.20.0.199,255.255.255.0,12h\n"
        "dhcp-range=10.20.0.202,10.20.0.239,255.255.255.0,12h\n"
        "dhcp-range=10.20.0.241,10.20.0.252,255.255.255.0,12h\n");
}

TEST_CASE("DHCP is for the nodes of the spec; BMCs keep their addresses when undeclared machines get some") {
  const Spec spec = parse_spec(testing::kSpec).spec;
  DaemonOptions options;
  options.state = "/var/lib/muster";
  const BootNetwork closed = boot_network(spec, "10.20.0.1", options, false);
  CHECK_FALSE(closed.unknown_machines);
  REQUIRE(closed.hosts.size() == 3);
  CHECK(closed.hosts[0].mac == "52:54:00:20:00:01");
  CHECK(closed.hosts[0].address == "10.20.0.11");
  const BootNetwork open = boot_network(spec, "10.20.0.1", options, true);
  CHECK(open.unknown_machines);
  CHECK(open.taken == std::vector<std::string>{"10.20.1.11", "10.20.1.12", "10.20.1.13"});
  Spec with_servers = spec;
  with_servers.network.dns = {"10.20.0.200"};
  with_servers.network.ntp = {"10.20.0.201", "ntp.example"};
  const BootNetwork served = boot_network(with_servers, "10.20.0.1", options, true);
  CHECK(std::count(served.taken.begin(), served.taken.end(), "10.20.0.200") == 1);
  CHECK(std::count(served.taken.begin(), served.taken.end(), "10.20.0.201") == 1);
}

TEST_CASE("a network that contradicts itself is refused") {
  const auto refused = [](auto&& change) {
    BootNetwork n = sample();
    change(n);
    const auto c = dnsmasq_config(n);
    return !c && c.error().code == Code::invalid;
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& n) { n.address = "10.21.0.1"; }));
  CHECK(refused([](auto& n) { n.cidr = "10.20.0.0"; }));
  CHECK(refused([](auto& n) { n.cidr = "10.20.0.0/31"; }));
  CHECK(refused([](auto& n) { n.hosts[0].address = "10.20.1.11"; }));
  CHECK(refused([](auto& n) { n.hosts[0].address = n.hosts[1].address; }));
  CHECK(refused([](auto& n) { n.hosts[0].address = n.address; }));
  CHECK(refused([](auto& n) { n.hosts[0].mac = n.hosts[1].mac; }));
  CHECK(refused([](auto& n) { n.hosts[0].mac = "52:54:00:00:01"; }));
  CHECK(refused([](auto& n) { n.hosts[0].name = "a\ndhcp-script=/bin/sh"; }));
  CHECK(refused([](auto& n) { n.interface = "br0\nuser=root"; }));
}

TEST_CASE("iPXE scripts") {
  CHECK(ipxe_script({}) == "#!ipxe\nexit 1\n");
  CHECK(ipxe_script(ram()) ==
        "#!ipxe\n"
        "kernel http://10.20.0.1:7480/ram/vmlinuz initrd=initrd quiet console=ttyS0 "
        "muster.url=https://10.20.0.1:7443 muster.pin=ab12 muster.token=t0k3n muster.node=node01 "
        "muster.ip=10.20.0.11/24 muster.mac=52:54:00:00:01:01 panic=30 || exit 1\n"
        "initrd --name initrd http://10.20.0.1:7480/ram/initrd || exit 1\n"
        "boot || exit 1\n");
}

TEST_CASE("more kernel arguments come last, and one about panics takes the place of ours") {
  BootDecision d = ram();
  d.extra = "no_timer_check";
  CHECK(ipxe_script(d).find(" panic=30 no_timer_check || exit 1\n") != std::string::npos);
  d.extra = "no_timer_check panic=0";
  CHECK(ipxe_script(d).find("muster.mac=52:54:00:00:01:01 no_timer_check panic=0 || exit 1\n") !=
        std::string::npos);
  for (const char* evil : {"rdinit=/bin/sh", "muster.pin=00", "a\nshell", "${net0/mac}"}) {
    d.extra = evil;
    CHECK(ipxe_script(d) == "#!ipxe\nexit 1\n");
  }
}

TEST_CASE("the script of an undeclared machine takes the address that DHCP gave it") {
  BootDecision d = ram();
  d.node = "unknown-52:54:00:00:01:09";
  d.ip.clear();
  d.dhcp_prefix = 24;
  CHECK(ipxe_script(d).find(" muster.node=unknown-52:54:00:00:01:09 muster.ip=${netX/ip}/24 muster.mac=") !=
        std::string::npos);
  d.token = "${net0/ip}";  // still nothing that a value brings in itself
  CHECK(ipxe_script(d) == "#!ipxe\nexit 1\n");
}

TEST_CASE("a value that could smuggle an argument boots the disk instead") {
  for (const char* evil : {"node01 init=/bin/sh", "node01\nshell", "${net0/mac}", "a\"b"}) {
    BootDecision d = ram();
    d.node = evil;
    CHECK(ipxe_script(d) == "#!ipxe\nexit 1\n");
  }
}

TEST_CASE("DHCP is refused when no interface carries the provisioning network") {
  char folder[] = "/tmp/muster-dnsmasq-XXXXXX";
  REQUIRE(::mkdtemp(folder));
  Dnsmasq d;
  BootNetwork n = sample();
  n.run_dir = folder;
  n.interface.clear();
  n.address = "192.0.2.1";  // reserved for documentation: no machine has it
  n.cidr = "192.0.2.0/24";
  n.hosts.clear();
  const auto s = d.apply(n);
  REQUIRE_FALSE(s);
  CHECK(s.error().code == Code::denied);
  CHECK_FALSE(d.running());
  CHECK_FALSE(Files("/").exists(std::string(folder) + "/dnsmasq.conf"));
  n.mode = "external";
  CHECK(d.apply(n));
  std::filesystem::remove_all(folder);
}

TEST_CASE("dnsmasq's files are where a user without root's rights reaches them") {
  DaemonOptions options;
  options.state = "/var/lib/muster";
  const Spec spec = parse_spec(testing::kSpec).spec;
  const std::string folder = boot_network(spec, "10.20.0.1", options, false).run_dir;
  CHECK(folder.starts_with("/run/"));
  CHECK(folder == dhcp_folder("/var/lib/muster"));
  CHECK(folder != dhcp_folder("/var/lib/lab"));  // of another controller on this machine
  CHECK(has(*dnsmasq_config(sample()), "user=dnsmasq"));
}

TEST_CASE("DHCP is refused, not served by root, where dnsmasq's user cannot enter its folder") {
  char folder[] = "/tmp/muster-dnsmasq-XXXXXX";
  REQUIRE(::mkdtemp(folder));  // 0700, as the state folder
  Dnsmasq d;
  BootNetwork n = sample();
  n.run_dir = std::string(folder) + "/run";
  n.interface.clear();
  n.address = "127.0.0.1";
  n.cidr = "127.0.0.0/8";
  n.hosts.clear();
  CHECK(d.apply(n).error().code == Code::denied);
  CHECK_FALSE(d.running());
  CHECK_FALSE(Files("/").exists(n.run_dir + "/dnsmasq.conf"));
  std::filesystem::remove_all(folder);
}
