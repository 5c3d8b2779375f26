// SIMULATED GPU: the lab's stand-in for libcuda.so.1. No program can compute with it: the driver does not start.
#define API __attribute__((visibility("default")))

enum { CUDA_ERROR_STUB_LIBRARY = 34 };

API int cuInit(unsigned flags) {
  (void)flags;
  return CUDA_ERROR_STUB_LIBRARY;
}
API int cuDriverGetVersion(int *version) {
  *version = 0;
  return CUDA_ERROR_STUB_LIBRARY;
}
