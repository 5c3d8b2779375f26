// A made-up NCCL over TCP, on "device" memory that is the host's: communicators of several ranks in one
// process and of several processes, bootstrapped as NCCL does it: by an id that lives as long as its maker,
// or at the address in NCCL_COMM_ID, where rank 0 listens.
//
// Each rank sends all operations of a group to a hub, with their data; when all ranks' are there, the hub
// works out what each receives. Operations that do not fit together (another count) are an error for all
// ranks, where NCCL would hang; a receive without a sender waits. MUSTER_FAKE_NCCL_BAD_RANK: what this
// rank receives from an all-reduce has one wrong bit.
#include <arpa/inet.h>
#include <nccl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

enum class Kind : uint32_t { all_reduce, all_gather, reduce_scatter, send, receive };

struct Header {
  Kind kind;
  uint32_t type, op, peer;
  uint64_t count;  // elements sent (all_gather, send), received (reduce_scatter, receive), or both
};
struct Operation {
  Header header;
  const char* from = nullptr;  // the caller's
  char* to = nullptr;
  std::vector<char> data = {};  // the hub's
};

size_t size_of(uint32_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
    case ncclUint64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
    case ncclUint32:
      return 4;
    default:
      return type == ncclBfloat16 || type == ncclFloat16 ? 2 : 1;
  }
}
size_t sent(const Header& h, int ranks) {
  if (h.kind == Kind::receive) return 0;
  return h.count * size_of(h.type) * (h.kind == Kind::reduce_scatter ? static_cast<size_t>(ranks) : 1);
}
size_t received(const Header& h, int ranks) {
  if (h.kind == Kind::send) return 0;
  return h.count * size_of(h.type) * (h.kind == Kind::all_gather ? static_cast<size_t>(ranks) : 1);
}

bool write_all(int fd, const void* from, size_t bytes) {
  const char* p = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = ::send(fd, p, bytes, MSG_NOSIGNAL);
    if (n <= 0) return false;
    p += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}
bool read_all(int fd, void* to, size_t bytes) {
  char* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::recv(fd, p, bytes, 0);
    if (n <= 0) return false;
    p += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

template <typename T>
void fold(char* into, const char* from, size_t count, uint32_t op) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof a, sizeof a);
    std::memcpy(&b, from + i * sizeof b, sizeof b);
    a = op == ncclMax ? std::max(a, b) : static_cast<T>(a + b);
    std::memcpy(into + i * sizeof a, &a, sizeof a);
  }
}
bool reduce(std::vector<char>& into, const char* from, const Header& h) {
  const size_t count = into.size() / size_of(h.type);
  if (h.type == ncclFloat32)
    fold<float>(into.data(), from, count, h.op);
  else if (h.type == ncclFloat64)
    fold<double>(into.data(), from, count, h.op);
  else if (h.type == ncclUint64)
    fold<uint64_t>(into.data(), from, count, h.op);
  else if (h.type == ncclInt32)
    fold<int32_t>(into.data(), from, count, h.op);
  else
    return false;
  return h.op == ncclSum || h.op == ncclMax;
}

// One communicator's meeting place; a thread per rank.
class Hub {
 public:
  Hub(int fd, int ranks) : fd_(fd), groups_(static_cast<size_t>(ranks)) {}
  void serve() {
    const int ranks = static_cast<int>(groups_.size());
    std::vector<std::thread> threads;
    for (int i = 0; i < ranks; ++i) {
      const int peer = ::accept(fd_, nullptr, nullptr);
      if (peer < 0) break;
      const int on = 1;
      ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      threads.emplace_back([this, peer] { serve_rank(peer); });
    }
    ::close(fd_);
    for (auto& thread : threads) thread.join();
  }

