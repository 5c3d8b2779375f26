// The programs that hosts fetch over their wires, by digest. Read by the wires on threads of the pool.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "controller/hosts/packed_program.h"
#include "controller/image/service/image_service.h"

namespace muster {

struct ProgramFiles {
  std::map<std::string, std::string> by_digest;  // hexadecimal -> path
  std::string nvml;                              // digest of muster-accept-nvml; "": there is none
  bool perftest = false;                         // there is one (base/perftest_files.h)
};

Result<ProgramFiles> program_files(ImageService& images);

// Returns a program, packed. not_found: no program has the digest, with or without "sha256:".
Result<PackedProgram> program_of(const ProgramFiles& files, const std::string& sha256);

}  // namespace muster
