// What running hosts will not be measured for: from a plan, and from what their agents found.
#include "controller/hosts/forecast.h"

#include <algorithm>

#include "base/wire.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// One host with a GPU, and the steps of its plan.
struct ForecastBench {
  Plan plan = {};
  std::vector<ReachedHost> hosts = {};
  std::vector<HostRights> rights = {};
  GpuPrograms gpu = {{{12, "/p/gpu12"}}, {}};
  HardwareFacts facts = {};

  ForecastBench() {
    facts.gpus.emplace_back().model = "NVIDIA H100 80GB HBM3";
    facts.properties["GPU driver"] = "580.159.04";
    facts.gpu_libraries = {{"libcublasLt.so.12", "", "/usr/lib64/libcublasLt.so.12"},
                           {"libnccl.so.2", "", "/usr/lib64/libnccl.so.2"}};
    hosts.emplace_back().name = "gpu01";
  }
  void plan_step(const std::string& module, const Json& params) {
    wire::Step step;
    step.id = module;
    step.module = module;
    step.params = params;
    Action action;
    action.id = "gpu01/accept";
    action.node = NodeName("gpu01");
    action.params = Json{{"steps", Json::array({wire::to_json(step)})}};
    plan.actions.push_back(action);
  }
  std::vector<NotMeasured> run(bool libs = false) {
    hosts[0].text = to_json(facts).dump();
    return forecast({plan, hosts, rights, gpu, libs, true});
  }
};

bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("hosts: of several programs and a folder of --libs the one that was chosen is said",
          "[hosts][gpu]") {
  ForecastBench bench;
  bench.plan_step("accept", {{"kernel", "gpu-gemm"}});
  CHECK(bench.run().empty());
  bench.facts.gpu_libraries.clear();
  CHECK(bench.run().size() == 1);
  CHECK(bench.run(true).empty());  // the only one, and the folder may have what it loads
  bench.gpu.by_cuda[13] = "/p/gpu13";
  const auto found = bench.run(true);
  REQUIRE(found.size() == 1);
  CHECK(mentions(found[0].why, "CUDA 13"));
  CHECK(mentions(found[0].remedy, "--gpu-program"));
  bench.facts.gpu_libraries = {{"libcublasLt.so.13", "", "/usr/lib64/libcublasLt.so.13"}};
  CHECK(bench.run(true).empty());
}

TEST_CASE("hosts: with a glibc older than 2.34 neither GPUs nor RDMA by the carried perftest are measured",
          "[hosts][gpu]") {
  ForecastBench bench;
  bench.plan_step("accept", {{"kernel", "gpu-gemm"}});
  bench.plan_step("accept_rdma", {{"of", "gpu02"}});
  Json& tools = bench.hosts[0].look["tools"];
  tools = {{"perftest", false}, {"libibverbs", true}, {"glibc_2_34", true}, {"firewall", ""}};
  CHECK(bench.run().empty());
  tools["glibc_2_34"] = false;
  auto found = bench.run();
  REQUIRE(found.size() == 2);
  CHECK(mentions(found[0].what, "GPUs"));
  CHECK(mentions(found[0].why, "glibc 2.34"));
  CHECK(found[1].what == "RDMA");
  CHECK(mentions(found[1].remedy, "package perftest"));
  tools["perftest"] = true;  // its own runs
  found = bench.run();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what != "RDMA");
  bench.facts.gpus.clear();
  CHECK(bench.run().empty());
  tools.erase("glibc_2_34");  // an agent that does not know
  CHECK(bench.run().empty());
}