 private:
  void serve_rank(int fd) {
    uint32_t rank = 0;
    if (read_all(fd, &rank, sizeof rank) && rank < groups_.size())
      while (read_group(fd, rank)) {
        // Sends and receives are their two ranks' affair; all others' go on.
        const bool together = std::any_of(groups_[rank].begin(), groups_[rank].end(),
                                          [](const auto& op) { return !between_two(op.header); });
        if (together)
          meet();  // all groups are there
        else
          post(rank);
        const bool right = answer(fd, rank);
        if (together) meet();  // no rank reads them any more
        if (!right) break;
      }
    const std::lock_guard lock(mutex_);
    gone_ = true;  // ranks that wait will not be waited for
    met_.notify_all();
    ::close(fd);
  }
  bool read_group(int fd, size_t rank) {
    uint32_t count = 0;
    if (!read_all(fd, &count, sizeof count)) return false;
    std::vector<Operation> group(count);
    for (auto& op : group) {
      if (!read_all(fd, &op.header, sizeof op.header)) return false;
      op.data.resize(sent(op.header, static_cast<int>(groups_.size())));
      if (!read_all(fd, op.data.data(), op.data.size())) return false;
    }
    groups_[rank] = std::move(group);
    return true;
  }
  void meet() {
    std::unique_lock lock(mutex_);
    const size_t turn = turn_;
    if (++here_ == groups_.size()) {
      here_ = 0, ++turn_;
      met_.notify_all();
    }
    met_.wait(lock, [&] { return turn_ != turn || gone_; });
  }
  static bool between_two(const Header& h) { return h.kind == Kind::send || h.kind == Kind::receive; }
  void post(size_t rank) {
    const std::lock_guard lock(mutex_);
    for (auto& op : groups_[rank])
      if (op.header.kind == Kind::send) posted_[{rank, op.header.peer}].push_back(op);
    met_.notify_all();
  }
  bool answer(int fd, size_t rank) {
    std::vector<char> all;
    bool right = true;
    for (size_t i = 0; right && i < groups_[rank].size(); ++i) {
      std::vector<char> one;
      right = work_out(rank, i, one);
      all.insert(all.end(), one.begin(), one.end());
    }
    const uint32_t ok = right;
    return write_all(fd, &ok, sizeof ok) && (!right || write_all(fd, all.data(), all.size())) && right;
  }
  bool work_out(size_t rank, size_t i, std::vector<char>& out) {
    const Operation& mine = groups_[rank][i];
    const Header& h = mine.header;
    if (h.kind == Kind::send) return h.peer < groups_.size();
    if (h.kind == Kind::receive) return take(rank, h, out);
    for (const auto& group : groups_) {
      if (group.size() <= i || std::memcmp(&group[i].header, &h, sizeof h) != 0) return false;
      if (h.kind == Kind::all_gather)
        out.insert(out.end(), group[i].data.begin(), group[i].data.end());
      else if (out.empty())
        out = group[i].data;
      else if (!reduce(out, group[i].data.data(), h))
        return false;
    }
    const char* bad = std::getenv("MUSTER_FAKE_NCCL_BAD_RANK");
    if (h.kind == Kind::all_reduce && bad && std::atoi(bad) == static_cast<int>(rank))
      out[out.size() / 2] ^= 1;
    if (h.kind == Kind::reduce_scatter) {
      const auto share = static_cast<std::ptrdiff_t>(h.count * size_of(h.type)),
                 at = share * static_cast<std::ptrdiff_t>(rank);
      out = std::vector<char>(out.begin() + at, out.begin() + at + share);
    }
    return true;
  }
  // The next send of that peer to this rank, when it comes.
  bool take(size_t rank, const Header& h, std::vector<char>& out) {
    if (h.peer >= groups_.size()) return false;
    std::unique_lock lock(mutex_);
    auto& box = posted_[{h.peer, rank}];
    met_.wait(lock, [&] { return !box.empty() || gone_; });
    if (box.empty()) return false;
    const Operation op = std::move(box.front());
    box.pop_front();
    out = op.data;
    return op.header.count == h.count && op.header.type == h.type;
  }

  int fd_;
  std::mutex mutex_;
  std::condition_variable met_;
  size_t here_ = 0, turn_ = 0;
  bool gone_ = false;
  std::vector<std::vector<Operation>> groups_;
  std::map<std::pair<size_t, size_t>, std::deque<Operation>> posted_;  // sends from, to
};

bool parse(const std::string& text, sockaddr_in& out) {
  const size_t colon = text.rfind(':');
  out = {};
  out.sin_family = AF_INET;
  if (colon == std::string::npos || ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &out.sin_addr) != 1)
    return false;
  out.sin_port = htons(static_cast<uint16_t>(std::atoi(text.c_str() + colon + 1)));
  return true;
}
int listen_at(sockaddr_in& at) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof at;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd, 64) != 0) return -1;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return fd;
}
// The root may still be starting.
int connect_to(const sockaddr_in& at) {
  for (int i = 0; i < 600; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
    ::close(fd);
    ::poll(nullptr, 0, 50);
  }
  return -1;
}

