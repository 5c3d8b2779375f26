// muster spec explain: keys in plain text, files written out.
#include "base/json.h"
#include "base/split.h"
#include "cli/cli_context.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using muster::testing::muster_command;

namespace {

Json explained(const std::string& what) {
  const auto ran = muster_command({"spec", "explain", what, "--json"});
  CAPTURE(ran.out, ran.err);
  REQUIRE(ran.exit == cli::kAccepted);
  return parse_json(ran.out).value();
}

}  // namespace

TEST_CASE("spec explain: a key below lists and names of the operator's", "[cli][explain]") {
  for (const char* path : {"nodes.disks.os.match.count", "nodes[0].disks.bulk.match.count"}) {
    CAPTURE(path);
    CHECK(explained(path)["description"] != "");
  }
  const Json network = explained("network");
  bool found = false;
  for (const Json& key : network["keys"]) found = found || key["key"] == "provisioning";
  CHECK(found);
  CHECK(explained("network.provisioning")["required"] == true);
  CHECK(explained("network.provisioning.dhcp")["default"] == "managed");
  CHECK(explained("limits")["required"] == false);
}

TEST_CASE("spec explain: without a key all of the top level, each explained without links",
          "[cli][explain]") {
  const auto top = muster_command({"spec", "explain", "--json"});
  REQUIRE(top.exit == cli::kAccepted);
  const Json keys = parse_json(top.out).value()["keys"];
  REQUIRE(keys.size() > 10);
  for (const Json& key : keys) {
    const auto ran = muster_command({"spec", "explain", key["key"].get<std::string>()});
    CAPTURE(ran.out);
    CHECK(ran.exit == cli::kAccepted);
    CHECK_FALSE(has(ran.out, "]("));
    CHECK(has(ran.out, key["key"].get<std::string>()));
  }
}

TEST_CASE("spec explain: an unknown key is named with the nearest one", "[cli][explain]") {
  const auto ran = muster_command({"spec", "explain", "nodes.rol"});
  CHECK(ran.exit == cli::kUsage);
  CHECK(has(ran.err, "'role'"));
  CHECK(muster_command({"spec", "explain", "cluster.name"}).exit == cli::kUsage);
}

TEST_CASE("spec explain: a file's names, addresses, MACs, BMCs and disk groups", "[cli][explain]") {
  const TempDir dir;
  dir.write("cluster.yaml", testing::kSpec);
  const Json spec = explained(dir.path("cluster.yaml"));
  REQUIRE(spec["nodes"].size() == 3);
  const Json& node = spec["nodes"][1];
  CHECK(node["name"] == "node02");
  CHECK(node["address"] == "10.20.0.12");
  CHECK(node["address_chosen"] == true);
  CHECK(node["mac"] == "52:54:00:20:00:02");
  CHECK(node["power"]["address"] == "10.20.1.12");
  CHECK(node["disks"]["bulk"]["policy"] == "format-if-blank");
  const auto shown = muster_command({"spec", "explain", dir.path("cluster.yaml")});
  CHECK(has(shown.out, "10.20.1.13"));
  CHECK(has(shown.out, "node[01-03]: bulk: 1 disk with serial BULK*, format-if-blank"));
  dir.write("wrong.yaml", "cluster: x\nnodess: []\n");
  CHECK(muster_command({"spec", "explain", dir.path("wrong.yaml")}).exit == cli::kUsage);
  CHECK(muster_command({"spec", "explain", dir.path("none.yaml")}).exit == cli::kUsage);
}
