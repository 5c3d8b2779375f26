#include "controller/bringup/acceptance.h"

#include "base/wire.h"
#include "controller/plan/action_params.h"
#include "tests/catch.h"

using namespace muster;

namespace {

Json step(const std::string& kernel, bool mandatory = true) {
  wire::Step s;
  s.id = "acceptance/" + kernel;
  s.module = "accept";
  s.params = {{"kernel", kernel}};
  s.mandatory = mandatory;
  return to_json(s);
}

Action check(const std::string& node, const Json& steps, TextPool* pool = nullptr) {
  Action a;
  a.id = node + "/accept";
  a.node = NodeName(node);
  a.kind = ActionKind::check;
  const Json params = {{"steps", steps}};
  a.params = pool ? ActionParams::with_texts(params, *pool) : ActionParams(params);
  return a;
}

HardwareFacts with_gpus(size_t count) {
  HardwareFacts facts;
  facts.gpus.resize(count);
  return facts;
}

using Nodes = std::set<std::string>;

}  // namespace

TEST_CASE("whose own GPUs a plan checks is read from its steps, however they are held", "[acceptance]") {
  Plan plan;
  TextPool pool;
  plan.actions = {check("n1", Json::array({step("stream"), step("gpu-gemm")}), &pool),
                  check("n2", Json::array({step("gpu-gemm")})),
                  check("n3", Json::array({step("stream"), step("counters")}), &pool),
                  check("n4", Json::array({step("gpu-gemm", false)}), &pool)};
  CHECK(checked_for_gpus(plan) == Nodes{"n1", "n2"});
  plan.actions[1].kind = ActionKind::steps;
  CHECK(checked_for_gpus(plan) == Nodes{"n1"});
}

TEST_CASE("a node whose GPUs nothing measures is held to it only where those of others are", "[acceptance]") {
  const HardwareFacts none = with_gpus(0), two = with_gpus(2);
  CHECK(unplanned_gpus(Nodes{"n2"}, "n1", &two));
  CHECK_FALSE(unplanned_gpus(Nodes{"n2"}, "n1", &none));
  CHECK_FALSE(unplanned_gpus(Nodes{"n2"}, "n1", nullptr));
  CHECK_FALSE(unplanned_gpus(Nodes{"n1", "n2"}, "n1", &two));
  CHECK_FALSE(unplanned_gpus(Nodes{}, "n1", &two));
}

TEST_CASE("what was read of one plan is not taken for what another says", "[acceptance]") {
  auto one = std::make_shared<Plan>(), other = std::make_shared<Plan>();
  one->actions = {check("n1", Json::array({step("gpu-gemm")}))};
  GpuChecksOfPlan checks;
  CHECK(checks.of(one) == Nodes{"n1"});
  CHECK(checks.of(other).empty());
  CHECK(checks.of(one) == Nodes{"n1"});
  one->actions.clear();  // it is read once
  CHECK(checks.of(one) == Nodes{"n1"});
}
