// `muster doctor` through a whole controller, with what it looks at in the test's hands, but for the BMC.
#include "controller/doctor/service/doctor_service.h"

#include <filesystem>
#include <stdexcept>

#include "tests/fakes/bmc_bench.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;
using muster::testing::muster_command;

namespace {

std::string spec_with(const std::string& bmc) {
  return R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 127.0.0.0/8 } }
images: { cpu: { recipe: debian-12 } }
roles: { cpu: { playbooks: [ base ] } }
nodes:
  - { name: node01, role: cpu, power: { driver: redfish, address: ")" +
         bmc + R"(", secret: bmc }, mac: "52:54:00:20:00:01", image: cpu,
      disks: { os: { match: { serial: "OS*", count: 1 } } } }
)";
}

// Nothing is wrong, and nothing outside of the test is looked at.
doctor::Looks healthy_looks() {
  doctor::Looks looks;
  // The controller of these tests has --no-dhcp.
  looks.dhcp = [](const std::string&) {
    return doctor::DhcpSeen{.interface = "eth1", .offers = {{"10.20.0.5", "10.20.0.70"}}};
  };
  looks.mirrors = [](const std::vector<ImageRequest>&) {
    return std::map<std::string, Result<std::string>>();
  };
  looks.free_bytes = [] { return uint64_t{100} << 30; };
  looks.synchronized = [] { return true; };
  looks.open_ports = [] { return std::vector<doctor::OpenPort>(); };
  looks.packages = [] { return PackageList{{"mmdebstrap", "1"}, {"e2fsprogs", "1"}, {"xz-utils", "1"}}; };
  looks.gpu_cuda = [] { return 12; };
  return looks;
}

// A controller whose recipes make the image of the spec.
struct Bench {
  explicit Bench(const std::string& password = "admin:pw:with:colons") {
    c.on_reactor([&] {
      c.services().doctor.look_by(looks);
      c.services().power.wait_by(bmc.waiter());
    });
    REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", password).status == 200);
  }
  void look_by(const doctor::Looks& others) {
    c.on_reactor([&] { c.services().doctor.look_by(others); });
  }
  std::string spec() { return spec_with(bmc.target.address); }
  HttpResponse doctor(const std::string& body) { return c.call(Listener::local, "POST", "/v1/doctor", body); }
  // By code.
  std::map<std::string, Json> checks(const std::string& body) {
    const Json found = c.good(doctor(body));
    state = found["state"].get<std::string>();
    std::map<std::string, Json> out;
    for (const Json& check : found["checks"]) out[check["code"].get<std::string>()] = check;
    CHECK(out.size() == doctor::check_kinds().size());
    return out;
  }

  BmcBench bmc{"generic"};
  doctor::Looks looks = healthy_looks();
  testing::Controller c;
  std::string state;
};

}  // namespace

TEST_CASE("api: the doctor examines a spec that it does not store", "[api][doctor]") {
  Bench b;
  const auto found = b.checks(b.spec());
  CHECK(found.at("bmc-login")["state"] == "healthy");
  CHECK(found.at("certificate")["state"] == "healthy");
  CHECK(found.at("port-in-use")["state"] == "healthy");
  // This controller has no recipes: its image cannot be built, from whatever mirror.
  CHECK(found.at("mirror-incomplete")["findings"][0]["at"] == "cpu");
  CHECK(b.state == "findings");
  CHECK(b.c.get("/v1/specs")["specs"].empty());
  CHECK(b.bmc.machine.running() == false);
}

TEST_CASE("api: the doctor looks at the images that would be built, also where there is an older one",
          "[api][doctor]") {
  Bench b;
  std::filesystem::create_directories(b.c.state() + "/images/cpu/current");
  CHECK(b.checks(b.spec()).at("mirror-incomplete")["findings"][0]["at"] == "cpu");
}

TEST_CASE("api: without a spec the doctor says what it could not look at", "[api][doctor]") {
  Bench b;
  const auto found = b.checks("");
  CHECK(b.state == "not-looked");
  CHECK(found.at("bmc-login")["state"] == "not-looked");
  CHECK(found.at("dhcp-rival")["state"] == "not-looked");
  CHECK(found.at("disk-space")["state"] == "healthy");
  REQUIRE(b.c.call(Listener::local, "PUT", "/v1/spec", b.spec()).status == 200);
  CHECK(b.checks("").at("bmc-login")["state"] == "healthy");
}

