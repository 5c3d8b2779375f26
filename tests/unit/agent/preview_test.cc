#include "agent/joining/adopting.h"

#include "agent/core/identity.h"
#include "tests/catch.h"
#include "tests/fakes/fake_machine.h"

using namespace muster;
using muster::tests::FakeMachine;

namespace {

wire::Step step(const std::string& id, const std::string& module, Json params) {
  wire::Step s;
  s.id = id;
  s.module = module;
  s.params = std::move(params);
  return s;
}

wire::Step file(const std::string& id, const std::string& content) {
  return step(id, "file", {{"path", "/etc/motd"}, {"content", content}});
}

}  // namespace

TEST_CASE("the preview says what each step would change, and writes nothing", "[adopt]") {
  FakeMachine machine;
  machine.put("/etc/motd", "before\n");
  StepContext context = machine.context();
  context.module = [](const std::string& name) { return find_step_module(name); };
  const auto before = machine.snapshot();
  const Json steps = preview_steps(
      context, {file("a", "after\n"), file("b", "before\n"), step("c", "file", Json::object()),
                step("d", "no_such_module", Json::object()),
                step("e", "file", {{"path", "/etc/munge.key"}, {"content", "secret:munge-key"}}),
                step("f", "tcp", Json::object())});
  CHECK(machine.snapshot() == before);
  REQUIRE(steps.size() >= 5);
  CHECK(steps[0]["outcome"] == "would_change");
  CHECK(steps[0]["diff"].get<std::string>().find("after") != std::string::npos);
  CHECK(steps[1]["outcome"] == "already");
  CHECK(steps[2]["outcome"] == "unknown");
  CHECK(steps[2]["message"].get<std::string>() != "");
  CHECK(steps[3]["outcome"] == "unknown");
  CHECK(steps[4]["outcome"] == "secret");
  CHECK(steps[4].dump().find("munge-key\"") == std::string::npos);
}

TEST_CASE("tests and measurements are no changes and are left out of the preview", "[adopt]") {
  FakeMachine machine;
  StepContext context = machine.context();
  context.module = [](const std::string& name) { return find_step_module(name); };
  int shown = 0, tests = 0;
  for (const auto& module : step_modules()) {
    const Json said = preview_steps(context, {step("x", module.name, {{"value", "secret:x"}})});
    const bool changes = module.apply != nullptr;
    CAPTURE(module.name);
    CHECK(said.size() == (changes ? 1u : 0u));
    shown += changes;
    tests += !changes;
  }
  CHECK(shown > 20);
  CHECK(tests > 2);
}

TEST_CASE("the preview names why a host cannot be adopted, and whether it is already", "[adopt]") {
  FakeMachine machine;
  Files files = machine.files();
  const PreviewRequest request{"spare01", "sha256:aa", {}};
  const auto refusal = [&] {
    const auto answer = preview(files, machine, request);
    REQUIRE(answer.ok());
    return (*answer)["refusal"].get<std::string>();
  };
  CHECK(refusal().find("systemd is not running") != std::string::npos);
  REQUIRE(files.make_directories("/run/systemd/system").ok());
  CHECK(refusal() == "");
  CHECK(preview(files, machine, request).value()["joined"] == false);
  REQUIRE(
      write_config(files, kAdoptedIdentity, {"spare01", "https://c:7443", "aa", wire::Mode::adopted}).ok());
  CHECK(preview(files, machine, request).value()["joined"] == false);  // it never got its certificate
  REQUIRE(write_credentials(files, kAdoptedIdentity, {"key", "certificate", "ca"}).ok());
  CHECK(preview(files, machine, request).value()["joined"] == false);  // its agent does not run
  machine.put("/etc/systemd/system/muster-agent.service", "[Service]\n");
  machine.units["muster-agent.service"].active = true;
  CHECK(preview(files, machine, request).value()["joined"] == true);
  REQUIRE(
      write_config(files, kAdoptedIdentity, {"spare02", "https://c:7443", "aa", wire::Mode::adopted}).ok());
  CHECK(refusal().find("already node spare02") != std::string::npos);
  REQUIRE(
      write_config(files, kAdoptedIdentity, {"spare01", "https://d:7443", "bb", wire::Mode::adopted}).ok());
  CHECK(refusal().find("a different controller") != std::string::npos);
}

TEST_CASE("the request of a preview is read strictly", "[adopt]") {
  CHECK(preview_request("{}").error().code == Code::invalid);
  CHECK(preview_request(R"({"node":"n","pin":"p","steps":{}})").error().code == Code::invalid);
  CHECK(preview_request(R"({"node":"n","pin":"p","token":"t"})").error().code == Code::invalid);
  const auto good = preview_request(
      R"({"node":"n","pin":"p","steps":[{"id":"a","module":"file","params":{"path":"/x"}}]})");
  REQUIRE(good.ok());
  CHECK(good->steps.size() == 1);
  CHECK(preview_request(R"({"node":"n","pin":"p"})")->steps.empty());
}
