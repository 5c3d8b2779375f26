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

// What the script prints in `shell` when `packed` is what comes of the agent, cut off behind `sent` bytes.
std::string said(const TempDir& dir, const std::string& packed, size_t sent,
                 const std::vector<std::string>& shell = {"/bin/sh"}) {
  const auto reactor = make_reactor(1);
  std::string out;
  bool scripted = false, gone = false;
  std::unique_ptr<PipedChild> child;
  const auto ends_with = [&out](const std::string& line) {
    return out.size() >= line.size() && out.substr(out.size() - line.size()) == line;
  };
  const auto take = [&](std::string_view bytes) {
    out.append(bytes);
    if (!scripted && ends_with("\nMUSTERSH\n")) {
      scripted = true;
      child->send(bootstrap_script({"node'01", false, packed.size(), std::string(kAgent).size(), ""}));
    } else if (scripted && !gone && ends_with("\nMUSTERGO\n")) {
      gone = true;
      child->send(packed.substr(0, sent));
      child->close_input();
    }
  };
  std::vector<std::string> argv = {"env", "XDG_RUNTIME_DIR=" + dir.path("run"), "HOME=/nowhere",
                                   "PATH=" + dir.path("bin") + ":/usr/bin:/bin"};
  argv.insert(argv.end(), shell.begin(), shell.end());
  auto started = PipedChild::start(
      *reactor, argv, {.out = take, .err = {}, .out_end = {}, .ended = [&](int) { reactor->stop(); }});
  child = std::move(started).value();
  child->send(bootstrap_first_line());
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

TEST_CASE("bootstrap: what is sent fits into what a pipe or a terminal takes at once", "[hosts]") {
  const std::string script = bootstrap_script(
      {std::string(255, 'n'), true, 999999999, 999999999, std::string(64, 'a'), std::string(60, 'w')});
  CHECK(script.size() < 4096);
  CHECK(script.find('\n') == script.size() - 1);
  CHECK(bootstrap_first_line().size() < 256);
  CHECK(bootstrap_first_line().find('\n') == bootstrap_first_line().size() - 1);
}

TEST_CASE("bootstrap: any shell that reads the first line becomes the one that runs the script", "[hosts]") {
  const Host host;
  const std::string packed = gzip(kAgent).value();
  const auto shell = GENERATE(std::vector<std::string>{"dash"}, std::vector<std::string>{"bash"},
                              std::vector<std::string>{"bash", "--posix"},
                              std::vector<std::string>{"busybox", "sh"}, std::vector<std::string>{"ksh"},
                              std::vector<std::string>{"zsh"}, std::vector<std::string>{"zsh", "-l"},
                              std::vector<std::string>{"tcsh"}, std::vector<std::string>{"csh"});
  if (!Files().exists("/usr/bin/" + shell[0])) return;
  CAPTURE(shell);
  const std::string out = said(host.dir, packed, packed.size(), shell);
  CHECK(out.find("MUSTER1 measure --stdin --folder ") != std::string::npos);
}

TEST_CASE("bootstrap: every POSIX shell reads the script", "[hosts]") {
  const Host host;
  const std::string packed = gzip(kAgent).value();
  const std::string sudo = "#!/bin/sh\necho \"sudo $1 $2 $3\" >>" + host.dir.path("ran") +
                           "\necho 'unable to resolve host' >&2\nshift 3\nexec \"$@\"\n";
  const bool allowed = GENERATE(true, false);
  if (allowed) REQUIRE(Files().write(host.dir.path("bin/sudo"), sudo, 0755).ok());
  const auto shell = GENERATE(std::vector<std::string>{"dash"}, std::vector<std::string>{"bash"},
                              std::vector<std::string>{"bash", "--posix"},
                              std::vector<std::string>{"busybox", "sh"}, std::vector<std::string>{"ksh"});
  if (!Files().exists("/usr/bin/" + shell[0])) return;
  CAPTURE(shell, allowed);
  // It reads a line itself, as /bin/sh does behind the first one.
  std::vector<std::string> argv = shell;
  argv.insert(argv.end(),
              {"-c",
               "id() { echo 1000; }; "  // busybox takes its own before any in PATH
               "echo; echo MUSTERSH; IFS= read -r c; IFS= read -r c; eval \"$(printf %b \"$c\")\""});
  const std::string out = said(host.dir, packed, packed.size(), argv);
  CHECK(out.find("\nMUSTERSUDO\n") < out.find("\nMUSTERGO\n"));
  CHECK((out.find(allowed ? " --how sudo --why  --node " : " --how user --why not allowed --node ") !=
         std::string::npos));
  if (allowed) CHECK(Files().read(host.dir.path("ran")).value() == "sudo -n -u root\n");  // once
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
