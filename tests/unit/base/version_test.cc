// cmake/version.cmake over repositories of its own: which version a build of them has.
#include "base/version.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

std::string run(std::vector<std::string> argv, std::map<std::string, std::string> env = {}) {
  const auto process = make_process();
  const auto done = process->run({.argv = std::move(argv), .env = std::move(env)});
  REQUIRE(done.ok());
  INFO(done->err);
  REQUIRE(done->exit_code == 0);
  return done->out;
}

const std::string kScript = source_dir() + "/cmake/version.cmake";

// A source tree under git, as far as a version is concerned.
struct Tree {
  TempDir dir;
  std::string root = dir.path("tree");

  Tree() {
    fs::create_directories(root + "/cmake");
    fs::create_directories(root + "/base");
    fs::create_directories(root + "/docs");
    run({"git", "init", "-q", "-b", "main", root});
    for (const char* file : {".gitattributes", "cmake/commit.txt"})
      write(file, text_of(source_dir() + "/" + file));
    write("base/x.cc", "int x;\n");
    write("docs/x.md", "x\n");
  }
  void write(const std::string& file, const std::string& text) const { dir.write("tree/" + file, text); }
  void git(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    std::vector<std::string> argv = {
        "git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"};
    argv.insert(argv.end(), words.begin(), words.end());
    run(argv, env);
  }
  // At so many seconds after 2026-11-24 08:09:45 UTC.
  void commit(int after = 0) const {
    const std::string time = std::to_string(1795507785 + after) + " +0900";
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", "x"},
        {{"GIT_COMMITTER_DATE", time}, {"GIT_AUTHOR_DATE", time}});
  }
  std::string source() const { return dir.path("version.cc"); }
  std::string version(const std::string& of = "", std::map<std::string, std::string> env = {},
                      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = {
        "cmake", "-D", "SOURCE=" + (of.empty() ? root : of), "-D", "BASE=0.1.0", "-D", "OUT=" + source()};
    argv.insert(argv.end(), more.begin(), more.end());
    argv.insert(argv.end(), {"-P", kScript});
    run(argv, std::move(env));
    const std::string text = text_of(source());
    const auto from = text.find("= \"") + 3;
    return text.substr(from, text.find('"', from) - from);
  }
};

bool dpkg(const std::string& a, const char* relation, const std::string& b) {
  return make_process()->run({.argv = {"dpkg", "--compare-versions", a, relation, b}})->ok();
}

bool is_clean(const std::string& version) {
  return std::regex_match(version, std::regex(R"(0\.1\.0\+\d{8}\.\d{6}\.g[0-9a-f]{7})"));
}

}  // namespace

TEST_CASE("this program's version is the project's, with its commit where one is known", "[version]") {
  CHECK(std::regex_match(kProgramVersion,
                         std::regex(R"(\d+\.\d+\.\d+(\+\d{8}\.\d{6}\.g[0-9a-f]{7}(\.dirty)?)?)")));
}

TEST_CASE("a version has the commit's time and hash, and later commits are later versions", "[version]") {
  const Tree tree;
  CHECK(tree.version() == "0.1.0");  // no commit yet: only the file that no archive filled in
  tree.commit();
  const std::string first = tree.version();
  CHECK(is_clean(first));
  CHECK(first.starts_with("0.1.0+20261124.080945.g"));
  CHECK(dpkg("0.1.0", "lt", first));
  tree.commit(1);
  const std::string second = tree.version();
  CHECK(is_clean(second));
  CHECK(dpkg(first, "lt", second));
  CHECK(dpkg(second, "lt", "0.1.1"));
  // In a worktree, in a clone without history, and from a hook of another repository.
  tree.git({"worktree", "add", "-q", tree.dir.path("beside")});
  CHECK(tree.version(tree.dir.path("beside")) == second);
  run({"git", "clone", "-q", "--depth=1", "file://" + tree.root, tree.dir.path("shallow")});
  CHECK(tree.version(tree.dir.path("shallow")) == second);
  run({"git", "init", "-q", tree.dir.path("other")});
  CHECK(tree.version("", {{"GIT_DIR", tree.dir.path("other/.git")}}) == second);
}

TEST_CASE("a tree that is not its commit's says so, where that changes what is built", "[version]") {
  const Tree tree;
  tree.commit();
  const std::string clean = tree.version();
  std::string now = clean + ".dirty";
  SECTION("a changed source") { tree.write("base/x.cc", "int y;\n"); }
  SECTION("a new one") { tree.write("base/y.cc", "int y;\n"); }
  SECTION("one that is gone") { fs::remove(tree.root + "/base/x.cc"); }
  SECTION("a page, and what an operator left there") {
    tree.write("docs/x.md", "y\n");
    tree.write("report.html", "");
    now = clean;
  }
  CHECK(tree.version() == now);
  CHECK(dpkg(clean, "le", now));
}

TEST_CASE("without git the commit is an archive's, a copy's, or none", "[version]") {
  const Tree tree;
  tree.commit();
  const std::string version = tree.version();
  const std::string copy = tree.dir.path("copy");
  fs::create_directories(copy);
  SECTION("git archive") {
    run({"git", "-C", tree.root, "archive", "-o", tree.dir.path("x.tar"), "HEAD"});
    run({"tar", "-xf", tree.dir.path("x.tar"), "-C", copy});
    CHECK(tree.version(copy) == version);
    // Unpacked in a repository that is not its own: that one's commit is another program's.
    run({"tar", "-xf", tree.dir.path("x.tar"), "-C", tree.root + "/docs"});
    tree.commit(5);
    CHECK(tree.version(tree.root + "/docs") == version);
    CHECK(tree.version() != version);
  }
  SECTION("a copy of the files") {
    fs::copy(tree.root + "/cmake", copy + "/cmake");
    CHECK(tree.version(copy) == "0.1.0");
    tree.write("base/x.cc", "int y;\n");
    run({"cmake", "-D", "SOURCE=" + tree.root, "-D", "RECORD=" + copy + "/cmake/commit.txt", "-P", kScript});
    CHECK(tree.version(copy) == version + ".dirty");
  }
  SECTION("no git at all") { CHECK(tree.version("", {}, {"-D", "MUSTER_GIT=/nowhere/git"}) == "0.1.0"); }
  SECTION("the environment names it") {
    CHECK(tree.version("", {{"MUSTER_COMMIT", "1795507786 0123456789abcdef"}}) ==
          "0.1.0+20261124.080946.g0123456");
    CHECK(tree.version("", {{"MUSTER_COMMIT", "today HEAD"}}) == "0.1.0");
  }
}

TEST_CASE("the version's source is left alone while the version is the same", "[version]") {
  const Tree tree;
  tree.commit();
  tree.version();
  const auto then = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(tree.source(), then);
  const auto old = fs::last_write_time(tree.source());
  tree.version();
  CHECK(fs::last_write_time(tree.source()) == old);
  tree.commit(1);
  tree.version();
  CHECK(fs::last_write_time(tree.source()) != old);
}

TEST_CASE("root knows the version of a tree that is another user's", "[version]") {
  const Tree tree;
  tree.commit();
  const std::string version = tree.version();
  REQUIRE(is_clean(version));
  if (::geteuid() == 0) run({"chown", "-R", "65534:65534", tree.root});
  CHECK(tree.version() == version);
}
