// Playbooks are parsed once for what they are, and again when anything of them is another.
#include "controller/bringup/playbook_cache.h"

#include <chrono>
#include <filesystem>

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

std::string text_of(const std::string& name, const std::string& step) {
  return "playbook: " + name + "\nhelp: x\nsteps:\n  - name: " + step +
         "\n    module: file\n    params: { path: /etc/x, content: \"\" }\n";
}

struct Shelf {
  TempDir dir;
  TimeMs now = 7'258'118'400'000;  // in the year 2200: what was written by now was written long ago
  PlaybookCache shelf{dir.path(""), [this] { return now; }};

  Shelf() {
    std::filesystem::create_directory(dir.path("acceptance"));
    dir.write("base.yaml", text_of("base", "one"));
    dir.write("acceptance/quick.yaml",
              "playbook: quick\nhelp: x\nsteps:\n  - name: dgemm\n    module: accept\n    params: { kernel: "
              "dgemm }\n");
    // Else what a test writes next may have the same time.
    for (const char* file : {"base.yaml", "acceptance/quick.yaml"})
      std::filesystem::last_write_time(dir.path(file),
                                       std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  PlaybookCache::Shared shipped() {
    const auto out = shelf.shipped();
    INFO((out.ok() ? "" : out.error().message));
    REQUIRE(out.ok());
    return *out;
  }
};

}  // namespace

TEST_CASE("playbook shelf: what did not change is parsed once", "[bringup]") {
  Shelf s;
  const auto first = s.shipped();
  CHECK(first->all.at("base").steps.front().name == "one");
  CHECK(first->all.count("acceptance/quick") == 1);
  CHECK(first->digests.size() == 2);
  CHECK(s.shipped() == first);
}

TEST_CASE("playbook shelf: another text, another file or none any more is seen", "[bringup]") {
  Shelf s;
  const auto first = s.shipped();
  SECTION("a text of the same length") {
    s.dir.write("base.yaml", text_of("base", "two"));
    CHECK(s.shipped()->all.at("base").steps.front().name == "two");
    CHECK(s.shipped()->digests.at("base") != first->digests.at("base"));
    CHECK(s.shipped()->digests.at("acceptance/quick") == first->digests.at("acceptance/quick"));
  }
  SECTION("one that is put in its place with its times") {
    const auto when = std::filesystem::last_write_time(s.dir.path("base.yaml"));
    s.dir.write("base.new", text_of("base", "two"));
    std::filesystem::last_write_time(s.dir.path("base.new"), when);
    std::filesystem::rename(s.dir.path("base.new"), s.dir.path("base.yaml"));
    CHECK(s.shipped()->all.at("base").steps.front().name == "two");
  }
  SECTION("one more") {
    s.dir.write("motd.yaml", text_of("motd", "two"));
    CHECK(s.shipped()->all.count("motd") == 1);
  }
  SECTION("one less") {
    std::filesystem::remove(s.dir.path("base.yaml"));
    CHECK(s.shipped()->all.count("base") == 0);
  }
  SECTION("of the acceptance") {
    std::filesystem::remove(s.dir.path("acceptance/quick.yaml"));
    CHECK(s.shipped()->all.count("acceptance/quick") == 0);
  }
  CHECK(s.shipped() != first);
  CHECK(first->all.at("base").steps.front().name == "one");  // who has it keeps it
}

TEST_CASE("playbook shelf: what was written as it was read is read again", "[bringup]") {
  Shelf s;
  s.now = 0;  // everything was written after this
  const auto first = s.shipped();
  CHECK(s.shipped() != first);
  CHECK(s.shipped()->digests == first->digests);
}

TEST_CASE("playbook shelf: an error is reported each time, and gone once corrected", "[bringup]") {
  Shelf s;
  s.shipped();
  s.dir.write("base.yaml", "playbook: base\nsteps: 3\n");
  for (int i = 0; i < 2; ++i) {
    const auto bad = s.shelf.shipped();
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().code == Code::invalid);
    CHECK(bad.error().message.find("base.yaml") != std::string::npos);
  }
  s.dir.write("base.yaml", text_of("base", "one"));
  CHECK(s.shipped()->all.count("base") == 1);
  PlaybookCache none("", [] { return TimeMs{0}; });
  CHECK(none.shipped().error().code == Code::not_found);
}

TEST_CASE("playbook shelf: a spec's own are put beside the shipped ones once for their text", "[bringup]") {
  Shelf s;
  const std::vector<OwnPlaybook> own = {{"site/motd.yaml", text_of("motd", "two")}};
  const auto with = s.shelf.with(own);
  INFO((with.ok() ? "" : with.error().message));
  REQUIRE(with.ok());
  CHECK((*with)->all.count("motd") == 1);
  CHECK((*with)->all.count("base") == 1);
  CHECK(s.shelf.with(own).value() == *with);
  CHECK(s.shipped()->all.count("motd") == 0);
  CHECK(s.shelf.with({}).value() == s.shipped());
  const auto other = s.shelf.with({{"site/motd.yaml", text_of("motd", "three")}}).value();
  CHECK(other->all.at("motd").steps.front().name == "three");
  CHECK(other->digests.at("motd") != (*with)->digests.at("motd"));
  CHECK_FALSE(s.shelf.with({{"site/base.yaml", text_of("base", "two")}}).ok());  // no overlay, and shipped
  // A shipped one that changed below it.
  s.dir.write("base.yaml", text_of("base", "six"));
  CHECK(s.shelf.with(own).value()->all.at("base").steps.front().name == "six");
}
