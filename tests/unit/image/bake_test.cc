// What baking makes of a playbook's image-phase steps, and how layers are keyed.
#include "controller/image/service/bake.h"

#include "controller/image/inputs.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"

using namespace muster;

namespace {

Playbook playbook(const std::string& steps) {
  const auto parsed = parse_playbook("playbook: p\nsteps:\n" + steps);
  for (const auto& error : parsed.errors) FAIL(error.message);
  return parsed.playbook;
}

const char* kSimple =
    "  - { name: packages, phase: image, module: package, params: { names: [ chrony ] } }\n"
    "  - { name: conf, phase: image, module: file, params: { path: /etc/x, content: \"y\" } }\n"
    "  - { name: unit, phase: image, module: service, params: { names: [ x ], enabled: true } }\n"
    "  - { name: here, phase: node, module: command, params: { argv: [ \"true\" ] } }\n";
const char* kSource = "  - { name: source, phase: image, module: apt_repository, params: { name: more } }\n";

BakeInputs inputs(const std::map<std::string, std::string>& vars) {
  BakeInputs out;
  out.vars = vars;
  out.system.id = "debian";
  out.system.codename = "trixie";
  return out;
}

ImageRequest baked(const std::map<std::string, Playbook>& playbooks, const std::vector<std::string>& names,
                   const std::map<std::string, std::string>& vars = {}) {
  ImageSpec image;
  image.name = "gpu";
  image.bake = names;
  ImageRequest request;
  const Status done = bake(image, playbooks, inputs(vars), request);
  INFO((done.ok() ? "" : done.error().message));
  REQUIRE(done.ok());
  return request;
}

}  // namespace

TEST_CASE("baking: packages, files and units go into the recipe's own tree") {
  const ImageRequest request = baked({{"base", playbook(kSimple)}}, {"base"});
  CHECK(request.packages == std::vector<std::string>{"chrony"});
  REQUIRE(request.files.size() == 1);
  CHECK(request.files[0].content == "y");
  CHECK(request.run == std::vector<std::vector<std::string>>{{"systemctl", "enable", "x"}});
  CHECK(request.layers.empty());
}

TEST_CASE("baking: a playbook with any other step is a layer, its steps in their order, its units last") {
  Playbook gpu = playbook(std::string(kSource) + kSimple);
  gpu.name = "gpu";
  const ImageRequest request = baked({{"gpu", gpu}, {"base", playbook(kSimple)}}, {"gpu", "base"});
  REQUIRE(request.layers.size() == 1);
  CHECK(request.packages.size() == 1);  // base's
  const ImageLayer& layer = request.layers[0];
  CHECK(layer.name == "gpu");
  REQUIRE(layer.steps.size() == 3);
  CHECK(layer.steps[0]["id"] == "gpu/source");
  CHECK(layer.steps[1]["module"] == "package");
  CHECK(layer.steps[2]["id"] == "gpu/conf");
  CHECK(layer.units == std::vector<std::vector<std::string>>{{"systemctl", "enable", "x"}});
}

TEST_CASE("baking: a package of one release only goes into images of that release") {
  const auto with = [&](const char* release) {
    return baked({{"p", playbook(std::string("  - { name: p, phase: image, module: package, params: { names: "
                                             "[ docker.io ], also: { ") +
                                 release + ": [ docker-cli ] } } }\n")}},
                 {"p"})
        .packages;
  };
  CHECK(with("trixie") == std::vector<std::string>{"docker.io", "docker-cli"});
  CHECK(with("bookworm") == std::vector<std::string>{"docker.io"});
  CHECK(with("debian") == std::vector<std::string>{"docker.io", "docker-cli"});
  CHECK(with("ubuntu") == std::vector<std::string>{"docker.io"});
}

TEST_CASE("baking: a name of no release, and a playbook for another distribution, are refused") {
  ImageSpec image;
  image.bake = {"p"};
  const auto refused = [&](const Playbook& one) {
    ImageRequest request;
    const Status done = bake(image, {{"p", one}}, inputs({}), request);
    return done.ok() ? Code::failed : done.error().code;
  };
  CHECK(refused(playbook("  - { name: p, phase: image, module: package, params: { names: [ a ], also: { "
                         "trixy: [ b ] } } }\n")) == Code::invalid);
  Playbook other = playbook(kSimple);
  CHECK(refused(other) == Code::failed);
  other.only_for = {"debian", ""};
  CHECK(refused(other) == Code::failed);
  other.only_for = {"ubuntu", ""};
  CHECK(refused(other) == Code::invalid);
}

TEST_CASE(
    "baking: files, and versions that are locked or held, need the step itself, not only its packages") {
  const char* held = "  - { name: p, phase: image, module: package, params: { names: [ a ], hold: true } }\n";
  CHECK(baked({{"p", playbook(held)}}, {"p"}).layers.size() == 1);
  const char* files =
      "  - { name: p, phase: image, module: package, params: { files: [ { url: \"\", sha256: \"\" } ] } }\n";
  CHECK(baked({{"p", playbook(files)}}, {"p"}).layers.size() == 1);
}

