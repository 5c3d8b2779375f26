// What running hosts will not be measured for: from a plan, and from what their agents found.
#include "controller/hosts/forecast.h"

#include <algorithm>
#include <utility>

#include "base/wire.h"
#include "controller/report/gpu_archive.h"
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
  void plan_step(const std::string& module, const Json& params, std::vector<std::string> needs = {},
                 const std::string& node = "gpu01") {
    wire::Step step;
    step.id = module;
    step.module = module;
    step.params = params;
    step.needs = std::move(needs);
    Action action;
    action.id = node + "/accept";
    action.node = NodeName(node);
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

TEST_CASE("hosts: libibverbs without a provider measures no RDMA", "[hosts]") {
  ForecastBench bench;
  bench.plan_step("accept_rdma", {{"of", "gpu02"}});
  Json& tools = bench.hosts[0].look["tools"];
  tools = {{"perftest", true}, {"libibverbs", true}, {"glibc_2_34", true}, {"firewall", ""}};
  CHECK(bench.run().empty());  // an agent that does not know
  tools["verbs_providers"] = true;
  CHECK(bench.run().empty());
  tools["verbs_providers"] = false;
  const auto found = bench.run();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "RDMA");
  CHECK(mentions(found[0].remedy, "ibverbs-providers"));
}

TEST_CASE("hosts: where too little memory may be locked, RDMA is not measured", "[hosts]") {
  ForecastBench bench;
  Json& locked = bench.hosts[0].look["locked_memory_bytes"];
  locked = 65536;
  CHECK(bench.run().empty());  // nothing of RDMA is planned
  bench.plan_step("accept_rdma", {{"of", "gpu02"}});
  const auto found = bench.run();
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "RDMA");
  CHECK(mentions(found[0].why, "64 KiB"));
  locked = 8 << 20;
  CHECK(bench.run().empty());
  locked = "unlimited";
  CHECK(bench.run().empty());
}

TEST_CASE("hosts: without a program for GPUs, the archive that fits the driver and its libraries is named",
          "[hosts][gpu]") {
  ForecastBench bench;
  bench.gpu.by_cuda.clear();
  bench.plan_step("accept", {{"kernel", "gpu-gemm"}});
  const auto remedy = [&](const std::string& driver, const std::string& cublaslt) {
    bench.facts.properties["GPU driver"] = driver;
    bench.facts.gpu_libraries = {{cublaslt, "", "/usr/lib64/" + cublaslt}};
    const auto found = bench.run();
    REQUIRE(found.size() == 1);
    return found[0].remedy;
  };
  // The report has the same command.
  CHECK(remedy("550.54.15", "libcublasLt.so.12") == bring_gpu_program(12));
  CHECK(remedy("580.159.04", "libcublasLt.so.12") == bring_gpu_program(12));
  CHECK(remedy("580.159.04", "libcublasLt.so.13") == bring_gpu_program(13));
  // No program helps there.
  CHECK(mentions(remedy("470.82.01", "libcublasLt.so.11"), "driver 525"));
  CHECK_FALSE(mentions(remedy("470.82.01", "libcublasLt.so.11"), "tar "));
}

TEST_CASE("hosts: GPUs that are not measured come before all else that is not", "[hosts][gpu]") {
  ForecastBench bench;
  bench.gpu.by_cuda.clear();
  bench.plan_step("accept_rdma", {{"of", "gpu02"}});
  bench.plan_step("accept", {{"kernel", "gpu-gemm"}}, {}, "gpu02");
  bench.hosts[0].look["tools"] = {{"perftest", true}, {"libibverbs", false}};
  ReachedHost& later = bench.hosts.emplace_back();
  later.name = "gpu02";
  later.text = to_json(bench.facts).dump();
  bench.facts.gpus.clear();
  const auto found = bench.run();
  REQUIRE(found.size() == 2);
  CHECK(found[0].hosts == std::vector<std::string>{"gpu02"});
  CHECK(mentions(found[0].what, "GPUs"));
}

TEST_CASE("hosts: why a host is measured as a plain user is said in sudo's words", "[hosts]") {
  ForecastBench bench;
  bench.plan_step("accept", {{"kernel", "drives"}}, {"root"});
  bench.rights = {{"gpu01", true}};
  CHECK(bench.run().empty());
  bench.rights = {
      {"gpu01", false,
       "sudo: unable to resolve host gpu01: Name or service not known sudo: a password is required"}};
  auto found = bench.run();
  REQUIRE(found.size() == 1);
  CHECK(mentions(found[0].why, "a password is required"));
  CHECK_FALSE(mentions(found[0].why, "gpu01"));  // so that hosts become one entry
  bench.rights[0].why_user.clear();
  found = bench.run();
  REQUIRE(found.size() == 1);
  CHECK(mentions(found[0].remedy, "without --user"));
}
