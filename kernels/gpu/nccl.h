// NCCL, loaded at run time, and one communicator per GPU of this process. Ranks of several processes meet at
// an address (NCCL_COMM_ID): an id of ncclGetUniqueId() is valid only while its process is alive. NCCL waits
// indefinitely for a missing peer; the caller's deadline must end that. Thread safety: one thread at a time
// per communicator.
#pragma once

#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/gpu/host.h"

namespace muster::kernels::gpu {

struct Nccl {
  std::string path = {};  // of the library
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
  // Runs `calls` as one NCCL group. Always closes it: in an open group no later call would ever be started.
  Status grouped(const char* what, const std::function<Status()>& calls) const;
};

// Returns why these settings are invalid, or null. `gpus`: of this process; the same number on every node.
const char* unfit(const Meeting& meeting, const Selection& gpus);
// Sets NCCL's environment variables; must be called before NCCL reads its environment for the first time.
void set_environment(const Meeting& meeting);

// One communicator per GPU. With g GPUs per node, node n has ranks n g ... n g + g - 1.
class Communicators {
 public:
  static Result<Communicators> join(const Nccl& nccl, const Meeting& meeting, const std::vector<Gpu>& gpus);
  Communicators(Communicators&& other) noexcept
      : nccl_(other.nccl_), ranks_(other.ranks_), comms_(std::move(other.comms_)) {
    other.comms_.clear();
  }
  ~Communicators();
  // To be called after the last collective has succeeded: waits until all pending data of this process has
  // been sent. Otherwise the destructor aborts the ranks.
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
