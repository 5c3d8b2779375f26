// The host's side of kernels/gpu, run as the programs that users run, over a made-up GPU (tests/fakes/gpu):
// what is enqueued, compared, counted, blamed and printed. That a kernel computes right, and how fast, only a
// GPU can tell: bench/run.sh gpu.
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/json.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

namespace muster {
namespace {

const std::string kFolder = MUSTER_FAKE_GPU_DIR;
const std::string kProgram = kFolder + "/muster-accept-gpu-fake";

struct Ran {
  int exit = -1;
  Json json = nullptr;
  std::string text = {};
};

using Environment = std::map<std::string, std::string>;

// `json` is the last line of its output that is an object.
Ran run_program(const std::vector<std::string>& argv, Environment environment, bool fake_libraries = true) {
  Command command;
  command.argv = argv;
  command.env = std::move(environment);
  if (fake_libraries) command.env["LD_LIBRARY_PATH"] = kFolder + "/fake-gpu";
  const auto output = make_process()->run(command);
  REQUIRE(output.ok());
  Ran out;
  out.exit = output->exit_code;
  out.text = output->out + output->err;
  std::istringstream lines(out.text);
  for (std::string one; std::getline(lines, one);)
    if (auto json = one.starts_with("{\"") ? parse_json(one) : Result<Json>(fail(Code::invalid, ""));
        json.ok())
      out.json = *json;
  INFO(out.text);
  REQUIRE(out.json.is_object());
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}
Ran run(const std::string& arguments, const Environment& environment = {}) {
  std::vector<std::string> argv = words_of(arguments);
  argv.insert(argv.begin(), kProgram);
  return run_program(argv, environment);
}
std::string outcome(const Ran& ran) { return ran.json["outcome"].get<std::string>(); }
double metric(const Json& json, const std::string& name) {
  return json["metrics"][name]["value"].get<double>();
}
std::string uuid(int gpu) { return fmt::format("GPU-00000000-0000-0000-0000-0000000000{:02x}", gpu); }
bool blames(const Ran& ran, const std::string& words) {
  for (const auto& who : ran.json["blame"])
    if (who.get<std::string>().find(words) != std::string::npos) return true;
  return false;
}

// One rank per entry on this machine, each with its own environment and program.
struct Node {
  std::string environment = "A=b", program = kProgram;
};
Ran over_mpi(const std::string& options, const std::vector<Node>& nodes, const std::string& load = "nccl") {
  std::string line = "mpirun --allow-run-as-root --oversubscribe";
  const char* joint = " ";
  for (const auto& node : nodes) {
    line += fmt::format("{}-np 1 env {} {}/muster-mpi-check --load {} --network 127.0.0.0/8 --program {} {}",
                        joint, node.environment, kFolder, load, node.program, options);
    joint = " : ";
  }
  return run_program(words_of(line), {});
}

}  // namespace

TEST_CASE("nccl: every collective is right over any number of GPUs of one node") {
  for (const int gpus : {1, 2, 3, 8}) {
    const Ran ran = run("nccl --mib 1 --repeats 1", {{"MUSTER_FAKE_GPUS", std::to_string(gpus)}});
    INFO(ran.text);
    CHECK(ran.exit == 0);
    CHECK(outcome(ran) == "measured");
    CHECK(metric(ran.json, "ranks") == gpus);
    REQUIRE(ran.json["detail"]["sizes"].size() == 25);  // 1, 8, 64, 512 KiB and 1 MiB
    for (const auto& size : ran.json["detail"]["sizes"]) CHECK(size["wrong"] == 0);
    CHECK((metric(ran.json, "all_reduce_busbw_gbps") > 0) == (gpus > 1));
  }
}

TEST_CASE("nccl: a wrong bit is seen, and the GPU that received it is named") {
  const Ran flipped = run("nccl --mib 1 --repeats 1 --inject-flip 0:100:20");
  CHECK(flipped.exit == 1);
  CHECK(outcome(flipped) == "corrupt");
  CHECK(blames(flipped, uuid(0)));
  CHECK_FALSE(blames(flipped, uuid(1)));
  const Ran bad =
      run("nccl --mib 1 --repeats 1", {{"MUSTER_FAKE_GPUS", "4"}, {"MUSTER_FAKE_NCCL_BAD_RANK", "2"}});
  CHECK(outcome(bad) == "corrupt");
  CHECK(blames(bad, "all_reduce as received by rank 2, GPU " + uuid(2)));
  CHECK(bad.json["blame"].size() == 1);  // no other GPU, and no other collective
}

TEST_CASE("nccl: what makes no run is refused before NCCL can wait for anybody") {
  for (const char* arguments :
       {"nccl --nodes 2 --node 2 --root 127.0.0.1:1 --expect-gpus 2",
        "nccl --nodes 2 --node 0 --expect-gpus 2", "nccl --nodes 2 --node 0 --root 127.0.0.1:1",
        "nccl --nodes 0", "nccl --repeats 0"}) {
    const Ran ran = run(arguments);
    INFO(arguments);
    CHECK(ran.exit == 3);
    CHECK(outcome(ran) == "refused");
  }
}

TEST_CASE("nccl: sizes that no time is left for are left out, and said to be") {
  const Ran ran = run("nccl --mib 64 --seconds 0.001");
  CHECK(ran.exit == 0);
  CHECK(ran.json["detail"]["sizes"].size() + ran.json["detail"]["left_out"].size() == 35);
  CHECK(ran.json["detail"]["sizes"].size() >= 5);  // the smallest of each collective
  CHECK(ran.json["detail"]["left_out"].size() > 5);
}

TEST_CASE("nccl over nodes: all their GPUs are ranks of one communicator") {
  const Ran ran = over_mpi("--gpus 2 --max-bytes 1048576", {{}, {}, {}});
  INFO(ran.text);
  CHECK(ran.exit == 0);
  CHECK(outcome(ran) == "measured");
  CHECK(metric(ran.json, "ranks") == 3);
  CHECK(metric(ran.json, "gpus") == 6);
  CHECK(metric(ran.json, "all_reduce_busbw_gbps") > 0);
  REQUIRE(ran.json["detail"]["nodes"].size() == 3);
  for (int n = 0; n < 3; ++n) CHECK(ran.json["detail"]["nodes"][n]["detail"]["first_rank"] == 2 * n);
}

TEST_CASE("nccl over nodes: wrong data is laid at the rank and the host that received it") {
  const Ran ran = over_mpi("--gpus 2 --max-bytes 1048576",
                           {{"MUSTER_FAKE_NCCL_BAD_RANK=3"}, {"MUSTER_FAKE_NCCL_BAD_RANK=3"}});
  CHECK(ran.exit == 1);
  CHECK(outcome(ran) == "corrupt");
  CHECK(blames(ran, "rank 3, GPU " + uuid(1)));
  CHECK_FALSE(blames(ran, "rank 2"));
  const Ran flipped = over_mpi("--gpus 1 --max-bytes 1048576 --inject-flip 1", {{}, {}});
  CHECK(outcome(flipped) == "corrupt");
  CHECK(blames(flipped, "rank 1, GPU " + uuid(0)));
}

TEST_CASE("nccl over nodes: one that cannot take part ends the others, and is the reason given") {
  const Ran fewer = over_mpi("--gpus 2 --max-bytes 1048576", {{}, {"MUSTER_FAKE_GPUS=1"}, {}});
  INFO(fewer.text);
  CHECK(fewer.exit == 1);
  CHECK(outcome(fewer) == "failed");
  CHECK(fewer.json["error"].get<std::string>().find("no GPU 1 (number of GPUs: 1)") != std::string::npos);
  CHECK(fewer.json["detail"]["nodes"][1]["outcome"] == "failed");
  CHECK(fewer.json["detail"]["nodes"][0]["outcome"] == "unavailable");

  const Ran absent = over_mpi("--gpus 2", {{}, {"A=b", "/nonexistent/muster-accept-gpu"}});
  CHECK(outcome(absent) == "unavailable");
  CHECK(absent.json["error"].get<std::string>().find("/nonexistent/muster-accept-gpu is not on this node") !=
        std::string::npos);
  CHECK(absent.json["detail"]["nodes"][1]["detail"]["missing"] == "muster-accept-gpu");

  const TempDir dir;
  const std::string dies = dir.path("dies");
  std::ofstream(dies) << "#!/bin/sh\nkill -9 $$\n";
  std::filesystem::permissions(dies, std::filesystem::perms::owner_all);
  const Ran killed = over_mpi("--gpus 2", {{"A=b", dies}, {}});
  CHECK(outcome(killed) == "failed");
  CHECK(killed.json["error"].get<std::string>().find("ended by signal 9") != std::string::npos);

  const Ran nowhere = over_mpi("--gpus 2 --network 203.0.113.0/24", {{}, {}});
  CHECK(outcome(nowhere) == "refused");
  CHECK(nowhere.json["error"].get<std::string>().find("203.0.113.0/24") != std::string::npos);
}

constexpr const char* kBlocks = "--model 64 --heads 4 --sequence 32 --layers 4 ";

TEST_CASE("training load: every partition over GPUs gives the bits of one GPU alone, and of the host") {
  for (const int gpus : {1, 2, 3, 4}) {
    const Ran ran = run(fmt::format("training {}--sequences 2 --strong-sequences 4 --seconds 0", kBlocks),
                        {{"MUSTER_FAKE_GPUS", std::to_string(gpus)}});
    INFO(ran.text);
    CHECK(ran.exit == 0);
    CHECK(outcome(ran) == "measured");
    const Json& metrics = ran.json["metrics"];
    for (const char* name : {"tflops_per_gpu", "mfu", "weak_tflops", "strong_tflops"})
      CHECK(metrics.contains(name));
    // Three GPUs divide neither heads nor layers.
    for (const char* name : {"tensor_tflops", "pipeline_tflops"})
      CHECK(metrics.contains(name) == (gpus == 2 || gpus == 4));
  }
}

TEST_CASE("training load: one wrong gradient, or one wrong bit received, is seen") {
  const Ran flipped =
      run(fmt::format("training {}--seconds 0 --inject-flip 0:100:3", kBlocks), {{"MUSTER_FAKE_GPUS", "3"}});
  CHECK(flipped.exit == 1);
  CHECK(outcome(flipped) == "corrupt");
  CHECK(blames(flipped, uuid(0)));
  CHECK_FALSE(blames(flipped, uuid(1)));
  CHECK_FALSE(blames(flipped, uuid(2)));
  // One that computes wrong makes every sum wrong for all; only it is named.
  const Ran bad = run(fmt::format("training {}--seconds 0", kBlocks),
                      {{"MUSTER_FAKE_GPUS", "4"}, {"MUSTER_FAKE_BAD_PRODUCT_GPU", "2"}});
  CHECK(outcome(bad) == "corrupt");
  CHECK(bad.json["blame"].size() == 1);
  CHECK(blames(bad, uuid(2)));
  CHECK(bad.json["detail"]["wrong"].size() == 4);
  const Ran received = run(fmt::format("training {}--seconds 0", kBlocks),
                           {{"MUSTER_FAKE_GPUS", "3"}, {"MUSTER_FAKE_NCCL_BAD_RANK", "2"}});
  CHECK(outcome(received) == "corrupt");
  CHECK(received.json["detail"]["wrong"].size() == 1);
  CHECK(blames(received, "rank 2"));
}

TEST_CASE("training load: a GPU short of memory ends it for all, and is the reason given") {
  const Ran ran = run(fmt::format("training {}--seconds 0", kBlocks),
                      {{"MUSTER_FAKE_GPUS", "3"}, {"MUSTER_FAKE_SMALL_GPU", "1"}});
  INFO(ran.text);
  CHECK(ran.exit == 3);
  CHECK(outcome(ran) == "unavailable");
  CHECK(ran.json["error"].get<std::string>().find(uuid(1)) != std::string::npos);
}

TEST_CASE("training load: what cannot be exact, or cannot be made, is refused") {
  for (const char* arguments : {"--model 65 --heads 4", "--model 64 --heads 64", "--sequences 0",
                                "--sequences 100000 --sequence 2048", "--nodes 2 --node 0 --gpus 0"}) {
    const Ran ran = run(std::string("training ") + arguments);
    INFO(arguments << ran.text);
    CHECK(ran.exit == 3);
    CHECK(outcome(ran) == "refused");
  }
}

TEST_CASE("training load over nodes: a scaling study, with groups side by side") {
  const Ran ran = over_mpi(fmt::format("--gpus 2 --seconds 0.1 {}", kBlocks), {{}, {}, {}}, "gpu-training");
  INFO(ran.text);
  CHECK(ran.exit == 0);
  CHECK(outcome(ran) == "measured");
  CHECK(metric(ran.json, "ranks") == 3);
  CHECK(metric(ran.json, "gpus") == 6);
  std::map<std::string, std::string> points;
  for (const auto& point : ran.json["detail"]["scaling"])
    points[point["kind"].get<std::string>()] +=
        fmt::format("{}x{} ", point["nodes"].get<int>(), point["groups"].get<int>());
  // Two nodes make one group, the third waits; four layers are divided by two and four GPUs, not by six.
  CHECK(points == std::map<std::string, std::string>{
                      {"weak", "1x3 2x1 3x1 "}, {"strong", "1x3 2x1 3x1 "}, {"pipeline", "1x3 2x1 "}});
  CHECK(metric(ran.json, "weak_efficiency") > 0);

  const Ran bad = over_mpi(fmt::format("--gpus 1 --seconds 0.1 {}", kBlocks),
                           {{}, {}, {"MUSTER_FAKE_GPUS=0"}}, "gpu-training");
  CHECK(outcome(bad) == "unavailable");
  CHECK(bad.json["error"].get<std::string>().find("no GPU can be used") != std::string::npos);
  const Ran flipped = over_mpi(fmt::format("--gpus 1 --seconds 0.1 --inject-flip 1 {}", kBlocks),
                               {{}, {}, {}}, "gpu-training");
  CHECK(outcome(flipped) == "corrupt");
}

TEST_CASE("sdc: no product counts as wrong without a flip, by any implementation, in any format") {
  for (const char* arguments :
       {"--kernel own --format bf16", "--kernel own --format fp8", "--format bf16", "--format fp8",
        "--format fp16", "--format tf32", "--format int8", "--format fp64"}) {
    const Ran ran = run(fmt::format("sdc --n 256 --seconds 0 --inputs 2 {}", arguments));
    INFO(arguments << ran.text);
    CHECK(ran.exit == 0);
    CHECK(metric(ran.json["parts"][1]["result"], "products") == 4);
    CHECK(metric(ran.json["parts"][1]["result"], "multiprocessors") == 4);
  }
}

TEST_CASE("sdc: a flip at every place is seen, once and for good") {
  for (const char* maker : {"own", "cublaslt"})
    for (int site = 0; site < 5; ++site)
      for (const char* once : {"", " --flip-once"}) {
        const Ran ran =
            run(fmt::format("sdc --n 256 --seconds 0 --inputs 1 --kernel {} --inject-flip {}:4711:{}{}",
                            maker, site, site < 2 ? 15 : 28, once));
        INFO(maker << " " << site << once << ran.text);
        const bool reachable = std::string(maker) == "own" || (site != 2 && site != 3);
        CHECK(outcome(ran) == (reachable ? "corrupt" : "refused"));
      }
}

TEST_CASE("sdc: a GPU that computes wrong is named, and its neighbour is not") {
  const Ran ran = run("sdc --n 256 --seconds 0 --kernel own", {{"MUSTER_FAKE_BAD_GPU", "1"}});
  CHECK(ran.exit == 1);
  CHECK(blames(ran, uuid(1)));
  CHECK_FALSE(blames(ran, uuid(0)));
}

TEST_CASE("gemm: both makers in one run, and what is not there is said") {
  const Ran both = run("gemm --n 256 --seconds 0 --compare");
  const Json& one = both.json["parts"][0]["result"];
  for (const char* name : {"tflops", "own_tflops", "cublaslt_tflops", "own_over_cublaslt", "digest_percent"})
    CHECK(one["metrics"].contains(name));
  CHECK(one["detail"]["made_by"] == "cublaslt");  // the own one is not proven
  const Ran none = run("gemm --n 256 --seconds 0", {{"MUSTER_FAKE_GUESSES", "0"}});
  CHECK(none.exit == 3);
  CHECK(outcome(none) == "unavailable");
  CHECK(outcome(run("gemm --n 100 --seconds 0")) == "refused");
  // A100 has no fp8: that is no fault of the node, and no program is missing.
  const Ran old = run("gemm --n 256 --seconds 0 --format fp8", {{"MUSTER_FAKE_CAPABILITY", "80"}});
  const Json& why = old.json["parts"][0]["result"];
  CHECK(why["outcome"] == "unavailable");
  CHECK(why["detail"].contains("unsupported"));
  CHECK_FALSE(why["detail"].contains("missing"));
  CHECK(outcome(run("gemm --n 256 --seconds 0", {{"MUSTER_FAKE_CAPABILITY", "80"}})) == "measured");
}

TEST_CASE("memory and copies: clean ones pass, a flipped bit is seen, all memory is given back") {
  const Ran memory = run("memory --rounds 2 --max-mib 8", {{"MUSTER_FAKE_GPUS", "1"}});
  CHECK(memory.exit == 0);
  CHECK(metric(memory.json["parts"][0]["result"], "tested_gib") == Approx(8.0 / 1024).epsilon(0.001));
  CHECK(outcome(run("memory --rounds 1 --max-mib 8 --inject-flip 0:12345:17", {{"MUSTER_FAKE_GPUS", "1"}})) ==
        "corrupt");
  CHECK(run("copies --mib 1 --samples 1").exit == 0);
  CHECK(outcome(run("copies --mib 1 --samples 1 --inject-flip 0:12345:3")) == "corrupt");
}

TEST_CASE("without a GPU, with too few, or without the library, no kernel passes") {
  for (const char* kernel : {"gemm", "sdc", "memory", "copies", "nccl", "training"}) {
    INFO(kernel);
    const Ran none = run(kernel, {{"MUSTER_FAKE_GPUS", "0"}});
    CHECK(none.exit == 3);
    CHECK(outcome(none) == "unavailable");
    CHECK(none.json["detail"]["missing"] == "driver");
    const Ran fewer = run(std::string(kernel) + " --expect-gpus 3");
    CHECK(fewer.exit == 1);
    CHECK(outcome(fewer) == "failed");
  }
  // Whatever NCCL this machine has, or none: it finds no GPU of ours.
  const Ran bare = run_program({kProgram, "nccl"}, {}, false);
  CHECK(bare.exit != 0);
  CHECK((outcome(bare) == "unavailable" || outcome(bare) == "failed"));
}

}  // namespace muster
