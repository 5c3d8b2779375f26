// The modules accept_group and accept_group_serve: what they start, and what they make of its answer.
#include <algorithm>
#include <mutex>

#include "agent/checks/checks.h"
#include "tests/catch.h"

using namespace muster;

namespace {

// Plays muster-accept: an answer by a word of the command, and a record of the commands.
struct Group : Process {
  std::vector<std::vector<std::string>> runs;
  std::map<std::string, Result<Output>> answers;
  std::mutex mutex;  // pairs run at the same time
  Result<Output> run(const Command& command) override {
    const std::lock_guard hold(mutex);
    runs.push_back(command.argv);
    for (const auto& [word, output] : answers)
      if (std::count(command.argv.begin(), command.argv.end(), word)) return output;
    return fail(Code::not_found, command.argv[0] + ": not found");
  }
  std::string line(size_t i) const {
    std::string out;
    for (const auto& word : runs.at(i)) out += (out.empty() ? "" : " ") + word;
    return out;
  }
};

Output prints(const std::string& outcome, int ranks, int exit_code = 0) {
  Json json = {{"check", "allreduce"}, {"outcome", outcome}, {"error", ""}, {"metrics", Json::object()}};
  if (ranks > 0) json["metrics"]["ranks"] = {{"value", ranks}, {"unit", "ranks"}};
  return {exit_code, json.dump() + "\n", ""};
}

struct Bench {
  Files files{"/nonexistent"};
  Group process;
  StepContext context{files, process, "node02"};
  StepModule module = checks::accept_group_module();
  Json params = {{"hosts", Json::array()}, {"address", "10.0.0.2"}};

  explicit Bench(int hosts) {
    for (int i = 1; i <= hosts; ++i)
      params["hosts"].push_back({{"name", "node0" + std::to_string(i)},
                                 {"address", "10.0.0." + std::to_string(i)},
                                 {"role", "gpu"}});
  }
  Result<Json> measure() {
    const auto known = check_parameters(module, params);
    if (!known.ok()) FAIL(known.error().message);
    return module.measure(context, params);
  }
};
const std::string kTwo = "node01=10.0.0.1,node02=10.0.0.2";

}  // namespace

TEST_CASE("accept_group leads a load over its hosts with the program that the order brought", "[group]") {
  Bench b(2);
  b.context.programs["muster-accept"] = "/proc/7/fd/5";
  b.process.answers = {{kTwo, prints("measured", 2)}};
  b.params.update({{"seconds", "30"}, {"deadline_seconds", 300}, {"options", {{"threads", 2}}}});
  const Json out = b.measure().value();
  CHECK(out["outcome"] == "measured");
  CHECK(out["members"] == Json{"node01", "node02"});
  REQUIRE(b.process.runs.size() == 1);
  CHECK(b.process.line(0) ==
        "/proc/7/fd/5 group --members " + kTwo +
            " --self node02 --port 7540 --bind 10.0.0.2 --load allreduce --seconds 30 --max-bytes 262144 "
            "--connect-seconds 60 --deadline 225 --threads 2");
}

TEST_CASE("accept_group: a load that failed, hung or missed a rank is a measurement of all its nodes",
          "[group]") {
  Bench b(2);
  const auto outcome_of = [&](Result<Output> answer) {
    b.process.answers.clear();
    b.process.answers.emplace(kTwo, std::move(answer));
    const auto out = b.measure();
    return out.ok() ? (*out)["outcome"].get<std::string>() + " " + std::to_string((*out)["members"].size())
                    : std::string(to_string(out.error().code));
  };
  CHECK(outcome_of(prints("failed", 0, 1)) == "failed 2");  // the members' names are in it
  CHECK(outcome_of(prints("corrupt", 2, 1)) == "corrupt 2");
  CHECK(outcome_of(prints("measured", 1)) == "failed 2");
  CHECK(outcome_of(fail(Code::timeout, "did not end")) == "failed 2");
  CHECK(outcome_of(Output{139, "", "Segmentation fault"}) == "failed 2");
  CHECK(outcome_of(Output{2, "", "The following argument was not expected: --modle"}) == "invalid");
  CHECK(outcome_of(fail(Code::not_found, "no such program")) == "not_found");
  b.params["hosts"] = Json::array();
  CHECK(b.measure().error().code == Code::invalid);
}

TEST_CASE("accept_group lets the other nodes go when told, and when nothing can follow", "[group]") {
  Bench b(2);
  const auto byes = [&] {
    return std::count_if(b.process.runs.begin(), b.process.runs.end(), [](const auto& words) {
      return std::count(words.begin(), words.end(), "--bye") > 0;
    });
  };
  b.process.answers = {{kTwo, prints("failed", 0, 1)}};
  CHECK(b.measure().ok());
  CHECK(byes() == 0);  // pairs may follow
  b.params["bye"] = true;
  CHECK(b.measure().ok());
  CHECK(byes() == 1);
  CHECK(b.process.runs.size() == 2);
  b.params["bye"] = false;
  b.process.answers.clear();
  b.process.answers.emplace(kTwo, prints("unavailable", 0, 3));
  CHECK(b.measure().ok());
  CHECK(byes() == 2);
}

TEST_CASE("accept_group in pairs: each by itself, with the algorithm that shows a link", "[group]") {
  Bench b(4);
  b.context.programs["muster-accept-gpu"] = "/proc/7/fd/6";
  b.process.answers = {{kTwo, prints("measured", 2)},
                       {"node04=10.0.0.4,node03=10.0.0.3", prints("failed", 0, 1)}};
  b.params.update({{"load", "nccl"}, {"libs", "/shared/nccl"}, {"options", {{"gpus", "8"}}}});
  // Said to be an array: Json makes an object of a list of pairs of strings.
  b.params["pairs"] = Json::array({{"node01", "node02"}, {"node04", "node03"}, {"node05", "node01"}});
  const Json out = b.measure().value();
  REQUIRE(out["parts"].size() == 2);  // node05 is gone
  CHECK(out["parts"][0]["result"]["outcome"] == "measured");
  CHECK(out["parts"][1]["pair"] == Json{"node04", "node03"});
  CHECK(out["parts"][1]["result"]["outcome"] == "failed");
  const std::string tail = " --program /proc/7/fd/6 --libs /shared/nccl --algorithm Ring --gpus 8";
  CHECK(b.process.line(0).find(tail) != std::string::npos);
}

TEST_CASE("accept_group_serve answers the node that leads, and nothing without one", "[group]") {
  Bench b(0);
  b.module = checks::accept_group_serve_module();
  b.params = {{"peers", {{{"name", "node01"}, {"address", "10.0.0.1"}}}},
              {"address", "10.0.0.2"},
              {"deadline_seconds", 700}};
  b.process.answers = {{"group-serve", prints("measured", 0)}};
  CHECK(b.measure().value()["outcome"] == "measured");
  CHECK(b.process.line(0) ==
        "/usr/sbin/muster-accept group-serve --bind 10.0.0.2 --port 7540 --peers 10.0.0.1 --seconds 700 "
        "--wait-seconds 180 --linger-seconds 90");
  b.params["peers"] = Json::array();
  CHECK(b.measure().value()["detail"]["ended"] == "no leader");
  CHECK(b.process.runs.size() == 1);
}
