// HostClaim: the lock that makes one measurement at a time load a host, whichever user starts it: an abstract
// Unix socket of a fixed name, bound and listened on.
//
// The kernel lets one process have the name, users and root alike, and frees it when that process ends in
// any way: nothing is left, no file is needed. Who connects learns the holder's pid and user id from the
// kernel (SO_PEERCRED), which no process can forge. So an ordinary user can hold the name as well, but never
// without being named. The name is one of the network namespace: a container with its own network has its own
// lock. Not inherited by programs that this process starts. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

inline constexpr const char* kClaimName = "muster-measurement";

class HostClaim {
 public:
  struct Holder {
    int64_t pid = 0;  // 0: unknown, or in a different PID namespace
    std::optional<uint32_t> uid = {};
  };

  explicit HostClaim(std::string name = kClaimName) : name_(std::move(name)) {}
  ~HostClaim() { release(); }
  HostClaim(const HostClaim&) = delete;
  HostClaim& operator=(const HostClaim&) = delete;

  // nullopt: this process has the lock now; else who has it. Blocks for half a second at most. denied: the
  // kernel does not allow it, so there is no lock.
  Result<std::optional<Holder>> take();
  bool held() const { return socket_ >= 0; }
  void release();

 private:
  std::string name_;
  int socket_ = -1;
};

}  // namespace muster
