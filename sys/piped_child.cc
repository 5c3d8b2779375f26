#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sys/open_files.h"
#include "sys/os.h"
#include "sys/piped_child.h"

namespace muster {
namespace {

constexpr DurationMs kLook = 200;  // poll interval on kernels that do not report a child's end (before 5.3)
constexpr int kEndTries = 100, kEndTryMs = 5;  // time between SIGTERM and SIGKILL in the destructor

// Descriptors that are closed at the end of the scope unless they were taken.
struct ChildPipe {
  int reader = -1, writer = -1;
  ~ChildPipe() {
    if (reader >= 0) ::close(reader);
    if (writer >= 0) ::close(writer);
  }
};

Status open_pipe(ChildPipe& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(Code::unavailable, std::string("making a pipe: ") + strerror(errno));
  // The child's descriptors 0 to 2 are replaced, so ours must be above 2.
  for (int& end : ends) {
    if (end > 2) continue;
    const int higher = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
    ::close(end);
    end = higher;
  }
  pipe.reader = ends[0];
  pipe.writer = ends[1];
  return Ok{};
}

struct Started {
  pid_t parent;
  int in, out, err, failed;
  char* const* argv;
};

// Between fork and exec in a process with threads, only system calls are allowed.
[[noreturn]] void become(const Started& child) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != child.parent) ::_exit(127);
  ::dup2(child.in, 0);
  ::dup2(child.out, 1);
  ::dup2(child.err, 2);
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  restore_open_files();
  ::execvp(child.argv[0], child.argv);
  const int number = errno;
  (void)!::write(child.failed, &number, sizeof number);
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<PipedChild>> PipedChild::start(RealReactor& reactor,
                                                      const std::vector<std::string>& argv, Events events) {
  if (argv.empty() || argv[0].empty()) return fail(Code::invalid, "empty command: no program given");
  ChildPipe in, out, err, failed;
  for (ChildPipe* pipe : {&in, &out, &err, &failed}) TRY_(open_pipe(*pipe));
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // Writing to a child that has ended must be an error of write(), not the end of this process.
  if (struct sigaction now = {}; ::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, SIG_IGN);
  const pid_t self = ::getpid(), pid = ::fork();
  if (pid < 0) return cannot_start(argv[0], errno);
  if (pid == 0) become({self, in.reader, out.writer, err.writer, failed.writer, words.data()});
  ::close(std::exchange(failed.writer, -1));
  int number = 0;
  if (::read(failed.reader, &number, sizeof number) == sizeof number) {
    ::waitpid(pid, nullptr, 0);
    return cannot_start(argv[0], number);
  }
  std::unique_ptr<PipedChild> child(new PipedChild(reactor, std::move(events)));
  child->pid_ = pid;
  child->in_ = std::exchange(in.writer, -1);
  child->out_ = std::exchange(out.reader, -1);
  child->err_ = std::exchange(err.reader, -1);
  child->exit_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  for (const int fd : {child->in_, child->out_, child->err_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  child->watch();
  return child;
}

PipedChild::~PipedChild() {
  alive_.end();
  for (int* fd : {&in_, &out_, &err_, &exit_}) close(*fd);
  if (look_timer_) reactor_.cancel(look_timer_);
  if (ended_) return;
  ::kill(-pid_, SIGTERM);
  for (int i = 0; i < kEndTries; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    ::poll(nullptr, 0, kEndTryMs);
  }
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void PipedChild::close(int& fd) {
  if (fd < 0) return;
  reactor_.forget(fd);
  ::close(std::exchange(fd, -1));
}

void PipedChild::watch() {
  reactor_.when_ready(out_, RealReactor::Ready::read, [this] { read_out(); });
  reactor_.when_ready(err_, RealReactor::Ready::read, [this] { read_err(); });
  if (exit_ >= 0)
    reactor_.when_ready(exit_, RealReactor::Ready::read, [this] { look_for_end(); });
  else
    look_timer_ = reactor_.after(kLook, [this] { look_for_end(); });
}

bool PipedChild::read_some(int& fd, const std::function<void(std::string_view)>& take) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) {
    close(fd);
    return false;
  }
  const auto alive = alive_.watch();
  if (take) take(std::string_view(buffer.data(), static_cast<size_t>(n)));
  return *alive;
}

void PipedChild::read_out() {
  const auto alive = alive_.watch();
  const bool more = read_some(out_, events_.out);
  if (!*alive) return;
  if (more && out_ >= 0) return reactor_.when_ready(out_, RealReactor::Ready::read, [this] { read_out(); });
  if (events_.out_end) events_.out_end();
}

void PipedChild::read_err() {
  if (read_some(err_, events_.err) && err_ >= 0)
    reactor_.when_ready(err_, RealReactor::Ready::read, [this] { read_err(); });
}

void PipedChild::send(std::shared_ptr<const std::string> text) {
  if (in_ < 0 || closing_ || text->empty()) return;
  queue_.push_back(std::move(text));
  if (writing_) return;
  writing_ = true;
  reactor_.when_ready(in_, RealReactor::Ready::write, [this] { write_some(); });
}

void PipedChild::write_some() {
  writing_ = false;
  // Reads one piece, so that other tasks of this reactor run in between.
  if (in_ >= 0 && !queue_.empty()) {
    const std::string& text = *queue_.front();
    constexpr size_t kPiece = 256 << 10;
    const ssize_t n = ::write(in_, text.data() + sent_, std::min(kPiece, text.size() - sent_));
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      queue_.clear();
      return close(in_);  // the child's output or exit status shows why
    }
    if (n > 0) sent_ += static_cast<size_t>(n);
    if (sent_ == text.size()) {
      queue_.pop_front();
      sent_ = 0;
    }
  }
  if (queue_.empty()) {
    if (closing_) close(in_);
    return;
  }
  writing_ = true;
  reactor_.when_ready(in_, RealReactor::Ready::write, [this] { write_some(); });
}

void PipedChild::close_input() {
  closing_ = true;
  if (queue_.empty()) close(in_);
}

void PipedChild::signal(int number) {
  if (!ended_) ::kill(-pid_, number);
}

size_t PipedChild::unsent() const {
  size_t all = 0;
  for (const auto& text : queue_) all += text->size();
  return all - sent_;
}

void PipedChild::look_for_end() {
  look_timer_ = 0;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0) {
    if (exit_ < 0) look_timer_ = reactor_.after(kLook, [this] { look_for_end(); });
    return;
  }
  ended_ = true;
  close(in_);
  close(exit_);
  // Reads what the child wrote before it ended; a process that it started may hold the pipe forever.
  const auto alive = alive_.watch();
  const auto rest = [&](int& fd, const std::function<void(std::string_view)>& take) {
    for (int i = 0; i < 64 && *alive && fd >= 0; ++i) {
      pollfd there = {fd, POLLIN, 0};
      if (::poll(&there, 1, 0) <= 0) return;
      if (!read_some(fd, take)) return;
    }
  };
  rest(err_, events_.err);
  if (*alive) rest(out_, events_.out);
  if (!*alive) return;
  close(out_);
  close(err_);
  // ECHILD: something else reaped the child; its status is lost, which must not look like success.
  const int code = got < 0 ? 255 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (events_.ended) events_.ended(code);
}

}  // namespace muster
