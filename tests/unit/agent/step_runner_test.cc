#include "agent/core/step_runner.h"

#include <map>

#include "tests/catch.h"

using namespace muster;

namespace {

struct NoProcess : Process {
  Result<Output> run(const Command&) override { return fail(Code::not_found, "no processes here"); }
};

// A machine of named switches, and modules over it.
struct Bench {
  std::map<std::string, bool> on;
  int checks = 0, batches = 0, applies = 0;
  bool cancel = false;
  TimeMs now = 5;
  std::map<std::string, StepModule> modules;
  Files files{"/nonexistent"};
  NoProcess process;
  StepContext context{files, process, "node01"};
  std::vector<Json> steps;

  Bench() {
    const Json parameters = {{{"name", "switch"}, {"type", "string"}, {"required", true}}};
    StepModule plain{"plain", "", parameters, {}, {}, {}, {}, {}};
    plain.check = [this](StepContext&, const Json& p) -> Result<CheckResult> {
      ++checks;
      return CheckResult{on[p["switch"].get<std::string>()] ? Holds::yes : Holds::no,
                         "would turn on " + p["switch"].get<std::string>(),
                         p["switch"] == "odd" ? "it is upside down" : ""};
    };
    plain.apply = [this](StepContext&, const Json& p) -> Status {
      ++applies;
      if (p["switch"] == "stuck") return fail(Code::failed, "does not move");
      if (p["switch"] == "taken") return fail(Code::denied, "is held by ann");
      if (p["switch"] != "dead") on[p["switch"].get<std::string>()] = true;
      return Ok{};
    };
    modules["plain"] = plain;
    StepModule batch = plain;
    batch.name = "batch";
    batch.check_many = [this](StepContext& c, const std::vector<Json>& all) {
      ++batches;
      std::vector<Result<CheckResult>> out;
      for (const auto& p : all) out.push_back(modules["plain"].check(c, p));
      return out;
    };
    modules["batch"] = batch;
    StepModule test = plain;
    test.name = "test";
    test.apply = nullptr;
    modules["test"] = test;
    StepModule gauge{"gauge", "", parameters, {}, {}, {}, {}, {}};
    gauge.measure = [](StepContext&, const Json& p) -> Result<Json> {
      if (p["switch"] == "gone") return fail(Code::unavailable, "no peer");
      return Json{{"gflops", 7}};
    };
    modules["gauge"] = gauge;
    context.module = [this](const std::string& name) {
      return modules.count(name) ? &modules[name] : nullptr;
    };
    context.cancelled = [this] { return cancel; };
  }
  void add(const std::string& module, const std::string& name, bool mandatory = true, Json verify = Json()) {
    wire::Step s;
    s.id = module + "/" + name + "/" + std::to_string(steps.size());
    s.module = module;
    s.params = {{"switch", name}};
    s.mandatory = mandatory;
    s.verify = verify;
    steps.push_back(wire::to_json(s));
  }
  WorkOutcome run(const std::string& mode = "apply") {
    auto order = step_order_from_json({{"steps", steps}, {"mode", mode}}, context);
    REQUIRE(order.ok());
    return run_steps(
        context, *order, [this] { return now; }, [](const std::string&, Json) {});
  }
};

std::string statuses(const WorkOutcome& outcome) {
  std::string out;
  for (const auto& s : outcome.result["steps"])
    out += (out.empty() ? "" : " ") + s["status"].get<std::string>();
  return out;
}

}  // namespace

TEST_CASE("what holds is left alone, what does not is applied and checked again", "[agent]") {
  Bench b;
  b.on["lamp"] = true;
  b.add("plain", "lamp");
  b.add("plain", "fan");
  const auto outcome = b.run();
  CHECK(outcome.status.ok());
  CHECK(statuses(outcome) == "already applied");
  CHECK(b.applies == 1);
  CHECK(b.on["fan"]);
  CHECK(outcome.result["counts"]["applied"] == 1);
}

TEST_CASE("a step's record has the milliseconds that it took", "[agent]") {
  Bench b;
  b.modules["plain"].apply = [&b](StepContext&, const Json& p) -> Status {
    b.now += 540000;
    b.on[p["switch"].get<std::string>()] = true;
    return Ok{};
  };
  b.add("plain", "lamp");
  b.add("plain", "lamp");
  const auto outcome = b.run();
  CHECK(outcome.result.at("steps").at(0).at("ms") == 540000);
  CHECK(outcome.result.at("steps").at(1).at("ms") == 0);
}

TEST_CASE("what a check notes is the step's message, whether it held already or was applied", "[agent]") {
  Bench b;
  b.add("plain", "odd");
  b.add("plain", "odd");
  b.add("plain", "fan");
  const auto outcome = b.run();
  CHECK(statuses(outcome) == "applied already applied");
  CHECK(outcome.result["steps"][0]["message"] == "it is upside down");
  CHECK(outcome.result["steps"][1]["message"] == "it is upside down");
  CHECK(outcome.result["steps"][2]["message"] == "");
}

TEST_CASE("the step that was denied is named, if the order failed for it", "[agent]") {
  Bench b;
  const bool mandatory = GENERATE(true, false);
  b.add("plain", "taken", mandatory);
  b.add("plain", "stuck");
  const auto outcome = b.run();
  CHECK(outcome.status.error().code == Code::failed);
  CHECK(outcome.result.value("denied", "") == (mandatory ? "plain/taken/0" : ""));
}

