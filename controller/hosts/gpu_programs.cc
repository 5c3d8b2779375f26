#include "controller/hosts/gpu_programs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "controller/image/programs.h"
#include "controller/report/gpu_archive.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackaged = "/usr/lib/muster";
constexpr const char* kInArchive = "lib/muster";

// "muster-accept-gpu", or with a word that tells several apart: "muster-accept-gpu-cuda13".
bool is_program_name(const std::string& name) {
  const std::string program = kGpuProgram;
  return name == program || name.starts_with(program + "-cuda");
}

std::vector<std::string> programs_in(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& at : {folder, folder / kInArchive}) {
    std::error_code error;
    for (fs::directory_iterator it(at, error), end; !error && it != end; it.increment(error))
      if (is_program_name(it->path().filename().string()) && it->is_regular_file(error))
        out.push_back(it->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The program runs as root on the hosts.
bool is_trusted(const fs::path& folder) {
  struct stat status = {};
  return ::stat(folder.c_str(), &status) == 0 && (status.st_uid == 0 || status.st_uid == ::geteuid()) &&
         (status.st_mode & S_IWOTH) == 0;
}

void add_archives(const fs::path& beside, std::vector<std::string>& out) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(beside, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(kGpuArchive) && is_trusted(it->path()))
      found.push_back((it->path() / kInArchive).string());
  // The newest version first, as far as names tell: 0.10.0 before 0.9.0.
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
  out.insert(out.end(), found.begin(), found.end());
}

}  // namespace

std::vector<std::string> gpu_program_folders(const std::string& accept) {
  std::vector<std::string> out;
  if (!accept.empty()) {
    const fs::path own = fs::path(accept).parent_path();
    out.push_back(own.string());
    const fs::path prefix = own.parent_path().parent_path();  // PREFIX/lib/muster/muster-accept
    add_archives(prefix, out);
    add_archives(prefix.parent_path(), out);
  }
  if (std::find(out.begin(), out.end(), kPackaged) == out.end()) out.push_back(kPackaged);
  return out;
}

Result<GpuPrograms> find_gpu_programs(const std::vector<std::string>& given,
                                      const std::vector<std::string>& folders) {
  GpuPrograms out;
  for (const auto& path : given) {
    std::error_code error;
    std::vector<std::string> files = {path};
    if (fs::is_directory(path, error)) files = programs_in(path);
    if (files.empty())
      return fail(Code::not_found, fmt::format("{}: no {} in this folder", path, kGpuProgram));
    for (const auto& file : files) {
      TRY(const int cuda, cuda_of_gpu_program(file));
      out.by_cuda.emplace(cuda, fs::absolute(file).lexically_normal().string());
    }
  }
  // What is named is meant: beside it a program for another CUDA would be chosen for newer drivers.
  if (!given.empty()) return out;
  for (const auto& folder : folders)
    for (const auto& file : programs_in(folder)) {
      const auto cuda = cuda_of_gpu_program(file);
      if (cuda.ok())
        out.by_cuda.emplace(*cuda, file);
      else
        out.wrong.push_back(cuda.error().message);
    }
  return out;
}

}  // namespace muster
