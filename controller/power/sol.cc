#include "controller/power/sol.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "controller/power/ipmitool.h"
#include "controller/power/waiter.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr int kLookMs = 1000;  // ms
constexpr DurationMs kHangUp = 2 * kSecond;
constexpr size_t kComplaint = 4 << 10;
constexpr const char* kOperational = "[SOL Session operational";
// ipmitool's escape to end the session, recognized if nothing was typed before; the console does not get it.
constexpr std::string_view kEscape = "~.";

TimeMs now_ms() { return real_waiter().now(); }

std::vector<int> suites_of(const PowerTarget& target) {
  if (target.cipher_suite) return {target.cipher_suite};
  return {17, 3};
}

bool same(const PowerTarget& a, const PowerTarget& b) {
  return a.address == b.address && a.user == b.user && a.password == b.password &&
         a.cipher_suite == b.cipher_suite && a.as_operator == b.as_operator;
}

std::vector<std::string> arguments(const std::string& program, const PowerTarget& target, int suite,
                                   bool patient) {
  const size_t colon = target.address.find(':');
  const std::string port = colon == std::string::npos ? "623" : target.address.substr(colon + 1);
  std::vector<std::string> out = {program, "-I", "lanplus", "-H", target.address.substr(0, colon),
                                  "-p",    port};
  const auto login = IpmiTool::options(target, suite, patient);
  out.insert(out.end(), login.begin(), login.end());
  out.insert(out.end(), {"sol", "activate"});
  return out;
}

// True if no login may be tried now because other logins of this account failed.
bool must_wait(const PowerTarget& target) {
  return target.logins && (target.logins->find(target) || target.logins->pause(target) > 0);
}

bool needs_time(const PowerTarget& target) { return target.logins && target.logins->needs_time(target); }

// Opens a pseudo-terminal; returns its master and sets the path of the other end. -1: none is available.
int open_terminal(std::string& slave) {
  const int fd = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  std::array<char, 64> name{};
  if (fd >= 0 && ::grantpt(fd) == 0 && ::unlockpt(fd) == 0 &&
      ::ptsname_r(fd, name.data(), name.size()) == 0) {
    slave = name.data();
    return fd;
  }
  if (fd >= 0) ::close(fd);
  return -1;
}

// The program leads a new session that the terminal belongs to: closing the master ends it.
pid_t spawn_on(const std::string& slave, const std::vector<std::string>& words, const std::string& password) {
  std::vector<std::string> env = {"LC_ALL=C", "HOME=/", "IPMITOOL_PASSWORD=" + password};
  const char* path = std::getenv("PATH");
  env.push_back(std::string("PATH=") + (path ? path : "/usr/sbin:/usr/bin:/sbin:/bin"));
  std::vector<char*> argv, envp;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  for (const auto& one : env) envp.push_back(const_cast<char*>(one.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, slave.c_str(), O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, 0, 1);
  posix_spawn_file_actions_adddup2(&actions, 0, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed ? 0 : pid;
}

}  // namespace

SolReader::SolReader(OnData on_data, std::string program, DurationMs again)
    : on_data_(std::move(on_data)), program_(std::move(program)), again_(again) {
  if (::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) {
    log::error("consoles are not read: cannot create a pipe");
    return;
  }
  thread_ = std::thread([this] { loop(); });
}

SolReader::~SolReader() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  for (const int fd : wake_)
    if (fd >= 0) ::close(fd);
}

void SolReader::want(std::map<std::string, PowerTarget> nodes) {
  {
    std::lock_guard lock(mutex_);
    wanted_ = std::move(nodes);
  }
  wake();
}

void SolReader::wake() const {
  if (wake_[1] >= 0) (void)!::write(wake_[1], "w", 1);
}

void SolReader::loop() {
  for (;;) {
    if (!settle(now_ms())) return;
    std::vector<pollfd> watched = {{wake_[0], POLLIN, 0}};
    for (const auto& [node, session] : sessions_)
      if (session.fd >= 0) watched.push_back({session.fd, POLLIN, 0});
    ::poll(watched.data(), watched.size(), sessions_.empty() ? -1 : kLookMs);
    char drained[64];
    while (::read(wake_[0], drained, sizeof drained) > 0) {
    }
    listen(now_ms());
  }
}

