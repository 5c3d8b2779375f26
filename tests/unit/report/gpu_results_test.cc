// Signed results of GPUs: which files count, what is read of them, and what GPUs are held to by them.
#include "controller/report/gpu_results.h"

#include "controller/report/signature.h"
#include "controller/report/verdict.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/unit/report/gpu_report.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using namespace muster::testing;
using report_sample::measured;
using report_sample::step;

namespace {

Result<GpuResults> read(const std::string& text, const GpuSigner& signer) {
  return read_gpu_results(text, signer.pair.certificate_pem,
                          [](const std::string& pem, const std::string& body, const std::string& value) {
                            return pki::verify(pem, body, value).value_or(false);
                          });
}

Check judged_gpu(double tflops, const std::string& model, const Json& models) {
  const Json expect = {
      {"tflops",
       {{"unit", "TFLOP/s"}, {"proven", {{"by", "sha256:abc"}, {"ratio", 0.93}, {"models", models}}}}}};
  auto one =
      step("gpu01", "gpu bf16", "", "GPU-1", expect, measured("gpu-gemm", {{"tflops", {tflops, "TFLOP/s"}}}));
  one.like = model;
  return judge_measurements({one}).at("gpu01").back();
}

}  // namespace

TEST_CASE("of a signed report count real GPUs that passed, on nodes that were handed over", "[gpu-results]") {
  const GpuSigner signer;
  Report report = gpu_report({740, 750, 760});
  report.nodes.push_back(gpu_node("gpu02", {100}));
  report.nodes.back().verdict = NodeVerdict::quarantined;
  report.nodes.push_back(gpu_node("gpu03", {900}));
  report.nodes.back().facts["gpus"][0]["simulated"] = true;
  report.nodes.push_back(gpu_node("gpu04", {300}));
  for (auto& check : report.nodes.back().checks) check.verdict = Verdict::degraded;
  const auto results = read(signer.sign(to_json_text(report)), signer);
  REQUIRE(results.ok());
  REQUIRE(results->models.size() == 1);
  const auto& speed = results->models.at(kH100).at("gpu bf16/tflops");
  CHECK(speed.value == 750);
  CHECK(speed.gpus == 3);
  CHECK(results->digest.starts_with("sha256:"));
}

TEST_CASE("a file that proves nothing is refused, and what is wrong is said", "[gpu-results]") {
  const GpuSigner signer, other;
  const Report good = gpu_report({740});
  REQUIRE(read(signer.sign(to_json_text(good)), signer).ok());
  Report simulated = good;
  simulated.simulated = true;
  Report lab_gpus = good;
  for (auto& gpu : lab_gpus.nodes[0].facts["gpus"]) gpu["simulated"] = true;
  Report named = good;
  for (auto& gpu : named.nodes[0].facts["gpus"]) gpu["model"] = "SIMULATED GPU H100";
  Report no_gpus = good;
  no_gpus.nodes[0].checks.clear();
  std::string changed = signer.sign(to_json_text(good));
  changed.replace(changed.find("740"), 3, "940");
  const std::pair<std::string, std::string> bad[] = {{signer.sign(to_json_text(simulated)), "SIMULATED"},
                                                     {signer.sign(to_json_text(lab_gpus)), "no GPU"},
                                                     {signer.sign(to_json_text(named)), "no GPU"},
                                                     {signer.sign(to_json_text(no_gpus)), "no GPU"},
                                                     {other.sign(to_json_text(good)), "`gpu_results_key` is"},
                                                     {to_json_text(good), "signed"},
                                                     {changed, "digest"},
                                                     {"", "signed"}};
  for (const auto& [text, why] : bad) {
    CAPTURE(why);
    const auto results = read(text, signer);
    REQUIRE_FALSE(results.ok());
    CHECK(results.error().code == Code::invalid);
    CHECK(results.error().message.find(why) != std::string::npos);
    CHECK(results.error().message.find("acceptance.gpu_results") == 0);
  }
  // Well-formed in every way, and not signed by that key: only the cryptography sees it.
  const auto forged = read_gpu_results(signer.sign(to_json_text(good)), signer.pair.certificate_pem,
                                       [](const auto&, const auto&, const auto&) { return false; });
  CHECK(forged.error().code == Code::invalid);
  CHECK_FALSE(read_gpu_results(signer.sign(to_json_text(good)), "no key", nullptr).ok());
}

TEST_CASE("a GPU is held to what others of its model were proven to reach", "[gpu-results]") {
  const Json models = {{kH100, {{"value", 750}, {"gpus", 8}}}};
  CHECK(judged_gpu(740, kH100, models).verdict == Verdict::pass);
  CHECK(judged_gpu(690, kH100, models).verdict == Verdict::degraded);  // below 0.93
  const Check slow = judged_gpu(630, kH100, models);                   // below 0.85
  CHECK(slow.verdict == Verdict::fail);
  CHECK_FALSE(slow.missed_floor);  // others reached it: it is not asked about
  CHECK(slow.derivation.find("sha256:abc") != std::string::npos);
  // Never lenient: of a model without results nothing passes, however fast.
  CHECK(judged_gpu(2000, "NVIDIA B200", models).verdict == Verdict::skipped);
  CHECK(judged_gpu(2000, "", models).verdict == Verdict::skipped);
  CHECK(judged_gpu(2000, "NVIDIA B200", models).mandatory);
}

TEST_CASE("without muster-accept-gpu every GPU check fails its node, also one that only wrong data stops",
          "[gpu-results][gpu-checks]") {
  const Json missing = {{"check", "gpu-memory"},
                        {"outcome", "unavailable"},
                        {"error", "muster-accept-gpu is not on this node"},
                        {"detail", {{"missing", "muster-accept-gpu"}}}};
  auto memory = step("gpu01", "gpu memory", "", "", nullptr, missing);
  memory.mandatory = false;
  memory.on_gpus = true;
  memory.blocks = {"run", "data"};
  auto gemm = memory;
  gemm.group = "gpu bf16";
  gemm.blocks = {"data"};
  auto reported = memory;  // mandatory: false
  reported.group = "rdma from gpu memory";
  reported.blocks.clear();
  const auto checks = judge_measurements({memory, gemm, reported}).at("gpu01");
  REQUIRE(checks.size() == 3);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(checks[i].verdict == Verdict::fail);
    CHECK(checks[i].mandatory);
  }
  CHECK(checks[2].verdict == Verdict::skipped);
  CHECK_FALSE(checks[2].mandatory);
}
