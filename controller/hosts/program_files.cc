#include "controller/hosts/program_files.h"

#include "base/perftest_files.h"
#include "sys/os.h"

namespace muster {
namespace {

std::string hex_of(const std::string& digest) { return digest.substr(digest.find(':') + 1); }

}  // namespace

Result<ProgramFiles> program_files(ImageService& images) {
  TRY(const auto programs, images.programs().list());
  ProgramFiles out;
  for (const auto& program : programs) {
    out.by_digest[hex_of(program.sha256)] = images.programs().path_of(program.sha256);
    const std::string name = program.path.substr(program.path.rfind('/') + 1);
    if (name == "muster-accept-nvml") out.nvml = hex_of(program.sha256);
    out.perftest = out.perftest || name == kPerftestBandwidth;
  }
  return out;
}

Result<PackedProgram> program_of(const ProgramFiles& files, const std::string& sha256) {
  const auto found = files.by_digest.find(hex_of(sha256));
  if (found == files.by_digest.end()) return fail(Code::not_found, "no program has the digest " + sha256);
  return packed_program(Files(), found->second);
}

}  // namespace muster