// Opens sessions for the wanted nodes and closes all others.
bool SolReader::settle(TimeMs now) {
  std::map<std::string, PowerTarget> wanted;
  bool stopping = false;
  {
    std::lock_guard lock(mutex_);
    stopping = stopping_;
    if (!stopping) wanted = wanted_;
  }
  for (auto& [node, session] : sessions_) {
    const auto found = wanted.find(node);
    if (found == wanted.end() || !same(found->second, session.target)) hang_up(session, now);
  }
  std::erase_if(sessions_, [](const auto& one) { return one.second.ends && one.second.fd < 0; });
  for (auto& [node, target] : wanted) {
    auto [place, fresh] = sessions_.try_emplace(node);
    Session& session = place->second;
    if (fresh) session.target = target;
    if (session.fd < 0 && !session.given_up && now >= session.next_try) open(session, now);
  }
  return !stopping || !sessions_.empty();
}

void SolReader::open(Session& session, TimeMs now) {
  session.operational = false;
  session.complaint.clear();
  session.next_try = now + again_;
  if (must_wait(session.target)) return;
  std::string slave;
  const int fd = open_terminal(slave);
  if (fd < 0) return;
  // The other end is kept open until the child has opened it: otherwise the terminal reads as closed.
  const int held = ::open(slave.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  const auto suites = suites_of(session.target);
  session.pid = spawn_on(slave,
                         arguments(program_, session.target, suites[session.suite % suites.size()],
                                   session.refused > 0 || needs_time(session.target)),
                         session.target.password);
  if (held >= 0) ::close(held);
  if (session.pid <= 0) {
    log::error("a console cannot be read: " + program_ + " could not be started",
               {{"node", session.target.node}});
    session.given_up = true;
    ::close(fd);
    return;
  }
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  session.fd = fd;
}

void SolReader::hang_up(Session& session, TimeMs now) {
  if (session.ends) return;
  session.ends = now + kHangUp;
  if (session.fd >= 0 && (!session.operational || ::write(session.fd, kEscape.data(), kEscape.size()) < 0))
    session.ends = now;
}

void SolReader::listen(TimeMs now) {
  for (auto& [node, session] : sessions_) {
    if (session.fd < 0) continue;
    if (session.ends && now >= session.ends)
      ended(session, now);
    else
      read(node, session, now);
  }
}

void SolReader::read(const std::string& node, Session& session, TimeMs now) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(session.fd, buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return ended(session, now);  // EIO: the other end is closed
  const std::string bytes(buffer.data(), static_cast<size_t>(got));
  if (!session.operational) {
    session.complaint = (session.complaint + bytes).substr(0, kComplaint);
    session.operational = session.complaint.find(kOperational) != std::string::npos;
    if (session.operational) {
      session.refused = 0;
      session.not_offered = 0;
      if (session.target.logins) session.target.logins->let_in(session.target);
    }
  }
  if (!session.ends) on_data_(node, bytes);
}

void SolReader::ended(Session& session, TimeMs now) {
  ::kill(session.pid, SIGKILL);
  ::waitpid(session.pid, nullptr, 0);
  ::close(session.fd);
  session.fd = -1;
  session.pid = 0;
  session.next_try = now + again_;
  if (session.operational || session.ends) return;
  switch (IpmiTool::login_of(session.complaint)) {
    case IpmiTool::Login::refused:
      refuse(session, true);
      break;
    case IpmiTool::Login::not_allowed:
      refuse(session, false);
      break;
    case IpmiTool::Login::other_suite:
      ++session.suite;
      session.given_up = ++session.not_offered >= suites_of(session.target).size();
      session.next_try = now;
      break;
    case IpmiTool::Login::no_answer:
      ++session.suite;  // some BMCs do not respond at all with a suite that they do not support
      session.not_offered = 0;
      break;
    case IpmiTool::Login::absent:
    case IpmiTool::Login::mixed_up:
    case IpmiTool::Login::established:  // SOL is in use by a different client, or disabled
      break;
  }
}

// `login`: user and password were rejected, not the privilege level.
void SolReader::refuse(Session& session, bool login) {
  ++session.suite;
  if (login && session.target.logins) session.target.logins->failed(session.target);
  if (++session.refused < 2) return;
  session.given_up = true;
  log::warning("the BMC rejects the login for the console", {{"node", session.target.node}});
}

}  // namespace muster
