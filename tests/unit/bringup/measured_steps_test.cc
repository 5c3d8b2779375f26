#include "controller/bringup/acceptance.h"

#include "tests/catch.h"

using namespace muster;

namespace {

wire::Step step(const std::string& id, Json params) {
  wire::Step out;
  out.id = id;
  out.module = "accept";
  out.params = std::move(params);
  out.expect = {{"read_mbps", {{"min", 20}}}, {"peers", {{"min", 3}}}};
  return out;
}

Action action(const std::string& id, const std::vector<wire::Step>& steps) {
  Json list = Json::array();
  for (const auto& one : steps) list.push_back(to_json(one));
  TextPool pool;
  Action out;
  out.id = id;
  out.node = "n1";
  out.params = ActionParams::with_texts({{"steps", list}}, pool);
  return out;
}

}  // namespace

TEST_CASE("measured steps: those of a plan are read without the other nodes that they name", "[bringup]") {
  const Json peers = {{{"name", "n2"}, {"params", {{"peers", 1}}}}, {{"name", "n3"}}};
  const auto steps = planned_steps(action(
      "a",
      {step("a/shared", {{"kernel", "checksum-read"}, {"peers", peers}, {"options", {{"peers", "kept"}}}}),
       step("a/gpu", {{"kernel", "gpu-gemm"}})}));
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].params == Json{{"kernel", "checksum-read"}, {"options", {{"peers", "kept"}}}});
  CHECK(steps[0].expect == step("", {}).expect);
  CHECK(steps[1].params == Json{{"kernel", "gpu-gemm"}});
}

TEST_CASE("measured steps: what is kept is that of the last action requested", "[bringup]") {
  const auto plan = std::make_shared<const Plan>(), other = std::make_shared<const Plan>();
  StepsOfAction kept;
  CHECK(kept.of(plan, action("a", {step("a/one", {})})).front().id == "a/one");
  CHECK(kept.of(plan, action("a", {step("a/two", {})})).front().id == "a/one");  // of one plan they are one
  CHECK(kept.of(plan, action("b", {step("b/one", {})})).front().id == "b/one");
  CHECK(kept.of(other, action("b", {step("b/two", {})})).front().id == "b/two");
}
