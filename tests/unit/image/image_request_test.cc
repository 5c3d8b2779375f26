// Which images of a spec have to be built, and why.
#include "controller/image/service/image_request.h"

#include "controller/image/service/image_service.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

struct Building {
  TempDir dir;
  DaemonOptions options;
  Spec spec = parse_spec(testing::kSpec).spec;
  Building() {
    options.state = dir.path("state");
    options.images = source_dir() + "/images";
    spec.images.at("cpu").bake.clear();
  }
  std::vector<DueImage> due() { return due_images(options, spec, {}, images_needed_by(spec)); }
};

}  // namespace

TEST_CASE("due images: an image that is not there, and one that no node has", "[image][preview]") {
  Building b;
  b.spec.images["login"] = b.spec.images.at("cpu");
  const auto due = b.due();
  REQUIRE(due.size() == 1);
  CHECK(due[0].name == "cpu");
  CHECK(due[0].why != "");
  CHECK(due[0].error == "");
  CHECK(images_needed_by(b.spec) == std::set<std::string>{"cpu"});
}

TEST_CASE("due images: what cannot be built is named with the reason", "[image][preview]") {
  Building b;
  SECTION("an unknown recipe") { b.spec.images.at("cpu").recipe = "debian-99"; }
  SECTION("an unknown kernel") { b.spec.images.at("cpu").kernel = "tiny"; }
  SECTION("an unknown playbook") { b.spec.images.at("cpu").bake = {"nope"}; }
  SECTION("no recipes at all") { b.options.images.clear(); }
  const auto due = b.due();
  REQUIRE(due.size() == 1);
  CHECK(due[0].error != "");
  CHECK(due[0].why == "");
}
