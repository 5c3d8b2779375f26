#include "controller/image/programs.h"

#include <fmt/format.h>

#include <charconv>

#include "base/digest.h"
#include "base/perftest_files.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr const char* kAgentOnNode = "/usr/sbin/muster-agent";
constexpr const char* kAcceptOnNode = "/usr/lib/muster/muster-accept";
constexpr const char* kOnNode = "/usr/lib/muster/";
constexpr const char* kPerftestFolder = "perftest";
// Optional, beside muster-accept: with MPI, NVML, CUDA. Dynamically linked: only for installed systems.
constexpr const char* kGpuProgramName = "muster-accept-gpu";
constexpr const char* kBeside[] = {"muster-mpi-check", "muster-accept-nvml", kGpuProgramName};

constexpr const char* kGpuOnNode = "/usr/lib/muster/muster-accept-gpu";

}  // namespace

struct Programs::Source {
  std::string path;  // on the controller
  wire::SlotProgram program;
};

std::vector<Programs::Source> Programs::sources() const {
  std::vector<Source> all = {{paths_.agent, {kAgentOnNode, "", 0, 0755}}};
  for (const auto& one : acceptance_programs(paths_.accept))
    if (!gpu_ || one.path != kGpuOnNode) all.push_back({one.source, {one.path, "", 0, one.mode}});
  for (const auto& [cuda, path] : gpu_.value_or(std::map<int, std::string>()))
    all.push_back({path, {fmt::format("/usr/lib/muster/cuda{}/muster-accept-gpu", cuda), "", 0, 0755}});
  return all;
}

std::vector<RamPayload> acceptance_programs(const std::string& accept) {
  std::vector<RamPayload> all;
  if (accept.empty()) return all;
  all.push_back({accept, kAcceptOnNode, 0755});
  const auto folder = std::filesystem::path(accept).parent_path();
  const auto add = [&](const std::filesystem::path& file) {
    if (std::filesystem::exists(file)) all.push_back({file, kOnNode + file.filename().string(), 0755});
  };
  for (const char* name : kBeside) add(folder / name);
  for (const char* name : kPerftestFiles) add(folder / kPerftestFolder / name);
  return all;
}

std::string gpu_program_beside(const std::string& accept) {
  return accept.empty() ? "" : (std::filesystem::path(accept).parent_path() / kGpuProgramName).string();
}

Result<int> cuda_of_gpu_program(const std::string& path) {
  static const std::string mark = std::string("@(#)") + kGpuProgramName + " cuda ";
  TRY(const std::string content,
      Files("/").read(std::filesystem::absolute(path).lexically_normal().string()));
  const size_t at = content.find(mark);
  int cuda = 0;
  if (at != std::string::npos)
    std::from_chars(content.data() + at + mark.size(), content.data() + content.size(), cuda);
  if (cuda > 0) return cuda;
  return fail(Code::invalid, fmt::format("{}: not a {} that names its CUDA version: build it with "
                                         "`scripts/build-gpu-package.sh` of this version",
                                         path, kGpuProgramName));
}

Result<std::string> Programs::digest_of(const std::string& path, uintmax_t& size) {
  std::error_code error;
  size = std::filesystem::file_size(path, error);
  const auto time = error ? std::filesystem::file_time_type() : std::filesystem::last_write_time(path, error);
  if (error) return fail(Code::not_found, path + ": " + error.message());
  Known& known = known_[path];
  if (!known.sha256.empty() && known.size == size && known.time == time) return known.sha256;
  TRY(const std::string content, Files("/").read(std::filesystem::absolute(path).string()));
  size = content.size();
  known = {size, time, sha256(content)};
  return known.sha256;
}

Result<std::vector<wire::SlotProgram>> Programs::list() {
  std::vector<wire::SlotProgram> all;
  for (auto& [path, program] : sources()) {
    uintmax_t size = 0;
    TRY(program.sha256, digest_of(path, size));
    program.size = static_cast<int64_t>(size);
    all.push_back(program);
  }
  return all;
}

std::string Programs::path_of(const std::string& digest) {
  for (const auto& [path, program] : sources()) {
    uintmax_t size = 0;
    const auto found = digest_of(path, size);
    if (found.ok() && (*found == digest || *found == "sha256:" + digest))
      return std::filesystem::absolute(path).string();
  }
  return "";
}

}  // namespace muster
