// No GPU is let off: which checks have to have run, what counts as having run, and what a test of several
// nodes that could not be run means for each of them.
#include "controller/report/gpu_checks.h"

#include "base/wire.h"
#include "controller/report/gpu_archive.h"
#include "controller/report/link_faults.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

MeasuredStep gpu_step(Json result, std::vector<std::string> blocks = {"data"}) {
  MeasuredStep out =
      step("gpu01", "gpu bf16", "", "", Json::parse(R"({"tflops":{"fleet_min_ratio":0.9}})"), result);
  out.on_gpus = true;
  out.mandatory = false;
  out.blocks = std::move(blocks);
  return out;
}
Json unavailable(Json detail = Json::object()) {
  return {{"check", "gpu-gemm"}, {"outcome", "unavailable"}, {"error", "no"}, {"detail", std::move(detail)}};
}
bool stopped(const std::vector<Check>& checks) {
  NodeReport node;
  node.checks = checks;
  node.checks.emplace_back().verdict = Verdict::pass;  // something else did run
  return !obstacle(node).empty();
}
bool stops(const MeasuredStep& step) { return stopped(judge_measurements({step}).at("gpu01")); }

HardwareFacts facts(int gpus, bool simulated = false) {
  HardwareFacts out;
  out.gpus.resize(static_cast<size_t>(gpus));
  for (auto& gpu : out.gpus) gpu.simulated = simulated;
  return out;
}
// The step as mark_gpu_steps() leaves it.
MeasuredStep marked(const Json& params, const HardwareFacts* found, bool lab = false, Json result = nullptr) {
  wire::Step planned;
  planned.id = "acceptance/x";
  planned.module = "accept";
  planned.params = params;
  MeasuredStep one = gpu_step(std::move(result));
  one.id = planned.id;
  one.on_gpus = false;
  std::vector<MeasuredStep> steps = {one};
  mark_gpu_steps({planned}, {lab, [found](const auto&) { return found; }}, steps);
  return steps.front();
}

MeasuredStep over_nodes(Json result) {
  MeasuredStep out = step("gpu01", "nccl", "", "", Json::parse(R"({"ranks":{"min":2}})"), std::move(result));
  out.on_gpus = true;
  out.mandatory = false;
  out.blocks = {"data"};
  out.members = {"gpu01", "gpu02", "gpu03"};
  out.rounds = Json::array();
  return out;
}
std::map<std::string, NodeVerdict> verdicts(const MeasuredStep& step,
                                            const std::map<std::string, const HardwareFacts*>& found = {}) {
  Comparison with;
  with.facts = found;
  auto checks = judge_measurements({step}, with);
  find_link_faults(checks, {step}, {}, found);
  Report report;
  for (const auto& name : step.members) {
    NodeReport& node = report.nodes.emplace_back();
    node.name = name;
    node.verdict = NodeVerdict::accepted;
    node.checks = checks[name];
    node.checks.emplace_back().verdict = Verdict::pass;
  }
  settle(report);
  std::map<std::string, NodeVerdict> out;
  for (const auto& node : report.nodes) out[node.name] = node.verdict;
  return out;
}
using Verdicts = std::map<std::string, NodeVerdict>;
constexpr NodeVerdict kGood = NodeVerdict::accepted, kHeld = NodeVerdict::degraded,
                      kOut = NodeVerdict::failed;

}  // namespace

TEST_CASE("what a profile's GPU check must do is run, whatever of it stops a node", "[gpu-checks]") {
  MeasuredStep unreported = gpu_step(nullptr);
  unreported.status = "incomplete";
  MeasuredStep broken = gpu_step(nullptr, {"ceilings"});
  broken.status = "failed";
  MeasuredStep excused = gpu_step(nullptr);
  excused.status = "not_applicable";
  Json nothing = measured("gpu-gemm", {{"clock", {1, "MHz"}}});
  for (const auto& one : {gpu_step(unavailable()), unreported, broken, excused, gpu_step(nothing)}) {
    CAPTURE(one.status, one.result.dump());
    CHECK(stops(one));
    MeasuredStep let_off = one;  // the profile says in so many words that it has no say
    let_off.blocks.clear();
    CHECK_FALSE(stops(let_off));
    MeasuredStep of_cpus = one;  // what is not about GPUs stays as it was
    of_cpus.on_gpus = false;
    CHECK(stops(of_cpus) == false);
  }
  const Json good = measured("gpu-gemm", {{"tflops", {700, "TFLOP/s"}}});
  CHECK_FALSE(stops(gpu_step(good)));
  Json slow = good;
  slow["metrics"]["tflops"]["value"] = 1;
  CHECK_FALSE(stops(gpu_step(slow)));  // speeds are no question of having run
}