TEST_CASE("baking: what depends on a node is refused, and so is an unknown playbook") {
  ImageSpec image;
  image.name = "gpu";
  image.bake = {"p"};
  ImageRequest request;
  const auto with = [&](const char* step) {
    return bake(image, {{"p", playbook(step)}}, inputs({{"release", "550"}}), request);
  };
  CHECK(
      with("  - { name: n, phase: image, module: file, params: { path: /x, content: \"{{node.name}}\" } }\n")
          .error()
          .code == Code::invalid);
  CHECK(with("  - { name: n, phase: image, for_each: nodes, module: command, params: { argv: [ a ], creates: "
             "/b } }\n")
            .error()
            .code == Code::invalid);
  CHECK(bake(image, {}, {}, request).error().code == Code::invalid);
}

TEST_CASE("baking: the spec's variables are put in, and a missing one is named") {
  const char* step =
      "  - { name: p, phase: image, module: package, params: { names: [ \"driver={{vars.release}}-*\" ], "
      "hold: true } }\n";
  const ImageRequest request = baked({{"p", playbook(step)}}, {"p"}, {{"release", "550"}});
  REQUIRE(request.layers.size() == 1);
  CHECK(request.layers[0].steps[0]["params"]["names"] == Json::array({"driver=550-*"}));
  CHECK(baked({{"p", playbook(step)}}, {"p"}, {{"release", "560"}}).layers[0].steps !=
        request.layers[0].steps);  // another layer
  ImageSpec image;
  image.bake = {"p"};
  ImageRequest none;
  const Status missing = bake(image, {{"p", playbook(step)}}, {}, none);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Code::invalid);
  CHECK(missing.error().message.find("release") != std::string::npos);
}

TEST_CASE("baking: a part whose optional variable is not set is left out") {
  Playbook parts = playbook(
      "  - { name: part, phase: image, when: \"{{#vars.part}}yes{{/vars.part}}\", module: file, params: { "
      "path: "
      "/x, content: \"{{vars.part}}\" } }\n"
      "  - { name: always, phase: image, module: file, params: { path: /y, content: \"y{{vars.part}}\" } "
      "}\n");
  const auto files = [&](const std::map<std::string, std::string>& vars) {
    return baked({{"p", parts}}, {"p"}, vars).files;
  };
  parts.optional_vars = {{"part"}};
  REQUIRE(files({}).size() == 1);
  CHECK(files({})[0].content == "y");
  REQUIRE(files({{"part", "1"}}).size() == 2);
  CHECK(files({{"part", "1"}})[0].content == "1");
  parts.optional_vars.clear();
  ImageSpec image;
  image.bake = {"p"};
  ImageRequest request;
  CHECK(bake(image, {{"p", parts}}, inputs({}), request).error().code == Code::invalid);
}

TEST_CASE("layers: a change leaves the keys below it alone and changes its own and all above") {
  const Json recipe = {{"suite", "trixie"}};
  const ImageLayer gpu{"gpu", Json::array({1}), {}}, hpc{"hpc", Json::array({2}), {}},
      other{"hpc", Json::array({3}), {}};
  const auto first = layer_keys(recipe, {gpu, hpc});
  REQUIRE(first.size() == 3);
  const auto second = layer_keys(recipe, {gpu, other});
  CHECK(second[0] == first[0]);
  CHECK(second[1] == first[1]);
  CHECK(second[2] != first[2]);
  const auto third = layer_keys({{"suite", "bookworm"}}, {gpu, hpc});
  for (size_t i = 0; i < 3; ++i) CHECK(third[i] != first[i]);
  CHECK(layer_keys(recipe, {hpc, gpu})[2] != first[2]);
}

TEST_CASE("layers: what changed among them is said by name") {
  const ImageLayer gpu{"gpu", Json::array({1}), {}}, newer{"gpu", Json::array({2}), {}},
      hpc{"hpc", Json::array(), {}};
  const auto inputs = [](const std::vector<ImageLayer>& layers) {
    return build_inputs({}, "full", 1, layers);
  };
  CHECK(input_changes(inputs({gpu}), inputs({gpu})).empty());
  CHECK(input_changes(inputs({}), inputs({gpu})) == "layers: +gpu");
  CHECK(input_changes(inputs({gpu, hpc}), inputs({newer})) == "layers: gpu -hpc");
  CHECK(input_changes(inputs({gpu, hpc}), inputs({hpc, gpu})) == "layers: order changed");
}

TEST_CASE("baking: packages that depend on the archives or on the kernel need the step itself") {
  for (const char* params :
       {"names: [ \"a|b\" ]", "names: [ \"headers-{kernel}\" ]", "names: [ a ], if_offered: [ b ]"}) {
    INFO(params);
    const std::string step =
        "  - { name: p, phase: image, module: package, params: { " + std::string(params) + " } }\n";
    const ImageRequest request = baked({{"p", playbook(step)}}, {"p"});
    CHECK(request.layers.size() == 1);
    CHECK(request.packages.empty());
  }
}
