// `acceptance: { gpu: mandatory }`: what becomes of a profile's steps, and what of a spec without results.
#include "controller/plan/gpu_policy.h"

#include "controller/bringup/signed_gpu_results.h"
#include "controller/spec/reader/parse_spec.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"
#include "tests/unit/report/gpu_report.h"

using namespace muster;
using namespace muster::testing;

namespace {

const char* kSpec = R"(cluster: hgx
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc: { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "KEY" ], sudo: true }
images:
  gpu: { recipe: debian-13, kernel: full, bake: [ base ] }
nodes:
  - name: gpu[01-02]
    role: gpu
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02" ]
    image: gpu
    hardware: { gpus: 8, gpu_model: "NVIDIA H100*" }
    disks:
      os: { match: { serial: "OS*", count: 1 }, policy: format-if-blank }
roles:
  gpu: { playbooks: [ base ] }
acceptance: { profile: quick ACCEPTANCE }
)";

std::string spec_with(const std::string& acceptance, const std::string& more = "") {
  return replaced(replaced(kSpec, "KEY", kKey), " ACCEPTANCE", acceptance) + more;
}

std::string indented(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

const char* kMandatory = ", gpu: mandatory, gpu_results: r.json, gpu_results_key: r.pub";

std::string mandatory_spec(const std::string& results, const std::string& key) {
  return spec_with(kMandatory, "carried:\n  gpu_results: |\n" + indented(results) +
                                   "\n  gpu_results_key: |\n" + indented(key));
}

std::string errors_of(const std::string& text) {
  std::string out;
  for (const auto& e : parse_spec(text).errors) out += to_string(e, "f") + "\n";
  return out;
}

PlannerInput input_with(const Report& report) {
  const GpuSigner signer;
  PlannerInput in =
      shipped_input(mandatory_spec(signer.sign(to_json_text(report)), signer.pair.certificate_pem));
  auto results = gpu_results_of(in.spec);
  REQUIRE(results.ok());
  in.gpu_results = *results;
  return in;
}

Json step_of(const Plan& plan, const std::string& id) {
  for (const auto& action : plan.actions)
    if (action.node == "gpu01" && action.params.is_object() && action.params.contains("steps"))
      for (const auto& one : action.params["steps"])
        if (one["id"] == id) return one;
  FAIL("no step " << id);
  return nullptr;
}

}  // namespace

TEST_CASE("with signed results of its model a GPU's speeds are mandatory, by what was proven",
          "[plan][gpu-results]") {
  const PlannerInput in = input_with(gpu_report({740, 750, 760}));  // the text survived the YAML: it verified
  const Plan plan = planned_of(in);
  const Json gemm = step_of(plan, "quick/gpu bf16");
  CHECK(gemm.value("mandatory", true));
  CHECK_FALSE(gemm["expect"].contains("blocks"));
  const Json& limit = gemm["expect"]["tflops"];
  CHECK(limit["proven"]["models"][kH100]["value"] == 750);
  CHECK(limit["proven"]["models"][kH100]["gpus"] == 3);
  CHECK(limit["proven"]["ratio"] == 0.93);
  CHECK_FALSE(limit.contains("derive"));
  CHECK(limit.contains("fleet_min_ratio"));
  CHECK_FALSE(gemm["expect"]["drift"].contains("proven"));
  CHECK(step_of(plan, "quick/dgemm")["expect"]["gflops"].contains("derive"));
  // Reported as ever without the key.
  const Plan before = planned_of(shipped_input(spec_with("")));
  const Json reported = step_of(before, "quick/gpu bf16");
  CHECK_FALSE(reported.value("mandatory", true));
  CHECK(reported["expect"]["tflops"].contains("derive"));
}

TEST_CASE("results of another model, or without a speed that the profile asks, are an error of the plan",
          "[plan][gpu-results]") {
  PlannerInput in = input_with(gpu_report({740}));
  SECTION("found another model than declared") {
    for (auto& node : in.spec.nodes)
      if (node.name == "gpu02") node.hardware.gpu_model.clear();  // else it is left out for it
    for (auto& gpu : in.nodes["gpu02"].facts->gpus) gpu.model = "NVIDIA B200";
    const auto made = make_plan(in);
    REQUIRE_FALSE(made.ok());
    CAPTURE(made.error().message);
    CHECK(made.error().code == Code::invalid);
    CHECK(made.error().message.find("gpu02") != std::string::npos);
    CHECK(made.error().message.find("NVIDIA B200") != std::string::npos);
    CHECK(made.error().message.find("gpu01") == std::string::npos);
  }
  SECTION("declared another model, no driver yet") {
    for (auto& node : in.spec.nodes) node.hardware.gpu_model = "NVIDIA H200*";
    for (auto& gpu : in.nodes["gpu01"].facts->gpus) gpu.model = "10de:2335";
    CHECK_FALSE(make_plan(in).ok());
  }
  SECTION("neither found nor declared") {
    for (auto& node : in.spec.nodes) node.hardware.gpu_model.clear();
    const auto made = make_plan(in);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message.find("hardware.gpu_model") != std::string::npos);
  }
  SECTION("a speed is missing") {
    in.gpu_results->models[kH100].erase("gpu memory/copy_gbps");
    const auto made = make_plan(in);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message.find("gpu memory/copy_gbps") != std::string::npos);
  }
  SECTION("never read") {
    in.gpu_results.reset();
    CHECK_FALSE(make_plan(in).ok());
  }
  SECTION("none of it for nodes without GPUs") {
    for (auto& node : in.spec.nodes) node.hardware.gpus.reset(), node.hardware.gpu_model.clear();
    for (auto& [name, seen] : in.nodes) seen.facts->gpus.clear();
    in.gpu_results->models = {{"NVIDIA B200", {}}};
    CHECK(make_plan(in).ok());
  }
}

TEST_CASE("what is planned does not depend on whether the driver told the model yet", "[plan][gpu-results]") {
  PlannerInput in = input_with(gpu_report({740}));
  const auto before = planned_of(in).config_digests;
  for (auto& [name, seen] : in.nodes)
    for (auto& gpu : seen.facts->gpus) gpu.model = kH100;
  CHECK(planned_of(in).config_digests == before);
}

TEST_CASE("gpu: mandatory without what it stands on is an error of the spec", "[spec][gpu-results]") {
  CHECK(errors_of(spec_with("")).empty());
  CHECK(errors_of(spec_with(", gpu: reported")).empty());
  const std::string bare = errors_of(spec_with(", gpu: mandatory"));
  CHECK(bare.find("gpu_results: FILE") != std::string::npos);
  CHECK(bare.find("gpu_results_key: FILE") != std::string::npos);
  const std::string not_carried = errors_of(spec_with(kMandatory));
  CHECK(not_carried.find("acceptance.gpu_results: ") != std::string::npos);
  CHECK(not_carried.find("acceptance.gpu_results_key: ") != std::string::npos);
  CHECK(errors_of(mandatory_spec("{\n}\n", "key\n"))
            .empty());  // what is in them is looked at by gpu_results_of
  CHECK(errors_of(mandatory_spec("{\n}\n", "key\n") + "lab:\n  memory_mib: 1024\n").find("SIMULATED") !=
        std::string::npos);
  CHECK(errors_of(spec_with(", gpu_results: r.json")).find("no effect") != std::string::npos);
  CHECK(errors_of(spec_with(", gpu: perhaps")).find("acceptance.gpu") != std::string::npos);
  const ParsedSpec useless = parse_spec(mandatory_spec("{\n}\n", "key\n"));
  CHECK(gpu_results_of(useless.spec).error().code == Code::invalid);
}