TEST_CASE("one GPU of several that was not measured is a GPU without a test", "[gpu-checks]") {
  const auto part = [](const char* gpu, Json result) {
    return Json{{"subject", gpu}, {"like", "H100"}, {"result", std::move(result)}};
  };
  const Json good = measured("gpu-gemm", {{"tflops", {700, "TFLOP/s"}}});
  CHECK_FALSE(stops(gpu_step({{"parts", {part("GPU-1", good), part("GPU-2", good)}}})));
  CHECK(stops(gpu_step({{"parts", {part("GPU-1", good), part("GPU-2", unavailable())}}})));
  // What a GPU of that kind cannot do at all is no test that it was spared.
  const Json cannot = unavailable({{"unsupported", "fp8 needs compute capability 8.9, this GPU has 8.0"}});
  const auto of_old_ones = gpu_step({{"parts", {part("GPU-1", cannot), part("GPU-2", cannot)}}});
  CHECK_FALSE(stops(of_old_ones));
  CHECK(judge_measurements({of_old_ones}).at("gpu01").front().verdict == Verdict::not_applicable);
  MeasuredStep of_cpus = of_old_ones;
  of_cpus.on_gpus = false;
  CHECK(judge_measurements({of_cpus}).at("gpu01").front().verdict == Verdict::skipped);
}

TEST_CASE("checks of GPUs are those that load them or read their counters, on nodes that have real ones",
          "[gpu-checks]") {
  const HardwareFacts real = facts(2), none = facts(0), played = facts(2, true);
  const Json loads[] = {{{"kernel", "gpu-gemm"}},
                        {{"load", "nccl"}},
                        {{"load", "gpu-training"}},
                        {{"gpu_memory", true}},
                        {{"kernel", "counters"}, {"options", {{"gpus", true}}}}};
  for (const Json& params : loads) {
    CAPTURE(params.dump());
    CHECK(marked(params, &real).on_gpus);
    CHECK(marked(params, nullptr).on_gpus);  // declared, and never seen
    // Of the node's own they were planned for some that are gone.
    CHECK(marked(params, &none).on_gpus == params.contains("kernel"));
    CHECK_FALSE(marked(params, &played, true).on_gpus);
  }
  for (const Json& params :
       {Json{{"kernel", "dgemm"}}, Json{{"kernel", "counters"}, {"options", {{"since", "x"}}}},
        Json{{"load", "allreduce"}}, Json{{"kernel", "pcie"}}, Json(nullptr)})
    CHECK_FALSE(marked(params, &real).on_gpus);
  CHECK(marked({{"kernel", "gpu-gemm"}}, &played, true).status == "not_applicable");
  CHECK(marked({{"kernel", "gpu-gemm"}}, &played, false).status == "failed");
  // A check that tells of one GPU of two says nothing of the other.
  const Json part = {{"subject", "GPU-1"}, {"result", measured("gpu-gemm", {})}};
  const Json one = {{"parts", Json::array({part})}};
  CHECK(marked({{"kernel", "gpu-gemm"}}, &real, false, one).result["parts"].size() == 2);
  const HardwareFacts single = facts(1);
  CHECK(marked({{"kernel", "gpu-gemm"}}, &single, false, one).result["parts"].size() == 1);
}

TEST_CASE("a test of several nodes is about the GPUs of its members, whichever node starts it",
          "[gpu-checks]") {
  const HardwareFacts real = facts(2), none = facts(0), played = facts(2, true);
  const auto with = [&](const std::map<std::string, const HardwareFacts*>& found, bool lab = true) {
    wire::Step planned;
    planned.id = "acceptance/nccl";
    planned.params = {{"load", "nccl"}};
    std::vector<MeasuredStep> steps = {over_nodes(nullptr)};
    steps[0].id = planned.id;
    steps[0].node = "cpu01";
    steps[0].on_gpus = false;
    mark_gpu_steps({planned}, {lab, [&](const auto& node) { return found.at(node); }}, steps);
    return steps.front();
  };
  CHECK(with({{"cpu01", &none}, {"gpu01", &real}, {"gpu02", &real}, {"gpu03", &real}}).on_gpus);
  CHECK(with({{"cpu01", &none}, {"gpu01", &none}, {"gpu02", &played}, {"gpu03", &real}}).on_gpus);
  CHECK(with({{"cpu01", &none}, {"gpu01", &none}, {"gpu02", &none}, {"gpu03", nullptr}}).on_gpus);
  CHECK_FALSE(with({{"cpu01", &real}, {"gpu01", &none}, {"gpu02", &none}, {"gpu03", &none}}).on_gpus);
  const auto stand_ins = [&](bool lab) {
    return with({{"cpu01", &none}, {"gpu01", &none}, {"gpu02", &played}, {"gpu03", &played}}, lab);
  };
  CHECK(stand_ins(true).status == "not_applicable");
  CHECK(stand_ins(false).status == "failed");
  CHECK_FALSE(stand_ins(true).on_gpus);
}

