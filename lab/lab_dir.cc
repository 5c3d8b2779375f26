#include "lab/lab_dir.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace muster::lab {
namespace {

std::string labs_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && *state) return std::string(state) + "/muster/lab";
  const char* home = std::getenv("HOME");
  return std::string(home && *home ? home : "/root") + "/.local/state/muster/lab";
}

std::string from_flag(const std::string& flag) {
  if (!flag.empty()) return flag;
  const char* env = std::getenv("MUSTER_LAB_DIR");
  return env ? env : "";
}

}  // namespace

Result<LabDir> LabDir::at(const std::string& folder) {
  std::error_code error;
  auto path = std::filesystem::absolute(folder, error).lexically_normal().string();
  if (error) return fail(Code::invalid, "'" + folder + "': " + error.message());
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.size() < 4) return fail(Code::invalid, "'" + path + "' cannot be a lab's folder");
  if (path.find_first_of(" ,\n\t;\"'") != std::string::npos)  // QEMU and nginx split text at these
    return fail(
        Code::invalid,
        "'" + path + "': a lab's folder must not contain a space, comma, semicolon or quote in its name");
  if (path.size() > 60)
    return fail(Code::invalid,
                "'" + path + "' is too long for the Unix sockets in it: choose a shorter path with --dir");
  return LabDir(path);
}

Result<LabDir> LabDir::choose(const std::string& flag, const std::string& cluster) {
  const auto given = from_flag(flag);
  return at(given.empty() ? labs_folder() + "/" + cluster : given);
}

Result<LabDir> LabDir::find(const std::string& flag) {
  const auto given = from_flag(flag);
  if (!given.empty()) return at(given);
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(labs_folder(), error))
    if (entry.is_directory(error)) found.push_back(entry.path().string());
  if (found.empty())
    return fail(Code::not_found, "no lab in " + labs_folder() + " (start one with `muster lab up SPEC`)");
  if (found.size() > 1)
    return fail(Code::invalid, fmt::format("several labs in {}: choose one with --dir", labs_folder()));
  return at(found.front());
}

}  // namespace muster::lab
