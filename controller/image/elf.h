// Reads which shared libraries an ELF program needs. Pure function, no I/O. x86-64 only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

struct ElfInfo {
  bool is_elf = false;                   // false: a script or data; nothing else is set
  std::string interpreter = {};          // "/lib64/ld-linux-x86-64.so.2"; empty when static
  std::vector<std::string> needed = {};  // "libc.so.6"
};
// Code::corrupt for an ELF file whose tables point outside of it.
Result<ElfInfo> read_elf(std::string_view bytes);

}  // namespace muster
