// Which old builds of an image lose their content, and what stays of them.
#include "controller/image/old_builds.h"

#include <chrono>
#include <filesystem>

#include "base/time.h"
#include "controller/image/folder.h"
#include "controller/image/package_list.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// Builds "1", "2", ... of the image "gpu" arrived here, each a day after the one before; the last one is the
// current one. Elsewhere they were built in the opposite order.
struct Built {
  explicit Built(int count) {
    for (int day = 1; day <= count; ++day) {
      dir.write(file(day, "build.json"), R"({"packages": {"bash": "5"}, "built_at": )" +
                                             std::to_string((count - day + 1) * 24 * 60 * kMinute) + "}");
      const std::filesystem::path record = dir.path(file(day, "build.json"));
      last_write_time(record, last_write_time(record) - std::chrono::hours(24 * (count - day)));
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

TEST_CASE("old builds: the current one, those that arrived last and those in use keep their content",
          "[image]") {
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

TEST_CASE("old builds: a build without a record goes first", "[image]") {
  const Built b(5);
  std::filesystem::remove(b.dir.path(Built::file(4, "build.json")));
  CHECK(b.empty({}).value() == 1);
  CHECK_FALSE(b.has(4, "frames.zst"));
  CHECK(b.has(1, "frames.zst"));
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