TEST_CASE("api: a spec with mistakes is not examined", "[api][doctor]") {
  Bench b;
  const auto refused = b.doctor("cluster: x\nnodes: 3\n");
  CHECK(refused.status == 422);
  CHECK(refused.body.find("cluster.yaml:") != std::string::npos);
  // With their places, as where a spec is stored.
  CHECK_FALSE(parse_json(refused.body).value()["errors"].empty());
  CHECK(b.bmc.seen.empty());
}

TEST_CASE("api: the doctor's answer has the warnings of the spec that it examined", "[api][doctor]") {
  Bench b;
  const Json found = b.c.good(b.doctor(b.spec()));
  std::string codes;
  for (const Json& warning : found["warnings"]) codes += warning.value("code", "") + " ";
  CHECK(codes.find("no-login") != std::string::npos);
  CHECK(b.c.good(b.doctor(""))["warnings"].empty());
}

TEST_CASE("api: each look that fails or finds something shows under its own code", "[api][doctor]") {
  Bench b;
  doctor::Looks looks = healthy_looks();
  looks.free_bytes = [] { return uint64_t{1} << 30; };
  looks.open_ports = []() -> Result<std::vector<doctor::OpenPort>> {
    return fail(Code::not_found, "there is no ss");
  };
  looks.packages = []() -> Result<PackageList> { throw std::runtime_error("of a test"); };
  looks.dhcp = [](const std::string&) { return doctor::DhcpSeen{.interface = "eth1"}; };
  b.look_by(looks);
  const auto found = b.checks(b.spec());
  CHECK(found.at("dhcp-rival")["state"] == "findings");
  CHECK(found.at("disk-space")["state"] == "findings");
  CHECK(found.at("port-in-use")["state"] == "not-looked");
  CHECK(found.at("package-version")["state"] == "not-looked");
  CHECK(found.at("bmc-login")["state"] == "healthy");
}

// NVIDIA's infra-controller locked BMCs out although its explorer took care not to: another service had tried
// as well, issue 1292.
TEST_CASE("api: the doctor tries a wrong password once, and counts together with other calls",
          "[api][doctor][power]") {
  Bench b("admin:wrong");
  const auto found = b.checks(b.spec());
  REQUIRE(found.at("bmc-login")["findings"].size() == 1);
  CHECK(found.at("bmc-login")["findings"][0]["next"] == "muster secret set bmc");
  CHECK(b.bmc.bmc().failed_logins() == 1);
  for (int i = 0; i < 3; ++i) CHECK(b.checks(b.spec()).at("bmc-login")["state"] == "findings");
  CHECK(b.bmc.bmc().failed_logins() == 2);
  // Once it is set, it is tried at once.
  REQUIRE(b.c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:pw:with:colons").status == 200);
  CHECK(b.checks(b.spec()).at("bmc-login")["state"] == "healthy");
}

TEST_CASE("api: the doctor leaves BMCs to a run that is under way, and says so", "[api][doctor]") {
  Bench b;
  REQUIRE(b.c.call(Listener::local, "PUT", "/v1/spec", b.spec()).status == 200);
  b.c.start_a_run("node01");
  const size_t calls = b.bmc.seen.size();
  const auto found = b.checks(b.spec());
  CHECK(found.at("bmc-login")["state"] == "not-looked");
  CHECK(found.at("bmc-login")["not_looked"][0].get<std::string>().starts_with("node01: a run is under way"));
  CHECK(found.at("disk-space")["state"] == "healthy");
  CHECK(b.bmc.seen.size() == calls);
}

TEST_CASE("api: a second doctor is not begun beside the first", "[api][doctor]") {
  Bench b;
  std::promise<void> go_on;
  doctor::Looks looks = healthy_looks();
  looks.free_bytes = [until = go_on.get_future().share()] {
    until.wait();
    return uint64_t{100} << 30;
  };
  b.look_by(looks);
  auto first = b.c.send(Listener::local, "POST", "/v1/doctor", b.spec());
  CHECK(b.doctor(b.spec()).status == 503);
  go_on.set_value();
  REQUIRE(first->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(first->answer.get().status == 200);
}

TEST_CASE("the command's exit code is that of what the doctor found", "[api][doctor]") {
  Bench b;
  b.c.open();
  TempDir dir;
  dir.write("cluster.yaml", b.spec());
  CHECK(muster_command({"doctor", dir.path("cluster.yaml"), "--socket", b.c.socket()}).exit == 3);
  CHECK(muster_command({"doctor", "--socket", b.c.socket()}).exit == 1);
  CHECK(muster_command({"doctor", dir.path("none.yaml"), "--socket", b.c.socket()}).exit == 2);
}
