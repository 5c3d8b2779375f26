// Where an image's packages come from, and what is said where they cannot come from anywhere.
#include "controller/image/package_sources.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr const char* kKey = "/usr/share/keyrings/debian-archive-keyring.gpg";

// A machine that builds images: its release, its keys, and what apt says of its sources.
struct Host : Process {
  TempDir dir;
  Files files{dir.path(".")};
  std::string targets =
      "http://mirror.example/debian/|bookworm|main|$(SIGNED_BY)\n"
      "http://mirror.example/debian/|bookworm-updates|main|/usr/share/keyrings/k.gpg\n"
      "http://sec.example/debian-security/|bookworm-security|main|\n"
      "https://vendor.example/apt|stable|main|/k.gpg\n"
      "http://mirror.example/debian/|bookworm|contrib|\n";

  Host() {
    REQUIRE(files.write("/etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n").ok());
    for (const Distribution& one : distributions()) REQUIRE(files.write(one.keyring, "key").ok());
  }
  Result<Output> run(const Command& command) override {
    return command.argv.at(0) == "apt-get" ? Output{0, targets, ""} : Output{1, "", "not expected"};
  }
  Result<ImageSources> of(const ImageRecipe& recipe) {
    return find_sources(recipe, "/stage/key.asc", files, *this);
  }
  std::string text_of(const Result<ImageRecipe>& recipe) {
    REQUIRE(recipe);
    const auto found = of(*recipe);
    INFO((found.ok() ? "" : found.error().message));
    REQUIRE(found);
    CHECK(found->file == "/etc/apt/sources.list");
    CHECK(found->lines == found->text);
    return found->text;
  }
};

Result<ImageRecipe> recipe_with(const std::string& keys, const std::string& suite = "bookworm") {
  return parse_recipe("suite: " + suite + "\nkernel: {full: k}\n" + keys, "x.yaml");
}
Result<ImageRecipe> ubuntu_with(const std::string& keys, const std::string& suite = "noble") {
  return recipe_with("distribution: ubuntu\n" + keys, suite);
}

// Lines of sources.list, each "URI SUITE COMPONENT...".
std::string listed(std::initializer_list<std::string> lines, const std::string& key = kKey) {
  std::string out;
  for (const auto& line : lines) out += "deb [signed-by=" + key + "] " + line + "\n";
  return out;
}

}  // namespace

TEST_CASE("a recipe without a mirror takes those of its host's own release", "[image][apt]") {
  Host host;
  CHECK(parse_index_targets(host.targets).size() == 5);
  CHECK(parse_index_targets(host.targets)[0].signed_by.empty());
  CHECK(host.text_of(recipe_with("")) == listed({"http://mirror.example/debian bookworm contrib main",
                                                 "http://sec.example/debian-security bookworm-security main",
                                                 "http://mirror.example/debian bookworm-updates main"}));
  const std::string newer = host.text_of(recipe_with("", "trixie"));
  CHECK(newer.find("http://mirror.example/debian trixie contrib main\n") != std::string::npos);
  CHECK(newer.find("bookworm") == std::string::npos);
  CHECK(host.text_of(recipe_with("components: [ main ]\n")).find("contrib") == std::string::npos);
  CHECK(host.text_of(recipe_with("firmware: [ f1 ]\n")) ==
        listed({"http://mirror.example/debian bookworm contrib main non-free-firmware",
                "http://sec.example/debian-security bookworm-security main non-free-firmware",
                "http://mirror.example/debian bookworm-updates main non-free-firmware"}));
  host.targets = "https://vendor.example/apt|stable|main|/k.gpg\n";
  CHECK(host.of(*recipe_with("")).error().code == Code::not_found);
}

TEST_CASE("a host of another distribution lends no mirror, and the key to give is named", "[image][apt]") {
  Host host;
  const auto refused = host.of(*ubuntu_with(""));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::invalid);
  CHECK(refused.error().message.find("`network.apt.ubuntu.mirror`") != std::string::npos);
  CHECK(host.of(*ubuntu_with("mirror: http://m.example/pool\n")));
  REQUIRE(host.files.write("/etc/os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n").ok());
  host.targets = "http://m.example/ubuntu/|noble|main|\nhttp://m.example/ubuntu/|noble-security|universe|\n";
  CHECK(host.of(*ubuntu_with("", "jammy"))->text.find("jammy-security universe\n") != std::string::npos);
  const auto other = host.of(*recipe_with(""));
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("`network.apt.mirror`") != std::string::npos);
}

TEST_CASE("without the archive's key nothing is built, and its package is named", "[image][apt]") {
  Host host;
  for (const Distribution& one : distributions()) {
    CAPTURE(one.id);
    REQUIRE(host.files.remove(one.keyring).ok());
    const auto recipe = recipe_with(
        "distribution: " + one.id + "\nmirror: http://m.example/pool\n" + "security_mirror: none\n", "some");
    REQUIRE(recipe);
    const auto refused = host.of(*recipe);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::not_found);
    CHECK(refused.error().message.find(one.keyring_package) != std::string::npos);
  }
}

