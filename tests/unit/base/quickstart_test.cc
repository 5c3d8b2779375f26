// quickstart.sh over a tree of its own whose programs only remember what they were called with, and the
// progress that scripts/build.sh shows of a build.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

Output run(Command command) {
  auto done = make_process()->run(command);
  REQUIRE(done.ok());
  UNSCOPED_INFO(done->out + done->err);
  return std::move(*done);
}

// What a person sees of this output of ninja, where standard output is no terminal.
std::string shown(const std::string& ninja) {
  return run({.argv = {source_dir() + "/scripts/progress.sh"}, .input = ninja}).out;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A tree with the real quickstart.sh. `calls` gets a line for each call of a fake program.
struct Tree {
  TempDir dir;
  std::string root = dir.path("tree"), lab = dir.path("lab");

  Tree() {
    for (const char* folder : {"tree/scripts", "tree/lab", "tree/build", "bin"})
      fs::create_directories(dir.path(folder));
    fs::copy_file(source_dir() + "/quickstart.sh", root + "/quickstart.sh");
    dir.write("tree/lab/quickstart.yaml", "cluster: quickstart\n");
    remembers("tree/scripts/deps.sh");
    remembers("tree/scripts/build.sh");
    remembers(
        "tree/build/muster",
        "case \"$*\" in\n  'lab up '*) mkdir -p \"$MUSTER_LAB_DIR\"; touch \"$MUSTER_LAB_DIR/up.json\" ;;\n"
        "  'up '*) exit ${UP_EXIT:-0} ;;\nesac");
    for (const char* name : {"apt-get", "unshare", "modprobe"}) program(std::string("bin/") + name, "");
    program("bin/uname", "echo x86_64");
    program("bin/nproc", "echo 2");
    // Memory in MiB, disks in GiB. As awk does, it reads what is piped into it.
    program("bin/awk", "[[ $# -gt 1 ]] || cat >/dev/null\necho ${ROOM:-99999}");
  }
  void program(const std::string& path, const std::string& script) const {
    dir.write(path, "#!/bin/bash\n" + script + "\n");
    fs::permissions(dir.path(path), fs::perms::owner_all);
  }
  void remembers(const std::string& path, const std::string& script = "") const {
    program(path, "echo \"$(basename \"$0\") $*\" >>" + dir.path("calls") + "\n" + script);
  }
  Output start(std::map<std::string, std::string> env = {}, std::vector<std::string> words = {}) const {
    fs::remove(dir.path("calls"));
    env["PATH"] = dir.path("bin") + ":/usr/bin:/bin";
    env["MUSTER_LAB_DIR"] = lab;
    words.insert(words.begin(), root + "/quickstart.sh");
    return run({.argv = words, .env = env, .cwd = root});
  }
  std::string calls() const { return dir.read("calls"); }
};

const std::string kBuild =
    "build.sh dev muster musterd muster-agent muster-accept muster-accept-nvml muster-mpi-check\n";
const std::string kLabUp = "muster lab up lab/quickstart.yaml --replace-partial\n";
const std::string kUp = "muster up lab/quickstart.yaml --yes --report muster-report\n";

}  // namespace

TEST_CASE("a build shows how far it is every few seconds, and what is left once that can be said",
          "[scripts]") {
  CHECK(shown("muster-progress 1 600 2.000 Building a.o\n") == "");
  CHECK(shown("muster-progress 10 600 6.000 Building a.o\n"
              "muster-progress 11 600 7.900 Building b.o\n"
              "muster-progress 100 600 120.5 Building c.o\n"
              "muster-progress 599 600 700.0 Building d.o\n"
              "muster-progress 600 600 701.0 Linking e\n") ==
        "10 of 600\n100 of 600, about 10 min left\n599 of 600, under 1 min left\n600 of 600 after 11 min 41 "
        "s\n");
}

TEST_CASE("of a build that has nothing to do, ninja's own words are shown", "[scripts]") {
  CHECK(shown("muster-progress 1 1 0.010 Looking up the version\nninja: no work to do.\n") ==
        "ninja: no work to do.\n");
}

TEST_CASE("what a compiler prints is shown as it is", "[scripts]") {
  const std::string failed = "FAILED: x.o\n  g++ \\n -c x.cc\nx.cc:1:1: error: 'muster-progress 1 2'\n\n";
  CHECK(shown("muster-progress 1 9 0.1 x\n" + failed + "muster-progress 2 9 0.2 y\nno newline") ==
        failed + "no newline\n");
}

TEST_CASE("a build that fails, fails also with its progress shown", "[scripts]") {
  const Tree tree;
  for (const char* name : {"build.sh", "progress.sh"})
    fs::copy_file(source_dir() + "/scripts/" + name, tree.root + "/scripts/" + name,
                  fs::copy_options::overwrite_existing);
  tree.program("bin/cmake", "[[ $1 == --preset ]] || { echo 'x.cc:1: error'; echo no >&2; exit 7; }");
  const auto done = run({.argv = {tree.root + "/scripts/build.sh", "dev"},
                         .env = {{"PATH", tree.dir.path("bin") + ":/usr/bin:/bin"}}});
  CHECK(done.exit_code == 7);
  CHECK(done.out == "x.cc:1: error\nno\n");
}

TEST_CASE("quickstart builds, starts a lab and brings it up; the second start goes on", "[scripts]") {
  const Tree tree;
  if (::geteuid() != 0) {  // nothing is begun that would fail later
    CHECK(tree.start().exit_code == 2);
    CHECK(tree.calls().empty());
    return;
  }
  auto done = tree.start({{"UP_EXIT", "3"}});
  CHECK(done.exit_code == 3);
  CHECK(tree.calls() == "deps.sh build lab\n" + kBuild + kLabUp + kUp);
  CHECK(has(done.out, "build/muster why NODE"));
  CHECK(has(done.out, tree.lab + "/musterd.log"));
  done = tree.start();
  CHECK(done.exit_code == 0);
  CHECK(tree.calls() == "deps.sh build lab\n" + kBuild + kLabUp + "muster watch --until-idle\n" + kUp +
                            "muster report --dir muster-report\n");
  CHECK(has(done.out, "muster-report/report.html"));
}

TEST_CASE("quickstart says what this machine lacks before anything is installed", "[scripts]") {
  const Tree tree;
  CHECK(tree.start({{"ROOM", "100"}}).exit_code == 2);  // MiB of memory
  CHECK(tree.calls().empty());
  tree.program("bin/uname", "echo aarch64");
  CHECK(tree.start().exit_code == 2);
  CHECK(tree.calls().empty());
}

TEST_CASE("quickstart --down is content where nothing is up", "[scripts]") {
  if (::geteuid() != 0) return;
  const Tree tree;
  CHECK(tree.start({}, {"--down"}).exit_code == 0);
  CHECK(tree.calls().empty());
  fs::create_directories(tree.lab);
  CHECK(tree.start({}, {"--down"}).exit_code == 0);
  CHECK(tree.calls() == "muster lab down\n");
  fs::remove(tree.root + "/build/muster");
  CHECK(tree.start({}, {"--down"}).exit_code == 2);  // a lab is there, and what takes it down is not
}
