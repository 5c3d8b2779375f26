#include "cli/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

struct Ran { int exit; std::string out, err; };

// Runs the whole command with its output caught.
Ran muster_command(std::vector<std::string> arguments) {
  const std::string base = "/tmp/muster-cli-test-" + random_hex(6);
  std::fflush(nullptr);
  const int saved[2] = {::dup(1), ::dup(2)};
  for (const int fd : {1, 2}) {
    const int file = ::open((base + (fd == 1 ? ".out" : ".err")).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(file, fd);
    ::close(file);
  }
  std::vector<const char*> argv = {"muster"};
  for (const auto& a : arguments) argv.push_back(a.c_str());
  Ran ran{run(static_cast<int>(argv.size()), argv.data()), "", ""};
  std::fflush(nullptr);
  std::cout.flush();
  for (const int fd : {1, 2}) {
    ::dup2(saved[fd - 1], fd);
    ::close(saved[fd - 1]);
    std::ifstream in(base + (fd == 1 ? ".out" : ".err"));
    (fd == 1 ? ran.out : ran.err).assign(std::istreambuf_iterator<char>(in), {});
    ::unlink((base + (fd == 1 ? ".out" : ".err")).c_str());
  }
  return ran;
}

}  // namespace

TEST_CASE("bad usage exits 2 and says what is wrong", "[cli]") {
  CHECK(muster_command({}).exit == kUsage);
  const auto unknown = muster_command({"upp"});
  CHECK(unknown.exit == kUsage);
  CHECK(unknown.err.find("did you mean 'up'") != std::string::npos);
  CHECK(muster_command({"why"}).exit == kUsage);
  CHECK(muster_command({"report", "--format", "pdf"}).exit == kUsage);
  CHECK(muster_command({"reimage"}).exit == kUsage);
}

TEST_CASE("every verb explains itself", "[cli]") {
  for (const char* verb : {"up", "plan", "approve", "status", "watch", "runs", "cancel", "why", "logs", "report", "reimage", "accept", "power",
                           "node", "image", "spec", "secret", "drain", "backup", "version", "lab"}) {
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
  const auto ran = muster_command({"power", "state", "gpu[01-02]", "--json", "--socket", "/tmp/no-such-muster.sock"});
  const auto json = parse_json(ran.out);
  REQUIRE(json.ok());
  REQUIRE(json->size() == 2);
  CHECK((*json)[1]["node"] == "gpu02");
  CHECK((*json)[1]["code"] == "unavailable");
  CHECK(ran.exit == kFailed);
}

TEST_CASE("what is not implemented says so and exits 2", "[cli]") {
  CHECK(muster_command({"drain"}).exit == kUsage);   // whom?
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
  CHECK(node_list("gpu[01-03],gpu07").value() == std::vector<std::string>{"gpu01", "gpu02", "gpu03", "gpu07"});
  CHECK(node_list("").value().empty());
  CHECK_FALSE(node_list("gpu[3-1]").ok());
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
