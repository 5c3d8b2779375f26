// Linked into the dynamic programs that are copied to hosts, so that they run with glibc 2.34 and later (EL
// 9; Ubuntu 22.04 has 2.35).
//
// The static libstdc++ of a system with glibc 2.36 calls arc4random() for std::random_device. Only glibc 2.36
// and later has it. The definition in this file takes precedence; it is linked as an object file, since the
// linker omits archive members that are not needed at that point. Hidden, so that no library uses it instead
// of glibc's. The other newer symbol, _dl_find_object of 2.35, comes with a static libgcc: carried_program()
// of cmake/carried.cmake does not link one. tests/unit/kernels/portable_test.cc checks this.
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t out = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&out, sizeof out, 0);
  } while (got < 0 && errno == EINTR);
  // Any kernel that has the call (3.17) returns four bytes completely or not at all.
  if (got != static_cast<ssize_t>(sizeof out)) ::_exit(3);
  return out;
}
