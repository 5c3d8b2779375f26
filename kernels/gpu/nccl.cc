#include "kernels/gpu/nccl.h"

#include <cstdlib>
#include <fmt/format.h>
#include <utility>

#include "base/cuda_driver.h"

namespace muster::kernels::gpu {

Result<Nccl> Nccl::open() {
  TRY(const Library library, Library::open(kNcclLibrary));
  Nccl out;
  out.path = library.path();
  TRY_(library.find("ncclGetVersion", out.version));
  TRY_(library.find("ncclGetUniqueId", out.make_id));
  TRY_(library.find("ncclCommInitRank", out.join));
  TRY_(library.find("ncclCommFinalize", out.finalize));
  TRY_(library.find("ncclCommDestroy", out.destroy));
  TRY_(library.find("ncclCommAbort", out.abort));
  TRY_(library.find("ncclGetErrorString", out.error_text));
  TRY_(library.find("ncclGroupStart", out.group_start));
  TRY_(library.find("ncclGroupEnd", out.group_end));
  TRY_(library.find("ncclAllReduce", out.all_reduce));
  TRY_(library.find("ncclAllGather", out.all_gather));
  TRY_(library.find("ncclReduceScatter", out.reduce_scatter));
  TRY_(library.find("ncclSend", out.send));
  TRY_(library.find("ncclRecv", out.receive));
  return out;
}

Status Nccl::check(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess) return Ok{};
  return fail(Code::failed, fmt::format("{}: {}", what, error_text(result)));
}

Status Nccl::grouped(const char* what, const std::function<Status()>& calls) const {
  TRY_(check(group_start(), "ncclGroupStart"));
  Status status = calls();
  const auto end = group_end();
  TRY_(std::move(status));
  return check(end, what);
}

const char* unfit(const Meeting& m, const Selection& gpus) {
  if (m.nodes < 1 || m.node < 0 || m.node >= m.nodes)
    return "`nodes` must be at least 1, and `node` between 0 and `nodes` - 1";
  if (m.nodes > 1 && m.root.empty())
    return "a test of several nodes requires `--root`, the address on which node 0 listens";
  // If a node used a different number of GPUs, the ranks would not match, and NCCL would wait forever.
  if (m.nodes > 1 && gpus.expect == 0 && gpus.devices.empty())
    return "a test of several nodes requires the number of GPUs per node";
  return nullptr;
}

void set_environment(const Meeting& m) {
  if (m.nodes > 1) ::setenv("NCCL_COMM_ID", m.root.c_str(), 1);
  if (!m.algorithm.empty()) ::setenv("NCCL_ALGO", m.algorithm.c_str(), 1);
}

Result<Communicators> Communicators::join(const Nccl& nccl, const Meeting& meeting,
                                          const std::vector<Gpu>& gpus) {
  ncclUniqueId id = {};
  TRY_(nccl.check(nccl.make_id(&id),
                  "ncclGetUniqueId"));  // with several nodes the id is the root's address, the same on each
  const int here = static_cast<int>(gpus.size());
  Communicators out(nccl, meeting.nodes * here);
  out.comms_.resize(gpus.size());
  // A GPU that cannot be used fails here: inside the group the others would wait for its rank.
  for (const auto& gpu : gpus) {
    TRY_(cuda(cudaSetDevice(gpu.device), "cudaSetDevice"));
    TRY_(cuda(cudaFree(nullptr), "creating a context on the GPU"));
  }
  TRY_(nccl.grouped("ncclCommInitRank", [&]() -> Status {
    for (int i = 0; i < here; ++i) {
      const auto at = static_cast<size_t>(i);
      TRY_(cuda(cudaSetDevice(gpus[at].device), "cudaSetDevice"));
      TRY_(nccl.check(nccl.join(&out.comms_[at], out.ranks_, id, meeting.node * here + i),
                      "ncclCommInitRank"));
    }
    return Ok{};
  }));
  return out;
}

Status Communicators::leave() {
  TRY_(nccl_.grouped("ncclCommFinalize", [&]() -> Status {
    for (const ncclComm_t comm : comms_) TRY_(nccl_.check(nccl_.finalize(comm), "ncclCommFinalize"));
    return Ok{};
  }));
  for (ncclComm_t& comm : comms_)
    TRY_(nccl_.check(nccl_.destroy(std::exchange(comm, nullptr)), "ncclCommDestroy"));
  return Ok{};
}

Communicators::~Communicators() {
  for (const ncclComm_t comm : comms_)
    if (comm) (void)nccl_.abort(comm);
}

}  // namespace muster::kernels::gpu
