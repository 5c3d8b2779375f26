// cdi: /etc/cdi/nvidia.json, which defines for container engines (Docker from 25 on, Podman, containerd,
// Apptainer with --device) what a container that requests nvidia.com/gpu=0 or =all gets: the driver's device
// files and libraries. A host that has such a file of its own keeps it, and ours is not written
// (cdi_others.h).
//
// The file has the content that `nvidia-ctk cdi generate` of NVIDIA's Container Toolkit would write, as far
// as compute programs need it; no distribution's archive has the toolkit. The toolkit's hooks are left out: a
// container finds the libraries where this system has them, and Debian's and Ubuntu's loaders look there. The
// libraries are those in the cache of this system's loader (`ldconfig -p`). Format: the Container Device
// Interface's SPEC.md, 0.5.0.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/steps/files/own_file.h"
#include "agent/steps/gpu/cdi_others.h"
#include "agent/steps/system/smbios.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kFile = "/etc/cdi/nvidia.json";
constexpr const char* kKind = "nvidia.com/gpu";
constexpr const char* kControls[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                     "/dev/nvidia-modeset"};
constexpr const char* kPrograms[] = {"/usr/bin/nvidia-smi"};
constexpr const char* kNeeded[] = {"libcuda.so.1", "libnvidia-ml.so.1"};
constexpr int64_t kMostGpus = 64;

bool is_the_drivers(const std::string& library) {
  for (const char* begin :
       {"libcuda.so.", "libcudadebugger.so.", "libnvidia-", "libnvcuvid.so.", "libnvoptix.so."})
    if (library.starts_with(begin)) return library.find(".so.") != std::string::npos;
  return false;
}

// "       libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1"; 32-bit libraries have no
// architecture in the parentheses. Of libraries with the same name, the loader uses the first.
Result<std::map<std::string, std::string>> driver_libraries(StepContext& context) {
  TRY(const std::string known, run_tool(context, {"ldconfig", "-p"}));
  std::map<std::string, std::string> out;
  for (const auto& line : lines_of(known)) {
    const size_t begin = line.find_first_not_of(" \t"), space = line.find(' ', begin),
                 arrow = line.find(" => ");
    if (begin == std::string::npos || space == std::string::npos || arrow == std::string::npos) continue;
    const std::string name = line.substr(begin, space - begin), kind = line.substr(space, arrow - space);
    if (is_the_drivers(name) && kind.find("(libc6,") != std::string::npos)
      out.emplace(name, line.substr(arrow + 4));
  }
  for (const char* needed : kNeeded)
    if (!out.count(needed))
      return fail(Code::not_found, fmt::format("`ldconfig -p` does not list the driver's {}", needed));
  return out;
}

Json nodes_of(const std::vector<std::string>& paths) {
  Json out = Json::array();
  for (const auto& path : paths) out.push_back({{"path", path}});
  return {{"deviceNodes", out}};
}

Json mount(const std::string& path) {
  return {{"hostPath", path}, {"containerPath", path}, {"options", {"ro", "nosuid", "nodev", "bind"}}};
}

Result<OwnFile> file_of(StepContext& context, const Json& params) {
  const int64_t gpus = int_of(params, "gpus", 0);
  if (gpus < 1 || gpus > kMostGpus)
    return fail(Code::invalid, fmt::format("cdi: 'gpus' must be between 1 and {}", kMostGpus));
  const Files& files = context.files;
  Json devices = Json::array();
  std::vector<std::string> all;
  for (int64_t i = 0; i < gpus; ++i) {
    const std::string path = fmt::format("/dev/nvidia{}", i);
    if (!files.exists(path))
      return fail(Code::not_found, fmt::format("{} does not exist, but {} GPUs are expected", path, gpus));
    devices.push_back({{"name", std::to_string(i)}, {"containerEdits", nodes_of({path})}});
    all.push_back(path);
  }
  devices.push_back({{"name", "all"}, {"containerEdits", nodes_of(all)}});
  std::vector<std::string> controls;
  for (const char* path : kControls)
    if (files.exists(path)) controls.push_back(path);
  Json edits = nodes_of(controls);
  edits["mounts"] = Json::array();
  TRY(const auto libraries, driver_libraries(context));
  for (const auto& [name, path] : libraries) edits["mounts"].push_back(mount(path));
  for (const char* path : kPrograms)
    if (files.exists(path)) edits["mounts"].push_back(mount(path));
  const Json spec = {
      {"cdiVersion", "0.5.0"}, {"kind", kKind}, {"devices", devices}, {"containerEdits", edits}};
  return OwnFile{kFile, dump_json(spec, 2) + "\n", 0644};
}

