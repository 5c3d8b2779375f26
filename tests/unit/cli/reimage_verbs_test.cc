// The verbs that replace a node's system: what they take, and what they refuse before any request.
#include "cli/cli_context.h"
#include "cli/follow.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::muster_command;

namespace {

int exit_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--socket", "/tmp/no-such-muster.sock"});
  return muster_command(arguments).exit;
}

}  // namespace

TEST_CASE("reimage and rollback take nodes, and what is forced by name", "[cli]") {
  for (const char* verb : {"reimage", "rollback"}) {
    CAPTURE(verb);
    CHECK(exit_of({verb}) == kUsage);
    CHECK(exit_of({verb, "gpu[3-1]"}) == kUsage);
    CHECK(exit_of({verb, "gpu01", "--force", "gpu[3-1]"}) == kUsage);
    // Everything is right but that there is no controller.
    CHECK(exit_of({verb, "gpu[01-02]", "--force", "gpu02", "--yes"}) == kFailed);
    CHECK(muster_command({verb, "--help"}).exit == 0);
  }
  CHECK(exit_of({"reimage", "gpu01", "--through-ram"}) == kFailed);
  CHECK(exit_of({"rollback", "gpu01", "--through-ram"}) == kUsage);
}

TEST_CASE("plan takes lists of nodes, those that are forced among them", "[cli]") {
  TempDir dir;
  const std::string spec = dir.path("cluster.yaml");
  dir.write("cluster.yaml", "cluster: lab\n");
  for (const auto& what : {std::vector<std::string>{"plan"}, {"plan", spec}}) {
    for (const char* option : {"--limit", "--force"}) {
      CAPTURE(what.size(), option);
      const auto with = [&](std::vector<std::string> more) {
        auto all = what;
        all.insert(all.end(), more.begin(), more.end());
        return exit_of(all);
      };
      CHECK(with({option, "gpu[3-1]"}) == kUsage);
      CHECK(with({option, "gpu01,gpu[03-04]"}) == kFailed);
    }
  }
  CHECK(exit_of({"plan", "--force", "gpu01", "--force", "gpu02"}) == kFailed);
}

TEST_CASE("up re-images what runs an older build only when it is said", "[cli]") {
  CHECK(exit_of({"up", "--reimage"}) == kFailed);
  CHECK(exit_of({"up", "--reimage", "--through-ram"}) == kFailed);
  CHECK(exit_of({"up", "--through-ram"}) == kUsage);
  CHECK(exit_of({"plan", "--reimage"}) == kFailed);
  CHECK(exit_of({"plan", "--kind", "rollback", "--limit", "gpu01"}) == kFailed);
}

TEST_CASE("a run that ended with a node in its old system did not do what was requested", "[cli]") {
  const auto run = [](std::vector<std::string> results) {
    Json nodes = Json::array();
    for (const auto& result : results) nodes.push_back({{"name", "n"}, {"result", result}});
    return Json{{"state", "done"}, {"nodes", nodes}};
  };
  CHECK(exit_for_run(run({"accepted"})) == kAccepted);
  CHECK(exit_for_run(run({"accepted", "degraded"})) == kDegraded);
  CHECK(exit_for_run(run({"accepted", "returned", "degraded"})) == kPartial);
}
