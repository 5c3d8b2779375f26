#include "agent/joining/adopting.h"

#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using muster::tests::FakeMachine;

namespace {

const BootParameters kBoot{"https://10.20.0.1:7443", "sha256:aa", "secret", "login01", "", ""};

AgentConfig config(const std::string& node, const std::string& pin) {
  return {node, "https://10.20.0.9:7443", pin, wire::Mode::adopted};
}

}  // namespace

TEST_CASE("join reads one line of JSON and refuses anything else", "[adopt]") {
  const auto good = join_parameters(R"({"url":"https://c:7443","pin":"sha256:aa","token":"t","node":"n1"})");
  REQUIRE(good.ok());
  CHECK(good->node == "n1");
  CHECK(good->token == "t");
  CHECK(join_parameters("").error().code == Code::invalid);
  CHECK(join_parameters("[]").error().code == Code::invalid);
  CHECK(join_parameters(R"({"url":"u","pin":"p","node":"n1"})").error().message.find("token") !=
        std::string::npos);
  CHECK(join_parameters(R"({"url":"u","pin":"p","token":"","node":"n1"})").error().code == Code::invalid);
  CHECK(join_parameters(R"({"url":"u","pin":"p","token":"t","node":"n1","mode":"ram"})")
            .error()
            .message.find("mode") != std::string::npos);
}

TEST_CASE("a host that belongs to another controller or is another node is not taken", "[adopt]") {
  FakeMachine machine;
  const Files files = machine.files();
  CHECK(may_join(files, kAdoptedIdentity, kBoot).ok());
  REQUIRE(write_config(files, kAdoptedIdentity, config("login01", "aa")).ok());
  CHECK(may_join(files, kAdoptedIdentity, kBoot).ok());  // the same again, at another address
  REQUIRE(write_config(files, kAdoptedIdentity, config("login02", "sha256:aa")).ok());
  CHECK(may_join(files, kAdoptedIdentity, kBoot).error().message.find("already node login02") !=
        std::string::npos);
  REQUIRE(write_config(files, kAdoptedIdentity, config("login01", "sha256:bb")).ok());
  const auto other = may_join(files, kAdoptedIdentity, kBoot);
  CHECK(other.error().code == Code::conflict);
  CHECK(other.error().message.find("a different controller") != std::string::npos);
}

TEST_CASE("the adopted agent becomes a service; a second time changes no file", "[adopt]") {
  FakeMachine machine;
  CHECK(may_serve(machine.files()).error().code == Code::invalid);
  REQUIRE(machine.files().make_directories("/run/systemd/system").ok());
  CHECK(may_serve(machine.files()).ok());

  machine.units["muster-agent.service"] = {};
  const Status started = start_service(machine.files(), machine, kAdoptedIdentity);
  REQUIRE(started.ok());
  CHECK(machine.units["muster-agent.service"].enabled);
  CHECK(machine.units["muster-agent.service"].active);
  const std::string unit = machine.get("/etc/systemd/system/muster-agent.service");
  CHECK(unit.find("--config /var/lib/muster/agent.json") != std::string::npos);
  const auto before = machine.snapshot();
  machine.calls.clear();
  REQUIRE(start_service(machine.files(), machine, kAdoptedIdentity).ok());
  CHECK(machine.snapshot() == before);
  CHECK_FALSE(machine.called("daemon-reload"));
}

TEST_CASE("a host whose systemd refuses says so", "[adopt]") {
  FakeMachine machine;
  machine.units["muster-agent.service"] = {};
  machine.broken.insert("systemctl enable");
  const Status started = start_service(machine.files(), machine, kAdoptedIdentity);
  REQUIRE_FALSE(started.ok());
  CHECK_FALSE(machine.units["muster-agent.service"].active);
}