CdiOthers others(const Files& files, const Json& params) {
  std::set<std::string> devices = {"all"};
  for (int64_t i = 0; i < std::min(int_of(params, "gpus", 0), kMostGpus); ++i)
    devices.insert(std::to_string(i));
  return other_cdi_files(files, kFile, kKind, devices);
}

Result<CheckResult> check_cdi(StepContext& context, const Json& params) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no device files; the step is checked on nodes"};
  TRY(const OwnFile file, file_of(context, params));
  const CdiOthers found = others(context.files, params);
  Diff diff;
  if (!found.problem.empty()) diff.add(found.problem);
  if (!found.ours_in_the_way)
    add_difference(context.files, file, diff);
  else if (context.files.exists(kFile))
    diff.add(fmt::format(
        "{} must be removed: container engines ignore a device that two files in one folder define", kFile));
  CheckResult out = diff.result();
  if (standin_gpus(context.files))
    out.note = fmt::format("{}: the devices are the lab's stand-ins", kSimulatedGpu);
  if (!found.served_by.empty())
    out.note += fmt::format("{}container engines use the host's own file {}", out.note.empty() ? "" : "; ",
                            found.served_by);
  return out;
}

Status apply_cdi(StepContext& context, const Json& params) {
  TRY(const OwnFile file, file_of(context, params));
  const CdiOthers found = others(context.files, params);
  if (!found.problem.empty()) return fail(Code::denied, found.problem);
  return found.ours_in_the_way ? context.files.remove(kFile) : put(context.files, file);
}

// Checks that the path under `key` in every entry of this list exists on this node.
Status there(const Files& files, const Json& edits, const char* list, const char* key) {
  for (const Json& one : edits.value(list, Json::array()))
    if (const std::string path = one.value(key, ""); path.empty() || !files.exists(path))
      return fail(Code::failed, fmt::format("{} names '{}', which does not exist on this node", kFile, path));
  return Ok{};
}

Status verify_cdi(StepContext& context, const Json& params) {
  TRY(const auto seen, check_cdi(context, params));
  if (seen.holds == Holds::not_applicable) return Ok{};
  if (seen.holds == Holds::no) return fail(Code::failed, seen.diff);
  if (others(context.files, params).ours_in_the_way) return Ok{};  // the host's own file was checked
  TRY(const std::string text, context.files.read(kFile));
  TRY(const Json spec, parse_json(text));
  const Json edits = spec.value("containerEdits", Json::object());
  TRY_(there(context.files, edits, "deviceNodes", "path"));
  TRY_(there(context.files, edits, "mounts", "hostPath"));
  for (const Json& device : spec.value("devices", Json::array()))
    TRY_(there(context.files, device.value("containerEdits", Json::object()), "deviceNodes", "path"));
  return Ok{};
}

}  // namespace

StepModule cdi_module() {
  StepModule m;
  m.name = "cdi";
  m.help =
      "Writes /etc/cdi/nvidia.json for container engines: each GPU as nvidia.com/gpu=N, all of them as "
      "nvidia.com/gpu=all, with the driver's device files, its libraries known to ldconfig, and nvidia-smi. "
      "Every path in the file is then verified to exist. A host's own file for these devices in /etc/cdi or "
      "/run/cdi is kept: if it is complete, muster's file is not written; otherwise the step fails.";
  m.parameters =
      Json::array({parameter("gpus", "int", true, "number of GPUs, the first of which is /dev/nvidia0")});
  m.check = check_cdi;
  m.apply = apply_cdi;
  m.verify = verify_cdi;
  return m;
}

}  // namespace muster::steps
