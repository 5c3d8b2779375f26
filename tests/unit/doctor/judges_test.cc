// What `muster doctor` finds, check by check: something, nothing, or that it could not look.
#include "controller/doctor/judges.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::doctor;

namespace {

const Error kBroken = fail(Code::failed, "the tool is missing");

void is_not_looked(const Checked& checked) {
  CHECK(outcome_of(checked) == Outcome::not_looked);
  REQUIRE(checked.not_looked.size() == 1);
  CHECK(checked.not_looked[0] == kBroken.message);
}

BmcLogin login(const std::string& node) { return {.node = node, .secret = "bmc", .looked = true}; }
BmcLogin rejected(const std::string& node) {
  BmcLogin out = login(node);
  out.outcome = fail(Code::denied, "rejected");
  out.rejected = true;
  return out;
}

// As iproute2 6.1 prints it.
constexpr const char* kSockets =
    R"(udp   UNCONN 0      0           0.0.0.0%virbr0:67         0.0.0.0:*    users:(("dnsmasq",pid=700,fd=3))
udp   UNCONN 0      0             10.20.0.1%eth1:67         0.0.0.0:*    users:(("dnsmasq",pid=812,fd=4))
tcp   LISTEN 0      128                  0.0.0.0:22         0.0.0.0:*    users:(("sshd",pid=1,fd=3))
tcp   LISTEN 0      511                     [::]:7480          [::]:*    users:(("nginx",pid=90,fd=6),("nginx",pid=89,fd=6))
tcp   LISTEN 0      128              [::1]%lo:631           [::]:*
)";

Result<std::vector<OpenPort>> sockets() { return read_open_ports(kSockets); }

}  // namespace

TEST_CASE("doctor: the code of each check is its own, and all are shown in one order", "[doctor]") {
  std::vector<Checked> all;
  std::vector<std::string> codes;
  for (const CheckKind& kind : check_kinds()) {
    codes.emplace_back(kind.code);
    all.insert(all.begin(), Checked{.check = kind.check});
  }
  const Json json = to_json(all);
  CHECK(json["state"] == "healthy");
  REQUIRE(json["checks"].size() == codes.size());
  for (size_t i = 0; i < codes.size(); ++i) CHECK(json["checks"][i]["code"] == codes[i]);
  std::sort(codes.begin(), codes.end());
  CHECK(std::unique(codes.begin(), codes.end()) == codes.end());
}

TEST_CASE("documents: docs/doctor.md has a row for each code of the doctor", "[doctor][tidy]") {
  const std::string page = text_of(source_dir() + "/docs/doctor.md");
  for (const CheckKind& kind : check_kinds()) {
    CAPTURE(kind.code);
    CHECK(page.find("\n| `" + std::string(kind.code) + "` | ") != std::string::npos);
  }
}

TEST_CASE("doctor: what could not be looked at is not healthy, and findings count before it", "[doctor]") {
  Checked left_out{.check = Check::clock, .not_looked = {"x"}};
  CHECK(to_json({left_out, {.check = Check::certificate}})["state"] == "not-looked");
  CHECK(to_json({left_out, {.check = Check::certificate, .findings = {{"a", "b", "c"}}}})["state"] ==
        "findings");
  left_out.findings = {{"a", "b", "c"}};
  const Json json = to_json({left_out});
  CHECK(json["checks"][0]["state"] == "findings");
  CHECK(json["checks"][0]["findings"][0]["next"] == "c");
  CHECK(json["checks"][0]["not_looked"][0] == "x");
}

TEST_CASE("doctor: a rejected password is one finding for all nodes with that secret", "[doctor][power]") {
  const Checked found = judge_bmcs({rejected("gpu01"), login("gpu02"), rejected("gpu03")}, 1);
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].at == "gpu[01,03]");
  CHECK(found.findings[0].next == "muster secret set bmc");
  CHECK(outcome_of(judge_bmcs({login("gpu01")}, 0)) == Outcome::healthy);
  CHECK(outcome_of(judge_bmcs({}, 3)) == Outcome::healthy);
}

