// The entry that libFuzzer calls; MUSTER_FUZZ_TARGET is the target's function (cmake/embed.cmake).
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::fuzz::MUSTER_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