TEST_CASE("an image from a mirror of one's own has the release's updates and security pockets",
          "[image][apt]") {
  Host host;
  CHECK(host.text_of(recipe_with("mirror: http://m.example/debian/\n")) ==
        listed({"http://m.example/debian bookworm main", "http://m.example/debian bookworm-updates main",
                "http://m.example/debian-security bookworm-security main"}));
  CHECK(host.text_of(recipe_with(
            "mirror: http://m.example/pool/a\nsecurity_mirror: http://s.example/b/\nupdates: false\n")) ==
        listed({"http://m.example/pool/a bookworm main", "http://s.example/b bookworm-security main"}));
  CHECK(host.text_of(recipe_with("mirror: file:/srv/apt\nsecurity_mirror: none\nupdates: false\n")) ==
        listed({"file:/srv/apt bookworm main"}));
  CHECK(host.text_of(recipe_with("mirror: http://m.example/debian", "sid")) ==
        listed({"http://m.example/debian sid main"}));
  CHECK(host.text_of(recipe_with("mirror: http://m.example/debian\nfirmware: [ f1 ]\ncomponents: [ main, "
                                 "contrib ]\nupdates: false\n")) ==
        listed({"http://m.example/debian bookworm main contrib non-free-firmware",
                "http://m.example/debian-security bookworm-security main contrib non-free-firmware"}));
}

TEST_CASE("Ubuntu's sources lie where each release has them, with all pockets in one mirror",
          "[image][apt]") {
  Host host;
  const std::string key = find_distribution("ubuntu")->keyring;
  const auto lines = [&](const std::string& suite) {
    return listed({"http://m.example/pool " + suite + " main universe",
                   "http://m.example/pool " + suite + "-updates main universe",
                   "http://m.example/pool " + suite + "-security main universe"},
                  key);
  };
  // Firmware comes with the kernel's packages there: the archive has no component for it.
  const auto noble = host.of(*ubuntu_with("mirror: http://m.example/pool\nfirmware: [ f1 ]\n"));
  REQUIRE(noble);
  CHECK(noble->file == "/etc/apt/sources.list.d/ubuntu.sources");
  CHECK(noble->lines == lines("noble"));
  CHECK(noble->text ==
        "Types: deb\nURIs: http://m.example/pool\nSuites: noble noble-updates noble-security\n"
        "Components: main universe\nSigned-By: " +
            key + "\n");
  CHECK(host.text_of(ubuntu_with("mirror: http://m.example/pool\n", "jammy")) == lines("jammy"));
}

TEST_CASE("the mirror of the spec takes the place of the recipe's, with its pockets", "[image][apt]") {
  Host host;
  const AptMirror declared{"http://10.20.0.9/debian", "http://10.20.0.9/debian-security", true};
  auto plain = recipe_with(""), own = recipe_with("mirror: http://m.example/debian\nupdates: false\n");
  const std::string before = canonical(*plain);
  use_mirror(*plain, {});
  CHECK(canonical(*plain) == before);  // of a spec that declares none
  use_mirror(*plain, declared);
  use_mirror(*own, declared);
  CHECK(canonical(*plain) == canonical(*own));
  CHECK(canonical(*plain) != before);  // so the image is built again
  CHECK(host.text_of(own) ==
        listed({"http://10.20.0.9/debian bookworm main", "http://10.20.0.9/debian bookworm-updates main",
                "http://10.20.0.9/debian-security bookworm-security main"}));
  auto sid = recipe_with("mirror: http://m.example/debian", "sid");
  use_mirror(*sid, declared);
  CHECK(host.text_of(sid) == listed({"http://10.20.0.9/debian sid main"}));
  use_mirror(*own, {"http://10.20.0.9/pool", kNoMirror, false});
  CHECK(host.text_of(own) == listed({"http://10.20.0.9/pool bookworm main"}));
}

TEST_CASE("a mirror that is signed again is verified by the declared key, on the builder and on nodes",
          "[image][apt]") {
  Host host;
  const std::string key = find_distribution("ubuntu")->keyring, mirror = "http://10.20.0.9/pool";
  REQUIRE(host.files.remove(key).ok());  // none is needed
  for (const std::string suite : {"jammy", "noble"}) {
    CAPTURE(suite);
    auto recipe = ubuntu_with("", suite);
    REQUIRE(recipe);
    use_mirror(*recipe, {mirror, mirror, false, "key 1\n"});
    const auto found = host.of(*recipe);
    REQUIRE(found);
    CHECK(found->lines ==
          listed({mirror + " " + suite + " main universe", mirror + " " + suite + "-security main universe"},
                 "/stage/key.asc"));
    CHECK(found->text.find(kMirrorKey) != std::string::npos);
    CHECK(found->text.find("/stage") == std::string::npos);
    const std::string before = canonical(*recipe);
    use_mirror(*recipe, {mirror, mirror, false, "key 2\n"});
    CHECK(canonical(*recipe) != before);  // so the image is built again
  }
}

TEST_CASE("of what the builder prints, what is wrong is kept", "[image][apt]") {
  const std::string output =
      "I: running apt-get update...\nGet:1 http://m noble InRelease\n"
      "W: GPG error: http://m noble InRelease: The following signatures couldn't be verified: NO_PUBKEY 1\n"
      "E: The repository 'http://m noble InRelease' is not signed.\n"
      "E: The repository 'http://m noble InRelease' is not signed.\n"
      "E: Unable to locate package fio\nSetting up W: x\n";
  const std::string kept = apt_complaints(output);
  CHECK(std::count(kept.begin(), kept.end(), '\n') == 2);
  for (const char* part : {"NO_PUBKEY", "is not signed", "Unable to locate package fio"})
    CHECK(kept.find(part) != std::string::npos);
  CHECK(apt_complaints("I: done\n").empty());
  CHECK(missing_component(output).empty());
  CHECK(missing_component(output +
                          "W: Skipping acquire of configured file 'universe/binary-amd64/Packages' as "
                          "repository 'http://m noble InRelease' doesn't have the component "
                          "'universe' (component misspelt in sources.list?)\nI: done\n")
            .find("W: Skipping acquire") == 0);
}