TEST_CASE("mode check writes nothing and says what is not so", "[agent]") {
  Bench b;
  b.add("plain", "fan");
  const auto outcome = b.run("check");
  CHECK_FALSE(outcome.status.ok());
  CHECK(statuses(outcome) == "failed");
  CHECK(b.applies == 0);
  CHECK(outcome.result["steps"][0]["diff"] == "would turn on fan");
}

TEST_CASE("an apply without effect is a failure; after it the rest is incomplete, not passed", "[agent]") {
  Bench b;
  b.add("plain", "stuck", false);
  b.add("plain", "dead");
  b.add("plain", "fan");
  const auto outcome = b.run();
  CHECK(statuses(outcome) == "failed failed incomplete");
  CHECK(outcome.status.error().message.find("plain/dead") == 0);
  CHECK_FALSE(b.on["fan"]);
}

TEST_CASE("consecutive checks of a module are made once", "[agent]") {
  Bench b;
  for (const char* name : {"a", "b", "c"}) b.add("batch", name);
  b.add("plain", "x");
  b.add("batch", "d");
  CHECK(statuses(b.run()) == "applied applied applied applied applied");
  CHECK(b.batches == 2);
}

TEST_CASE("a step's own verify must hold, also when the step was already so", "[agent]") {
  Bench b;
  b.on["lamp"] = true;
  b.add("plain", "lamp", true, {{"module", "test"}, {"params", {{"switch", "light"}}}});
  auto outcome = b.run();
  CHECK(statuses(outcome) == "failed");
  b.on["light"] = true;
  CHECK(statuses(b.run()) == "already");
}

TEST_CASE("of a node at work nothing is tested: a step's verify runs only if its module reads",
          "[agent][preview]") {
  Bench b;
  b.on["lamp"] = true;
  const bool reads = GENERATE(false, true);
  b.modules["test"].only_reads = reads;
  b.add("plain", "lamp", true, {{"module", "test"}, {"params", {{"switch", "light"}}}});
  auto order = step_order_from_json({{"steps", b.steps}, {"mode", "check"}}, b.context);
  REQUIRE(order.ok());
  order->only_looks = true;
  const auto outcome = run_steps(
      b.context, *order, [] { return TimeMs{5}; }, [](const std::string&, Json) {});
  CHECK(statuses(outcome) == (reads ? "failed" : "already"));
  CHECK(b.checks == (reads ? 2 : 1));
}

TEST_CASE("measurements are attached; one that could not be made is incomplete", "[agent]") {
  Bench b;
  b.add("gauge", "cpu");
  b.add("gauge", "gone");
  const auto outcome = b.run("check");
  CHECK(statuses(outcome) == "measured incomplete");
  CHECK(outcome.result["steps"][0]["result"]["gflops"] == 7);
  CHECK_FALSE(outcome.status.ok());
}

TEST_CASE("a step that needs root is not looked at without it, and the order goes on", "[agent]") {
  Bench b;
  const auto needs = [&](std::vector<std::string> what) {
    wire::Step step = wire::step_from_json(b.steps.back()).value();
    step.needs = std::move(what);
    b.steps.back() = wire::to_json(step);
  };
  b.add("gauge", "drives");
  needs({"root"});
  b.add("gauge", "cpu");
  b.add("test", "fan", false);
  needs({"root"});
  b.add("gauge", "moon");
  needs({"wings"});  // of a later version
  CHECK(statuses(b.run("check")) == "measured measured failed not_looked_at");
  b.context.root = false;
  const auto plain = b.run("check");
  CHECK(statuses(plain) == "not_looked_at measured not_looked_at not_looked_at");
  CHECK(plain.status.ok());
  CHECK(plain.result["steps"][0]["message"] == "needs root");
  CHECK_FALSE(plain.result["steps"][0].contains("result"));
  CHECK(plain.result["counts"]["not_looked_at"] == 3);
}

TEST_CASE("what was to be changed and needs root is not done without it, and that is said", "[agent]") {
  Bench b;
  b.add("plain", "fan");
  wire::Step step = wire::step_from_json(b.steps.back()).value();
  step.needs = {"root"};
  b.steps.back() = wire::to_json(step);
  b.context.root = false;
  const auto outcome = b.run();
  CHECK(statuses(outcome) == "incomplete");
  CHECK_FALSE(outcome.status.ok());
  CHECK(b.applies == 0);
}

TEST_CASE("a cancelled order says so", "[agent]") {
  Bench b;
  b.cancel = true;
  b.add("plain", "fan", false);
  const auto outcome = b.run();
  CHECK(outcome.status.error().code == Code::cancelled);
  CHECK(b.applies == 0);
}

TEST_CASE("wrong orders are refused before anything runs", "[agent]") {
  Bench b;
  const auto refused = [&](const Json& step) {
    return !step_order_from_json({{"steps", Json::array({step})}}, b.context).ok();
  };
  CHECK(refused({{"id", "a"}, {"module", "nope"}, {"params", Json::object()}}));
  CHECK(refused({{"id", "a"}, {"module", "plain"}, {"params", Json::object()}}));
  CHECK(refused({{"id", "a"}, {"module", "plain"}, {"params", {{"switch", 3}}}}));
  CHECK(refused({{"id", "a"}, {"module", "plain"}, {"params", {{"switch", "x"}, {"zap", 1}}}}));
  CHECK_FALSE(refused({{"id", "a"}, {"module", "plain"}, {"params", {{"switch", "x"}}}}));
}
