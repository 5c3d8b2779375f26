// One rank of a load in its own process: it may hang, crash or be killed without affecting its owner, which
// continues to watch its connections. Forked without exec: the program is statically linked. It ends with
// its owner.
//
// Owned by a group's leader or by a server. Single-threaded: the process must not have other threads.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "kernels/together/message.h"
#include "kernels/together/socket.h"

namespace muster::together {

class RankProcess {
 public:
  // `listening`: socket at this member's address. The owner keeps it open; the process uses it while the
  // members connect to each other.
  static Result<RankProcess> start(const Work& work, const GpuHere& here, const Socket& listening);
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&& other) noexcept;
  ~RankProcess();  // kills it if it is still running

  int fd() const { return out_.fd(); }  // readable: more output, or end of output
  // Reads the available output. False: the process has closed its output, or it exceeds kLongestResult.
  bool read();
  // Reaps the process. Returns "" if it printed `result`, else how it ended ("its process was
  // ended by signal 11").
  std::string end(Json& result);

 private:
  RankProcess(pid_t pid, Socket out) : pid_(pid), out_(std::move(out)) {}

  pid_t pid_ = -1;
  Socket out_;
  std::string text_ = {};
};

}  // namespace muster::together