TEST_CASE("a test over all GPUs that could not run leaves no member accepted, and names who was the reason",
          "[gpu-checks][collective]") {
  Json result = unavailable();
  result["check"] = "nccl";
  // Nothing is known but that it did not run: the node that started it answers for that.
  CHECK(verdicts(over_nodes(result)) == Verdicts{{"gpu01", kOut}, {"gpu02", kHeld}, {"gpu03", kHeld}});
  MeasuredStep unreported = over_nodes(nullptr);
  unreported.status = "failed";
  CHECK(verdicts(unreported) == Verdicts{{"gpu01", kOut}, {"gpu02", kHeld}, {"gpu03", kHeld}});
  // The reason is on another node, which says so; the others were ended because of it.
  result["detail"]["nodes"] = {
      {{"host", "gpu01"}, {"outcome", "unavailable"}, {"detail", {{"stopped", true}}}},
      {{"host", "gpu02.cluster"},
       {"outcome", "unavailable"},
       {"error", "no NCCL"},
       {"detail", {{"missing", "libnccl.so.2"}}}},
      {{"host", "stranger"}, {"outcome", "unavailable"}}};
  const MeasuredStep named = over_nodes(result);
  CHECK(verdicts(named) == Verdicts{{"gpu01", kHeld}, {"gpu02", kOut}, {"gpu03", kHeld}});
  auto checks = judge_measurements({named});
  find_link_faults(checks, {named}, {});
  REQUIRE_FALSE(checks["gpu02"].empty());
  CHECK(checks["gpu02"].back().reason.find("`muster reimage gpu02`") != std::string::npos);
  // The node that started it is the reason itself: the remedy is for what it lacks.
  const Json self = {{"host", "gpu01"},
                     {"outcome", "unavailable"},
                     {"error", "no program"},
                     {"detail", {{"missing", "muster-accept-gpu"}}}};
  result["detail"]["nodes"] = Json::array({self});
  CHECK(verdicts(over_nodes(result)) == Verdicts{{"gpu01", kOut}, {"gpu02", kHeld}, {"gpu03", kHeld}});
  // A member whose GPUs a lab stands in for has nothing to be tested.
  const HardwareFacts played = facts(2, true), real = facts(2);
  CHECK(verdicts(named, {{"gpu03", &played}, {"gpu02", &real}}).at("gpu03") == kGood);
}

TEST_CASE("who fails by itself has not tested the GPUs of the others with it", "[gpu-checks][collective]") {
  MeasuredStep step = over_nodes(nullptr);
  step.status = "incomplete";
  step.own_affair = true;
  CHECK(verdicts(step) == Verdicts{{"gpu01", kOut}, {"gpu02", kHeld}, {"gpu03", kHeld}});
  // It had run before: the others were tested.
  step.result = measured("nccl", {{"ranks", {3, "ranks"}}});
  step.status = "measured";
  CHECK(verdicts(step) == Verdicts{{"gpu01", kGood}, {"gpu02", kGood}, {"gpu03", kGood}});
  // Without a say in the profile, nothing of it is held against a node.
  MeasuredStep let_off = over_nodes(unavailable());
  let_off.blocks.clear();
  CHECK(verdicts(let_off) == Verdicts{{"gpu01", kGood}, {"gpu02", kGood}, {"gpu03", kGood}});
}

TEST_CASE("the remedy for a running host is about this machine, and names no controller", "[gpu-checks]") {
  for (const Json& detail : {Json::object(), Json{{"missing", "muster-accept-gpu"}},
                             Json{{"missing", "libcublasLt.so.12"}, {"found", "libcublasLt.so.13"}},
                             Json{{"missing", "libnccl.so.2"}}, Json{{"missing", "driver"}},
                             Json{{"missing", "muster-accept-nvml"}}}) {
    CAPTURE(detail.dump());
    MeasuredStep step = gpu_step(unavailable(detail));
    step.adopted = {"gpu07"};
    step.running = true;
    const std::string text = remedy(step, "gpu07");
    for (const char* other : {"--limit", "reimage", "apt install", "controller", "/usr/lib/muster"})
      CHECK(text.find(other) == std::string::npos);
    CHECK(text.find("`muster accept --hosts`") != std::string::npos);
    const bool program = detail.value("missing", "") == "muster-accept-gpu" || detail.contains("found");
    CHECK((text.find("--gpu-program") != std::string::npos) == program);
  }
}

