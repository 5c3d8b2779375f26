// Finds muster-accept-gpu on this machine, which `muster accept --hosts` carries to hosts with GPUs. There
// may be one for each major version of CUDA: a host gets the one that its driver runs (base/cuda_driver.h,
// cuda_for()). Which CUDA a file was built with is read without running it (controller/image/programs.h).
// Thread safety: stateless functions, which read files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

struct GpuPrograms {
  std::map<int, std::string> by_cuda = {};  // major version -> path
  std::vector<std::string> wrong = {};      // files of that name that are not used, and why
};

// Returns the folders that are searched without being named, in order: the one with muster's own programs
// (`accept`: path of muster-accept); archives unpacked beside muster, ../muster-gpu-*/lib/muster, if they
// belong to this user or root; the package's.
std::vector<std::string> gpu_program_folders(const std::string& accept);

// `given`: files or folders from the command line; if there are any, `folders` are not searched. Of several
// programs for one CUDA the first is taken. A folder may be an unpacked archive, with lib/muster in it.
// invalid: a given file is not the program; not_found: it does not exist, or a given folder has none. A wrong
// file in `folders` is no error: it becomes `wrong`.
Result<GpuPrograms> find_gpu_programs(const std::vector<std::string>& given,
                                      const std::vector<std::string>& folders);

}  // namespace muster
