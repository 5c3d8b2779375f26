#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "agent/checks/checks.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// Answers for muster-accept and mpirun: a measurement per program, and a record of the calls.
struct Kernels : Process {
  std::vector<std::vector<std::string>> runs;
  std::map<std::string, Output> answers;  // by kernel name, or any other word of the command
  bool hangs = false;
  std::string hangs_with = "nothing";  // a word of the command
  std::mutex mutex;                    // pairs of an all-reduce run at the same time
  Result<Output> run(const Command& command) override {
    const std::lock_guard hold(mutex);
    runs.push_back(command.argv);
    if (hangs || std::count(command.argv.begin(), command.argv.end(), hangs_with))
      return fail(Code::timeout, command.argv[0] + " did not end within its time");
    for (const auto& [kernel, output] : answers)
      if (std::count(command.argv.begin(), command.argv.end(), kernel)) return output;
    return fail(Code::not_found, command.argv[0] + ": not found");
  }
};

Output prints(const Json& json, int exit_code = 0) { return {exit_code, json.dump() + "\n", ""}; }
Json result(const std::string& check, const std::string& outcome = "measured") {
  return {{"check", check},
          {"outcome", outcome},
          {"error", outcome == "measured" ? "" : "bad"},
          {"metrics", Json::object()}};
}

struct Bench {
  Files files{"/nonexistent"};
  Kernels process;
  StepContext context{files, process, "node02"};
};

}  // namespace

TEST_CASE("accept runs one kernel with its options and hands its measurement on") {
  Bench bench;
  bench.process.answers["dgemm"] = prints(result("dgemm"));
  const auto module = checks::accept_module();
  const Json params = {
      {"kernel", "dgemm"},
      {"options",
       {{"seconds", 0.5}, {"n", 96}, {"variant", "baseline"}, {"remove", true}, {"quiet", false}}}};
  REQUIRE(check_parameters(module, params).ok());
  const auto measured = module.measure(bench.context, params);
  REQUIRE(measured.ok());
  CHECK(*measured == result("dgemm"));
  CHECK(bench.process.runs.at(0) == std::vector<std::string>{"/usr/sbin/muster-accept", "dgemm", "--n", "96",
                                                             "--remove", "--seconds", "0.5", "--variant",
                                                             "baseline"});
}

TEST_CASE("what the order brought is run, wherever it lies, and files are left in the agent's folder",
          "[carried]") {
  Bench bench;
  bench.context.programs = {{"muster-accept", "/proc/7/fd/5"}, {"muster-accept-nvml", "/proc/7/fd/6"}};
  bench.context.folder = "/dev/shm/x";
  bench.process.answers["counters"] = prints(result("counters"));
  bench.process.answers["dgemm"] = prints(result("dgemm"));
  const auto measure = checks::accept_module().measure;
  const Json options = {{"since", "{folder}/muster-counters.json"}};
  REQUIRE(measure(bench.context, {{"kernel", "counters"}, {"options", options}}).ok());
  CHECK(bench.process.runs.back() == std::vector<std::string>{"/proc/7/fd/5", "counters", "--since",
                                                              "/dev/shm/x/muster-counters.json", "--nvml",
                                                              "/proc/7/fd/6"});
  REQUIRE(measure(bench.context, {{"kernel", "dgemm"}}).ok());
  CHECK(bench.process.runs.back() == std::vector<std::string>{"/proc/7/fd/5", "dgemm"});

  // One that was not brought is looked for where images have it.
  bench.context.programs.clear();
  bench.context.folder = "/run";
  REQUIRE(measure(bench.context, {{"kernel", "counters"}, {"options", options}}).ok());
  CHECK(bench.process.runs.back() == std::vector<std::string>{"/usr/sbin/muster-accept", "counters",
                                                              "--since", "/run/muster-counters.json"});
}

