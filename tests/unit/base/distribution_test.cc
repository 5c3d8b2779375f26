// What muster knows of distributions: releases, os-release, and the sources of a release's own packages.
#include "base/distribution.h"

#include "base/release_sources.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("os-release is read with and without quotation marks", "[distribution]") {
  const OsRelease one = parse_os_release(
      "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nVERSION_CODENAME='trixie'\nID=debian\n");
  CHECK(one.pretty_name == "Debian GNU/Linux 13 (trixie)");
  CHECK(one.codename == "trixie");
  CHECK(one.id == "debian");
  CHECK(parse_os_release("ID_LIKE=debian\nnonsense\n\"\n").id.empty());
}

TEST_CASE("a release is known by its codename, a system by its id as well", "[distribution]") {
  for (const Distribution& one : distributions()) {
    CAPTURE(one.id);
    CHECK(find_distribution(one.id) == &one);
    CHECK(one.components.front() == "main");
    CHECK(supported_releases().find(one.title) != std::string::npos);
    CHECK(distribution_title(one.id) == one.title);
    CHECK(known_distributions().find(one.id) != std::string::npos);
  }
  REQUIRE(find_release("noble") != nullptr);
  CHECK(find_release("noble")->distribution == "ubuntu");
  CHECK(find_release("noble")->sources_file != kSourcesList);
  CHECK(find_release("jammy")->sources_file == kSourcesList);
  // Of these there are no recipes, but sites have them, and playbooks that name them.
  for (const char* other : {"bullseye", "forky", "focal"}) {
    REQUIRE(find_release(other) != nullptr);
    CHECK_FALSE(find_release(other)->supported);
  }
  CHECK(find_release("forky")->firmware_component);
  CHECK(find_release("") == nullptr);
  CHECK(find_distribution("") == nullptr);
  CHECK(distribution_title("other") == "other");
  CHECK(find_release(parse_os_release("ID=ubuntu\nVERSION_CODENAME=noble\n")) == find_release("noble"));
  CHECK(find_release(parse_os_release("ID=pop\nVERSION_CODENAME=noble\n")) == nullptr);
  CHECK(default_recipe() == "debian-13");
  CHECK(supported_releases() == "Debian 12 and 13, Ubuntu 22.04 and 24.04");
  CHECK(has_pockets(*find_distribution("debian"), "trixie"));
  CHECK_FALSE(has_pockets(*find_distribution("debian"), "sid"));
}

TEST_CASE("where the security updates are follows from the mirror's URL", "[distribution][apt]") {
  const Distribution &debian = *find_distribution("debian"), &ubuntu = *find_distribution("ubuntu");
  CHECK(security_of(debian, "http://m.example/debian") == "http://m.example/debian-security");
  CHECK(security_of(debian, "http://m.example/mydebian").empty());
  CHECK(security_of(debian, "http://m.example/pool").empty());
  CHECK(security_of(debian, "/debian").empty());
  CHECK(security_of(ubuntu, "http://m.example/pool") == "http://m.example/pool");
  CHECK(mirror_of_another(debian, "http://m.example/ubuntu") == &ubuntu);
  CHECK(mirror_of_another(ubuntu, "http://m.example/debian") == &debian);
  CHECK(mirror_of_another(ubuntu, "http://m.example/ubuntu") == nullptr);
  CHECK(mirror_of_another(debian, "http://m.example/pool") == nullptr);
}

TEST_CASE("a release's sources are lines or stanzas, as their file's name says", "[distribution][apt]") {
  const AptMirror one{"http://m/x", "http://m/x", true}, apart{"http://m/x", "http://s/y", false};
  CHECK(sources_text(kSourcesList, pockets_of(one, "r", {"main", "more"}), "/k.gpg") ==
        "deb [signed-by=/k.gpg] http://m/x r main more\n"
        "deb [signed-by=/k.gpg] http://m/x r-updates main more\n"
        "deb [signed-by=/k.gpg] http://m/x r-security main more\n");
  CHECK(
      sources_text("/x.sources", pockets_of(one, "r", {"main"}), "/k.gpg") ==
      "Types: deb\nURIs: http://m/x\nSuites: r r-updates r-security\nComponents: main\nSigned-By: /k.gpg\n");
  CHECK(sources_text("/x.sources", pockets_of(apart, "r", {"main"}), "") ==
        "Types: deb\nURIs: http://m/x\nSuites: r\nComponents: main\n\n"
        "Types: deb\nURIs: http://s/y\nSuites: r-security\nComponents: main\n");
  CHECK(sources_text(kSourcesList, pockets_of({"http://m/x", kNoMirror, false}, "r", {"main"}), "") ==
        "deb http://m/x r main\n");
}
