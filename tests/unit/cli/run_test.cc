#include "cli/run.h"

#include <sys/wait.h>

#include <vector>

#include "base/json.h"
#include "cli/cli_context.h"
#include "cli/follow.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::muster_command;

TEST_CASE("bad usage exits 2 and says what is wrong", "[cli]") {
  CHECK(muster_command({}).exit == kUsage);
  const auto unknown = muster_command({"upp"});
  CHECK(unknown.exit == kUsage);
  CHECK(unknown.err.find("did you mean 'up'") != std::string::npos);
  CHECK(muster_command({"why"}).exit == kUsage);
  CHECK(muster_command({"report", "--format", "pdf"}).exit == kUsage);
  CHECK(muster_command({"reimage"}).exit == kUsage);
}

TEST_CASE("what cannot be admitted or discovered is bad usage, reported before any request", "[cli]") {
  const auto expect = [](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.begin(), "node");
    arguments.insert(arguments.end(), {"--socket", "/tmp/no-such-muster.sock"});
    const auto ran = muster_command(arguments);
    CAPTURE(ran.err);
    CHECK(ran.exit == kUsage);
    CHECK(ran.err.find(words) != std::string::npos);
  };
  expect({"admit"}, "NODE");
  expect({"admit", "node04", "--mac", "52:54:00:20:00:04"}, "--like");
  expect({"admit", "node04", "--like", "node03", "--machine", "node04"}, "unknown-52:54:00:20:00:04");
  expect({"admit", "node04", "--like", "node03", "--machine", "unknown-52:54:00:20:00:04", "--mac",
          "52:54:00:20:00:04"},
         "one of them");
  expect({"discover", "maybe"}, "`on` or `off`");
  expect({"discover", "on", "--for", "long"}, "long");
}

TEST_CASE("every verb explains itself", "[cli]") {
  for (const char* verb : {"up",     "plan",   "approve", "status", "watch", "runs",   "cancel",  "why",
                           "logs",   "report", "reimage", "accept", "power", "node",   "image",   "spec",
                           "secret", "drain",  "rollout", "notify", "ack",   "backup", "version", "lab"}) {
    const auto help = muster_command({verb, "--help"});
    CAPTURE(verb);
    CHECK(help.exit == 0);
    CHECK(help.out.find("Usage") != std::string::npos);
  }
}

TEST_CASE("without a controller the error says how to get one", "[cli]") {
  const auto ran = muster_command({"status", "--socket", "/tmp/no-such-muster.sock"});
  CHECK(ran.exit == kFailed);
  CHECK(ran.err.find("/tmp/no-such-muster.sock") != std::string::npos);
  CHECK(ran.err.find("systemctl start musterd") != std::string::npos);
  CHECK(ran.err.find("muster lab up") != std::string::npos);
}

TEST_CASE("under --json an error is one JSON value with its exit code", "[cli]") {
  const auto ran = muster_command({"status", "--json", "--socket", "/tmp/no-such-muster.sock"});
  const auto json = parse_json(ran.out);
  REQUIRE(json.ok());
  CHECK((*json)["code"] == "unavailable");
  CHECK((*json)["exit"] == 1);
  CHECK(ran.exit == 1);
}

TEST_CASE("power tells the outcome of every node, also when one fails", "[cli]") {
  const auto ran =
      muster_command({"power", "state", "gpu[01-02]", "--json", "--socket", "/tmp/no-such-muster.sock"});
  const auto json = parse_json(ran.out);
  REQUIRE(json.ok());
  REQUIRE(json->size() == 2);
  CHECK((*json)[1]["node"] == "gpu02");
  CHECK((*json)[1]["code"] == "unavailable");
  CHECK(ran.exit == kFailed);
}

TEST_CASE("output that cannot be written is a failure", "[cli]") {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int full = ::open("/dev/full", O_WRONLY), none = ::open("/dev/null", O_WRONLY);
    ::dup2(full, STDOUT_FILENO);
    ::dup2(none, STDERR_FILENO);
    const char* argv[] = {"muster", "power", "--help"};
    ::_exit(cli::run(3, argv));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kFailed);
}

TEST_CASE("a drain needs a controller, and an import a file", "[cli]") {
  const auto drain = muster_command({"drain", "gpu01", "--yes", "--socket", "/tmp/no-such-muster.sock"});
  CHECK(drain.exit == kFailed);
  CHECK(drain.err.find("/tmp/no-such-muster.sock") != std::string::npos);
  CHECK(muster_command({"drain"}).exit == kUsage);
  CHECK(muster_command({"image", "import"}).exit == kUsage);
}

