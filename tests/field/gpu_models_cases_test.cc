// Models of GPUs that the table has, has not, and has only the whole of.
#include "controller/report/expected.h"
#include "controller/report/verdict.h"
#include "tests/field/case.h"

namespace muster::tests {
namespace {

// As in playbooks/acceptance/standard.yaml.
const Json kBf16 = Json::parse(R"({"tflops":{"derive":"gpu_bf16_tflops","ratio":0.93,"unit":"TFLOP/s"}})");
const Json kFp8 = Json::parse(R"({"tflops":{"derive":"gpu_fp8_tflops","ratio":0.93,"unit":"TFLOP/s"}})");
const Json kNccl =
    Json::parse(R"({"all_reduce_busbw_gbps":{"derive":"nccl_bus","ratio":0.85,"unit":"GB/s"}})");

Json json_of(const std::string& name, const std::string& file) {
  const auto json = parse_json(field_input(name, file));
  REQUIRE(json.ok());
  return *json;
}

std::vector<Check> judged(const Json& expect, Json result, const HardwareFacts* facts = nullptr) {
  MeasuredStep step;
  step.id = "acceptance/x";
  step.node = "n1";
  step.group = "x";
  step.status = "applied";
  step.expect = expect;
  step.result = std::move(result);
  Comparison with;
  if (facts) with.facts["n1"] = facts;
  return judge_measurements({step}, with).at("n1");
}

const Check& metric(const std::vector<Check>& checks, const std::string& name,
                    const std::string& subject = "") {
  for (const auto& check : checks)
    if (check.name == "x/" + name && check.subject == subject) return check;
  FAIL("no check of " << name << " " << subject);
  return checks.front();
}

}  // namespace

FIELD_CASE("h200-nvl") {
  const auto facts = hardware_facts_from_json(json_of("h200-nvl", "facts.json"));
  REQUIRE(facts.ok());
  const auto gemm = judged(kBf16, json_of("h200-nvl", "gemm.json"), &*facts);
  for (const char* gpu : {"GPU-1", "GPU-2"}) {
    const Check& check = metric(gemm, "tflops", gpu);
    CHECK(check.verdict == Verdict::not_judged);
    CHECK_FALSE(check.expected);
    CHECK(check.reason.find("NVIDIA H200 NVL") != std::string::npos);
  }
  Json nccl = json_of("h200-nvl", "nccl.json");
  nccl["metrics"]["all_reduce_busbw_gbps"] = {{"value", 200}, {"unit", "GB/s"}};
  CHECK(metric(judged(kNccl, nccl, &*facts), "all_reduce_busbw_gbps").verdict == Verdict::not_judged);
}

FIELD_CASE("mig-instance") {
  // The driver has two whole GPUs; on one of them MIG is on.
  HardwareFacts facts;
  facts.gpus.resize(2);
  for (auto& gpu : facts.gpus) gpu.model = "NVIDIA A100-SXM4-40GB";
  const auto checks = judged(kBf16, json_of("mig-instance", "gemm.json"), &facts);
  const Check& instance = metric(checks, "tflops", "MIG-1");
  CHECK(instance.verdict == Verdict::not_judged);
  CHECK(instance.reason.find("MIG") != std::string::npos);
  // The whole GPU beside it is held to its own figure.
  CHECK(metric(checks, "tflops", "GPU-2").verdict == Verdict::pass);
  CHECK(metric(checks, "tflops", "GPU-2").expected == 0.93 * 261);
}

FIELD_CASE("b200-best-shape") {
  HardwareFacts facts;
  facts.gpus.resize(1);
  facts.gpus[0].model = "NVIDIA B200";
  const auto checks = judged(kFp8, json_of("b200-best-shape", "fp8.json"), &facts);
  CHECK(metric(checks, "tflops", "GPU-1").verdict == Verdict::not_judged);
}

}  // namespace muster::tests
