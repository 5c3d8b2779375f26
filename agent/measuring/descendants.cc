#include "agent/measuring/descendants.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "agent/measuring/process_table.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr int kNotStarted = 127;

// Returns the path where execvp() would find it; "" if it is not found.
std::string path_of(const std::string& name, const Command& command) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* inherited = command.clean_env ? nullptr : ::getenv("PATH");
  const auto own = command.env.find("PATH");
  const std::string places = own != command.env.end() ? own->second
                             : inherited              ? inherited
                                                      : "/usr/sbin:/usr/bin:/sbin:/bin";
  for (const std::string& place : split(places, ':'))
    if (!place.empty() && ::access((place + "/" + name).c_str(), X_OK) == 0) return place + "/" + name;
  return "";
}

std::string with_name(std::string text, const std::string& self, const std::string& name) {
  if (const size_t at = text.find(self); at != std::string::npos) text.replace(at, self.size(), name);
  return text;
}

constexpr int kRounds = 250, kRoundMs = 20;
constexpr auto kLastWords = std::chrono::seconds(10);  // time that the child has to end

// Returns all descendants of this process, except those that have ended and were not reaped yet.
std::vector<pid_t> descendants() {
  const ProcessTable table = process_tree(Files());
  std::vector<pid_t> out;
  for (const int64_t pid : with_descendants(table, {::getpid()}))
    if (const RunningProcess* one = table.find(pid); one && !one->ended && pid != ::getpid())
      out.push_back(static_cast<pid_t>(pid));
  return out;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGHUP, SIGINT}) sigaddset(&set, number);
  return set;
}

// The guard: waits for `child`, or for a reason to end it.
class Guard {
 public:
  Guard(pid_t child, int signals) : child_(child), signals_(signals) {}

  int wait() {
    while (!ended_) {
      pollfd fds[2] = {{signals_, POLLIN, 0}, {input_closed_ ? -1 : 0, 0, 0}};
      const int ready = ::poll(fds, 2, kill_at_ ? 200 : -1);
      if (ready > 0 && fds[0].revents) take_signal();
      if (ready > 0 && fds[1].revents) {
        input_closed_ = true;
        kill_later();
      }
      if (kill_at_ && std::chrono::steady_clock::now() >= *kill_at_) ::kill(child_, SIGKILL);
    }
    return status_;
  }

 private:
  void take_signal() {
    signalfd_siginfo info = {};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo != SIGCHLD) {
      ::kill(child_, SIGTERM);
      return kill_later();
    }
    int status = 0;
    for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0; pid = ::waitpid(-1, &status, WNOHANG)) {
      if (pid != child_) continue;
      ended_ = true;
      status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
  void kill_later() {
    if (!kill_at_) kill_at_ = std::chrono::steady_clock::now() + kLastWords;
  }

  pid_t child_;
  int signals_;
  std::optional<std::chrono::steady_clock::time_point> kill_at_;
  bool input_closed_ = false, ended_ = false;
  int status_ = 0;
};

}  // namespace

Result<Output> TiedProcess::run(const Command& command) {
  if (command.argv.empty() || command.argv[0].empty())
    return fail(Code::invalid, "empty command: no program given");
  const std::string& name = command.argv[0];
  const std::string path = path_of(name, command);
  if (path.empty()) return fail(Code::not_found, "starting " + name + ": program not found");
  Command tied = command;
  tied.argv = {self_, "tied", std::to_string(::getpid()), path};
  tied.argv.insert(tied.argv.end(), command.argv.begin() + 1, command.argv.end());
  auto output = inner_.run(tied);
  if (output.ok()) return output;
  return fail(output.error().code, with_name(output.error().message, self_, name));
}

int become_tied(const std::vector<std::string>& words) {
  if (words.size() < 2) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != std::atoi(words[0].c_str())) return kNotStarted;  // it has ended already
  std::vector<char*> argv;
  for (size_t i = 1; i < words.size(); ++i) argv.push_back(const_cast<char*>(words[i].c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  std::fprintf(stderr, "starting %s: %s\n", argv[0], strerror(errno));
  return kNotStarted;
}

void end_descendants() {
  for (int round = 0; round < kRounds; ++round) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const auto left = descendants();
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::poll(nullptr, 0, kRoundMs);
  }
}

int run_guarded(const std::function<int()>& work, const std::function<void()>& afterwards) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t watched = watched_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  const pid_t guard = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != guard) ::_exit(1);
    const int status = work();
    end_descendants();
    ::_exit(status);
  }
  int status = 1;
  if (child > 0) {
    const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC);
    status = Guard(child, signals).wait();
    ::close(signals);
  }
  end_descendants();
  if (afterwards) afterwards();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace muster