TEST_CASE("spec check works without a controller and reports every error", "[cli]") {
  const std::string path = "/tmp/muster-spec-" + random_hex(6) + ".yaml";
  std::ofstream(path) << "cluster: x\nnodez: []\nnetwrk: {}\n";
  const auto ran = muster_command({"spec", "check", path});
  CHECK(ran.exit == kUsage);
  CHECK(ran.err.find("nodez") != std::string::npos);
  CHECK(ran.err.find("netwrk") != std::string::npos);
  const auto json = parse_json(muster_command({"spec", "check", path, "--json"}).out);
  ::unlink(path.c_str());
  REQUIRE(json.ok());
  CHECK((*json)["valid"] == false);
  CHECK((*json)["errors"].size() >= 2);
  CHECK(muster_command({"spec", "check", "/no/such/file.yaml"}).exit == kUsage);
}

TEST_CASE("node lists take ranges and commas", "[cli]") {
  CHECK(node_list("gpu[01-03],gpu07").value() ==
        std::vector<std::string>{"gpu01", "gpu02", "gpu03", "gpu07"});
  CHECK(node_list("").value().empty());
  CHECK_FALSE(node_list("gpu[3-1]").ok());
}

TEST_CASE("an empty list of nodes is an error, not all nodes", "[cli]") {
  const std::vector<std::string> lines[] = {{"up", "--yes", "--limit"},
                                            {"plan", "--limit"},
                                            {"plan", "--force"},
                                            {"plan", "--force", "gpu01", "--force"},
                                            {"accept"},
                                            {"accept", "--limit"},
                                            {"accept", "--hosts"},
                                            {"reimage", "gpu01", "--force"},
                                            {"reimage", "--yes"},
                                            {"rollback", "--yes"},
                                            {"drain", "--yes"},
                                            {"undrain"},
                                            {"power", "off", "--yes"},
                                            {"status", "--limit"},
                                            {"status", "--state"},
                                            {"status", "--role"},
                                            {"watch", "--until-idle", "--limit"},
                                            {"replace", "ca", "--without"},
                                            {"node", "add", "spare01", "--adopt"},
                                            {"node", "add", "spare01", "--adopt", "host", "--address"},
                                            {"node", "add", "--adopt", "host"}};
  for (const auto& line : lines)
    for (const char* empty : {"", ",", " , "}) {
      CAPTURE(line, empty);
      auto words = line;
      words.insert(words.end(), {empty, "--socket", "/no/such/socket"});
      const auto ran = muster_command(words);
      CHECK(ran.exit == kUsage);
      CHECK(ran.err.find("is empty") != std::string::npos);
    }
}

TEST_CASE("a run that failed because nothing could be measured there is none that found a fault", "[cli]") {
  Check check;
  check.name = "gpu bf16/data";
  check.verdict = Verdict::fail;
  check.evidence = {{"outcome", "unavailable"}, {"detail", {{"missing", "muster-accept-gpu"}}}};
  Report report;
  report.nodes.resize(2);
  for (auto& node : report.nodes) node.checks = {check};
  CHECK(exit_for_run({{"state", "failed"}}, report) == 3);
  CHECK(exit_for_run({{"state", "cancelled"}}, report) == 1);
  CHECK(exit_for_run({{"state", "done"}}, report) == 0);
  report.nodes[1].checks[0].evidence = {{"outcome", "corrupt"}};
  CHECK(exit_for_run({{"state", "failed"}}, report) == 1);
  CHECK(exit_for_run({{"state", "failed"}}, Report()) == 1);
}

TEST_CASE("exit codes follow the run and the error", "[cli]") {
  CHECK(exit_for_run({{"state", "done"}}) == 0);
  CHECK(exit_for_run({{"state", "partial"}}) == 3);
  CHECK(exit_for_run({{"state", "failed"}}) == 1);
  CHECK(exit_for_run({{"state", "cancelled"}}) == 1);
  CHECK(exit_for(fail(Code::invalid, "")) == 2);
  CHECK(exit_for(fail(Code::denied, "")) == 4);
  CHECK(exit_for(fail(Code::unavailable, "")) == 1);
}