TEST_CASE("the remedy names a program for a newer CUDA only with the driver that it needs", "[gpu-checks]") {
  const auto remedy_of = [](const std::string& missing, const std::string& found) {
    MeasuredStep step = gpu_step(unavailable({{"missing", missing}, {"found", found}}));
    step.running = true;
    return remedy(step, "gpu07");
  };
  const auto has = [](const std::string& text, const std::string& word) {
    return text.find(word) != std::string::npos;
  };
  const std::string newer = remedy_of("libcublasLt.so.12", "libcublasLt.so.13");
  CHECK(has(newer, "install libcublasLt.so.12 on gpu07"));
  CHECK(has(newer, "driver is 580"));
  CHECK(has(newer, bring_gpu_program(13)));
  CHECK(has(newer, "tar --zstd -xf muster-gpu-*-cuda13-linux-x86_64.tar.zst`"));
  const std::string older = remedy_of("libcublasLt.so.13", "libcublasLt.so.12");
  CHECK(has(older, bring_gpu_program(12)));
  CHECK_FALSE(has(older, "driver"));
  const std::string unknown = remedy_of("libcublasLt.so.13", "libcublasLt.so.16");
  CHECK(has(unknown, "install libcublasLt.so.13 on gpu07"));
  CHECK_FALSE(has(unknown, "driver"));
}

TEST_CASE("the remedy is the command for what is missing", "[gpu-checks]") {
  const auto remedy_of = [](Json detail) {
    return remedy(gpu_step(unavailable(std::move(detail))), "gpu07");
  };
  const auto has = [](const std::string& text, const std::string& command) {
    return text.find("`" + command + "`") != std::string::npos;
  };
  const std::string absent = remedy_of({{"missing", "muster-accept-gpu"}});
  CHECK(has(absent, "scripts/build-gpu-package.sh"));
  CHECK(has(absent, "apt install ./build-packages/muster-accept-gpu_*.deb"));
  CHECK(has(absent, "muster reimage gpu07"));
  const std::string other = remedy_of({{"missing", "libcublasLt.so.12"}, {"found", "libcublasLt.so.13"}});
  CHECK(has(other, "scripts/build-gpu-package.sh --here"));
  CHECK(other.find("CUDA 13") != std::string::npos);
  CHECK(has(other, "muster reimage gpu07"));
  const std::string no_library = remedy_of({{"missing", "libcublasLt.so.12"}});
  CHECK_FALSE(has(no_library, "scripts/build-gpu-package.sh --here"));
  CHECK(has(no_library, "muster reimage gpu07"));
  CHECK(has(remedy_of({{"missing", "driver"}}), "ssh gpu07 nvidia-smi"));
  CHECK(has(remedy_of(Json::object()), "muster accept --limit gpu07"));
  CHECK(has(remedy_of({{"missing", 7}}), "muster accept --limit gpu07"));
  // What was adopted is never re-imaged: `muster reimage` refuses it.
  for (const Json& detail : {Json{{"missing", "muster-accept-gpu"}},
                             Json{{"missing", "libcublasLt.so.12"}, {"found", "libcublasLt.so.13"}},
                             Json{{"missing", "libnccl.so.2"}}, Json{{"missing", "driver"}},
                             Json{{"missing", "muster-accept-nvml"}}}) {
    CAPTURE(detail.dump());
    MeasuredStep adopted = gpu_step(unavailable(detail));
    adopted.adopted = {"gpu07"};
    const std::string by_hand = remedy(adopted, "gpu07");
    CHECK(by_hand.find("muster reimage") == std::string::npos);
    CHECK(has(by_hand, "muster accept --limit gpu07"));
    const bool ours = detail["missing"].get<std::string>().starts_with("muster-") || detail.contains("found");
    CHECK((by_hand.find("/usr/lib/muster") != std::string::npos) == ours);
    CHECK(remedy(adopted, "gpu08").find("muster reimage gpu08") != std::string::npos);
  }
  // A plan for one node leaves a test of several out.
  for (const Json& detail :
       {Json::object(), Json{{"missing", "muster-accept-gpu"}}, Json{{"missing", "libnccl.so.2"}},
        Json{{"missing", "driver"}}, Json{{"missing", "muster-accept-nvml"}}}) {
    CAPTURE(detail.dump());
    const std::string together = remedy(over_nodes(unavailable(detail)), "gpu02");
    CHECK(has(together, "muster accept"));
    CHECK(together.find("--limit") == std::string::npos);
    CHECK(has(together, "muster reimage gpu02") == !detail.empty());
  }
}
