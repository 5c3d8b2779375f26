// A made-up CUDA runtime: device memory is the host's, every call ends before it returns, and the GPUs are of
// compute capability 9.0 (MUSTER_FAKE_CAPABILITY=80: of 8.0). So the host's side of kernels/gpu can run, and
// be tested, where there is no GPU. What runs on a GPU is not tested by it: the .cu files are replaced by
// launchers.cc.
//
// MUSTER_FAKE_GPUS: how many GPUs there are (2). MUSTER_FAKE_SMALL_GPU: number of one that has 65 MiB. Memory
// is counted per GPU: what is not given back is missed.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/fakes/gpu/fake_gpu.h"

namespace {

constexpr size_t kMemory = size_t{600} << 20;  // a little above what the memory test leaves alone

thread_local int current = 0;
std::mutex mutex;
std::map<void*, std::pair<int, size_t>> blocks;  // which GPU's, how large
std::map<int, size_t> used;

int count() {
  const char* text = std::getenv("MUSTER_FAKE_GPUS");
  return text ? std::atoi(text) : 2;
}

}  // namespace

namespace fake_gpu {
int device() { return current; }
}  // namespace fake_gpu

struct CUevent_st {
  std::chrono::steady_clock::time_point at = {};
};
struct CUstream_st {};

extern "C" {

cudaError_t cudaGetDeviceCount(int* out) {
  *out = count();
  return *out > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= count()) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* out) {
  *out = current;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (device < 0 || device >= count()) return cudaErrorInvalidDevice;
  *out = {};
  std::snprintf(out->name, sizeof out->name, "Made-up GPU");
  out->uuid.bytes[15] = static_cast<char>(device);
  const char* capability = std::getenv("MUSTER_FAKE_CAPABILITY");
  const int number = capability ? std::atoi(capability) : 90;
  out->major = number / 10;
  out->minor = number % 10;
  out->multiProcessorCount = 4;
  out->totalGlobalMem = kMemory;
  out->l2CacheSize = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* out, int size, int device) {
  std::snprintf(out, static_cast<size_t>(size), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* out, cudaDeviceAttr what, int) {
  *out = what == cudaDevAttrClockRate ? 1000000 : 0;  // kHz
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all) {
  const std::lock_guard lock(mutex);
  *all = kMemory;
  *free_bytes = kMemory - used[current];
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, size_t bytes) {
  const std::lock_guard lock(mutex);
  const char* small = std::getenv("MUSTER_FAKE_SMALL_GPU");
  const size_t all = small && std::atoi(small) == current ? size_t{65} << 20 : kMemory;
  if (used[current] + bytes > all) return cudaErrorMemoryAllocation;
  *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*out) return cudaErrorMemoryAllocation;
  std::memset(*out, 0xa5, bytes);  // a GPU's memory is not zero either
  blocks[*out] = {current, bytes};
  used[current] += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  const std::lock_guard lock(mutex);
  const auto it = blocks.find(p);
  if (it == blocks.end()) return p ? cudaErrorInvalidValue : cudaSuccess;
  used[it->second.first] -= it->second.second;
  blocks.erase(it);
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t) {
  std::memset(p, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* out, int, int) {
  *out = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* out) {
  *out = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event->at = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* out, cudaEvent_t from, cudaEvent_t to) {
  *out = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNoDevice ? "cudaErrorNoDevice" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "made-up error";
}

}  // extern "C"
