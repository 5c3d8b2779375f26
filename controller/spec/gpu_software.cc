#include "controller/spec/gpu_software.h"

#include <fmt/format.h>

#include <regex>
#include <vector>

namespace muster {
namespace {

struct GpuPlaybook {
  const char* name;
  bool driver, cuda;
};
constexpr GpuPlaybook kPlaybooks[] = {
    {"gpu", true, true},
    {"gpu-ubuntu", true, false},
    {"gpu-vendor", true, true},
    {"cuda-vendor", false, true},
};

GpuPlaybook find(const std::string& name) {
  for (const auto& playbook : kPlaybooks)
    if (name == playbook.name) return playbook;
  return {"", false, false};
}

// "`a`, `b` or `c`"
std::string names_with(bool GpuPlaybook::*what) {
  std::vector<std::string> names;
  for (const auto& playbook : kPlaybooks)
    if (playbook.*what) names.push_back(fmt::format("`{}`", playbook.name));
  std::string out = names[0];
  for (size_t i = 1; i < names.size(); ++i) out += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return out;
}

}  // namespace

bool installs_gpu_driver(const std::string& playbook) { return find(playbook).driver; }
std::string gpu_driver_playbooks() { return names_with(&GpuPlaybook::driver); }
std::string cuda_playbooks() { return names_with(&GpuPlaybook::cuda); }

std::string both_install(const std::string& playbook, const std::string& other) {
  const GpuPlaybook one = find(playbook), two = find(other);
  if (one.driver && two.driver) return "NVIDIA's driver";
  return one.cuda && two.cuda ? "CUDA" : "";
}

std::string driver_branch(const std::string& version) {
  static const std::regex form(R"((\d{3,4})\.\d{2,3}(\.\d{2})?)");
  std::smatch found;
  return std::regex_match(version, found, form) ? found[1].str() : "";
}

WrongVariable complete_driver_variables(std::map<std::string, std::string>& vars,
                                        const std::map<std::string, std::string>& of_all) {
  const char* kDriver = "nvidia_driver";
  const char* kBranch = "nvidia_branch";
  const auto own = vars.find(kDriver);
  const auto common = of_all.find(kDriver);
  const bool has_version = own != vars.end() || common != of_all.end();
  const std::string version = own != vars.end() ? own->second : has_version ? common->second : "";
  const std::string branch = driver_branch(version);
  if (own != vars.end() && branch.empty())
    return {kDriver, fmt::format("'{}' is not the full version of a driver, such as 580.95.05", version)};
  const auto declared = vars.find(kBranch);
  if (declared == vars.end()) {
    if (own != vars.end()) vars[kBranch] = branch;
    return {};
  }
  if (driver_branch(declared->second + ".00").empty())
    return {kBranch, fmt::format("'{}' is not the branch of a driver, such as 580", declared->second)};
  if (has_version && declared->second != branch)
    return {kBranch, fmt::format("nvidia_driver {} is of branch {}, not {}; the branch follows from the "
                                 "version: leave nvidia_branch out",
                                 version, branch, declared->second)};
  return {};
}

}  // namespace muster
