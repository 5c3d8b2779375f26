// Which old builds of an image lose their content, and what stays of them.
#include "controller/image/old_builds.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/time.h"
#include "controller/image/folder.h"
#include "controller/image/package_list.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// Builds "1", "2", ... of the image "gpu", each a day after the one before; the last one is the current one.
struct Built {
  explicit Built(int count) {
    for (int day = 1; day <= count; ++day) {
      dir.write(file(day, "build.json"), R"({"packages": {"bash": "5"}, "built_at": )" +
                                             std::to_string(day * 24 * 60 * kMinute) + "}");
      for (const char* name : {"manifest.json", "frames.zst", "vmlinuz", "ram/usr/sbin/tool"})
        dir.write(file(day, name), "x");
    }
    REQUIRE(make_current(dir.path("images/gpu"), hex(count)).ok());
  }
  static std::string hex(int day) { return std::string(63, 'a') + std::to_string(day); }
  static std::string file(int day, const std::string& name) { return "images/gpu/" + hex(day) + "/" + name; }
  bool has(int day, const std::string& name) const {
    return std::filesystem::exists(dir.path(file(day, name)));
  }
  Result<size_t> empty(const std::set<std::string>& used) const {
    return empty_old_builds(dir.path(""), "gpu", used);
  }

  TempDir dir;
};

}  // namespace

TEST_CASE("old builds: the current one, the newest and those in use keep their content", "[image]") {
  const Built b(8);
  CHECK(b.empty({"sha256:" + Built::hex(2)}).value() == 3);
  for (int day = 1; day <= 8; ++day) {
    CAPTURE(day);
    const bool kept = day == 2 || day >= 8 - static_cast<int>(kKeptBuilds);
    for (const char* name : {"frames.zst", "vmlinuz", "ram/usr/sbin/tool"}) CHECK(b.has(day, name) == kept);
    CHECK(b.has(day, "build.json"));
    CHECK(b.has(day, "manifest.json"));
  }
  CHECK(packages_of_image(b.dir.path(""), "sha256:" + Built::hex(1)).ok());  // for reports
  CHECK(b.empty({"sha256:" + Built::hex(2)}).value() == 0);
}

TEST_CASE("old builds: one whose time is not recorded is as old as its manifest, and goes first without one",
          "[image]") {
  const Built b(5);
  for (const int day : {3, 4}) b.dir.write(Built::file(day, "build.json"), R"({"packages": {"bash": "5"}})");
  const timespec times[] = {{0, 0}, {4 * 24 * 60 * 60, 0}};
  REQUIRE(::utimensat(AT_FDCWD, b.dir.path(Built::file(4, "manifest.json")).c_str(), times, 0) == 0);
  REQUIRE(std::filesystem::remove(b.dir.path(Built::file(3, "manifest.json"))));
  CHECK(b.empty({}).value() == 1);
  for (const int day : {1, 2, 4, 5}) CHECK(b.has(day, "frames.zst"));
  CHECK_FALSE(b.has(3, "frames.zst"));
}

TEST_CASE("old builds: nothing is touched while the image is built, or where none is current", "[image]") {
  const Built b(8);
  {
    const auto lock = lock_image(b.dir.path("images/gpu"));
    REQUIRE(lock.ok());
    CHECK(b.empty({}).error().code == Code::conflict);
  }
  std::filesystem::remove(b.dir.path("images/gpu/current"));
  CHECK(b.empty({}).error().code == Code::not_found);
  CHECK(empty_old_builds(b.dir.path(""), "../gpu", {}).error().code == Code::invalid);
  for (int day = 1; day <= 8; ++day) CHECK(b.has(day, "frames.zst"));
}
