// One rank of a load, in a process of its own: it may hang, crash or be ended without its owner, which goes
// on to watch the others. Forked, not executed: a static program has nothing else to load. It ends with its
// owner.
//
// Owned by the leader of a group, or by a server. Thread: one, in a process that has no other.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "kernels/together/message.h"
#include "kernels/together/socket.h"

namespace muster::together {

class RankProcess {
 public:
  // `listening`: at this member's address; it stays open here, and is the process's for as long as its
  // members meet.
  static Result<RankProcess> start(const Work& work, const GpuHere& here, const Socket& listening);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&& other) noexcept;
  ~RankProcess();  // kills it, where it still runs

  int fd() const { return out_.fd(); }  // readable: there is more of its result, or its end
  // Takes what is there. False: it has ended, or closed its result.
  bool read();
  // Reaps it. How it ended where that was not by itself: "ended by signal 11"; "" when it printed `result`.
  std::string end(Json& result);

 private:
  RankProcess(pid_t pid, Socket out) : pid_(pid), out_(std::move(out)) {}

  pid_t pid_ = -1;
  Socket out_;
  std::string text_ = {};
};

}  // namespace muster::together