TEST_CASE("wrong data is a measurement; no measurement is an error") {
  Bench bench;
  const auto measure = checks::accept_module().measure;
  bench.process.answers["stream"] = prints(result("stream", "corrupt"), 1);
  CHECK(measure(bench.context, {{"kernel", "stream"}}).value()["outcome"] == "corrupt");
  bench.process.answers["stream"] = {2, "", "The following argument was not expected: --secnods"};
  CHECK(measure(bench.context, {{"kernel", "stream"}}).error().code == Code::invalid);
  bench.process.answers["stream"] = {139, "", "Segmentation fault"};
  CHECK(measure(bench.context, {{"kernel", "stream"}}).error().code == Code::failed);
  bench.process.answers["stream"] = {139, "", std::string(901, 'x') + "y"};
  CHECK(measure(bench.context, {{"kernel", "stream"}})
            .error()
            .message.ends_with("..." + std::string(899, 'x') + "y"));
  bench.process.answers["stream"] = {0, "{\"half", ""};
  CHECK_FALSE(measure(bench.context, {{"kernel", "stream"}}).ok());
  const size_t before = bench.process.runs.size();
  CHECK(measure(bench.context, {{"kernel", "sh"}}).error().code == Code::invalid);
  CHECK(bench.process.runs.size() == before);
}

TEST_CASE("GPU kernels run in their own program; without it the answer is that nothing was measured") {
  Bench bench;
  const auto measure = checks::accept_module().measure;
  const Json params = {{"kernel", "gpu-gemm"}, {"options", {{"format", "fp8"}, {"expect-gpus", "8"}}}};
  const auto missing = measure(bench.context, params);
  REQUIRE(missing.ok());
  CHECK((*missing)["outcome"] == "unavailable");
  CHECK((*missing)["detail"]["missing"] == "muster-accept-gpu");
  const std::string why = (*missing)["error"].get<std::string>();
  CHECK(why.find("muster-accept-gpu is not on this node") == 0);
  bench.process.answers["gemm"] = prints(result("gpu-gemm"));
  CHECK(measure(bench.context, params).value() == result("gpu-gemm"));
  CHECK(bench.process.runs.back() == std::vector<std::string>{"/usr/sbin/muster-accept-gpu", "gemm",
                                                              "--expect-gpus", "8", "--format", "fp8"});
  bench.process.hangs = true;
  CHECK(measure(bench.context, params).error().code == Code::timeout);
  CHECK(measure(bench.context, {{"kernel", "gpu-"}}).error().code == Code::invalid);
}

TEST_CASE("a kernel may be about the next peer that is there") {
  Bench bench;
  bench.process.answers["checksum-read"] = prints(result("checksum"));
  const auto measure = checks::accept_module().measure;
  const auto requested = [&](Json peers) {
    REQUIRE(measure(bench.context,
                    {{"kernel", "checksum-read"}, {"options", {{"name", "accept-{peer}"}}}, {"peers", peers}})
                .ok());
    return bench.process.runs.empty() ? "" : bench.process.runs.back().back();
  };
  const Json one = {{"name", "node01"}, {"address", "a"}}, three = {{"name", "node03"}, {"address", "c"}};
  CHECK(requested({one, three}) == "accept-node03");
  CHECK(requested({one}) == "accept-node01");  // node03 is quarantined
  CHECK(measure(bench.context, {{"kernel", "checksum-read"}, {"peers", Json::array()}})
            .value()["parts"]
            .empty());
}

TEST_CASE("a storage test gets the name of its node: its file lies where other nodes test too") {
  Bench bench;
  bench.context.order = "7-1a2024c8906/node02/accept-2#1";
  bench.process.answers["fio"] = prints(result("fio"));
  REQUIRE(
      checks::accept_module().measure(bench.context, {{"kernel", "fio"}, {"options", {{"size", 8}}}}).ok());
  const auto& run = bench.process.runs.at(0);
  CHECK(std::vector<std::string>(run.end() - 4, run.end()) ==
        std::vector<std::string>{"--node", "node02", "--order", bench.context.order});
}

