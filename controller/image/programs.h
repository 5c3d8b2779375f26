// Programs that every system has in addition to its image, by digest: the agent, and the acceptance programs
// that are installed on the controller. After an upgrade a program has a different digest, and the old one is
// no longer served. Thread: the reactor's; reads a program again only when its size or mtime has changed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/wire.h"
#include "controller/image/ram.h"

namespace muster {

// Paths on the controller of muster-agent and of muster-accept, which may be "". Both must outlive Programs.
struct ProgramPaths {
  const std::string& agent;
  const std::string& accept;
};

std::vector<RamPayload> acceptance_programs(const std::string& accept);

// Where muster-accept-gpu is looked for: beside muster-accept; "" if `accept` is "".
std::string gpu_program_beside(const std::string& accept);
// The major version of CUDA that a muster-accept-gpu was built with, by its mark, "@(#)muster-accept-gpu cuda
// 12.4" (kernels/gpu/main.cc). not_found: there is no such file; invalid: it has no mark.
Result<int> cuda_of_gpu_program(const std::string& path);

class Programs {
 public:
  explicit Programs(const ProgramPaths& paths) : paths_(paths) {}

  // Returns all programs. not_found: the agent, or the configured acceptance program, cannot be read.
  Result<std::vector<wire::SlotProgram>> list();
  // Offers these programs for GPUs, by major version of CUDA, instead of the one beside muster-accept: at
  // /usr/lib/muster/cudaN/muster-accept-gpu, of which the planner names the one that fits. For running hosts.
  void offer_gpu(std::map<int, std::string> by_cuda) { gpu_ = std::move(by_cuda); }
  // Returns the file with that digest ("sha256:<hex>", or its hex part alone); "" if there is none.
  std::string path_of(const std::string& digest);

 private:
  struct Known {
    uintmax_t size = 0;
    std::filesystem::file_time_type time = {};
    std::string sha256;
  };
  struct Source;
  std::vector<Source> sources() const;
  Result<std::string> digest_of(const std::string& path, uintmax_t& size);

  ProgramPaths paths_;
  std::map<std::string, Known> known_;  // by path
  std::optional<std::map<int, std::string>> gpu_;
};

}  // namespace muster
