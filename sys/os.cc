#include "sys/os.h"
#include "base/split.h"
#include "base/utf8.h"
#include "sys/open_fd.h"
#include "sys/open_way.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

extern char** environ;

namespace muster {

Files::Files(std::string root) : root_(without_trailing_slashes(std::move(root))) {}

std::string Files::real(const std::string& path) const {
  if (root_.empty() || root_ == "/") return without_trailing_slashes(path.empty() ? "/" : path);
  if (path.empty() || path == "/") return root_;
  return without_trailing_slashes(path.front() == '/' ? root_ + path : root_ + "/" + path);
}

bool Files::exists(const std::string& path) const {
  struct stat info;
  return ::lstat(real(path).c_str(), &info) == 0;
}

bool Files::is_directory(const std::string& path) const {
  struct stat info;
  return ::stat(real(path).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::string> Files::read(const std::string& path) const {
  const std::string where = real(path);
  const OpenFd fd(::open(where.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.open()) return file_error("opening", where, errno);
  return read_bytes(fd.get(), where);
}

std::string Files::read_line(const std::string& path, std::string fallback) const {
  auto content = read(path);
  if (!content.ok()) return fallback;
  size_t end = content->find_last_not_of(" \t\r\n\v\f");
  return end == std::string::npos ? std::string() : content->substr(0, end + 1);
}

std::vector<std::string> Files::list(const std::string& path) const {
  std::vector<std::string> names;
  DIR* folder = ::opendir(real(path).c_str());
  if (!folder) return names;
  while (const dirent* entry = ::readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> Files::read_link(const std::string& path) const {
  std::string where = real(path);
  std::array<char, 4096> buffer;
  ssize_t n = ::readlink(where.c_str(), buffer.data(), buffer.size());
  if (n < 0) return file_error("reading link", where, errno);
  return std::string(buffer.data(), static_cast<size_t>(n));
}

Result<FileState> Files::look(const std::string& path) const {
  const auto way = OpenWay::to(root_, path);
  if (way.ok()) return way->look();
  if (way.error().code == Code::not_found) return FileState();
  return way.error();
}

Result<FileText> Files::open_text(const std::string& path) const {
  TRY(const OpenWay way, OpenWay::through(root_, path));
  return way.read();
}

Status Files::write(const std::string& path, const std::string& content, unsigned mode,
                    FileOwner owner) const {
  TRY(const OpenWay way, OpenWay::to(root_, path, OpenWay::Missing::make));
  return way.write([&](int fd) { return write_bytes(fd, content, real(path)); }, mode, owner);
}

Status Files::write_raw(const std::string& path, const std::string& content) const {
  TRY(const OpenWay way, OpenWay::through(root_, path));
  return way.append(content);
}

Status Files::make_directories(const std::string& path, unsigned mode, FileOwner owner) const {
  TRY(const OpenWay made, OpenWay::into(root_, path, mode, owner));
  (void)made;
  return Ok{};
}

Status Files::set_permissions(const std::string& path, unsigned mode, FileOwner owner) const {
  TRY(const OpenWay way, OpenWay::to(root_, path));
  return way.set_permissions(mode, owner);
}

Status Files::date_now(const std::string& path) const {
  TRY(const OpenWay way, OpenWay::to(root_, path));
  return way.date_now();
}

Status Files::move(const std::string& from, const std::string& to) const {
  TRY(const OpenWay source, OpenWay::to(root_, from));
  TRY(const OpenWay target, OpenWay::to(root_, to));
  return source.move_to(target);
}

Status Files::remove(const std::string& path) const {
  const auto way = OpenWay::to(root_, path);
  if (way.ok()) return way->remove();
  return way.error().code == Code::not_found ? Status(Ok{}) : way.error();
}

Status Files::remove_tree(const std::string& path) const {
  const auto way = OpenWay::to(root_, path);
  if (way.ok()) return way->remove_tree();
  return way.error().code == Code::not_found ? Status(Ok{}) : way.error();
}

Status Files::symlink(const std::string& target, const std::string& link) const {
  TRY(const OpenWay way, OpenWay::to(root_, link, OpenWay::Missing::make));
  const auto present = way.read_link();
  if (present.ok() && *present == target) return Ok{};
  return way.make_link(target);
}

namespace {

using SteadyClock = std::chrono::steady_clock;
// How long to wait for a killed process group to end. A process in uninterruptible sleep may never end.
constexpr DurationMs kReapMs = 5 * kSecond;

struct Pipe {
  OpenFd reader;
  OpenFd writer;
};

// The child's descriptors 0 to 2 are replaced, so ours must be above 2, even in a process without stdio.
OpenFd above_stdio(int fd) {
  if (fd < 0 || fd > 2) return OpenFd(fd);
  int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  ::close(fd);
  return OpenFd(higher);
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(Code::unavailable, fmt::format("making a pipe: {}", strerror(errno)));
  Pipe pipe{above_stdio(ends[0]), above_stdio(ends[1])};
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

// The input as an anonymous file: the child reads it at its own pace, and there is no SIGPIPE.
Result<OpenFd> make_input(const std::string& input) {
  if (input.empty()) {
    OpenFd null = above_stdio(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null.open()) return fail(Code::unavailable, fmt::format("opening /dev/null: {}", strerror(errno)));
    return null;
  }
  OpenFd file = above_stdio(::memfd_create("muster-input", MFD_CLOEXEC));
  if (!file.open()) return fail(Code::unavailable, fmt::format("making an input file: {}", strerror(errno)));
  TRY_(write_bytes(file.get(), input, "the program's input"));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::vector<std::string> make_environment(const std::map<std::string, std::string>& added, bool clean) {
  std::map<std::string, std::string> merged;
  for (char** entry = clean ? nullptr : environ; entry && *entry; ++entry) {
    std::string_view text = *entry;
    size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    merged[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  for (const auto& [name, value] : added) merged[name] = value;
  std::vector<std::string> list;
  for (const auto& [name, value] : merged) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// The child gets its own process group, default signal actions, no blocked signals, and only the descriptors
// 0, 1 and 2 (libraries open sockets without CLOEXEC).
Result<pid_t> spawn(const Command& command, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (command.folder >= 0) posix_spawn_file_actions_addfchdir_np(&actions, command.folder);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (!command.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.cwd.c_str());
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> env = make_environment(command.env, command.clean_env);
  pid_t pid = -1;
  int number = ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes, pointers(argv).data(),
                              pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (number == 0) return pid;
  return cannot_start(command.argv[0], number);
}

// One running child: its pipes, its exit, its deadline.
class Child {
 public:
  Child(const Command& command, pid_t pid, OpenFd out, OpenFd err)
      : command_(command),
        pid_(pid),
        out_(std::move(out)),
        err_(std::move(err)),
        exit_fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        deadline_(SteadyClock::now() + std::chrono::milliseconds(command.deadline)) {}

  // Ends when the program itself has ended: a daemon that it started may hold the pipes forever.
  Result<Output> wait() {
    while (!exited()) {
      if (too_much()) return talks_too_much();
      if (left() <= 0) return overrun();
      poll_once(left());
    }
    drain(out_, output_.out);
    drain(err_, output_.err);
    if (too_much()) return talks_too_much();
    if (WIFSIGNALED(status_))
      output_.exit_code = 128 + WTERMSIG(status_);
    else
      output_.exit_code = WEXITSTATUS(status_);
    return std::move(output_);
  }

 private:
  int left() const {
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now()).count();
    return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 3600 * kSecond));
  }

  bool exited() {
    if (exited_) return true;
    pid_t got = ::waitpid(pid_, &status_, WNOHANG);
    // ECHILD: our child was reaped elsewhere; its status is lost, which must not look like success.
    if (got < 0 && errno == ECHILD) status_ = 255 << 8;
    exited_ = got == pid_ || (got < 0 && errno == ECHILD);
    return exited_;
  }

  void poll_once(int timeout_ms) {
    std::array<pollfd, 3> fds = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0},
                                 pollfd{exit_fd_.get(), POLLIN, 0}};
    // Kernels without pidfd_open: check the child every 20 ms.
    if (!exit_fd_.open()) timeout_ms = std::min(timeout_ms, 20);
    if (::poll(fds.data(), fds.size(), timeout_ms) <= 0) return;
    if (fds[0].revents) drain(out_, output_.out);
    if (fds[1].revents) drain(err_, output_.err);
  }

  // Reads the available bytes; closes the descriptor at the end of the stream.
  void drain(OpenFd& fd, std::string& into) {
    std::array<char, 65536> buffer;
    while (fd.open()) {
      ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return fd.close();
      into.append(buffer.data(), static_cast<size_t>(n));
      if (command_.on_output) command_.on_output(std::string_view(buffer.data(), static_cast<size_t>(n)));
      // A program with endless output must not prevent its own deadline.
      if (left() <= 0 || too_much()) return;
    }
  }

  bool too_much() const {
    return command_.max_output && output_.out.size() + output_.err.size() > command_.max_output;
  }

  void end_group() {
    ::kill(-pid_, SIGKILL);
    deadline_ = SteadyClock::now() + std::chrono::milliseconds(kReapMs);
    while (!exited() && left() > 0) ::poll(nullptr, 0, 5);
  }

  Error talks_too_much() {
    end_group();
    return fail(Code::failed, fmt::format("{} wrote more than {} bytes and was killed", command_.argv[0],
                                          command_.max_output));
  }

  Error overrun() {
    end_group();
    return fail(Code::timeout, fmt::format("{} did not end within {} ms and was killed{}", command_.argv[0],
                                           command_.deadline, exited_ ? "" : " (but is still running)"));
  }

  const Command& command_;
  pid_t pid_;
  OpenFd out_, err_, exit_fd_;
  SteadyClock::time_point deadline_;
  int status_ = 0;
  bool exited_ = false;
  Output output_;
};

class LinuxProcess : public Process {
 public:
  Result<Output> run(const Command& command) override {
    if (command.argv.empty() || command.argv[0].empty())
      return fail(Code::invalid, "empty command: no program given");
    OpenFd in;
    if (command.input_file < 0) {
      TRY(in, make_input(command.input));
    }
    TRY(Pipe out, make_pipe());
    TRY(Pipe err, make_pipe());
    TRY(pid_t pid,
        spawn(command, in.open() ? in.get() : command.input_file, out.writer.get(), err.writer.get()));
    out.writer.close();
    err.writer.close();
    return Child(command, pid, std::move(out.reader), std::move(err.reader)).wait();
  }
};

}  // namespace

Error cannot_start(const std::string& program, int number) {
  std::string text = fmt::format("starting {}: {}", program, strerror(number));
  if (number == EAGAIN) text += std::string(": ") + kNoMoreProcesses;
  return fail(number == EAGAIN || number == ENOMEM ? Code::unavailable : Code::not_found, text);
}

std::unique_ptr<Process> make_process() { return std::make_unique<LinuxProcess>(); }

std::string failure_text(const Output& output) {
  std::string_view tail = output.err.empty() ? output.out : output.err;
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.remove_suffix(1);
  return fmt::format("{}{}", tail.empty() ? "" : ": ", end_of_output(tail, 600));
}

Result<std::string> run_ok(Process& process, const Command& command) {
  TRY(Output output, process.run(command));
  if (output.ok()) return std::move(output.out);
  // The message has only the program's name: arguments may be long, and must not be disclosed.
  return fail(Code::failed,
              fmt::format("{} exited with {}{}", command.argv[0], output.exit_code, failure_text(output)));
}

}  // namespace muster
