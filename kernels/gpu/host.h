// What all GPU kernels' host sides share: finding the GPUs, owners of CUDA objects, errors, one thread per
// GPU.
//
// A CUDA error becomes Code::unavailable when there is nothing to run on, else Code::failed with the call's
// name. A GPU that returned an error once is not used again by this process: each program is one measurement.
// Thread: an object belongs to the thread whose current device it was made on.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gpu/gpu.h"
#include "kernels/gpu_logic.h"
#include "kernels/library.h"

namespace muster::kernels::gpu {

Status cuda(cudaError_t error, const char* what);

struct Gpu {
  int device = 0;
  std::string name = {}, uuid = {}, bus = {};
  int major = 0, minor = 0, processors = 0;
  size_t memory = 0, l2 = 0;
};
// Those chosen, after checking that the expected number is there. unavailable: no driver, no GPU; not_found:
// too few.
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

// Time between two points of a stream.
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

// One part of a Measurement per GPU, all measured at the same time in a thread of its own; the worst outcome
// is the whole's, and all blame is gathered. `measure` runs with the GPU current.
using MeasureOne = std::function<Result<Measurement>(const Gpu& gpu, size_t index)>;
enum class Order { at_once, one_by_one };
Measurement measure_gpus(const std::string& check, const Selection& selection, Order order,
                         const MeasureOne& measure);
// A measurement with the reason why there are no results; where software of the node is missing, `detail`
// names it (missing_software()).
Measurement not_measured(const std::string& check, const Error& error);

// The measurement of a GPU whose tensor cores have no such format: `detail.unsupported`.
Measurement unsupported(const Gpu& gpu, const FormatInfo& format);

// What nvidia-smi reports for all GPUs; empty when it is missing or fails, with the reason in `why`.
std::vector<SmiGpu> ask_smi(std::string* why = nullptr);
// Of one of them; nothing when it is not listed.
const SmiGpu* smi_of(const std::vector<SmiGpu>& all, const Gpu& gpu);

}  // namespace muster::kernels::gpu
