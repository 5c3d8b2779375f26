// The script by itself: its size, and what it leaves when its input ends in the middle.
#include "controller/hosts/bootstrap.h"

#include <filesystem>

#include "base/gzip.h"
#include "sys/os.h"
#include "sys/piped_child.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr const char* kAgent = "#!/bin/sh\n[ \"$1\" = version ] && exit 0\necho \"MUSTER1 $*\"\n";

// What the script prints when `packed` is what comes of the agent, cut off behind `sent` bytes.
std::string said(const TempDir& dir, const std::string& packed, size_t sent) {
  const auto reactor = make_reactor(1);
  std::string out;
  std::unique_ptr<PipedChild> child;
  auto started = PipedChild::start(*reactor,
                                   {"env", "XDG_RUNTIME_DIR=" + dir.path("run"), "HOME=/nowhere",
                                    "PATH=" + dir.path("bin") + ":/usr/bin:/bin", "/bin/sh"},
                                   {.out =
                                        [&](std::string_view bytes) {
                                          out.append(bytes);
                                          if (out != "\nMUSTERGO\n") return;
                                          child->send(packed.substr(0, sent));
                                          child->close_input();
                                        },
                                    .err = {},
                                    .out_end = {},
                                    .ended = [&](int) { reactor->stop(); }});
  child = std::move(started).value();
  child->send(bootstrap_script({"node'01", false, packed.size(), std::string(kAgent).size(), ""}));
  reactor->run();
  return out;
}

struct Host {
  TempDir dir;
  Host() {
    std::filesystem::create_directories(dir.path("run"));
    const Files files;
    REQUIRE(files.write(dir.path("bin/id"), "#!/bin/sh\necho 1000\n", 0755).ok());
    REQUIRE(files.write(dir.path("bin/sudo"), "#!/bin/sh\necho 'not allowed' >&2\nexit 1\n", 0755).ok());
  }
  std::vector<std::string> left() const { return Files().list(dir.path("run")); }
};

}  // namespace

TEST_CASE("bootstrap: the script fits into what a pipe takes at once", "[hosts]") {
  const std::string script =
      bootstrap_script({std::string(255, 'n'), true, 999999999, 999999999, std::string(64, 'a')});
  CHECK(script.size() < 4096);
  CHECK(script.substr(0, 2) == "{ ");
  CHECK(script.substr(script.size() - 2) == "}\n");
}

TEST_CASE("bootstrap: what the agent needs comes as words of its command line", "[hosts]") {
  const Host host;
  const std::string packed = gzip(kAgent).value(), out = said(host.dir, packed, packed.size());
  CHECK(out.find("MUSTER1 measure --stdin --folder " + host.dir.path("run") + "/.muster.") !=
        std::string::npos);
  CHECK(out.find(" --place " + host.dir.path("run") + " ") != std::string::npos);
  CHECK(out.find(" --how user --why not allowed --node node'01 --session none ") != std::string::npos);
}

TEST_CASE("bootstrap: an upload that is cut off leaves nothing", "[hosts]") {
  const Host host;
  const std::string packed = gzip(kAgent).value();
  const size_t sent = GENERATE(0, 1, 20, 60);
  REQUIRE(sent < packed.size());
  CHECK(said(host.dir, packed, sent).find("\nMUSTERNO unavailable ") != std::string::npos);
  CHECK(host.left() == std::vector<std::string>{});
}

TEST_CASE("bootstrap: words of a shell", "[hosts]") {
  CHECK(shell_word("plain") == "'plain'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
}
