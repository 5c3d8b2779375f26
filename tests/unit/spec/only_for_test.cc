// Playbooks that are for one distribution only: how they say so, and where a spec names them for another.
#include <filesystem>

#include "controller/spec/only_for.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

namespace muster {
namespace {

std::string path_of_error(const std::string& head) {
  const auto errors = parse_playbook("playbook: x\n" + head + "steps: []\n").errors;
  return errors.empty() ? "" : errors.front().path;
}

const std::map<std::string, OnlyFor> kOnlyFor = {{"gpu", {"debian", "use gpu-ubuntu"}},
                                                 {"gpu-ubuntu", {"ubuntu", ""}}};

// Two images; node01 and node02 have the first, node03 the second, node04 is adopted.
Spec spec_of(const std::string& first, const std::string& second) {
  Spec spec;
  for (const auto& [name, distribution] : {std::pair("a", first), std::pair("b", second)}) {
    ImageSpec image;
    image.name = name;
    image.bake = {"base", "gpu"};
    image.distribution = find_distribution(distribution);
    spec.images[name] = image;
  }
  spec.roles["gpu"] = {"base", "gpu"};
  spec.roles["other"] = {"base", "gpu-ubuntu"};
  const auto add = [&](const char* name, const char* role, const char* image) {
    NodeSpec node;
    node.name = NodeName(name);
    node.role = role;
    node.image = image;
    spec.nodes.push_back(node);
  };
  add("node01", "gpu", "a");
  add("node02", "gpu", "a");
  add("node03", "other", "b");
  add("node04", "gpu", "");
  return spec;
}

}  // namespace

TEST_CASE("a playbook names its distribution, and what to do on others", "[playbook]") {
  const auto parsed =
      parse_playbook("playbook: x\ndistribution: ubuntu\nelsewhere: use gpu-vendor\nsteps: []\n");
  REQUIRE(parsed.errors.empty());
  CHECK(parsed.playbook.only_for.distribution == "ubuntu");
  CHECK(parsed.playbook.only_for.elsewhere == "use gpu-vendor");
  CHECK(parse_playbook("playbook: x\nsteps: []\n").playbook.only_for.distribution.empty());
  CHECK(path_of_error("distribution: ubunto\n") == "distribution");
  CHECK(path_of_error("distribution: noble\n") == "distribution");
  CHECK(path_of_error("elsewhere: use y\n") == "elsewhere");
  CHECK(path_of_error("overlay: true\ndistribution: debian\n") == "distribution");
}

TEST_CASE("a playbook is refused only where another distribution is known", "[playbook]") {
  const OnlyFor& gpu = kOnlyFor.at("gpu");
  const Distribution *debian = find_distribution("debian"), *ubuntu = find_distribution("ubuntu");
  CHECK(why_not_on(gpu, debian).empty());
  CHECK(why_not_on(gpu, nullptr).empty());
  CHECK(why_not_on({}, ubuntu).empty());
  CHECK(why_not_on(gpu, ubuntu).find("use gpu-ubuntu") != std::string::npos);
  CHECK_FALSE(why_not_on(kOnlyFor.at("gpu-ubuntu"), debian).empty());
}

TEST_CASE("a spec's playbooks are held against the images of its nodes", "[spec]") {
  CHECK(refused_playbooks(spec_of("debian", "ubuntu"), {}).empty());
  const auto right = refused_playbooks(spec_of("debian", "ubuntu"), kOnlyFor);
  REQUIRE(right.size() == 1);  // the second image bakes gpu
  CHECK(right[0].baked);
  CHECK(right[0].name == "b");
  CHECK(right[0].index == 1);

  const auto wrong = refused_playbooks(spec_of("ubuntu", "debian"), kOnlyFor);
  REQUIRE(wrong.size() == 3);  // baked in a; role gpu once for its two nodes; role other
  CHECK((wrong[0].baked && wrong[0].name == "a"));
  CHECK((!wrong[1].baked && wrong[1].name == "gpu" && wrong[1].index == 1));
  CHECK(wrong[1].why.find("node01") != std::string::npos);
  CHECK((!wrong[2].baked && wrong[2].name == "other" && wrong[2].index == 1));

  CHECK(refused_playbooks(spec_of("", ""), kOnlyFor).empty());
}

TEST_CASE("the names that a check without a controller has say the same as the shipped playbooks", "[spec]") {
  std::map<std::string, OnlyFor> shipped;
  std::map<std::string, VarGroups> optional_vars;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/playbooks")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto parsed = parse_playbook(Files().read(entry.path().string()).value_or(""));
    if (!parsed.playbook.only_for.distribution.empty())
      shipped[parsed.playbook.name] = parsed.playbook.only_for;
    if (!parsed.playbook.optional_vars.empty())
      optional_vars[parsed.playbook.name] = parsed.playbook.optional_vars;
  }
  CHECK(optional_vars.count("containers") == 1);
  CHECK(shipped_names().optional_vars == optional_vars);
  const auto names = shipped_names().only_for;
  CHECK(names.size() == shipped.size());
  CHECK(shipped.count("gpu") == 1);
  for (const auto& [name, only_for] : shipped) {
    INFO(name);
    REQUIRE(names.count(name) == 1);
    CHECK(names.at(name).distribution == only_for.distribution);
    CHECK(names.at(name).elsewhere == only_for.elsewhere);
  }
}

}  // namespace muster
