#include "controller/report/gpu_archive.h"

#include <fmt/format.h>

namespace muster {

std::string bring_gpu_program(int cuda) {
  const std::string archive =
      fmt::format("{}*-cuda{}-linux-x86_64.tar.zst", kGpuArchive, cuda > 0 ? std::to_string(cuda) : "N");
  return fmt::format(
      "where the command runs, beside muster's folder: `tar --zstd -xf {}`{}, or add `--gpu-program FILE`",
      archive, cuda > 0 ? "" : " (N: the CUDA of the host's driver)");
}

}  // namespace muster
