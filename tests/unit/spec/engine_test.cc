// The descriptions of the storage engines, held to the schema, the playbooks and each other.
#include "controller/engines/engine.h"

#include <set>
#include <string>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

namespace muster {
namespace {

Json section_schema() {
  const auto schema = parse_json(text_of(source_dir() + "/schema/spec.schema.json"));
  REQUIRE(schema.ok());
  return schema->at("properties").at("storage").at("patternProperties").front().at("properties");
}

}  // namespace

TEST_CASE("the schema knows the engines that are described, and no others", "[spec]") {
  std::set<std::string> described, allowed;
  for (const StorageEngine* engine : storage_engines()) described.insert(std::string(engine->name));
  const Json keys = section_schema();
  for (const Json& name : keys.at("engine").at("enum")) allowed.insert(name.get<std::string>());
  CHECK(described == allowed);
  CHECK(described.size() == storage_engines().size());
}

TEST_CASE("each engine is found by its name, has a playbook, and refuses only keys that exist", "[spec]") {
  const Json keys = section_schema();
  for (const StorageEngine* engine : storage_engines()) {
    INFO(engine->name);
    CHECK(&engine_of(engine->name) == engine);
    CHECK(!text_of(source_dir() + "/playbooks/" + std::string(engine->playbook) + ".yaml").empty());
    for (const auto key : engine->without)
      if (!key.empty()) CHECK(keys.contains(std::string(key)));
  }
}

TEST_CASE("a description is complete: what it claims, it says how", "[spec]") {
  for (const StorageEngine* engine : storage_engines()) {
    INFO(engine->name);
    CHECK((engine->mount != nullptr) == (engine->reach == Reach::shared));
    CHECK(!engine->leader_word.empty() == (engine->reach == Reach::shared));
    CHECK(engine->keeps_metadata == !engine->metadata_word.empty());
    CHECK(!(engine->one_server && engine->may_name_leader));
    // Whose data it is when no label tells, and which cluster's: only what is written on the disk says it.
    CHECK(engine->signs_disks == (engine->is_ours != nullptr));
    // Without a majority, or one that is named, its leader cannot be replaced: that is refused by name.
    if (engine->quorum > 0) CHECK(engine->keeps_metadata);
  }
}

TEST_CASE("a name that is no engine's asks for nothing and forbids nothing", "[spec]") {
  for (const char* name : {"", "cehp", "Ceph"}) {
    const StorageEngine& none = engine_of(name);
    CHECK(none.name.empty());
    CHECK(none.mount == nullptr);
    CHECK_FALSE(none.one_server);
    CHECK_FALSE(none.keeps_metadata);
  }
}

}  // namespace muster