// This process does not end before all ranks have what they were sent, and have closed their connections.
struct Hubs {
  std::vector<std::thread> threads = {};
  ~Hubs() {
    for (auto& thread : threads) thread.join();
  }
};
Hubs hubs;

int id_listener = -1;  // of the id this process made; its hub starts with rank 0

}  // namespace

struct ncclComm {
  int fd = -1, ranks = 0;
  std::vector<Operation> pending = {};
};

namespace {

thread_local int depth = 0;
thread_local std::vector<ncclComm*> touched;

ncclResult_t flush() {
  for (const auto* comm :
       touched) {  // first all that is sent, then what comes back: ranks of one process wait for one another
    const auto count = static_cast<uint32_t>(comm->pending.size());
    if (!write_all(comm->fd, &count, sizeof count)) return ncclRemoteError;
    for (const auto& op : comm->pending)
      if (!write_all(comm->fd, &op.header, sizeof op.header) ||
          !write_all(comm->fd, op.from, sent(op.header, comm->ranks)))
        return ncclRemoteError;
  }
  for (auto* comm : touched) {
    uint32_t ok = 0;
    if (!read_all(comm->fd, &ok, sizeof ok) || !ok) return ncclInvalidUsage;
    for (const auto& op : comm->pending)
      if (!read_all(comm->fd, op.to, received(op.header, comm->ranks))) return ncclRemoteError;
    comm->pending.clear();
  }
  touched.clear();
  return ncclSuccess;
}

ncclResult_t enqueue(ncclComm* comm, const Header& header, const void* from, void* to) {
  if (!comm) return ncclInvalidArgument;
  if (comm->pending.empty()) touched.push_back(comm);
  comm->pending.push_back({header, static_cast<const char*>(from), static_cast<char*>(to)});
  return depth > 0 ? ncclSuccess : flush();
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* out) {
  *out = 1;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "operations that do not fit together" : "made-up error";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* out) {
  *out = {};
  if (const char* given = std::getenv("NCCL_COMM_ID")) {
    std::snprintf(out->internal, sizeof out->internal, "%s", given);
    return ncclSuccess;
  }
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  id_listener = listen_at(at);
  std::snprintf(out->internal, sizeof out->internal, "127.0.0.1:%d", ntohs(at.sin_port));
  return id_listener < 0 ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  sockaddr_in at;
  if (rank < 0 || rank >= ranks || !parse(id.internal, at)) return ncclInvalidArgument;
  if (rank == 0) {
    const int fd = id_listener >= 0 ? id_listener : listen_at(at);
    if (fd < 0) return ncclSystemError;
    id_listener = -1;
    hubs.threads.emplace_back([hub = std::make_shared<Hub>(fd, ranks)] { hub->serve(); });
  }
  auto comm = std::make_unique<ncclComm>();
  comm->fd = connect_to(at);
  comm->ranks = ranks;
  const auto number = static_cast<uint32_t>(rank);
  if (comm->fd < 0 || !write_all(comm->fd, &number, sizeof number)) return ncclRemoteError;
  *out = comm.release();
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ::close(comm->fd);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm->pending.empty() ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return --depth == 0 ? flush() : ncclSuccess; }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t) {
  return enqueue(comm, {Kind::all_reduce, static_cast<uint32_t>(type), static_cast<uint32_t>(op), 0, count},
                 from, to);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t) {
  return enqueue(comm, {Kind::all_gather, static_cast<uint32_t>(type), 0, 0, count}, from, to);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t) {
  return enqueue(comm,
                 {Kind::reduce_scatter, static_cast<uint32_t>(type), static_cast<uint32_t>(op), 0, count},
                 from, to);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  return enqueue(comm, {Kind::send, static_cast<uint32_t>(type), 0, static_cast<uint32_t>(peer), count}, from,
                 nullptr);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return enqueue(comm, {Kind::receive, static_cast<uint32_t>(type), 0, static_cast<uint32_t>(peer), count},
                 nullptr, to);
}

}  // extern "C"
