// `muster status` of storage: what agents say with their requests, held against the spec.
#include "controller/nodes/storage_told.h"

#include "base/json.h"
#include "tests/catch.h"

using namespace muster;

namespace {

Spec spec() {
  Spec out;
  for (const char* name : {"node01", "node02"}) {
    NodeSpec node;
    node.name = name;
    node.role = "cpu";
    node.disks["fast"] = {};
    out.nodes.push_back(node);
  }
  StorageSpec scratch;
  scratch.name = "scratch", scratch.engine = "local", scratch.disks = "fast", scratch.mount = "/scratch";
  StorageSpec home;
  home.name = "home", home.engine = "external", home.mount = "/home", home.fstype = "nfs4";
  home.source = "10.0.0.5:/export";
  out.storage = {scratch, home};
  return out;
}

const std::string kScratch =
    R"({"at": "/scratch", "fs": "xfs", "from": "/dev/md127", "size": 1000, "used": 100, "array": "raid1"})";
const std::string kHome =
    R"({"at": "/home", "fs": "nfs4", "from": "10.0.0.5:/export", "size": 500, "used": 5})";

bool nobody(const std::string&) { return false; }

}  // namespace

TEST_CASE("storage of each node adds up, that of a server counts once", "[api]") {
  StorageTold told;
  told.heard("node01", "[" + kScratch + "," + kHome + "]");
  told.heard("node02", "[" + kScratch + "," + kHome + "]");
  const Json status = told.status(spec(), nobody);
  REQUIRE(status.size() == 2);
  CHECK(status[0]["size_bytes"] == 2000);
  CHECK(status[0]["used_bytes"] == 200);
  CHECK(status[1]["size_bytes"] == 500);
  for (const Json& section : status) {
    CHECK(section["healthy"] == true);
    CHECK(section["problems"].empty());
    for (const Json& node : section["nodes"]) CHECK(node["state"] == "mounted");
  }
}

TEST_CASE("what is wrong with storage is said with its node", "[api]") {
  StorageTold told;
  told.heard("node01", "[" + kScratch + "]");
  told.heard("node02", R"([{"at": "/scratch", "fs": "xfs", "from": "/dev/md127", "array": "raid1",
      "health": "degraded: 1 of 2 members", "ok": false},
      {"at": "/home", "fs": "nfs4", "from": "10.0.0.5:/export", "silent": true}])");
  const Json status = told.status(spec(), nobody);
  CHECK(status[0]["healthy"] == false);
  CHECK(status[0]["problems"] ==
        Json::parse(R"([{"node": "node02", "problem": "raid1 degraded: 1 of 2 members"}])"));
  CHECK(status[1]["healthy"] == false);
  CHECK(status[1]["nodes"][0]["state"] == "absent");
  CHECK(status[1]["nodes"][1]["state"] == "silent");
  told.heard("node02",
             R"([{"at": "/home", "fs": "nfs4", "from": "10.0.0.5:/export", "silent": true, "age": 300}])");
  const std::string since = told.status(spec(), nobody)[1]["problems"][1]["problem"];
  CHECK(since.find("300 s") != std::string::npos);
  told.heard("node02", R"([{"at": "/home", "fs": "nfs4", "from": "10.0.0.6:/export"}])");
  CHECK(told.status(spec(), nobody)[1]["nodes"][1]["state"] == "other");
}

TEST_CASE("of a node that is not heard, or says nonsense, nothing is known of its storage", "[api]") {
  StorageTold told;
  told.heard("node01", "[" + kScratch + "," + kHome + "]");
  for (const std::string& bad : {std::string(), std::string("{}"), std::string("[[["), std::string("7"),
                                 "[" + std::string(9000, ' ') + "]"}) {
    told.heard("node02", "[" + kHome + "]");
    told.heard("node02", bad);
    CHECK(told.status(spec(), nobody)[0]["nodes"][1]["state"] == "unknown");
  }
  for (const std::string odd : {"[1, null, \"x\", {\"at\": 5}]",
                                R"([{"at": "/scratch", "size": "big", "used": -1, "ok": 0, "array": {}}])"}) {
    told.heard("node02", odd);
    CHECK(told.status(spec(), nobody).size() == 2);
  }
  const Json silent = told.status(spec(), [](const std::string&) { return true; });
  for (const Json& section : silent) {
    CHECK(section["healthy"].is_null());
    CHECK_FALSE(section.contains("size_bytes"));
  }
}
