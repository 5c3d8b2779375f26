// The recipes of the controller's folder, and the images of the stored spec that are made from them.
#include "controller/current/current_spec.h"
#include "controller/image/recipe.h"
#include "controller/spec/reader/add_node.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/run/bench.h"

using namespace muster;

TEST_CASE("a folder's recipes are known, and one that cannot be read does not hide the others",
          "[image][recipe]") {
  const TempDir dir;
  dir.write("a.yaml", "distribution: ubuntu\nsuite: noble\nkernel: { full: k }\n");
  dir.write("b.yaml", "from: a\nmirror: http://m.example/ubuntu\n");
  dir.write("c.yaml", "suite: noble\nkernel: { full: k }\n");
  dir.write("d.yaml", "from: nowhere\n");
  dir.write("notes.txt", "none");
  const auto found = known_recipes(dir.path("."));
  REQUIRE(found.size() == 4);
  CHECK(found[0].name == "a");
  CHECK(found[0].distribution == "ubuntu");
  CHECK_FALSE(found[0].mirror);
  CHECK(found[0].error.empty());
  CHECK(found[1].distribution == "ubuntu");
  CHECK(found[1].mirror);
  CHECK(found[2].error.find("c.yaml:1:8: suite: ") != std::string::npos);
  CHECK_FALSE(found[3].error.empty());
  CHECK(known_recipes(dir.path("none")).empty());
}

TEST_CASE("the stored spec's images have the distribution of their recipes, whatever became of these",
          "[spec][recipe]") {
  testing::RunBench b;
  SpecRow row;
  row.revision = 1;
  row.text = testing::kSpec;
  b.store.write({row}, [](Status written) { REQUIRE(written.ok()); });
  b.reactor.advance(100);
  std::vector<KnownRecipe> recipes = {{"debian-12", "ubuntu"}};
  CurrentSpec spec(b.store, [&] { return recipes; });
  REQUIRE(spec.get().ok());
  CHECK((*spec.get())->spec.images.at("cpu").distribution == find_distribution("ubuntu"));
  recipes = {{"another", "ubuntu"}};  // the recipe is gone: the spec can still be read
  spec.changed();
  REQUIRE(spec.get().ok());
  CHECK((*spec.get())->spec.images.at("cpu").distribution == nullptr);
}

TEST_CASE("a spec with an added node has the distributions of its images, as it has once it is stored",
          "[spec][recipe]") {
  NewNode node;
  node.name = "node04";
  node.like = "node03";
  node.mac = "52:54:00:20:00:04";
  node.power_address = "10.20.1.14";
  const auto added = add_node(testing::kSpec, node, {{"debian-12", "ubuntu"}});
  REQUIRE(added.ok());
  CHECK(added->spec.distribution_of(*added->spec.node("node04")) == find_distribution("ubuntu"));
}
