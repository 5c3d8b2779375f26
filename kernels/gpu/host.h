// Shared by the host side of all GPU kernels: GPU discovery, owners of CUDA objects, errors, a thread per
// GPU. A CUDA error becomes Code::unavailable if there is no usable GPU, else Code::failed with the call's
// name. A GPU that has returned an error is not used again: a process makes only one measurement. Thread
// safety: an object belongs to the thread that created it, with that thread's current device.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/library.h"
#include "kernels/gpu/gpu.h"
#include "kernels/gpu/logic/gpu_logic.h"

namespace muster::kernels::gpu {

Status cuda(cudaError_t error, const char* what);

struct Gpu {
  int device = 0;
  std::string name = {}, uuid = {}, bus = {};
  int major = 0, minor = 0, processors = 0;
  size_t memory = 0, l2 = 0;
};
// After checking that the expected number is present. unavailable: no driver or no GPU; not_found: too few.
Result<std::vector<Gpu>> find_gpus(const Selection& selection);

struct FreeDevice {
  void operator()(void* p) const { (void)cudaFree(p); }
};
using DeviceMemory = std::unique_ptr<void, FreeDevice>;
Result<DeviceMemory> device_memory(size_t bytes);

class CudaStream {
 public:
  static Result<CudaStream> open();
  cudaStream_t get() const { return stream_.get(); }
  Status wait() const;

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { (void)cudaStreamDestroy(stream); }
  };
  std::unique_ptr<CUstream_st, Destroy> stream_;
};

class Timer {
 public:
  static Result<Timer> open();
  Status start(cudaStream_t stream);
  Result<double> stop(cudaStream_t stream);  // waits; seconds

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
  };
  std::unique_ptr<CUevent_st, Destroy> first_, last_;
};

// Returns a Measurement with one part per GPU, each measured in its own thread (all at once or one by one);
// its outcome is the worst of the parts, with all blame. `measure` runs with its GPU as current device.
using MeasureOne = std::function<Result<Measurement>(const Gpu& gpu, size_t index)>;
enum class Order { at_once, one_by_one };
Measurement measure_gpus(const std::string& check, const Selection& selection, Order order,
                         const MeasureOne& measure);
// Returns a measurement that gives the reason why there are no results; if software is missing on the node,
// `detail` names it (missing_software()).
Measurement not_measured(const std::string& check, const Error& error);

// Returns the measurement of a GPU whose tensor cores lack this format: `detail.unsupported`.
Measurement unsupported(const Gpu& gpu, const FormatInfo& format);

// Returns nvidia-smi's report on all GPUs; empty if it is missing or fails, with the reason in `why`.
std::vector<SmiGpu> query_smi(std::string* why = nullptr);
// Finds this GPU in nvidia-smi's report; null if it is not listed.
const SmiGpu* smi_of(const std::vector<SmiGpu>& all, const Gpu& gpu);

}  // namespace muster::kernels::gpu
