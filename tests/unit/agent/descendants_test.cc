#include "agent/measuring/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "agent/measuring/own_folder.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

// A pipe that every process of a tree holds: it is at its end when the last one is gone.
struct Held {
  int ends[2] = {-1, -1};
  Held() { REQUIRE(::pipe(ends) == 0); }
  ~Held() { ::close(ends[0]); }
  // What is written into it, up to its end.
  std::string rest() {
    if (ends[1] >= 0) ::close(std::exchange(ends[1], -1));
    std::string out;
    std::array<char, 256> buffer;
    for (ssize_t n = 1; (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
      out.append(buffer.data(), static_cast<size_t>(n));
    return out;
  }
  std::string line() {
    std::string out;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) out += c;
    return out;
  }
};

// A child that has one of its own and has left another one behind, with its own session; all of them hold the
// pipe. The line on it is written when they are there.
constexpr const char* kTree = "setsid sleep 1000 & sleep 1000 & echo $$; wait";

// Runs the guard in a process of its own; `work` in the child of that.
pid_t guarded(const Held& held, const std::function<int()>& work,
              const std::function<void()>& afterwards = {}) {
  const pid_t guard = ::fork();
  if (guard != 0) return guard;
  ::setsid();
  const int input = ::dup(held.ends[1]);
  ::close(held.ends[0]);
  ::close(held.ends[1]);
  ::dup2(input, 1);
  ::close(input);
  ::_exit(run_guarded(work, afterwards));
}

int start_tree() {
  if (::fork() == 0) {
    ::execl("/bin/sh", "sh", "-c", kTree, nullptr);
    ::_exit(127);
  }
  return 0;
}

int wait_for_signal() {
  for (;;) ::pause();
}

int status_of(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("descendants: all are gone when the work is over, and so is the folder", "[agent][hosts]") {
  TempDir dir;
  Held held;
  const OwnFolder folder(dir.path("known"));
  const pid_t guard = guarded(
      held,
      [&] {
        if (!folder.make().ok() || !Files().write(folder.path() + "/left", "x").ok()) return 1;
        return start_tree() + 7;
      },
      [&] { folder.remove(); });
  CHECK(status_of(guard) == 7);
  (void)held.rest();  // ends
  CHECK(Files().list(dir.path("")).empty());
}

TEST_CASE("descendants: all are gone when the worker is killed", "[agent][hosts]") {
  Held held;
  const pid_t guard = guarded(held, [] {
    start_tree();
    return wait_for_signal();
  });
  const pid_t tree = std::stoi(held.line());
  // The parent of the tree's first process.
  const std::string stat = Files().read("/proc/" + std::to_string(tree) + "/stat").value();
  const pid_t worker = std::stoi(stat.substr(stat.rfind(')') + 4));
  REQUIRE(worker != guard);
  REQUIRE(::kill(worker, SIGKILL) == 0);
  CHECK(status_of(guard) == 128 + SIGKILL);
  (void)held.rest();
}

TEST_CASE("descendants: a killed guard ends its worker, which gets SIGTERM", "[agent][hosts]") {
  Held held;
  const pid_t guard = guarded(held, [] {
    static int out = 1;
    ::signal(SIGTERM, [](int) {
      end_descendants();
      (void)!::write(out, "ended\n", 6);
      ::_exit(0);
    });
    start_tree();
    return wait_for_signal();
  });
  (void)held.line();
  REQUIRE(::kill(guard, SIGKILL) == 0);
  CHECK(status_of(guard) == 128 + SIGKILL);
  CHECK(held.rest() == "ended\n");
}

TEST_CASE("descendants: the guard hands signals on", "[agent][hosts]") {
  Held held;
  const pid_t guard = guarded(held, [] {
    start_tree();
    return wait_for_signal();
  });
  (void)held.line();
  REQUIRE(::kill(guard, GENERATE(SIGTERM, SIGHUP, SIGINT)) == 0);
  CHECK(status_of(guard) == 128 + SIGTERM);
  (void)held.rest();
}

TEST_CASE("tied process: a program ends with the process that runs it", "[agent][hosts]") {
  Held held;
  const pid_t runner = ::fork();
  if (runner == 0) {
    ::close(held.ends[0]);
    // The program inherits no descriptor but its own three.
    const auto plain = make_process();
    TiedProcess tied(*plain, build_dir() + "/muster-agent");
    const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(held.ends[1]);
    (void)tied.run({.argv = {"sh", "-c", "exec >\"$1\" 2>&1; echo $$; exec sleep 1000", "sh", own},
                    .deadline = 10 * kMinute});
    ::_exit(0);
  }
  const pid_t program = std::stoi(held.line());
  CHECK(program > 0);
  REQUIRE(::kill(runner, SIGKILL) == 0);
  CHECK(status_of(runner) == 128 + SIGKILL);
  (void)held.rest();  // ends, because the program has
}

TEST_CASE("tied process: output, exit status and errors are the program's", "[agent][hosts]") {
  const auto plain = make_process();
  TiedProcess tied(*plain, build_dir() + "/muster-agent");
  const auto output = tied.run({.argv = {"sh", "-c", "cat; exit 3"}, .input = "hello"});
  REQUIRE(output.ok());
  CHECK(output->out == "hello");
  CHECK(output->exit_code == 3);
  CHECK(tied.run({.argv = {"/no/such/program"}}).error().code == Code::not_found);
  CHECK(tied.run({.argv = {"no-such-program"}}).error().code == Code::not_found);
  CHECK(tied.run({.argv = {}}).error().code == Code::invalid);
  const auto late = tied.run({.argv = {"sleep", "1000"}, .deadline = 100});
  CHECK(late.error().code == Code::timeout);
  CHECK(late.error().message.find("muster-agent") == std::string::npos);
}
