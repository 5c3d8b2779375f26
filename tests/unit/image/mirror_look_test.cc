// Mirrors before an image is built: what apt says of them, within one limit for all images.
#include "controller/image/mirror_look.h"

#include <algorithm>
#include <filesystem>

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// A machine whose apt takes a minute for each list, and knows some packages.
struct Mirror : Process {
  TempDir dir;
  Files files{dir.path(".")};
  std::vector<Command> commands;
  SteadyMs clock = {1000};
  std::vector<std::string> packages = {"linux-image-amd64", "openssh-server"};
  std::string update_fails, lacks_component;

  Mirror() {
    REQUIRE(files.write("/etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n").ok());
    for (const Distribution& one : distributions()) REQUIRE(files.write(one.keyring, "key").ok());
  }
  Result<Output> run(const Command& command) override {
    commands.push_back(command);
    CHECK(command.argv.at(0) == "apt-get");
    const auto is = [&](const char* word) {
      return std::find(command.argv.begin(), command.argv.end(), word) != command.argv.end();
    };
    if (is("update")) return update(command);
    CHECK(is("--simulate"));
    for (size_t i = 4; i < command.argv.size(); ++i)
      if (std::find(packages.begin(), packages.end(), command.argv[i]) == packages.end())
        return Output{100, "", "E: Unable to locate package " + command.argv[i] + "\n"};
    return Output{0, "", ""};
  }
  Result<Output> update(const Command& command) {
    const DurationMs took = std::min<DurationMs>(kMinute, command.deadline);
    clock += took;
    if (took < kMinute) return fail(Code::timeout, "apt-get took too long");
    const std::string settings = Files("/").read(command.env.at("APT_CONFIG")).value_or("");
    CHECK(settings.find("Dir::Etc::parts \"/dev/null\"") != std::string::npos);
    if (!update_fails.empty()) return Output{100, "", update_fails};
    return Output{0, "", lacks_component};
  }
  std::map<std::string, Result<std::string>> look(const std::vector<ImageRequest>& images,
                                                  DurationMs limit = 10 * kMinute) {
    return look_at_mirrors(images, {dir.path("doctor"), files, *this, [this] { return clock; }}, limit);
  }
  long updates() const {
    return std::count_if(commands.begin(), commands.end(),
                         [](const Command& one) { return one.argv.at(2) == "update"; });
  }
};

ImageRequest image(const std::string& name, const std::string& package,
                   const std::string& mirror = "http://m.example/debian") {
  ImageRequest out;
  out.name = name;
  const auto recipe = parse_recipe("suite: bookworm\nkernel: { full: linux-image-amd64 }\nmirror: " + mirror +
                                       "\npackages: [ " + package + " ]\n",
                                   "x.yaml");
  REQUIRE(recipe.ok());
  out.recipe = *recipe;
  return out;
}

}  // namespace

TEST_CASE("mirror look: a complete mirror, and one that lacks a package", "[image][apt][doctor]") {
  Mirror m;
  const auto seen = m.look({image("a", "openssh-server"), image("b", "no-such-package")});
  REQUIRE(seen.at("a").ok());
  CHECK(seen.at("a")->empty());
  REQUIRE(seen.at("b").ok());
  CHECK(seen.at("b")->find("no-such-package") != std::string::npos);
  CHECK(m.updates() == 1);  // both have the same sources
  CHECK_FALSE(std::filesystem::exists(m.dir.path("doctor")));
}

TEST_CASE("mirror look: a pocket that is missing is named, and so is a component", "[image][apt][doctor]") {
  Mirror m;
  m.update_fails =
      "E: The repository 'http://m.example/debian bookworm-updates Release' does not have a "
      "Release file.\n";
  const auto lost = m.look({image("a", "openssh-server")});
  REQUIRE(lost.at("a").ok());
  CHECK(lost.at("a")->find("bookworm-updates") != std::string::npos);
  m.update_fails.clear();
  m.lacks_component =
      "W: Skipping acquire of configured file 'x/binary-amd64/Packages' as repository "
      "'http://m.example/debian bookworm InRelease' doesn't have the component 'x'\n";
  const auto component = m.look({image("a", "openssh-server")});
  REQUIRE(component.at("a").ok());
  CHECK(component.at("a")->find("component 'x'") != std::string::npos);
}

TEST_CASE("mirror look: the limit is one for all images", "[image][apt][doctor]") {
  Mirror m;
  const auto seen =
      m.look({image("a", "openssh-server"), image("b", "openssh-server", "http://n.example/debian"),
              image("c", "openssh-server", "http://o.example/debian")},
             90 * kSecond);
  CHECK(seen.at("a").ok());
  REQUIRE_FALSE(seen.at("b").ok());
  CHECK(seen.at("b").error().code == Code::timeout);
  REQUIRE_FALSE(seen.at("c").ok());
  CHECK(seen.at("c").error().code == Code::timeout);
  CHECK(m.updates() == 2);  // no time was left for the third
}

TEST_CASE("mirror look: a key that this machine lacks stops a build, too", "[image][apt][doctor]") {
  Mirror m;
  for (const Distribution& one : distributions()) REQUIRE(m.files.remove(one.keyring).ok());
  const auto seen = m.look({image("a", "openssh-server")});
  REQUIRE(seen.at("a").ok());
  CHECK_FALSE(seen.at("a")->empty());
  CHECK(m.commands.empty());
}
