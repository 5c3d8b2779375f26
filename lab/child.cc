#include "lab/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/json_dump.h"
#include "base/record.h"
#include "sys/os.h"

extern char** environ;

namespace muster::lab {

MUSTER_RECORD(ChildId, pid, start_ticks, mark)

namespace {

struct Stat {
  char state = 'X';
  uint64_t start_ticks = 0;
};

// Stat files of /proc: the name in parentheses may contain any character; fields begin after the last ')'.
Stat read_stat_file(const std::string& path) {
  Stat out;
  auto text = Files("/").read(path);
  if (!text) return out;
  const auto close = text->rfind(')');
  if (close == std::string::npos || close + 2 >= text->size()) return out;
  out.state = (*text)[close + 2];
  size_t at = close + 2;
  for (int field = 3; field < 22 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  if (at != std::string::npos)
    std::from_chars(text->data() + at + 1, text->data() + text->size(), out.start_ticks);
  return out;
}

Stat read_stat(pid_t pid) { return read_stat_file(fmt::format("/proc/{}/stat", pid)); }

bool over(char state) { return state == 'X' || state == 'Z'; }

// The first thread may have ended while another still writes, holding the process's files and locks.
bool every_thread_over(pid_t pid) {
  const auto tasks = fmt::format("/proc/{}/task", pid);
  for (const auto& task : Files("/").list(tasks))
    if (const auto state = read_stat_file(fmt::format("{}/{}/stat", tasks, task)).state;
        state && !over(state))
      return false;
  return true;
}

bool gone(const ChildId& id) {
  if (alive(id)) return false;
  const auto stat = read_stat(id.pid);
  return stat.start_ticks != id.start_ticks || !over(stat.state) || every_thread_over(id.pid);
}

bool wait_gone(const ChildId& id, DurationMs limit) {
  for (DurationMs waited = 0; waited < limit; waited += 20) {
    waitpid(id.pid, nullptr, WNOHANG);  // reaps it when it is our own child; harmless otherwise
    if (gone(id)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return gone(id);
}

// Through a pidfd: between check and signal, the PID cannot be reused by a different process.
void send_signal(const ChildId& id, int signal) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, id.pid, 0));
  if (fd < 0) return;
  if (alive(id)) syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0);
  close(fd);
}

}  // namespace

Result<ChildId> spawn(const Spawn& what) {
  std::vector<char*> argv;
  for (const auto& a : what.argv) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> env_text;
  for (char** e = environ; *e; ++e) {
    const std::string entry = *e;
    if (!what.env.count(entry.substr(0, entry.find('=')))) env_text.push_back(entry);
  }
  for (const auto& [key, value] : what.env) env_text.push_back(key + "=" + value);
  std::vector<char*> env;
  for (auto& e : env_text) env.push_back(e.data());
  env.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, what.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0640);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), env.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return fail(Code::not_found, what.argv[0] + " is not installed");
  if (error) return fail(Code::failed, fmt::format("starting {}: {}", what.argv[0], std::strerror(error)));
  const auto cmdline = fmt::format("/proc/{}/cmdline", pid);
  for (int i = 0; i < 1000 && Files("/").read(cmdline).value_or("").empty() && read_stat(pid).state != 'Z';
       ++i)
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // until it has a command line, which identifies it
  return ChildId{pid, read_stat(pid).start_ticks, what.mark};
}

Status write_pid_file(const std::string& path, const ChildId& id) {
  return Files("/").write(path, dump_json(record_json(id)) + "\n");
}

Result<ChildId> read_pid_file(const std::string& path) {
  TRY(auto text, Files("/").read(path));
  TRY(auto json, parse_json(text));
  TRY(ChildId id, read_record<ChildId>(json, path));
  if (id.pid <= 1 || id.mark.empty()) return fail(Code::corrupt, path + ": does not describe a process");
  return id;
}

bool alive(const ChildId& id) {
  if (id.pid <= 1) return false;
  const auto stat = read_stat(id.pid);
  if (over(stat.state) || stat.start_ticks != id.start_ticks) return false;
  auto cmdline = Files("/").read(fmt::format("/proc/{}/cmdline", id.pid));
  // The command line is empty for a moment during exec (ip netns exec); PID and start time stay the same.
  return cmdline.ok() && (cmdline->empty() || cmdline->find(id.mark) != std::string::npos);
}

Status terminate(const ChildId& id, DurationMs grace) {
  if (gone(id)) return Ok{};
  // Without a grace period it is killed at once: a handler of SIGTERM would turn a crash into a clean end.
  if (grace > 0) send_signal(id, SIGTERM);
  if (grace > 0 && wait_gone(id, grace)) return Ok{};
  send_signal(id, SIGKILL);
  if (wait_gone(id, 5 * kSecond)) return Ok{};
  return fail(Code::failed, fmt::format("process {} ({}) did not end", id.pid, id.mark));
}

std::vector<ChildId> processes_in_namespace(uint64_t netns_inode) {
  std::vector<ChildId> out;
  for (const auto& name : Files("/").list("/proc")) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    struct stat st {};
    if (stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &st) != 0 || st.st_ino != netns_inode) continue;
    out.push_back({pid, read_stat(pid).start_ticks, ""});
  }
  return out;
}

}  // namespace muster::lab