TEST_CASE("links are measured to every peer, beginning with the next one, while serving") {
  Bench bench;
  bench.process.answers["link-serve"] = prints(result("link-serve"));
  bench.process.answers["link"] = prints(result("link"));
  const auto module = checks::accept_links_module();
  const Json params = {
      {"address", "10.0.0.2"},
      {"peers",
       {{{"name", "node01"}, {"address", "10.0.0.1"}}, {{"name", "node03"}, {"address", "10.0.0.3"}}}}};
  REQUIRE(check_parameters(module, params).ok());
  const Json out = module.measure(bench.context, params).value();
  REQUIRE(out["parts"].size() == 2);
  CHECK(out["parts"][0]["subject"] == "node03");
  CHECK(out["parts"][1]["subject"] == "node01");
  REQUIRE(bench.process.runs.size() == 3);
  CHECK(bench.process.runs[0][1] == "link-serve");
  CHECK(std::count(bench.process.runs[0].begin(), bench.process.runs[0].end(), "--detach") == 1);
  const auto with = std::find(bench.process.runs[0].begin(), bench.process.runs[0].end(), "--with");
  REQUIRE(with != bench.process.runs[0].end());
  CHECK(*(with + 1) == std::to_string(::getpid()));
  CHECK(std::count(bench.process.runs[1].begin(), bench.process.runs[1].end(), "10.0.0.3") == 1);

  bench.process.answers["link-serve"] = prints(result("link-serve", "unavailable"), 3);
  CHECK(module.measure(bench.context, params).error().code == Code::unavailable);
  CHECK(module.measure(bench.context, {{"address", "10.0.0.2"}, {"peers", Json::array()}})
            .value()["parts"]
            .empty());
}

TEST_CASE("a link that looks slow beside the others is measured again, alone, when all have been") {
  Bench bench;
  const auto rates = [](double both) {
    Json out = result("link");
    for (const char* name : {"send_mbps", "receive_mbps"}) out["metrics"][name] = {{"value", both}};
    return prints(out);
  };
  bench.process.answers["link-serve"] = prints(result("link-serve"));
  bench.process.answers["link"] = rates(100);
  bench.process.answers["fd00::3"] = rates(50);
  Json peers = Json::array();
  for (const char* number : {"3", "4", "5"})
    peers.push_back({{"name", std::string("node0") + number}, {"address", std::string("fd00::") + number}});
  const auto measured =
      checks::accept_links_module().measure(bench.context, {{"peers", peers}, {"address", "fd00::2"}});
  REQUIRE(measured.ok());
  REQUIRE(bench.process.runs.size() == 6);  // the server, three links, one of them twice more
  const auto turn_of = [&](size_t run) {
    const auto& words = bench.process.runs[run];
    const auto at = std::find(words.begin(), words.end(), "--turn");
    return at == words.end() ? "" : *(at + 1);
  };
  for (const size_t first : {1u, 2u, 3u}) CHECK(turn_of(first) == "shared");
  for (const size_t again : {4u, 5u}) CHECK(turn_of(again) == "alone");
  // Once is enough where that was a busy moment of the partner.
  bench.process.runs.clear();
  bench.process.answers["alone"] = rates(100);
  const auto once =
      checks::accept_links_module().measure(bench.context, {{"peers", peers}, {"address", "fd00::2"}});
  REQUIRE(once.ok());
  CHECK(bench.process.runs.size() == 5);
  CHECK((*measured)["parts"][0]["result"]["detail"].contains("first_try"));
  CHECK_FALSE((*measured)["parts"][1]["result"].contains("detail"));
}

