// Field cases of booting over the network: the scripts that machines get, and their addresses.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "controller/boot/boot.h"
#include "controller/boot/service/dhcp_service.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

// What firmware makes of a script's end: no `exit` in it, and not its last line, is a success.
bool ends_with_failure(const std::string& script) {
  static const std::regex exits("\\bexit\\b(.*)");
  std::istringstream in(script);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    last = line;
    std::smatch found;
    if (std::regex_search(line, found, exits) && !std::regex_match(found[1].str(), std::regex(" [1-9]")))
      return false;
  }
  return std::regex_search(last, std::regex("(^|\\|\\| )exit [1-9]$"));
}

BootNetwork network_of(const std::string& folder, const std::string& file) {
  const ParsedSpec parsed = parse_spec(field_input(folder, file));
  for (const auto& error : parsed.errors) UNSCOPED_INFO(to_string(error, file));
  REQUIRE(parsed.errors.empty());
  DaemonOptions options;
  options.state = "/var/lib/muster";
  BootNetwork out = boot_network(parsed.spec, "10.20.0.1", options, false);
  out.interface = "br0";
  return out;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

FIELD_CASE("ipxe-exit-zero: the script of a machine that is not armed") {
  CHECK_FALSE(ends_with_failure("#!ipxe\nexit\n"));
  CHECK_FALSE(ends_with_failure("#!ipxe\nchain x || exit\n"));
  testing::Controller controller;
  for (const char* script : {"/boot.ipxe", "/boot/52-54-00-77-00-01.ipxe", "/boot/anything.ipxe"}) {
    INFO(script);
    const auto answer = controller.call(api::Listener::boot, "GET", script);
    CHECK(answer.status == 200);
    CHECK(ends_with_failure(answer.body));
  }
}

FIELD_CASE("ipxe-exit-zero: the script of the RAM system") {
  BootDecision decision;
  CHECK(ends_with_failure(ipxe_script(decision)));
  decision.ram = true;
  decision.base_url = "http://10.20.0.1:7480";
  decision.url = "https://10.20.0.1:7443";
  decision.pin = "ab12";
  decision.token = "t0k3n";
  decision.node = "crane01";
  CHECK(ipxe_script(decision).find("\nboot ") != std::string::npos);
  CHECK(ends_with_failure(ipxe_script(decision)));
  decision.node = "crane01\nexit";
  CHECK(ends_with_failure(ipxe_script(decision)));
}

FIELD_CASE("ipxe-exit-zero: no source holds a script that ends another way") {
  const std::regex success("\\bexit(\\\\n|\")");
  int scripts = 0;
  for (const auto& file : fs::recursive_directory_iterator(source_dir() + "/controller")) {
    if (!file.is_regular_file()) continue;
    const std::string text = text_of(file.path());
    if (text.find("#!ipxe") == std::string::npos) continue;
    ++scripts;
    INFO(file.path().string());
    CHECK_FALSE(std::regex_search(text, success));
  }
  CHECK(scripts > 0);
}

FIELD_CASE("ipxe-chain-returns") {
  const std::string chain = kBootChain;
  // A line of its own: it runs whatever the script before it came to.
  CHECK(chain.find(" ||\nexit 1\n") != std::string::npos);
}

FIELD_CASE("dhcp-nak-adopted: dnsmasq refuses nothing to machines that are not declared") {
  BootNetwork network = network_of("dhcp-nak-adopted", "cluster.yaml");
  const auto closed = dnsmasq_config(network);
  REQUIRE(closed.ok());
  CHECK(has_line(*closed, "dhcp-ignore=tag:!known"));
  CHECK(has_line(*closed, "dhcp-authoritative"));
  CHECK(has_line(*closed, "dhcp-host=52:54:00:77:00:01,10.20.0.11,crane01,12h"));
  // Discovery: they are answered, and so none may be refused.
  network.unknown_machines = true;
  const auto open = dnsmasq_config(network);
  REQUIRE(open.ok());
  CHECK_FALSE(has_line(*open, "dhcp-ignore=tag:!known"));
  CHECK_FALSE(has_line(*open, "dhcp-authoritative"));
}

FIELD_CASE("dhcp-lease-of-old-mac: leases that contradict the spec are not kept") {
  const std::string first = "1790000000 52:54:00:77:00:01 10.20.0.11 crane01 01:52:54:00:77:00:01\n";
  const std::string second = "1790000000 52:54:00:77:00:02 10.20.0.12 crane02 *\n";
  const std::string stranger = "1790000000 52:54:00:99:00:07 10.20.0.200 * *\n";
  const std::string six = "duid 00:01:00:01:2c:11:22:33:52:54:00:77:00:01\n";
  const std::string all = first + second + stranger + six;
  const auto kept = [&](const char* spec) {
    return leases_kept(all, network_of("dhcp-lease-of-old-mac", spec));
  };
  CHECK(kept("before.yaml") == all);
  CHECK(kept("replaced.yaml") == second + stranger + six);
  CHECK(kept("swapped.yaml") == stranger + six);
  BootNetwork upper = network_of("dhcp-lease-of-old-mac", "before.yaml");
  upper.hosts[0].mac = "52:54:00:77:00:01";
  for (char& c : upper.hosts[0].mac) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  CHECK(leases_kept(all, upper) == all);
}

FIELD_CASE("dhcp-lease-of-old-mac: nor one on an address that an adopted host has") {
  const BootNetwork network = network_of("dhcp-nak-adopted", "cluster.yaml");
  CHECK(leases_kept("1790000000 52:54:00:99:00:07 10.20.0.31 * *\n", network).empty());
}

FIELD_CASE("dhcp-lease-of-the-pool") {
  const BootNetwork network = network_of("dhcp-lease-of-old-mac", "before.yaml");
  CHECK(leases_kept("1790000000 52:54:00:77:00:01 10.20.0.200 * *\n", network).empty());
}

FIELD_CASE("snponly-any-port") {
  BootNetwork network;
  network.interface = "eth1";
  network.address = "10.20.0.1";
  network.cidr = "10.20.0.0/24";
  network.run_dir = "/run/muster";
  CHECK(dnsmasq_config(network).value().find("dhcp-boot=tag:!ipxe,tag:efi,snponly.efi\n") !=
        std::string::npos);
}

}  // namespace muster::tests
