// Programs that an order names by digest, on a host that has none: what of the order is taken, and how they
// come from the controller.
#include <sys/stat.h>

#include "agent/work/carried_programs.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

std::string hex_of(const std::string& content) {
  return sha256(content).substr(sha256(content).find(':') + 1);
}

Json entry(const std::string& name, const std::string& content) {
  return {{"name", name}, {"sha256", hex_of(content)}, {"size", content.size()}};
}

Code refusal(const Json& programs) {
  const auto read = carried_programs_of({{"programs", programs}});
  REQUIRE_FALSE(read.ok());
  return read.error().code;
}

// A boot server that counts what is fetched of it, and a host.
struct Bench {
  struct Source : BlobSource {
    explicit Source(Bench& to) : bench(to) {}
    Bench& bench;
    Result<std::string> whole(const std::string& path) override {
      bench.fetched.push_back(path);
      if (bench.failures > 0 && bench.failures--) return fail(Code::unavailable, "busy");
      const auto found = bench.served.find(path);
      if (found == bench.served.end()) return fail(Code::not_found, path);
      return found->second;
    }
    Result<std::string> range(const std::string&, uint64_t, uint64_t) override {
      return fail(Code::failed, "not asked for");
    }
  };

  TempDir dir;
  Files files{dir.path("host")};
  std::map<std::string, std::string> served;
  std::vector<std::string> fetched;
  int failures = 0;
  bool cancelled = false;

  void serve(const std::string& content) { served["/programs/" + hex_of(content)] = content; }
  Result<std::map<std::string, std::string>> ready(const Json& programs) {
    fetched.clear();
    const auto named = carried_programs_of({{"programs", programs}});
    REQUIRE(named.ok());
    const auto open = [this]() -> Result<std::unique_ptr<BlobSource>> {
      return std::unique_ptr<BlobSource>(std::make_unique<Source>(*this));
    };
    return fetched_programs(files, open, {.attempts = 3, .backoff = 0})->ready(*named, [this] {
      return cancelled;
    });
  }
  std::string held(const std::string& name) { return files.read("/usr/lib/muster/" + name).value_or(""); }
};

}  // namespace

TEST_CASE("an order's programs are taken as they are written, or not at all", "[carried]") {
  CHECK(carried_programs_of(Json::object())->empty());
  CHECK(carried_programs_of(nullptr)->empty());
  const auto two = carried_programs_of({{"programs", {entry("muster-accept", "a"), entry("x_1", "b")}}});
  REQUIRE(two.ok());
  REQUIRE(two->size() == 2);
  CHECK(two->at(0).name == "muster-accept");
  CHECK(two->at(0).sha256 == hex_of("a"));
  CHECK(two->at(1).size == 1);

  CHECK(refusal("muster-accept") == Code::invalid);
  CHECK(refusal(Json::array({"muster-accept"})) == Code::invalid);
  CHECK(refusal({entry("a", "x"), entry("a", "y")}) == Code::invalid);
  for (const char* name : {"", ".", "..", "../sh", "a/b", "/bin/sh", "a b", "-rf", "a.so"})
    CHECK(refusal(Json::array({entry(name, "x")})) == Code::invalid);
  for (const char* key : {"name", "sha256", "size"}) {
    Json lacks = entry("a", "x");
    lacks.erase(key);
    CHECK(refusal(Json::array({lacks})) == Code::invalid);
  }
  Json odd = entry("a", "x");
  for (const Json& size : {Json(0), Json(-1), Json(int64_t{1} << 40), Json("1")}) {
    odd["size"] = size;
    CHECK(refusal(Json::array({odd})) == Code::invalid);
  }
  odd = entry("a", "x");
  for (const std::string& digest : {sha256("x"), std::string("AB"), std::string(64, 'G')}) {
    odd["sha256"] = digest;
    CHECK(refusal(Json::array({odd})) == Code::invalid);
  }
}

TEST_CASE("a program that is not there comes from the controller, once", "[carried]") {
  Bench b;
  b.serve("kernels");
  b.serve("driver");
  const Json both = {entry("muster-accept", "kernels"), entry("muster-accept-nvml", "driver")};
  const auto paths = b.ready(both);
  REQUIRE(paths.ok());
  CHECK(*paths ==
        std::map<std::string, std::string>{{"muster-accept", "/usr/lib/muster/muster-accept"},
                                           {"muster-accept-nvml", "/usr/lib/muster/muster-accept-nvml"}});
  CHECK(b.held("muster-accept") == "kernels");
  CHECK(b.held("muster-accept-nvml") == "driver");
  struct stat st = {};
  REQUIRE(::stat(b.files.real("/usr/lib/muster/muster-accept").c_str(), &st) == 0);
  CHECK((st.st_mode & 07777) == 0755);
  CHECK(b.fetched.size() == 2);

  CHECK(b.ready(both).ok());
  CHECK(b.fetched.empty());

  SECTION("after an upgrade of the controller the other one is replaced") {
    b.serve("kernels, newer");
    REQUIRE(b.ready({entry("muster-accept", "kernels, newer"), both[1]}).ok());
    CHECK(b.held("muster-accept") == "kernels, newer");
    CHECK(b.fetched.size() == 1);
  }
  SECTION("one that was changed here is replaced") {
    REQUIRE(b.files.write("/usr/lib/muster/muster-accept", "KERNELS", 0755).ok());
    REQUIRE(b.ready(both).ok());
    CHECK(b.held("muster-accept") == "kernels");
  }
  SECTION("one that cannot be executed is written again") {
    REQUIRE(b.files.write("/usr/lib/muster/muster-accept", "kernels", 0600).ok());
    REQUIRE(b.ready(both).ok());
    REQUIRE(::stat(b.files.real("/usr/lib/muster/muster-accept").c_str(), &st) == 0);
    CHECK((st.st_mode & 07777) == 0755);
  }
}

TEST_CASE("what is not the program that the order names is not put there", "[carried]") {
  Bench b;
  b.serve("kernels");
  REQUIRE(b.ready(Json::array({entry("muster-accept", "kernels")})).ok());
  const Json other = Json::array({entry("muster-accept", "other")});
  SECTION("the controller does not serve it") {
    const auto none = b.ready(other);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == Code::not_found);
    CHECK(none.error().message.find("muster-accept") == 0);
    CHECK(b.fetched.size() == 1);
  }
  SECTION("it serves something else of that name") {
    b.served["/programs/" + hex_of("other")] = "bad";
    const auto bad = b.ready(other);
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().code == Code::corrupt);
    CHECK(b.fetched.size() == 3);
  }
  SECTION("the size is another one") {
    b.serve("other");
    Json longer = entry("muster-accept", "other");
    longer["size"] = 6;
    const auto bad = b.ready(Json::array({longer}));
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().code == Code::corrupt);
  }
  SECTION("the order is cancelled") {
    b.cancelled = true;
    const auto ended = b.ready(other);
    REQUIRE_FALSE(ended.ok());
    CHECK(ended.error().code == Code::cancelled);
    CHECK(b.fetched.empty());
  }
  CHECK(b.held("muster-accept") == "kernels");
}

TEST_CASE("a controller that is busy is requested again", "[carried]") {
  Bench b;
  b.serve("kernels");
  b.failures = 2;
  CHECK(b.ready(Json::array({entry("muster-accept", "kernels")})).ok());
  CHECK(b.fetched.size() == 3);
}