TEST_CASE("doctor: a BMC that is silent, one without a secret, and one whose turn did not come",
          "[doctor][power]") {
  BmcLogin silent = login("gpu01"), unset = login("gpu02"), late = login("gpu03");
  silent.outcome = fail(Code::unavailable, "no route to host");
  unset.outcome = fail(Code::not_found, "no secret 'bmc'");
  unset.usable = false;
  late.looked = false;
  const Checked found = judge_bmcs({silent, unset, late}, 0);
  REQUIRE(found.findings.size() == 2);
  CHECK(found.findings[0].at == "gpu01");
  CHECK(found.findings[0].next.find("muster doctor SPEC") != std::string::npos);
  CHECK(found.findings[1].at == "gpu02");
  CHECK(found.findings[1].next == "muster secret set bmc");
  REQUIRE(found.not_looked.size() == 1);
  CHECK(found.not_looked[0].find("gpu03") != std::string::npos);
  CHECK(outcome_of(judge_bmcs({late}, 0)) == Outcome::not_looked);
  BmcLogin busy = login("gpu04");
  busy.looked = false;
  busy.not_looked = "a run is under way";
  CHECK(judge_bmcs({late, busy}, 0).not_looked.size() == 2);
}

TEST_CASE("doctor: BMCs behind one dead switch are one finding, whatever their addresses",
          "[doctor][power]") {
  std::vector<BmcLogin> all;
  for (int i = 1; i <= 20; ++i) {
    BmcLogin one = login("gpu" + std::string(i < 10 ? "0" : "") + std::to_string(i));
    one.address = "10.20.1." + std::to_string(i) + (i % 2 ? "" : ":443");
    one.outcome =
        fail(Code::unavailable, "BMC " + one.address + " GET /redfish/v1/: could not connect to " +
                                    one.address.substr(0, one.address.find(':')) + " of " + one.node);
    all.push_back(one);
  }
  const Checked found = judge_bmcs(all, 0);
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].at == "gpu[01-20]");
  CHECK(found.findings[0].what == "the BMC GET /redfish/v1/: could not connect to its address of the node");
  // Of a single one the address is shown, and another cause stays apart.
  all.resize(2);
  all[1].outcome = fail(Code::unavailable, "BMC 10.20.1.2:443 is starting");
  const Checked apart = judge_bmcs(all, 0);
  REQUIRE(apart.findings.size() == 2);
  CHECK(apart.findings[0].what == all[0].outcome.error().message);
}

// nmap's script named the first server that answered, issue 1908; PacketFence took other addresses of its own
// machine for servers of others, pull request 3514.
TEST_CASE("doctor: each server that answers is named once, none with an address of this machine",
          "[doctor][dhcp]") {
  DhcpSeen seen{.interface = "eth1", .own = {"10.20.0.1", "10.20.0.254"}};
  CHECK(outcome_of(judge_dhcp(seen)) == Outcome::healthy);
  seen.offers = {{"10.20.0.254", "10.20.0.70"}, {"10.20.0.1", "10.20.0.70"}};
  CHECK(outcome_of(judge_dhcp(seen)) == Outcome::healthy);
  seen.offers.insert(seen.offers.end(),
                     {{"10.20.0.5", "10.20.0.77"}, {"10.20.0.5", "10.20.0.78"}, {"192.168.1.1", "0.0.0.0"}});
  const Checked found = judge_dhcp(seen);
  REQUIRE(found.findings.size() == 2);
  CHECK(found.findings[0].at == "10.20.0.5");
  CHECK(found.findings[1].at == "192.168.1.1");
  // The spec has no mode for a network with another server.
  CHECK(found.findings[0].next.find("proxy") == std::string::npos);
  CHECK(found.findings[0].next.find("ip neighbor show 10.20.0.5") != std::string::npos);
  is_not_looked(judge_dhcp(kBroken));
}

