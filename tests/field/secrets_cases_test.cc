// Field cases of secrets that were where others could read them.
#include "agent/core/step_runner.h"
#include "base/json_dump.h"
#include "controller/spec/reader/own_playbooks.h"
#include "tests/fakes/fake_machine.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

const std::string kCase = "secret-in-argv-and-result";

// All programs end with status 1.
struct Failing : Process {
  Result<Output> run(const Command&) override { return Output{1, "", ""}; }
};

SecretMask mask_of(const std::string& value) { return SecretMask(std::vector<std::string>{value}); }

}  // namespace

FIELD_CASE("secret-in-argv-and-result: such a playbook is refused when it is read") {
  std::vector<std::string> places;
  for (const SpecError& error : parse_own_playbook({"site.yaml", field_input(kCase, "site.yaml")}).errors)
    places.push_back(error.path);
  CHECK(places == std::vector<std::string>{"steps[0].params.argv", "steps[0].params.check"});
}

FIELD_CASE("secret-in-argv-and-result: no message repeats what a program was started with") {
  Files files("/nonexistent");
  Failing process;
  StepContext context{files, process, "node01"};
  context.module = [](const std::string& name) { return find_step_module(name); };
  auto sent = parse_json(field_input(kCase, "order.json"));
  REQUIRE(sent.ok());
  (*sent)["stop_on_failure"] = false;
  const auto order = step_order_from_json(*sent, context);
  REQUIRE(order.ok());
  std::string reported;
  const auto emit = [&](const std::string& kind, const Json& data) { reported += kind + dump_json(data); };
  const WorkOutcome outcome = run_steps(
      context, *order, [] { return TimeMs{0}; }, emit);
  REQUIRE_FALSE(outcome.status.ok());
  CHECK(outcome.result["counts"]["failed"] == 2);
  reported += dump_json(outcome.result) + outcome.status.error().message;
  CHECK(reported.find("THE-APP-SECRET") == std::string::npos);
}

FIELD_CASE("diff-has-the-old-password") {
  const std::string name = "diff-has-the-old-password", secret = "this-years-password";
  for (const char* mode : {"0600", "0644"}) {
    FakeMachine machine;
    StepContext context = machine.context();
    context.secrets = mask_of(secret);
    const Json file = {{"path", "/etc/my.cnf"}, {"content", field_input(name, "my.cnf")}, {"mode", mode}};
    REQUIRE(find_step_module("file")->apply(context, file).ok());
    const auto changed = find_step_module("config")->check(context, {{"path", "/etc/my.cnf"},
                                                                     {"format", "ini"},
                                                                     {"section", "client"},
                                                                     {"values", {{"password", secret}}}});
    REQUIRE(changed.ok());
    CHECK(changed->holds == Holds::no);
    CHECK(changed->diff.find("years-password") == std::string::npos);
    Json whole = file;
    whole["content"] = secret;
    const auto replaced = find_step_module("file")->check(context, whole);
    REQUIRE(replaced.ok());
    CHECK(replaced->holds == Holds::no);
    CHECK(replaced->diff.find("years-password") == std::string::npos);
  }
}

FIELD_CASE("check-mode-shows-the-secret") {
  FakeMachine machine;
  StepContext context = machine.context();
  context.secrets = mask_of("PASSWORD = a-random-password");
  const auto sent = parse_json(field_input("check-mode-shows-the-secret", "order.json"));
  REQUIRE(sent.ok());
  const auto order = step_order_from_json(*sent, context);
  REQUIRE(order.ok());
  std::string reported;
  const auto emit = [&](const std::string& kind, const Json& data) { reported += kind + dump_json(data); };
  const WorkOutcome outcome = run_steps(
      context, *order, [] { return TimeMs{0}; }, emit);
  CHECK(outcome.result["counts"]["failed"] == 1);
  CHECK(reported.find("'***' is missing") != std::string::npos);
  CHECK((reported + dump_json(outcome.result)).find("a-random-password") == std::string::npos);
}

FIELD_CASE("base64-of-secret-and-more") {
  const std::string output = field_input("base64-of-secret-and-more", "output.txt");
  const std::string shown = mask_of("a-random-password").text(output);
  INFO(shown);
  CHECK(shown.find("***") != std::string::npos);
  CHECK(shown.size() < output.size() / 2 + 4);
}

}  // namespace muster::tests
