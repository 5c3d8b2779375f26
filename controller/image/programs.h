// Programs that every system has in addition to its image, by digest: the agent, and the acceptance programs
// that are installed on the controller. After an upgrade a program has a different digest, and the old one is
// no longer served. Thread: the reactor's; reads a program again only when its size or time changed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wire.h"
#include "controller/image/ram.h"

namespace muster {

// On the controller: muster-agent, and muster-accept, which may be "". Both outlive Programs.
struct ProgramPaths {
  const std::string& agent;
  const std::string& accept;
};

// The acceptance programs, as the RAM system brings them to the node.
std::vector<RamPayload> acceptance_programs(const std::string& accept);

class Programs {
 public:
  explicit Programs(const ProgramPaths& paths) : paths_(paths) {}

  // not_found: the agent, or the configured acceptance program, cannot be read.
  Result<std::vector<wire::SlotProgram>> list();
  // The file with that digest ("sha256:<hex>", or its hex part alone); "" where there is none.
  std::string path_of(const std::string& digest);

 private:
  struct Known {
    uintmax_t size = 0;
    std::filesystem::file_time_type time = {};
    std::string sha256;
  };
  Result<std::string> digest_of(const std::string& path, uintmax_t& size);

  ProgramPaths paths_;
  std::map<std::string, Known> known_;  // by path
};

}  // namespace muster