TEST_CASE("doctor: an address of muster that this machine does not have is a finding", "[doctor][dhcp]") {
  const Checked found = judge_dhcp(fail(Code::not_found, "no interface has the address 10.20.0.9"));
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].what.find("10.20.0.9") != std::string::npos);
  CHECK(found.findings[0].next.find("`network.controller`") != std::string::npos);
  CHECK(found.not_looked.empty());
}

TEST_CASE("doctor: where musterd serves no DHCP, another server must give addresses", "[doctor][dhcp]") {
  DhcpSeen seen{.interface = "eth1"};
  CHECK(outcome_of(judge_dhcp(seen, false)) == Outcome::findings);
  seen.offers = {{"10.20.0.6", "0.0.0.0"}};  // only names what to boot
  CHECK(outcome_of(judge_dhcp(seen, false)) == Outcome::findings);
  SECTION("it answers") { seen.offers.push_back({"10.20.0.5", "10.20.0.77"}); }
  SECTION("it is on this machine") { seen.server_here = true; }
  CHECK(outcome_of(judge_dhcp(seen, false)) == Outcome::healthy);
  is_not_looked(judge_dhcp(kBroken, false));
}

TEST_CASE("doctor: of each image what its mirror lacks, or why that is not known", "[doctor][image]") {
  const Checked found = judge_mirrors({{"a", std::string()}, {"b", std::string("E: x")}, {"c", kBroken}}, 2);
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].at == "b");
  CHECK(found.findings[0].next.find("muster image build b") != std::string::npos);
  CHECK(found.not_looked.size() == 1);
  CHECK(outcome_of(judge_mirrors({{"a", std::string()}}, 0)) == Outcome::healthy);
  CHECK(outcome_of(judge_mirrors({{"c", kBroken}}, 0)) == Outcome::not_looked);
}

TEST_CASE("doctor: the room that is needed depends on the images to be built", "[doctor]") {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const auto of = [](uint64_t gib, int images, int gpu_images) {
    return outcome_of(judge_disk(DiskSpace{"/var/lib/muster", gib * kGiB, images, gpu_images}));
  };
  CHECK(of(2, 0, 0) == Outcome::healthy);
  CHECK(of(1, 0, 0) == Outcome::findings);
  CHECK(of(8, 1, 0) == Outcome::healthy);
  CHECK(of(8, 2, 0) == Outcome::findings);
  CHECK(of(8, 0, 1) == Outcome::findings);
  CHECK(of(40, 1, 1) == Outcome::healthy);
  is_not_looked(judge_disk(kBroken));
}

TEST_CASE("doctor: a clock that no server keeps", "[doctor]") {
  CHECK(outcome_of(judge_clock(true)) == Outcome::healthy);
  CHECK(outcome_of(judge_clock(false)) == Outcome::findings);
  is_not_looked(judge_clock(kBroken));
}

TEST_CASE("doctor: sockets that wait are read with their device and program", "[doctor]") {
  const auto open = read_open_ports(kSockets);
  REQUIRE(open.size() == 5);
  CHECK(open[0].protocol == "udp");
  CHECK(open[0].address == "0.0.0.0");
  CHECK(open[0].device == "virbr0");
  CHECK(open[0].port == 67);
  CHECK(open[0].program == "dnsmasq");
  CHECK(open[0].pid == 700);
  CHECK(open[3].address == "::");
  CHECK(open[3].port == 7480);
  CHECK(open[4].address == "::1");
  CHECK(open[4].device == "lo");
  CHECK(open[4].program.empty());
  CHECK(read_open_ports("").empty());
  CHECK(read_open_ports("tcp LISTEN\nudp UNCONN 0 0 nothing x\n").empty());
}

