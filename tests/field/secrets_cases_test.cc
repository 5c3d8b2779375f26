// Field cases of secrets that were where others could read them.
#include "agent/core/step_runner.h"
#include "base/json_dump.h"
#include "controller/spec/reader/own_playbooks.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

const std::string kCase = "secret-in-argv-and-result";

// All programs end with status 1.
struct Failing : Process {
  Result<Output> run(const Command&) override { return Output{1, "", ""}; }
};

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

}  // namespace muster::tests
