// What is kept of consoles, and what counts as a panic.
#include "controller/consoles.h"

#include <sys/stat.h>

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

struct Bench {
  TempDir dir;
  ManualReactor reactor;
  std::vector<std::string> panics;
  Consoles consoles{
      reactor,
      dir.path(""),
      {[] { return std::map<std::string, PowerTarget>(); },
       [this](const std::string& node, const std::string& panic) { panics.push_back(node + " " + panic); }},
      "/nowhere"};
};

constexpr const char* kPanic =
    "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)";

}  // namespace

TEST_CASE("a panic is a line of its own, whatever it is cut into, and its closing line is none",
          "[console]") {
  Bench b;
  b.consoles.heard("n1", "\x1b[0m[    1.2] Kernel pan");
  CHECK(b.panics.empty());
  b.consoles.heard(
      "n1", "ic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r\n[ 1.3] CPU: 0\r\n");
  b.consoles.heard("n1", "---[ end Kernel panic - not syncing: VFS: Unable to mount root fs ]---\r\n");
  b.consoles.heard("n2", "login: \r\n");
  CHECK(b.panics == std::vector<std::string>{std::string("n1 ") + kPanic});
  CHECK(b.consoles.panic_since("n1", {}) == kPanic);
  CHECK(b.consoles.panic_since("n2", {}).empty());
  b.reactor.advance(kMinute);
  CHECK(b.consoles.panic_since("n1", b.reactor.steady()).empty());  // of an attempt before this one
  b.consoles.heard("n1", "Kernel panic - not syncing: Fatal exception\n");
  CHECK(b.consoles.panic_since("n1", b.reactor.steady()) == "Kernel panic - not syncing: Fatal exception");
}

TEST_CASE("a stranger's console fills neither memory nor disk, and nobody else reads it", "[console]") {
  Bench b;
  const std::string noise(1 << 20, 'x');
  for (int i = 0; i < 12; ++i) b.consoles.heard("n1", noise);
  b.consoles.heard("n1", "\nKernel panic - not syncing: " + noise + "\n");
  REQUIRE_FALSE(b.panics.empty());
  CHECK(b.panics[0].size() < 300);
  const std::string folder = b.dir.path("consoles");
  uintmax_t total = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) total += file.file_size();
  CHECK(total < (12u << 20));
  struct stat info;
  REQUIRE(::stat(folder.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
}