TEST_CASE("doctor: a port counts as taken by another program, on this network or on every one", "[doctor]") {
  const std::vector<WantedPort> dhcp = {{"udp", 67, "10.20.0.1", "DHCP"}};
  const std::vector<WantedPort> boot = {{"tcp", 7480, "10.20.0.1", "HTTP"}};
  // Its own dnsmasq, and libvirt's for a bridge.
  CHECK(outcome_of(judge_ports(dhcp, sockets(), {812}, "eth1")) == Outcome::healthy);
  const Checked foreign = judge_ports(dhcp, sockets(), {5}, "eth1");
  REQUIRE(foreign.findings.size() == 1);
  CHECK(foreign.findings[0].at == "67/udp");
  CHECK(foreign.findings[0].next.find("systemctl status 812") != std::string::npos);
  CHECK(outcome_of(judge_ports(dhcp, sockets(), {812}, "virbr0")) == Outcome::findings);
  const Checked every = judge_ports(boot, sockets(), {}, "eth1");
  REQUIRE(every.findings.size() == 1);
  CHECK(every.findings[0].what.find("nginx") != std::string::npos);
  CHECK(outcome_of(judge_ports({{"tcp", 631, "10.20.0.1", "x"}}, sockets(), {}, "eth1")) == Outcome::healthy);
  CHECK(outcome_of(judge_ports({{"udp", 7480, "10.20.0.1", "x"}}, sockets(), {}, "")) == Outcome::healthy);
  is_not_looked(judge_ports(dhcp, kBroken, {}, "eth1"));
}

TEST_CASE("doctor: the GPU program against the CUDA of the spec", "[doctor][gpu]") {
  const auto of = [](const GpuWanted& wanted, const Result<int>& program) {
    return outcome_of(judge_gpu_program({wanted}, program));
  };
  CHECK(outcome_of(judge_gpu_program({}, fail(Code::not_found, "none"))) == Outcome::healthy);
  CHECK(of({"gpu01", 0, 0}, fail(Code::not_found, "none")) == Outcome::findings);
  CHECK(of({"gpu01", 0, 0}, fail(Code::invalid, "no mark")) == Outcome::findings);
  CHECK(of({"gpu01", 0, 0}, 12) == Outcome::healthy);
  CHECK(of({"gpu01", 12, 13}, 12) == Outcome::healthy);
  CHECK(of({"gpu01", 13, 13}, 12) == Outcome::findings);  // it needs cuBLASLt of its own CUDA
  CHECK(of({"gpu01", 0, 12}, 13) == Outcome::findings);
  CHECK(of({"gpu01", 0, 13}, 12) == Outcome::healthy);
  const Checked both =
      judge_gpu_program({{"gpu01", 13, 0}, {"gpu02", 13, 0}, {"gpu03", 12, 0}}, Result<int>(12));
  REQUIRE(both.findings.size() == 1);
  CHECK(both.findings[0].at == "gpu[01-02]");
  CHECK(both.findings[0].next.find("--here") != std::string::npos);
}

TEST_CASE("doctor: packages that are missing, older or newer than what runs", "[doctor]") {
  PackagesSeen seen;
  seen.installed = {{"muster-controller", "0.2.0"}, {"dnsmasq-base", "2.89"}};
  seen.needed = {{"dnsmasq-base", "DHCP"}};
  seen.running = "0.2.0";
  CHECK(outcome_of(judge_packages(seen)) == Outcome::healthy);
  seen.needed["ipxe"] = "network boots";
  seen.installed["muster-controller"] = "0.3.0";
  seen.installed["muster-accept-gpu"] = "0.2.0+0.cuda12";
  const Checked found = judge_packages(seen);
  REQUIRE(found.findings.size() == 3);
  CHECK(found.findings[0].next == "apt install ipxe");
  CHECK(found.findings[1].next == "systemctl restart musterd");
  CHECK(found.findings[2].at == "muster-accept-gpu");
  // From a build folder the packages' versions say nothing.
  seen.running.clear();
  CHECK(judge_packages(seen).findings.size() == 1);
  is_not_looked(judge_packages(kBroken));
}