TEST_CASE(
    "RDMA is measured to every peer while serving, rail by rail; a node that has none says so instead") {
  Bench bench;
  bench.process.answers["rdma-serve"] = prints(result("rdma-serve"));
  Json rails = result("rdma");
  for (const char* rail : {"rail 0", "rail 1"})
    rails["parts"].push_back({{"subject", ""}, {"like", rail}, {"result", result("rdma-link")}});
  bench.process.answers["rdma"] = prints(rails);
  const auto module = checks::accept_rdma_module();
  Json params = {
      {"address", "10.0.0.2"},
      {"seconds", 5},
      {"peers",
       {{{"name", "node01"}, {"address", "10.0.0.1"}}, {{"name", "node03"}, {"address", "10.0.0.3"}}}}};
  REQUIRE(check_parameters(module, params).ok());
  const Json out = module.measure(bench.context, params).value();
  REQUIRE(out["parts"].size() == 4);
  CHECK(out["parts"][0]["subject"] == "node03");
  CHECK(out["parts"][1]["like"] == "rail 1");
  CHECK(out["parts"][3]["subject"] == "node01");
  std::string line;
  for (const auto& word : bench.process.runs.at(1)) line += " " + word;
  CHECK(line ==
        " /usr/sbin/muster-accept rdma --to 10.0.0.3 --port 7495 --bind 10.0.0.2 --seconds 5 --iterations "
        "1000 --connect-seconds 45 --busy-seconds 300 --total-seconds 585");
  CHECK(std::count(bench.process.runs[0].begin(), bench.process.runs[0].end(), "--detach") == 1);

  // perftest that came with the order: both ends get it, and only as a whole.
  for (const char* name : {"ib_write_bw", "ib_write_lat", "librdmacm", "libpci"}) {
    CHECK(std::count(bench.process.runs[0].begin(), bench.process.runs[0].end(), "--perftest") == 0);
    bench.context.programs[name] = std::string("/proc/7/fd/") + name;
    bench.process.runs.clear();
    REQUIRE(module.measure(bench.context, params).ok());
  }
  for (const auto& run : bench.process.runs)
    CHECK(run.back() ==
          "/proc/7/fd/ib_write_bw,/proc/7/fd/ib_write_lat,/proc/7/fd/librdmacm,/proc/7/fd/libpci");
  bench.context.programs.clear();

  params["gpu_memory"] = true;
  Json none = result("rdma", "unavailable");
  none["error"] = "this node has no RDMA device";
  bench.process.answers["rdma"] = prints(none, 3);
  CHECK(module.measure(bench.context, params).value() == none);  // this node's own affair, not a link's
  CHECK(bench.process.runs.back().back() == "--gpu-memory");
}

TEST_CASE("a partner whose measurement is killed takes nothing from the measurements with the others") {
  Bench bench;
  const auto address = [](const char* last) { return std::string("10.0.0.") + last; };
  Json params = {
      {"address", address("2")},
      {"peers",
       {{{"name", "node01"}, {"address", address("1")}}, {{"name", "node03"}, {"address", address("3")}}}}};
  for (const char* serve : {"rdma-serve", "link-serve"}) bench.process.answers[serve] = prints(result(serve));
  Json rails = result("rdma");
  rails["parts"].push_back({{"subject", ""}, {"like", "rail 0"}, {"result", result("rdma-link")}});
  bench.process.answers["rdma"] = prints(rails), bench.process.answers["link"] = prints(result("link"));
  bench.process.hangs_with = address("3");
  const Json rdma = checks::accept_rdma_module().measure(bench.context, params).value()["parts"];
  REQUIRE(rdma.size() == 2);
  CHECK(rdma[0]["subject"] == "node03");
  CHECK(rdma[0]["result"]["check"] == "rdma-link");
  CHECK(rdma[0]["result"]["outcome"] == "unavailable");
  CHECK(rdma[0]["result"]["detail"]["inconclusive"] == true);
  CHECK(rdma[1]["subject"] == "node01");
  CHECK(rdma[1]["result"] == result("rdma-link"));
  // TCP is measured within a time of its own: that it hangs says something about one of both ends.
  const Json links = checks::accept_links_module().measure(bench.context, params).value()["parts"];
  REQUIRE(links.size() == 2);
  CHECK(links[0]["result"]["outcome"] == "unavailable");
  CHECK_FALSE(links[0]["result"]["detail"].contains("inconclusive"));
  CHECK(links[1]["result"] == result("link"));
  // A program that crashes is this node's own affair.
  bench.process.hangs_with = "nothing";
  bench.process.answers["rdma"] = {139, "", "Segmentation fault"};
  const Json crashed = checks::accept_rdma_module().measure(bench.context, params).value()["parts"];
  REQUIRE(crashed.size() == 2);
  CHECK(crashed[1]["result"]["detail"]["at_fault"] == "here");
  bench.process.answers["rdma"] = {2, "", "--total-seconds: not a number"};
  CHECK(checks::accept_rdma_module().measure(bench.context, params).error().code == Code::invalid);
}

