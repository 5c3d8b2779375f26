// The image cache that several controllers share.
#include "controller/image/shared_cache.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"

using namespace muster;
namespace fs = std::filesystem;

TEST_CASE(
    "a build is put into the shared cache beside one that a controller with the same process id is putting "
    "there") {
  char pattern[] = "/tmp/muster-cache-test.XXXXXX";
  const fs::path root = ::mkdtemp(pattern);
  fs::create_directories(root / "build");
  std::ofstream(root / "build" / "manifest.json") << "{}";
  // What another controller's unfinished one would be called if it were named by the process id.
  const fs::path other = root / "cache" / ("abc." + std::to_string(::getpid()));
  fs::create_directories(other);
  std::ofstream(other / "half") << "x";
  CHECK(keep_build((root / "cache").string(), "sha256:abc", (root / "build").string(), false).ok());
  CHECK(fs::exists(other / "half"));
  CHECK(fetch_build((root / "cache").string(), "sha256:abc", (root / "out").string()).ok());
  CHECK(fs::exists(root / "out" / "manifest.json"));
  fs::remove_all(root);
}

TEST_CASE("a build that cannot be copied completely leaves nothing in the shared cache", "[image]") {
  char pattern[] = "/tmp/muster-cache-test.XXXXXX";
  const fs::path root = ::mkdtemp(pattern);
  fs::create_directories(root / "cache");
  CHECK_FALSE(keep_build((root / "cache").string(), "sha256:abc", (root / "none").string(), true).ok());
  // A folder where the seal belongs: it fails behind the copy.
  fs::create_directories(root / "build" / "cache-seal" / "x");
  CHECK_FALSE(keep_build((root / "cache").string(), "sha256:abc", (root / "build").string(), true).ok());
  CHECK(fs::is_empty(root / "cache"));
  fs::remove_all(root);
}
