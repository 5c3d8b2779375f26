// Steps whose programs work below a folder that others can change: a program gets an open folder, not a path.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "agent/core/step.h"
#include "agent/steps/files/own_file.h"
#include "base/digest.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

namespace muster {
namespace {

constexpr int64_t kUser = 65534;

// The real machine: below /tmp, others could replace a folder.
struct HereRun {
  TempDir dir;
  Files files;
  std::unique_ptr<Process> process = make_process();
  StepContext context{files, *process, "node01"};
  HereRun() { REQUIRE(::chmod(dir.path("").c_str(), 0777) == 0); }
  std::string at(const std::string& name) const { return dir.path(name); }
  // A compressed archive with this text as bin/tool; in src, the folder that it was made of.
  std::string tar(const std::string& name, const std::string& text) const {
    dir.write("src/bin/tool", text);
    REQUIRE(run_ok(*process, {.argv = {"tar", "-C", at("src"), "-czf", at(name), "bin"}}).ok());
    REQUIRE(::chmod(at(name).c_str(), 0644) == 0);
    return at(name);
  }
};

// Another user, who acts when a program is about to run.
struct Meddled : Process {
  Process& real;
  std::function<void()> meddle;
  Meddled(Process& process, std::function<void()> what) : real(process), meddle(std::move(what)) {}
  Result<Output> run(const Command& command) override {
    meddle();
    return real.run(command);
  }
};

// apt's downloader, which writes below the folder that it runs in.
struct FolderFetch : Process {
  std::string content = "file\n";
  std::vector<std::string> names;
  Result<Output> run(const Command& command) override {
    const std::string name = command.argv.at(4);
    names.push_back(name);
    const int fd = ::openat(command.folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    const bool is_written = fd >= 0 && ::write(fd, content.data(), content.size()) > 0;
    ::close(fd);
    return Output{is_written ? 0 : 1, "", ""};
  }
};

// tar, which another user waits for: notes whether it runs in a folder of that user.
struct WatchedTar : Process {
  bool is_users = false;
  Result<Output> run(const Command& command) override {
    struct stat info = {};
    if (::fstat(command.folder, &info) != 0) return Output{1, "", ""};
    is_users = is_users || info.st_uid == kUser;
    ::close(::openat(command.folder, "tool", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    return Output{0, "", ""};
  }
};

}  // namespace

TEST_CASE("archive: below a folder that others can change it is unpacked in an open folder", "[links]") {
  HereRun here;
  const std::string tar = here.tar("a.tar", "one"), into = here.at("app");
  const Json params = {{"source", tar}, {"into", into}, {"sha256", *sha256_file(tar)}};
  const StepModule* archive = find_step_module("archive");
  CHECK(archive->check(here.context, params)->holds == Holds::no);
  REQUIRE(archive->apply(here.context, params).ok());
  CHECK(here.dir.read("app/bin/tool") == "one");
  CHECK(archive->check(here.context, params)->holds == Holds::yes);
  CHECK(here.files.list(here.at("")) == std::vector<std::string>{"a.tar", "app", "src"});
}

TEST_CASE("archive: what was verified is unpacked, whatever has its name by then", "[links]") {
  HereRun here;
  const std::string tar = here.tar("a.tar", "one"), other = here.tar("b.tar", "two");
  const Json params = {{"source", tar}, {"into", here.at("app")}, {"sha256", *sha256_file(tar)}};
  Meddled process(*here.process, [&] { REQUIRE(::rename(other.c_str(), tar.c_str()) == 0); });
  StepContext context{here.files, process, "node01"};
  REQUIRE(find_step_module("archive")->apply(context, params).ok());
  CHECK(here.dir.read("app/bin/tool") == "one");
}

TEST_CASE("archive: one that another user could change while it is read is refused", "[links]") {
  HereRun here;
  const std::string tar = here.tar("a.tar", "one");
  const Json params = {{"source", tar}, {"into", here.at("app")}, {"sha256", *sha256_file(tar)}};
  REQUIRE(::chmod(tar.c_str(), 0664) == 0);
  CHECK(find_step_module("archive")->apply(here.context, params).error().code == Code::denied);
  CHECK_FALSE(here.files.exists(here.at("app")));
}

TEST_CASE("archive: a user who makes folders beside it owns none that it is unpacked in", "[links]") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  HereRun here;
  WatchedTar tar;
  StepContext context{here.files, tar, "node01"};
  here.dir.write("a.tar", "");
  REQUIRE(::chmod(here.at("a.tar").c_str(), 0644) == 0);
  REQUIRE(here.files.make_directories(here.at("u"), 0755, {kUser, kUser}));
  const Json params = {
      {"source", here.at("a.tar")}, {"into", here.at("u/app")}, {"sha256", *sha256_file(here.at("a.tar"))}};
  std::atomic<bool> done = false;
  std::thread attacker([&, own = here.at("u/evil")] {
    while (!done) {
      for (const auto& name : here.files.list(here.at("u"))) {
        const std::string path = here.at("u/" + name);
        if (!name.starts_with(".muster.") || ::mkdir(own.c_str(), 0777) != 0) continue;
        (void)(::chown(own.c_str(), kUser, kUser) == 0 &&
               ::renameat2(AT_FDCWD, own.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0);
        ::rmdir(own.c_str());
      }
      const std::string fixed = here.at("u/app.muster-new");
      (void)(::mkdir(fixed.c_str(), 0777) == 0 && ::chown(fixed.c_str(), kUser, kUser) == 0);
    }
  });
  for (int i = 0; i < 200; ++i) {
    (void)find_step_module("archive")->apply(context, params).ok();
    (void)here.files.remove_tree(here.at("u/app")).ok();
  }
  done = true;
  attacker.join();
  CHECK_FALSE(tar.is_users);
}

TEST_CASE("archive: through a user's link nothing is unpacked", "[links]") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  HereRun here;
  REQUIRE(here.files.make_directories(here.at("etc")));
  REQUIRE(here.files.make_directories(here.at("u"), 0755, {kUser, kUser}));
  REQUIRE(here.files.symlink("../etc", here.at("u/x")));
  here.dir.write("a.tar", "");
  const Json params = {
      {"source", here.at("a.tar")}, {"into", here.at("u/x/app")}, {"sha256", *sha256_file(here.at("a.tar"))}};
  CHECK(find_step_module("archive")->apply(here.context, params).error().code == Code::denied);
  CHECK(find_step_module("archive")->check(here.context, params).error().code == Code::denied);
  CHECK(here.files.list(here.at("etc")).empty());
}

TEST_CASE("download: below a folder that others can change it goes to a folder of its own first", "[links]") {
  HereRun here;
  FolderFetch apt;
  StepContext context{here.files, apt, "node01"};
  const std::string to = here.at("file"), digest = sha256("file\n");
  REQUIRE(steps::fetch(context, "https://example.org/file", digest, to, 0640).ok());
  CHECK(here.dir.read("file") == "file\n");
  CHECK(here.files.look(to)->mode == 0640);
  REQUIRE(apt.names.size() == 1);
  CHECK(apt.names[0].find('/') == std::string::npos);
  apt.content = "other\n";
  CHECK(steps::fetch(context, "https://example.org/file", digest, to).error().code == Code::corrupt);
  CHECK(here.files.list(here.at("")) == std::vector<std::string>{"file"});
  CHECK(here.dir.read("file") == "file\n");
}

TEST_CASE("line, config: a link is not replaced by a file", "[links]") {
  const TempDir dir;
  Files files(dir.path(""));
  const auto process = make_process();
  StepContext context{files, *process, "node01"};
  const Json line = {{"path", "/etc/x"}, {"line", "a"}};
  const Json values = {{"path", "/etc/x"}, {"format", "keyvalue"}, {"values", {{"a", "1"}}}};
  REQUIRE(files.make_directories("/etc"));
  SECTION("of a file") {
    REQUIRE(files.write("/run/x", "b=2\n", 0640));
    REQUIRE(files.symlink("../run/x", "/etc/x"));
  }
  SECTION("of nothing") { REQUIRE(files.symlink("../run/x", "/etc/x")); }
  CHECK(find_step_module("line")->apply(context, line).error().code == Code::conflict);
  CHECK(find_step_module("config")->apply(context, values).error().code == Code::conflict);
  CHECK(files.look("/etc/x")->link);
}

}  // namespace muster
