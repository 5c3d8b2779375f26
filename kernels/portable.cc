// Linked into the dynamic programs that run on hosts of other distributions, so that they start with glibc
// 2.34 and later (EL 9; Ubuntu 22.04 has 2.35), and need no library but glibc's.
//
// What is linked in statically asks for two newer functions. libstdc++ of a system with glibc 2.36 calls
// arc4random() (2.36) for std::random_device; libgcc's unwinder calls _dl_find_object() (2.35). The
// definitions in this file take precedence; it is linked as an object file, since the linker omits archive
// members that are not needed at that point. Hidden, so that no library uses them instead of glibc's.
// cmake/carried.cmake links it; tests/unit/kernels/portable_test.cc checks the result.
#include <dlfcn.h>
#include <link.h>
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

namespace {

struct Search {
  ElfW(Addr) place;
  dl_find_object& found;
};

// Fills in the program or library that contains the place, if it has unwinding data.
int look_into(dl_phdr_info* info, size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  const ElfW(Phdr)* frames = nullptr;
  ElfW(Addr) begin = 0, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const ElfW(Addr) at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
    if (part.p_type == PT_LOAD && search.place >= at && search.place - at < part.p_memsz)
      begin = at, end = at + part.p_memsz;
  }
  if (end == 0 || !frames) return 0;
  search.found = {};
  search.found.dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found.dlfo_map_end = reinterpret_cast<void*>(end);
  search.found.dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* place,
                                                                     dl_find_object* found) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(place), *found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
