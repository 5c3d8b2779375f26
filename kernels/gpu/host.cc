#include "kernels/gpu/host.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

#include "kernels/common/library.h"
#include "kernels/gpu/cublaslt.h"
#include "kernels/gpu/logic/gpu_logic.h"

namespace muster::kernels::gpu {
namespace {

bool is_absence(cudaError_t error) {
  return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
         error == cudaErrorSystemDriverMismatch || error == cudaErrorSystemNotReady ||
         error == cudaErrorStubLibrary || error == cudaErrorNoKernelImageForDevice ||
         error == cudaErrorUnsupportedPtxVersion || error == cudaErrorDevicesUnavailable ||
         error == cudaErrorCompatNotSupportedOnDevice;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string out = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return out;
}

Result<Gpu> describe(int device) {
  cudaDeviceProp p = {};
  TRY_(cuda(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties"));
  Gpu gpu{device,
          p.name,
          uuid_text(p.uuid),
          {},
          p.major,
          p.minor,
          p.multiProcessorCount,
          p.totalGlobalMem,
          static_cast<size_t>(p.l2CacheSize)};
  char bus[32] = {};
  TRY_(cuda(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "cudaDeviceGetPCIBusId"));
  gpu.bus = bus;
  return gpu;
}

int rank_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::measured:
      return 0;
    case Outcome::unavailable:
      return 1;
    case Outcome::refused:
      return 2;
    case Outcome::failed:
      return 3;
    case Outcome::corrupt:
      return 4;
  }
  return 4;
}

Result<Measurement> measure_on(const Gpu& gpu, size_t index, const MeasureOne& measure) {
  TRY_(cuda(cudaSetDevice(gpu.device), "cudaSetDevice"));
  return measure(gpu, index);
}

}  // namespace

Status cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Ok{};
  const Code code = is_absence(error) ? Code::unavailable : Code::failed;
  return fail(code, fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

Result<std::vector<Gpu>> find_gpus(const Selection& selection) {
  int count = 0;
  if (const auto error = cudaGetDeviceCount(&count);
      error != cudaSuccess)  // whatever the error is, no GPU can be used
    return fail(Code::unavailable, fmt::format("no GPU can be used: {} ({})", cudaGetErrorString(error),
                                               cudaGetErrorName(error)));
  if (count == 0) return fail(Code::unavailable, "no GPU");
  if (selection.expect > 0 && count != selection.expect)
    return fail(Code::not_found, fmt::format("{} GPUs answer, but {} are expected", count, selection.expect));
  std::vector<int> wanted = selection.devices;
  if (wanted.empty())
    for (int i = 0; i < count; ++i) wanted.push_back(i);
  std::vector<Gpu> out;
  for (const int device : wanted) {
    if (device < 0 || device >= count)
      return fail(Code::not_found, fmt::format("there is no GPU {} (number of GPUs: {})", device, count));
    TRY(Gpu gpu, describe(device));
    out.push_back(std::move(gpu));
  }
  return out;
}

Result<DeviceMemory> device_memory(size_t bytes) {
  void* p = nullptr;
  const auto error = cudaMalloc(&p, std::max<size_t>(bytes, 256));
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // not sticky
    return fail(Code::unavailable, fmt::format("less than {} MiB of GPU memory is free", bytes >> 20));
  }
  TRY_(cuda(error, "cudaMalloc"));
  return DeviceMemory(p);
}

Result<CudaStream> CudaStream::open() {
  cudaStream_t stream = nullptr;
  TRY_(cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  CudaStream out;
  out.stream_.reset(stream);
  return out;
}
Status CudaStream::wait() const {
  return cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
}

Result<Timer> Timer::open() {
  Timer out;
  for (auto* event : {&out.first_, &out.last_}) {
    cudaEvent_t made = nullptr;
    TRY_(cuda(cudaEventCreate(&made), "cudaEventCreate"));
    event->reset(made);
  }
  return out;
}
Status Timer::start(cudaStream_t stream) {
  return cuda(cudaEventRecord(first_.get(), stream), "cudaEventRecord");
}
Result<double> Timer::stop(cudaStream_t stream) {
  TRY_(cuda(cudaEventRecord(last_.get(), stream), "cudaEventRecord"));
  TRY_(cuda(cudaEventSynchronize(last_.get()), "cudaEventSynchronize"));
  float milliseconds = 0;
  TRY_(cuda(cudaEventElapsedTime(&milliseconds, first_.get(), last_.get()), "cudaEventElapsedTime"));
  return std::max(static_cast<double>(milliseconds) / 1e3, 1e-9);
}

Measurement not_measured(const std::string& check, const Error& error) {
  Measurement out;
  out.check = check;
  out.outcome = error.code == Code::unavailable ? Outcome::unavailable
                : error.code == Code::corrupt   ? Outcome::corrupt
                : error.code == Code::invalid   ? Outcome::refused
                                                : Outcome::failed;
  out.error = error.message;
  if (out.outcome != Outcome::unavailable) return out;
  int count = 0;  // also 0 if the library is installed but the kernel module is not loaded
  const bool driver = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  const auto there = [](const std::string& library) { return Library::open(library).ok(); };
  const Json missing = missing_software(check, driver, Cublaslt::library_name(), there);
  if (missing.is_object()) out.detail.update(missing);
  return out;
}

Measurement unsupported(const Gpu& gpu, const FormatInfo& format) {
  Measurement out;
  out.outcome = Outcome::unavailable;
  out.error = fmt::format("compute capability {}.{} does not support products in format {}", gpu.major,
                          gpu.minor, format.name);
  out.detail["unsupported"] = out.error;
  return out;
}

Measurement measure_gpus(const std::string& check, const Selection& selection, Order order,
                         const MeasureOne& measure) {
  const auto gpus = find_gpus(selection);
  if (!gpus) return not_measured(check, gpus.error());
  std::vector<Result<Measurement>> results(gpus->size(),
                                           Result<Measurement>(fail(Code::failed, "did not run")));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < gpus->size(); ++i) {
    threads.emplace_back([&, i] { results[i] = measure_on((*gpus)[i], i, measure); });
    if (order == Order::one_by_one) threads.back().join();
  }
  for (auto& thread : threads)
    if (thread.joinable()) thread.join();
  const auto smi = query_smi();
  Measurement out;
  out.check = check;
  out.parts = Json::array();
  for (size_t i = 0; i < gpus->size(); ++i) {
    const Gpu& gpu = (*gpus)[i];
    Measurement part = results[i] ? std::move(results[i]).value() : not_measured(check, results[i].error());
    part.check = check;
    if (part.outcome != Outcome::measured && part.outcome != Outcome::unavailable &&
        part.faulty_parts.empty())
      part.faulty_parts = {"GPU " + gpu.uuid};
    const SmiGpu* state = smi_of(smi, gpu);
    part.detail["gpu"] = {{"device", gpu.device},
                          {"name", gpu.name},
                          {"uuid", gpu.uuid},
                          {"bus", gpu.bus},
                          {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
                          {"multiprocessors", gpu.processors}};
    if (state) part.detail["gpu"]["serial"] = state->serial, part.detail["after"] = state->numbers;
    if (rank_of(part.outcome) > rank_of(out.outcome)) out.outcome = part.outcome, out.error = part.error;
    out.faulty_parts.insert(out.faulty_parts.end(), part.faulty_parts.begin(), part.faulty_parts.end());
    out.parts.push_back({{"subject", gpu.uuid}, {"like", gpu.name}, {"result", to_json(part)}});
  }
  return out;
}

std::vector<SmiGpu> query_smi(std::string* why) {
  const auto process = make_process();
  const auto query = [&](const std::string& what, const std::string& fields) -> std::vector<SmiGpu> {
    const auto output = run_ok(*process, {.argv = {"nvidia-smi", what + "=" + fields, "--format=csv,nounits"},
                                          .deadline = 30 * kSecond});
    if (!output && why) *why = output.error().message;
    return output ? parse_smi(*output) : std::vector<SmiGpu>();
  };
  std::vector<SmiGpu> out = query("--query-gpu", smi_fields());
  // GPUs before Ampere have no rows to remap, and return an error.
  if (!out.empty()) merge_smi(out, query("--query-remapped-rows", smi_remap_fields()));
  return out;
}

const SmiGpu* smi_of(const std::vector<SmiGpu>& all, const Gpu& gpu) {
  for (const auto& one : all)
    if (one.uuid == gpu.uuid || same_bus(one.bus, gpu.bus)) return &one;
  return nullptr;
}

}  // namespace muster::kernels::gpu
