// What is kept of consoles, and what counts as a panic.
#include "controller/power/service/consoles.h"

#include <sys/stat.h>

#include <filesystem>

#include "sys/os.h"
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
  b.consoles.receive("n1", "\x1b[0m[    1.2] Kernel pan");
  CHECK(b.panics.empty());
  b.consoles.receive(
      "n1", "ic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r\n[ 1.3] CPU: 0\r\n");
  b.consoles.receive("n1", "---[ end Kernel panic - not syncing: VFS: Unable to mount root fs ]---\r\n");
  b.consoles.receive("n2", "login: \r\n");
  CHECK(b.panics == std::vector<std::string>{std::string("n1 ") + kPanic});
  CHECK(b.consoles.panic_since("n1", {}) == kPanic);
  CHECK(b.consoles.panic_since("n2", {}).empty());
  b.reactor.advance(kMinute);
  CHECK(b.consoles.panic_since("n1", b.reactor.steady()).empty());  // of an attempt before this one
  b.consoles.receive("n1", "Kernel panic - not syncing: Fatal exception\n");
  CHECK(b.consoles.panic_since("n1", b.reactor.steady()) == "Kernel panic - not syncing: Fatal exception");
}

TEST_CASE("an unknown machine's console fills neither memory nor disk, and only root reads it", "[console]") {
  Bench b;
  const std::string noise(1 << 20, 'x');
  for (int i = 0; i < 12; ++i) b.consoles.receive("n1", noise);
  b.consoles.receive("n1", "\nKernel panic - not syncing: " + noise + "\n");
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

TEST_CASE("what is kept of consoles is root's alone, also what was there before", "[console]") {
  Bench b;
  const std::string folder = b.dir.path("consoles");
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  for (const char* name : {"/n1.log", "/n1.log.1"}) {
    REQUIRE(Files("/").write(folder + name, "old\n"));
    std::filesystem::permissions(folder + name, std::filesystem::perms(0644));
  }
  const mode_t before = ::umask(0);
  b.consoles.receive("n1", "one\n");
  b.consoles.receive("n2", "two\n");
  ::umask(before);
  const auto mode = [](const std::string& path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions()) & 0777;
  };
  CHECK(mode(folder) == 0700);
  for (const char* name : {"/n1.log", "/n1.log.1", "/n2.log"}) {
    INFO(name);
    CHECK(mode(folder + name) == 0600);
  }
  CHECK(Files("/").read(folder + "/n1.log").value() == "old\none\n");
}

TEST_CASE("a token of a join is not in what is kept of a console, whatever it is cut into", "[console]") {
  const std::string token = "0123456789abcdef0123456789abcdef0123456789abcdef";
  const std::string line =
      "Command line: quiet muster.pin=abc muster.token=" + token + " muster.node=n1\r\nnext line\r\n";
  const std::string masked =
      "Command line: quiet muster.pin=abc muster.token=*** muster.node=n1\r\nnext line\r\n";
  for (size_t piece = 1; piece <= line.size(); ++piece) {
    INFO(piece);
    Bench b;
    for (size_t at = 0; at < line.size(); at += piece) b.consoles.receive("n1", line.substr(at, piece));
    REQUIRE(Files("/").read(b.dir.path("consoles/n1.log")).value() == masked);
  }
}

TEST_CASE("a token that a terminal wraps, colours or ends a line with is not kept either", "[console]") {
  const std::string half = "0123456789abcdef01234567";
  for (const auto& [said, kept] : std::vector<std::pair<std::string, std::string>>{
           {"muster.token=" + half + "\r\n" + half + " x", "muster.token=***\r\n x"},
           {"muster.tok\r\nen=" + half + half + " x", "muster.tok\r\nen=*** x"},
           {"muster.token=" + half + "\x1b[24;1H" + half + " x", "muster.token=***\x1b[24;1H x"},
           {"'muster.token=" + half + half + "' x", "'muster.token=***' x"},
           {"muster.token=" + half + half + "\nnext", "muster.token=***\nnext"},
           {"mmuster.token=" + half + half + "\nmuster.token=" + half + half + "\n",
            "mmuster.token=***\nmuster.token=***\n"},
           {"\x1b[muster.token=" + half + half + " x", "\x1b[muster.token=*** x"},
           {"mus\x1b[muster.token=" + half + half + " x", "mus\x1b[muster.token=*** x"},
           {"muster.tokens=1 muster.to", "muster.tokens=1 muster.to"}}) {
    INFO(said);
    TokenMask mask;
    CHECK(mask.pass(said) == kept);
  }
}

TEST_CASE("a panic is reported without the token that its line repeats", "[console]") {
  Bench b;
  b.consoles.receive("n1", "Kernel panic - not syncing: bad init muster.token=abcdef x\n");
  REQUIRE(b.panics.size() == 1);
  CHECK(b.panics[0].find("abcdef") == std::string::npos);
}
