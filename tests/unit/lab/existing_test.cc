// What `muster lab up` does with a lab that is there already: used, refused, or called partial.
#include "lab/existing.h"

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::lab;

namespace {

LabSpec two_machines() {
  LabSpec spec;
  spec.cluster = "t";
  spec.provisioning_cidr = "10.0.0.0/24";
  spec.controller = "10.0.0.1";
  for (const char* name : {"a", "b"}) {
    LabNode node;
    node.name = name;
    spec.nodes.push_back(node);
  }
  return spec;
}

Found running(const LabSpec& spec) {
  return {
      .status = {{"network", true}, {"bmcs", true}, {"controller", true}, {"apt_proxy", true}},
      .machines = to_json(spec),
      .summary = {{"socket", "/x/musterd.sock"}, {"apt_proxy", "http://10.0.0.1:3142"}, {"accel", "tcg"}}};
}

}  // namespace

TEST_CASE("a lab that is up with the same machines is used as it is") {
  const auto spec = two_machines();
  auto found = running(spec);
  CHECK(judge(found, spec, {}) == Existing::same);
  SECTION("also with a machine that was added to the rack since") {
    auto larger = spec;
    LabNode extra;
    extra.name = "extra";
    extra.in_spec = false;
    larger.nodes.push_back(extra);
    found.machines = to_json(larger);
    CHECK(judge(found, spec, {}) == Existing::same);
    UpOptions options;
    options.add = {"extra"};
    CHECK(judge(found, spec, options) == Existing::same);
    options.add = {"another"};
    CHECK(judge(found, spec, options) == Existing::other);
  }
  SECTION("also without a controller and a proxy, where it was started without them") {
    found.summary["socket"] = nullptr;
    found.summary["apt_proxy"] = nullptr;
    found.status["controller"] = found.status["apt_proxy"] = false;
    CHECK(judge(found, spec, {}) == Existing::same);
    UpOptions options;
    options.controller = true;
    CHECK(judge(found, spec, options) == Existing::other);
  }
}

TEST_CASE("a lab with other machines or options is not the one that is wanted") {
  const auto spec = two_machines();
  const auto found = running(spec);
  auto wanted = spec;
  wanted.nodes[1].memory_mib += 1;
  CHECK(judge(found, wanted, {}) == Existing::other);
  wanted = spec;
  wanted.nodes.pop_back();
  CHECK(judge(found, wanted, {}) == Existing::other);
  UpOptions options;
  options.accel = "kvm";
  CHECK(judge(found, spec, options) == Existing::other);
  options.accel = "tcg";
  CHECK(judge(found, spec, options) == Existing::same);
  options.controller = false;
  CHECK(judge(found, spec, options) == Existing::other);
}

TEST_CASE("a lab that runs and does not answer is not partial, which may be replaced") {
  const auto spec = two_machines();
  auto found = running(spec);
  found.status["serves"] = true;
  CHECK(judge(found, spec, {}) == Existing::same);
  found.status["bmcs"] = false;
  CHECK(judge(found, spec, {}) == Existing::silent);
  found.summary = nullptr;
  CHECK(judge(found, spec, {}) == Existing::silent);
  found.status["serves"] = false;
  CHECK(judge(found, spec, {}) == Existing::partial);
}

TEST_CASE("a lab of which something ended, or that was never all up, is partial") {
  const auto spec = two_machines();
  for (const char* part : {"network", "bmcs", "controller", "apt_proxy"}) {
    CAPTURE(part);
    auto found = running(spec);
    found.status[part] = false;
    CHECK(judge(found, spec, {}) == Existing::partial);
  }
  auto interrupted = running(spec);
  interrupted.summary = nullptr;
  CHECK(judge(interrupted, spec, {}) == Existing::partial);
  auto damaged = running(spec);
  damaged.machines = nullptr;
  CHECK(judge(damaged, spec, {}) == Existing::partial);
}

TEST_CASE("a folder has a lab once a network namespace is recorded in it") {
  const TempDir folder;
  const auto spec = two_machines();
  const auto dir = LabDir::at(folder.path("lab")).value();
  CHECK(existing_lab(dir, spec, {}) == Existing::none);
  REQUIRE(Files("/").make_directories(dir.root(), 0755).ok());
  folder.write("lab/lab.json", to_json(spec).dump());
  folder.write("lab/up.json", "{}");
  CHECK(existing_lab(dir, spec, {}) == Existing::none);  // as `lab down --keep` leaves it
  folder.write("lab/namespace.json", R"({"name":"muster-no-such-lab","inode":1})");
  CHECK(existing_lab(dir, spec, {}) == Existing::partial);
}