TEST_CASE(
    "an all-reduce that breaks off, hangs or misses a rank is a measurement of all its nodes, not an error "
    "of this one") {
  Bench bench;
  Json all = result("allreduce");
  all["metrics"]["ranks"] = {{"value", 2}, {"unit", "ranks"}};
  bench.process.answers["mpirun"] = {1, all.dump() + "\n-----\nPrimary job terminated normally, but\n", ""};
  const auto module = checks::accept_mpi_module();
  const Json host1 = {{"name", "node01"}, {"address", "10.0.0.1"}},
             host2 = {{"name", "node02"}, {"address", "10.0.0.2"}},
             host3 = {{"name", "node03"}, {"address", "10.0.0.3"}};
  const Json two = {{"hosts", {host1, host2}}, {"network", "10.0.0.0/24"}};
  REQUIRE(check_parameters(module, two).ok());
  Json expected = all;
  expected["members"] = {"node01", "node02"};
  CHECK(module.measure(bench.context, two).value() == expected);
  const auto& argv = bench.process.runs.at(0);
  // node02 is where it runs: by name, not by address.
  CHECK(std::count(argv.begin(), argv.end(), "10.0.0.1,node02") == 1);
  CHECK(std::count(argv.begin(), argv.end(), "10.0.0.0/24") == 2);

  const auto fails = [&](const std::string& with) {
    const Json out = module.measure(bench.context, {{"hosts", {host1, host2, host3}}}).value();
    CHECK(out["check"] == "allreduce");
    CHECK(out["outcome"] == "failed");
    CHECK(out["members"] == Json{"node01", "node02", "node03"});
    CHECK(out["error"].get<std::string>().find(with) != std::string::npos);
  };
  fails("of 3 ranks took part");
  bench.process.answers["mpirun"] = {1, "", "ssh: connect to host 10.0.0.2: No route to host"};
  fails("No route to host");
  bench.process.hangs = true;
  fails("did not end");
  bench.process.hangs = false;
  bench.process.answers.erase("mpirun");
  CHECK(module.measure(bench.context, two).error().code ==
        Code::not_found);  // that is this node's own affair
  CHECK(module.measure(bench.context, {{"hosts", Json::array()}}).error().code == Code::invalid);
}

