#include "kernels/together/rank_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/json_dump.h"
#include "kernels/together/tcp_group.h"

namespace muster::together {
namespace {

constexpr double kGrace = 5;

std::string root_of(const Member& member, uint16_t port) {
  const bool v6 = member.address.find(':') != std::string::npos;
  return (v6 ? "[" + member.address + "]" : member.address) + ":" + std::to_string(port);
}

kernels::Measurement carry_out(const Work& work, GpuHere here, Listening listening) {
  const Meeting meeting{work.members, work.rank, work.token, work.meet_seconds, kGrace};
  const Met met = meet(meeting, std::move(listening));
  if (!met.group) return lost_measurement(work.load.c_str(), met.lost, met.error);
  const auto& own = work.members[static_cast<size_t>(work.rank)];
  here.root = [root = root_of(own, work.nccl_port)] { return Result<std::string>(root); };
  return run_load(work.load, *met.group, work.options, here);
}

// Closes descriptors inherited from the owner: a connection that it closes must not stay open in the child.
void close_all_but(const std::set<int>& kept) {
  std::set<int> open;
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) return;
  while (const dirent* entry = ::readdir(folder)) open.insert(std::atoi(entry->d_name));
  ::closedir(folder);
  for (const int fd : open)
    if (fd > STDERR_FILENO && !kept.count(fd)) ::close(fd);
}

[[noreturn]] void run_rank(const Work& work, const GpuHere& here, int listening, int out) {
  close_all_but({listening, out});
  const auto& own = work.members[static_cast<size_t>(work.rank)];
  const std::string text = dump_json(to_json(carry_out(work, here, {Socket(listening), own.port})));
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::write(out, text.data() + sent, text.size() - sent);
    if (n < 0 && errno != EINTR) ::_exit(1);
    if (n > 0) sent += static_cast<size_t>(n);
  }
  ::_exit(0);
}

}  // namespace

Result<RankProcess> RankProcess::start(const Work& work, const GpuHere& here, const Socket& listening) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Code::failed, std::strerror(errno));
  Socket from(ends[0]);
  const Socket to(ends[1]);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return fail(Code::failed, fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    run_rank(work, here, listening.fd(), ends[1]);
  }
  return RankProcess(pid, std::move(from));
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)), text_(std::move(other.text_)) {}

RankProcess& RankProcess::operator=(RankProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(out_, other.out_);
  std::swap(text_, other.text_);
  return *this;
}

RankProcess::~RankProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool RankProcess::read() {
  char buffer[65536];
  const ssize_t n = ::read(fd(), buffer, sizeof buffer);
  if (n > 0) text_.append(buffer, static_cast<size_t>(n));
  return (n > 0 && text_.size() <= kLongestResult) || (n < 0 && errno == EINTR);
}

std::string RankProcess::end(Json& result) {
  int status = 0;
  if (text_.size() > kLongestResult) ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  auto json = parse_json(text_);
  if (json.ok() && json->is_object()) {
    result = std::move(*json);
    return "";
  }
  if (WIFSIGNALED(status)) return fmt::format("its process was ended by signal {}", WTERMSIG(status));
  return fmt::format("its process printed no measurement and exited with {}", WEXITSTATUS(status));
}

}  // namespace muster::together
