#include "sys/os.h"

#include "base/json_dump.h"
#include "sys/lock_file.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "tests/catch.h"

namespace muster {
namespace {

class TestFolder {
 public:
  TestFolder() {
    char pattern[] = "/tmp/muster-os-test.XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~TestFolder() { (void)make_process()->run({.argv = {"rm", "-rf", "--", path_}}); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// "xéé...": an odd number of bytes, characters of two.
std::string text_of_bytes(size_t odd) {
  std::string out = "x";
  while (out.size() < odd) out += "é";
  return out;
}

std::string text(const Result<Output>& result) { return result.ok() ? result->out : result.error().message; }

}  // namespace

TEST_CASE("a program that prints without end is killed at its limit, and its output is not kept", "[base]") {
  auto process = make_process();
  const auto endless = process->run({.argv = {"yes"}, .deadline = kMinute, .max_output = 100000});
  REQUIRE_FALSE(endless.ok());
  CHECK(endless.error().code == Code::failed);
  const auto both =
      process->run({.argv = {"sh", "-c", "printf %s 12345; printf %s 67890 >&2"}, .max_output = 9});
  CHECK_FALSE(both.ok());
  CHECK(process->run({.argv = {"sh", "-c", "printf %s 12345; printf %s 67890 >&2"}, .max_output = 10})->out ==
        "12345");
}

TEST_CASE("a program can have an environment of its own", "[base]") {
  Command command{.argv = {"/usr/bin/env"}, .env = {{"ONLY", "this"}}, .clean_env = true};
  CHECK(make_process()->run(command)->out == "ONLY=this\n");
  command.clean_env = false;
  CHECK(make_process()->run(command)->out != "ONLY=this\n");
}

TEST_CASE("Files is rooted and writes atomically, with parents and mode") {
  TestFolder folder;
  Files files(folder.path() + "/");
  REQUIRE(files.real("/etc/x") == folder.path() + "/etc/x");
  REQUIRE(Files("/").real("/etc/x") == "/etc/x");

  REQUIRE(files.write("/etc/ssh/key", "one", 0600).ok());
  REQUIRE(files.read("/etc/ssh/key").value() == "one");
  struct stat info;
  REQUIRE(::stat((folder.path() + "/etc/ssh/key").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 07777) == 0600);
  ino_t first = info.st_ino;

  // Replaced, not written into: who has the old file open keeps it whole; nothing temporary is left.
  int held = ::open((folder.path() + "/etc/ssh/key").c_str(), O_RDONLY);
  REQUIRE(files.write("/etc/ssh/key", "two two").ok());
  char old[8] = {};
  REQUIRE(::read(held, old, sizeof old) == 3);
  ::close(held);
  REQUIRE(::stat((folder.path() + "/etc/ssh/key").c_str(), &info) == 0);
  REQUIRE(info.st_ino != first);
  REQUIRE(files.list("/etc/ssh") == std::vector<std::string>{"key"});
  REQUIRE(files.read("/etc/ssh/key").value() == "two two");
}

TEST_CASE("Files reads, lists, links and removes") {
  TestFolder folder;
  Files files(folder.path());
  REQUIRE(files.read("/nothing").error().code == Code::not_found);
  REQUIRE(files.read_line("/nothing", "fallback") == "fallback");
  REQUIRE(files.write("/a/line", "value \n\n").ok());
  REQUIRE(files.read_line("/a/line") == "value");
  REQUIRE(files.write("/a/blank", "\n").ok());
  REQUIRE(files.read_line("/a/blank", "fallback").empty());
  REQUIRE(files.list("/a") == std::vector<std::string>{"blank", "line"});
  REQUIRE(files.list("/missing").empty());
  REQUIRE(files.is_directory("/a"));
  REQUIRE_FALSE(files.is_directory("/a/line"));

  REQUIRE(files.symlink("line", "/a/link").ok());
  REQUIRE(files.symlink("blank", "/a/link").ok());
  REQUIRE(files.read_link("/a/link").value() == "blank");
  REQUIRE(files.symlink("gone", "/a/dangling").ok());
  REQUIRE(files.exists("/a/dangling"));
  REQUIRE(files.remove("/a/dangling").ok());
  REQUIRE_FALSE(files.exists("/a/dangling"));
  REQUIRE(files.remove("/a/dangling").ok());

  REQUIRE(files.write_raw("/a/log", "1\n").ok());
  REQUIRE(files.write_raw("/a/log", "2\n").ok());
  REQUIRE(files.read("/a/log").value() == "1\n2\n");
  REQUIRE(files.make_directories("/d/e", 0700).ok());
  struct stat info;
  REQUIRE(::stat((folder.path() + "/d/e").c_str(), &info) == 0);
  REQUIRE((info.st_mode & 07777) == 0700);
  REQUIRE(files.make_directories("/a/line").error().code == Code::conflict);
  // Files of /proc say that they are empty.
  REQUIRE_FALSE(Files("/").read("/proc/self/status").value().empty());
}

TEST_CASE("Process gives back both streams, the exit code, and streams output as it comes") {
  auto process = make_process();
  std::string seen;
  auto result = process->run({.argv = {"sh", "-c", "cat; echo $WORD >&2; pwd; exit 3"},
                              .input = "typed\n",
                              .env = {{"WORD", "err"}},
                              .cwd = "/",
                              .on_output = [&](std::string_view chunk) { seen += chunk; }});
  REQUIRE(result.ok());
  REQUIRE(result->exit_code == 3);
  REQUIRE(result->out == "typed\n/\n");
  REQUIRE(result->err == "err\n");
  REQUIRE(seen.size() == result->out.size() + result->err.size());
  REQUIRE(process->run({.argv = {"sh", "-c", "kill -9 $$"}})->exit_code == 128 + 9);
  REQUIRE(process->run({.argv = {"cat"}})->out.empty());
}

TEST_CASE("Process runs in an open folder, wherever that has got to", "[base]") {
  TestFolder folder;
  const Files files(folder.path());
  REQUIRE(files.make_directories("/old"));
  const int fd = ::open((folder.path() + "/old").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(files.move("/old", "/new"));
  auto process = make_process();
  CHECK(text(process->run({.argv = {"sh", "-c", "echo x > made"}, .folder = fd})).empty());
  ::close(fd);
  CHECK(files.read("/new/made").value_or("") == "x\n");
}

TEST_CASE("Process gives an open file to a program, which can open it again whatever its name", "[base]") {
  TestFolder folder;
  const Files files(folder.path());
  REQUIRE(files.write("/a", "one"));
  const int fd = ::open((folder.path() + "/a").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(files.write("/a", "two"));
  auto process = make_process();
  CHECK(sha256_open(fd, "a").value_or("") == sha256("one"));  // leaves its position
  CHECK(text(process->run({.argv = {"cat"}, .input_file = fd})) == "one");
  CHECK(text(process->run({.argv = {"cat", "/proc/self/fd/0"}, .input_file = fd})) == "one");
  ::close(fd);
}

TEST_CASE("Process moves more than a pipe holds, both ways, and survives a child that reads nothing") {
  auto process = make_process();
  std::string large(3 << 20, 'x');
  auto echoed = process->run({.argv = {"cat"}, .input = large});
  REQUIRE(echoed.ok());
  REQUIRE(echoed->out == large);
  REQUIRE(process->run({.argv = {"true"}, .input = large})->ok());
}

TEST_CASE("Process hands no descriptor of ours to a child") {
  int leak = ::open("/dev/null", O_RDONLY);  // no CLOEXEC, as libraries do
  auto process = make_process();
  auto listed = process->run(
      {.argv = {"sh", "-c", "[ -e /proc/self/fd/" + std::to_string(leak) + " ] && echo leaked"}});
  ::close(leak);
  REQUIRE(text(listed).empty());
}

TEST_CASE("where no more processes may be started, the limits to raise are named", "[base]") {
  const auto named = [](const Error& error) {
    return error.message.find(kNoMoreProcesses) != std::string::npos;
  };
  const Error full = cannot_start("ssh", EAGAIN);
  CHECK(full.code == Code::unavailable);
  CHECK(named(full));
  CHECK(full.message.find("ssh") != std::string::npos);
  CHECK(cannot_start("ssh", ENOMEM).code == Code::unavailable);
  CHECK_FALSE(named(cannot_start("ssh", ENOMEM)));
  CHECK(cannot_start("ssh", ENOENT).code == Code::not_found);
}

TEST_CASE("Process says not_found for a program that is not there, and never runs a shell") {
  auto process = make_process();
  REQUIRE(process->run({.argv = {"muster-no-such-program"}}).error().code == Code::not_found);
  REQUIRE(process->run({.argv = {}}).error().code == Code::invalid);
  REQUIRE(process->run({.argv = {"echo", "$HOME;", "`id`"}})->out == "$HOME; `id`\n");
}

TEST_CASE("Process kills the whole group at the deadline") {
  TestFolder folder;
  std::string fifo = folder.path() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  auto process = make_process();
  // The grandchild holds the fifo; its end of file proves that the grandchild is dead.
  auto result = process->run(
      {.argv = {"sh", "-c", "exec 5>\"$0\"; echo ready >&5; sleep 600 & wait", fifo}, .deadline = 500});
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.error().code == Code::timeout);
  std::string got;
  for (;;) {
    pollfd fd{reader, POLLIN, 0};
    REQUIRE(::poll(&fd, 1, 20000) == 1);
    char buffer[64];
    ssize_t n = ::read(reader, buffer, sizeof buffer);
    if (n <= 0) break;
    got.append(buffer, static_cast<size_t>(n));
  }
  ::close(reader);
  REQUIRE(got == "ready\n");
}

TEST_CASE("Process ends with its program, even when a daemon keeps the pipes") {
  auto process = make_process();
  auto result = process->run({.argv = {"sh", "-c", "sleep 30 & echo $!"}, .deadline = 20 * kSecond});
  REQUIRE(result.ok());
  (void)process->run({.argv = {"kill", result->out.substr(0, result->out.find('\n'))}});
}

TEST_CASE("run_ok turns a non-zero exit into an error with the tail of stderr") {
  auto process = make_process();
  REQUIRE(run_ok(*process, {.argv = {"echo", "fine"}}).value() == "fine\n");
  auto bad = run_ok(*process, {.argv = {"sh", "-c", "echo reason >&2; exit 4"}});
  REQUIRE(bad.error().code == Code::failed);
  REQUIRE(bad.error().message == "sh exited with 4: reason");
  // A long one is cut, and not in the middle of a character.
  bad = run_ok(*process, {.argv = {"sh", "-c",
                                   "for i in 1 2 3 4 5 6 7 8; do printf '" + text_of_bytes(101) +
                                       "'; done >&2; exit 4"}});
  CHECK(dump_json(Json(bad.error().message)).find("\xef\xbf\xbd") == std::string::npos);
  CHECK(bad.error().message.starts_with("sh exited with 4: ..."));
}

TEST_CASE(
    "a lock file is held by one, names it, and is free again with the object; one that cannot be made is "
    "no conflict") {
  TestFolder folder;
  const std::string path = folder.path() + "/x.lock";
  {
    const auto first = LockFile::take(path, "another process has it");
    REQUIRE(first.ok());
    const auto second = LockFile::take(path, "another process has it");
    REQUIRE(!second.ok());
    CHECK(second.error().code == Code::conflict);
    CHECK(second.error().message == "another process has it (pid " + std::to_string(::getpid()) + ")");
  }
  CHECK(LockFile::take(path, "").ok());
  CHECK(LockFile::take(folder.path() + "/no/such/folder", "").error().code == Code::failed);
}

}  // namespace muster