TEST_CASE(
    "a training-shaped load is started like an all-reduce, with its own options, and its ranks are not bound "
    "to one core") {
  Bench bench;
  Json all = result("training");
  all["metrics"]["ranks"] = {{"value", 2}, {"unit", "ranks"}};
  bench.process.answers["mpirun"] = prints(all);
  const auto module = checks::accept_mpi_module();
  const Json hosts = {{{"name", "node01"}, {"address", "10.0.0.1"}},
                      {{"name", "node02"}, {"address", "10.0.0.2"}}};
  const Json params = {{"hosts", hosts},
                       {"load", "training"},
                       {"seconds", "60"},
                       {"options", {{"model", 512}, {"layers", 4}}}};
  REQUIRE(check_parameters(module, params).ok());
  const Json out = module.measure(bench.context, params).value();
  CHECK(out["outcome"] == "measured");
  CHECK(out["members"] == Json{"node01", "node02"});
  std::string line;
  for (const auto& word : bench.process.runs.at(0)) line += " " + word;
  CHECK(line.find(" --bind-to none ") != std::string::npos);
  CHECK(line.find(" --load training --seconds 60 ") != std::string::npos);
  CHECK(line.find(" --layers 4 --model 512") != std::string::npos);
  bench.process.answers["mpirun"] = {1, "", "killed"};
  CHECK(module.measure(bench.context, params).value()["check"] == "training");
}

TEST_CASE(
    "NCCL over nodes gets its program, its network and its GPUs, and in pairs the algorithm that shows a "
    "link") {
  Bench bench;
  Json all = result("nccl");
  all["metrics"]["ranks"] = {{"value", 2}, {"unit", "ranks"}};
  bench.process.answers["mpirun"] = prints(all);
  const auto module = checks::accept_mpi_module();
  const Json hosts = {{{"name", "node01"}, {"address", "10.0.0.1"}},
                      {{"name", "node02"}, {"address", "10.0.0.2"}}};
  Json params = {{"hosts", hosts},
                 {"load", "nccl"},
                 {"network", "10.0.0.0/24"},
                 {"max_bytes", 1 << 30},
                 {"options", {{"gpus", "8"}}}};
  REQUIRE(check_parameters(module, params).ok());
  const auto line_of = [&](const Json& result) {
    CHECK(result.is_object());
    std::string line;
    for (const auto& word : bench.process.runs.back()) line += " " + word;
    return line;
  };
  const std::string whole = line_of(module.measure(bench.context, params).value());
  CHECK(whole.find(" --load nccl ") != std::string::npos);
  CHECK(whole.find(" --max-bytes 1073741824 --program ") != std::string::npos);
  CHECK(whole.find("/muster-accept-gpu --network 10.0.0.0/24 --gpus 8") != std::string::npos);
  CHECK(whole.find("--algorithm") == std::string::npos);
  params["pairs"] = Json::array();
  params["pairs"].push_back(Json::array({"node01", "node02"}));
  CHECK(line_of(module.measure(bench.context, params).value()).find(" --algorithm Ring --gpus 8") !=
        std::string::npos);
}

TEST_CASE("an all-reduce in pairs: each by itself, and one whose node is gone is left out") {
  Bench bench;
  Json pair = result("allreduce");
  pair["metrics"]["ranks"] = {{"value", 2}, {"unit", "ranks"}};
  bench.process.answers["10.0.0.1,node02"] = prints(pair);
  bench.process.answers["10.0.0.4,10.0.0.3"] = {1, "", "Segmentation fault"};
  const auto module = checks::accept_mpi_module();
  Json params = {{"hosts", Json::array()}, {"pairs", Json::array()}};
  for (const auto& [a, b] :
       {std::pair{"node01", "node02"}, std::pair{"node04", "node03"}, std::pair{"node05", "node06"}})
    params["pairs"].push_back(Json::array({a, b}));
  for (const char* n : {"1", "2", "3", "4", "5"})
    params["hosts"].push_back({{"name", std::string("node0") + n}, {"address", std::string("10.0.0.") + n}});
  REQUIRE(check_parameters(module, params).ok());
  const Json out = module.measure(bench.context, params).value();
  REQUIRE(out["parts"].size() == 2);
  CHECK(out["parts"][0]["pair"] == Json{"node01", "node02"});
  CHECK(out["parts"][0]["result"]["outcome"] == "measured");
  CHECK(out["parts"][1]["pair"] == Json{"node04", "node03"});
  CHECK(out["parts"][1]["result"]["outcome"] == "failed");
  CHECK(bench.process.runs.size() == 2);
}
