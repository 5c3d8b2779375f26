#include "agent/measuring/host_claim.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "agent/measuring/process_table.h"
#include "base/split.h"
#include "sys/abstract_address.h"

namespace muster {
namespace {

constexpr int kClaimRounds = 10, kClaimRoundMs = 50;
constexpr size_t kInode = 6, kPath = 7;  // fields of /proc/net/unix

int new_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Fails while the holder has bound the name and does not listen yet, and if its queue is full.
std::optional<HostClaim::Holder> by_connection(const AbstractAddress& address) {
  const int fd = new_socket();
  if (fd < 0) return {};
  ucred peer = {};
  socklen_t size = sizeof peer;
  const bool known = ::connect(fd, address.get(), address.size()) == 0 &&
                     ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  ::close(fd);
  if (!known) return {};
  return HostClaim::Holder{peer.pid, peer.uid};
}

bool has_open(const Files& files, const std::string& pid, const std::string& target) {
  const std::string folder = "/proc/" + pid + "/fd";
  for (const std::string& fd : files.list(folder))
    if (files.read_link(folder + "/" + fd).value_or("") == target) return true;
  return false;
}

// Finds a holder that takes no connection, by its open descriptors: those of its own user's processes for a
// plain user, all for root.
std::optional<HostClaim::Holder> by_descriptor(const std::string& name) {
  const Files files;
  // Names are shown as they are, with line ends: another socket's name can look like more lines of this one.
  // No line can be hidden so, which leaves several. Inode 0: connections that were not accepted.
  std::set<std::string> inodes;
  for (const std::string& line : split_lines(files.read("/proc/net/unix").value_or(""))) {
    const auto fields = split_words(line);
    if (fields.size() > kPath && fields[kPath] == "@" + name && fields[kInode] != "0")
      inodes.insert(fields[kInode]);
  }
  if (inodes.size() != 1) return {};
  const std::string target = "socket:[" + *inodes.begin() + "]";
  for (const std::string& pid : files.list("/proc"))
    if (const auto number = pid_of(pid); number && has_open(files, pid, target))
      return HostClaim::Holder{*number, user_of(files, *number)};
  return {};
}

}  // namespace

Result<std::optional<HostClaim::Holder>> HostClaim::take() {
  if (held()) return std::optional<Holder>{};
  const AbstractAddress address(name_);
  for (int round = 0; round < kClaimRounds; ++round) {
    const int fd = new_socket();
    const bool bound = fd >= 0 && ::bind(fd, address.get(), address.size()) == 0;
    if (bound && ::listen(fd, SOMAXCONN) == 0) {
      socket_ = fd;
      return std::optional<Holder>{};
    }
    const int number = errno;
    if (fd >= 0) ::close(fd);
    if (number != EADDRINUSE)
      return fail(Code::denied,
                  std::string("the lock of measurements cannot be created: ") + strerror(number));
    if (const auto holder = by_connection(address)) return holder;
    ::poll(nullptr, 0, kClaimRoundMs);  // it does not listen yet, or has just ended
  }
  const auto holder = by_descriptor(name_);
  return std::optional<Holder>(holder.value_or(Holder{}));
}

void HostClaim::release() {
  if (const int fd = std::exchange(socket_, -1); fd >= 0) ::close(fd);
}

}  // namespace muster
