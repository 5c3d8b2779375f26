// NCCL, loaded at run time, and one communicator per GPU of this process.
//
// Ranks of several processes meet at an address (NCCL_COMM_ID): an id made by ncclGetUniqueId() is good only
// as long as the process that made it lives. A peer that does not come makes NCCL wait: the caller's deadline
// ends it. Thread: calls on one communicator belong to one thread at a time.
#pragma once

#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {

struct Nccl {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetUniqueId) make_id = nullptr;
  decltype(&ncclCommInitRank) join = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGetErrorString) error_text = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;

  static Result<Nccl> open();
  Status check(ncclResult_t result, const char* what) const;
  // `calls` as one group. It is closed in any case: a group left open would swallow every later call.
  Status grouped(const char* what, const std::function<Status()>& calls) const;
};

// Null, or why these settings are invalid. `gpus`: of this process; several nodes must have the same number.
const char* unfit(const Meeting& meeting, const Selection& gpus);
// Before NCCL reads its environment for the first time.
void set_environment(const Meeting& meeting);

// Node n holds ranks n g ... n g + g - 1 of g GPUs.
class Communicators {
 public:
  static Result<Communicators> join(const Nccl& nccl, const Meeting& meeting, const std::vector<Gpu>& gpus);
  Communicators(Communicators&& other) noexcept
      : nccl_(other.nccl_), ranks_(other.ranks_), comms_(std::move(other.comms_)) {
    other.comms_.clear();
  }
  ~Communicators();
  // After the last call succeeded: waits until the network has sent all pending data of this process. Without
  // it the ranks are aborted.
  Status leave();
  ncclComm_t at(size_t gpu) const { return comms_[gpu]; }
  int ranks() const { return ranks_; }

 private:
  explicit Communicators(const Nccl& nccl, int ranks) : nccl_(nccl), ranks_(ranks) {}
  Nccl nccl_;
  int ranks_ = 1;
  std::vector<ncclComm_t> comms_ = {};
};

}  // namespace muster::kernels::gpu
