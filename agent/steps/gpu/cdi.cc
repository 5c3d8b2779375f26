// cdi: /etc/cdi/nvidia.json, which defines for container engines (Docker from 25 on, Podman, containerd,
// Apptainer with --device) what a container that requests nvidia.com/gpu=0 or =all gets: the driver's device
// files and libraries. A host that has such a file of its own keeps it, and ours is not written. Where
// NVIDIA's Container Toolkit has a unit that writes one, ours is removed: the toolkit's has its hooks.
//
// The file has the content that the toolkit's `nvidia-ctk cdi generate` would write, as far as compute
// programs need it; no distribution's archive has the toolkit. The hooks are left out: a container finds the
// libraries where this system has them, and Debian's and Ubuntu's loaders look there. The libraries are those
// in the cache of this system's loader (`ldconfig -p`). Format: the Container Device Interface's SPEC.md,
// 0.5.0.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/system/smbios.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kFile = "/etc/cdi/nvidia.json";
constexpr const char* kKind = "nvidia.com/gpu";
constexpr const char* kControls[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                     "/dev/nvidia-modeset"};
constexpr const char* kPrograms[] = {"/usr/bin/nvidia-smi"};
constexpr const char* kToolkit = "/usr/bin/nvidia-ctk";
constexpr const char* kRefresh = "nvidia-cdi-refresh.service";
constexpr const char* kUnitFolders[] = {"/etc/systemd/system/", "/usr/lib/systemd/system/",
                                        "/lib/systemd/system/"};
constexpr const char* kNeeded[] = {"libcuda.so.1", "libnvidia-ml.so.1"};
constexpr int64_t kMostGpus = 64;

struct WantedCdi {
  int64_t gpus = 0;
};
MUSTER_PARAMETERS(WantedCdi, required(gpus, "number of GPUs, the first of which is /dev/nvidia0"))

// ---- other files that define the same devices
//
// Engines read all of /etc/cdi and then all of /run/cdi, which takes precedence. They ignore a device that
// two files in one folder define, so containers would find no GPU. Therefore the host's own files, written by
// NVIDIA's Container Toolkit or by hand, are read before muster writes its file. Of YAML and JSON, only keys
// with a plain value are supported: such files have no others.

struct CdiOthers {
  std::string served_by;  // the file from which engines read all these devices; "" if none
  std::string problem;    // why engines find no device, or a wrong one, and what to do; "" if all is well
  bool ours_in_the_way = false;  // muster's file must not exist: a conflict, or the toolkit makes its own
  bool refreshed = false;        // by the toolkit's unit
};

// The unit runs at boot, perhaps before the driver is loaded, and when modules.dep changes: its file can be
// missing or stale. A masked unit writes none.
bool has_refresh_unit(const Files& files) {
  for (const char* folder : kUnitFolders)
    if (const std::string path = std::string(folder) + kRefresh; files.exists(path))
      return files.read_link(path).value_or("") != "/dev/null";
  return false;
}

// The values of a key anywhere in the text: plain_values_of("- name: \"0\"", "name") is {"0"}.
std::vector<std::string> plain_values_of(const std::string& text, const std::string& key) {
  std::vector<std::string> out;
  const auto of_a_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  for (const auto& line : split_lines(text)) {
    if (const size_t first = line.find_first_not_of(" \t"); first == std::string::npos || line[first] == '#')
      continue;
    for (size_t at = 0; (at = line.find(key, at)) != std::string::npos;) {
      const bool begins = at == 0 || !of_a_word(line[at - 1]);
      at += key.size();
      const size_t colon = line.find_first_not_of("\"' \t", at);
      if (!begins || colon == std::string::npos || line[colon] != ':') continue;
      const size_t from = line.find_first_not_of("\"' \t", colon + 1);
      const size_t to = from == std::string::npos ? from : line.find_first_of("\"', \t}]", from);
      if (from != std::string::npos && to != from) out.push_back(line.substr(from, to - from));
    }
  }
  return out;
}

struct Other {
  std::string path, text;
};

// Only of devices: names of other things have different keys (hookName).
std::set<std::string> names_in(const std::string& text) {
  const auto names = plain_values_of(text, "name");
  return {names.begin(), names.end()};
}

bool has_one_of(const std::string& text, const std::set<std::string>& devices) {
  const auto names = names_in(text);
  return names.empty() ||  // a format that is not supported: assume yes
         std::any_of(devices.begin(), devices.end(),
                     [&](const auto& name) { return names.count(name) != 0; });
}

std::vector<Other> others_in(const Files& files, const std::string& folder,
                             const std::set<std::string>& devices) {
  std::vector<Other> out;
  for (const auto& name : files.list(folder)) {
    const std::string path = folder + "/" + name;
    if (path == kFile || !(name.ends_with(".yaml") || name.ends_with(".json"))) continue;
    const std::string text = files.read(path).value_or("");
    const auto kinds = plain_values_of(text, "kind");
    if (std::find(kinds.begin(), kinds.end(), kKind) != kinds.end() && has_one_of(text, devices))
      out.push_back({path, text});
  }
  return out;
}

// `nvidia-ctk cdi generate` names a GPU "0", "gpu0" or "GPU-<UUID>", and each part of a divided one (MIG)
// "0:1", "mig0:1" or "MIG-<UUID>"; it may use several of these for one GPU. Returns which device is not
// there; "" if each GPU, or a part of it, has a name, and all of them together have the name "all".
std::string unnamed(const std::set<std::string>& names, int64_t gpus) {
  std::set<std::string> indices, uuids;
  for (const auto& name : names) {
    const bool has_prefix = name.starts_with("gpu") || name.starts_with("mig");
    if (name.starts_with("GPU-") || name.starts_with("MIG-")) uuids.insert(name);
    indices.insert(name.substr(has_prefix ? 3 : 0, name.find(':') - (has_prefix ? 3 : 0)));
  }
  if (names.count("all") == 0) return "does not define the device 'all'";
  if (static_cast<int64_t>(uuids.size()) >= gpus) return "";
  for (int64_t i = 0; i < gpus; ++i)
    if (indices.count(std::to_string(i)) == 0) return fmt::format("does not define the device '{}'", i);
  return "";
}

// Describes what is wrong with `other`: a device that it does not define, or a path that does not exist on
// this node; "" if it is complete. `alone`: there is no second file that may define the missing devices.
std::string lacking(const Files& files, const Other& other, int64_t gpus, bool alone) {
  if (std::string device = unnamed(names_in(other.text), gpus); alone && !device.empty()) return device;
  const auto sources = plain_values_of(other.text, "hostPath"), paths = plain_values_of(other.text, "path");
  // UUIDs do not show of which GPU a part is.
  for (int64_t i = 0; i < gpus && alone; ++i)
    if (std::find(paths.begin(), paths.end(), fmt::format("/dev/nvidia{}", i)) == paths.end())
      return fmt::format("does not name /dev/nvidia{}", i);
  for (const auto& path : sources)
    if (!files.exists(path)) return fmt::format("names {}, which does not exist on this node", path);
  // For a device with a `hostPath`, `path` is that in the container; for a hook, a program on this node.
  for (const auto& path : paths) {
    const bool has_source = std::any_of(sources.begin(), sources.end(),
                                        [&](const std::string& source) { return source.ends_with(path); });
    if (!has_source && path.starts_with('/') && !files.exists(path))
      return fmt::format("names {}, which does not exist on this node", path);
  }
  return "";
}

CdiOthers others(const Files& files, int64_t gpus) {
  CdiOthers out;
  std::set<std::string> devices = {"all"};
  for (int64_t i = 0; i < std::min(gpus, kMostGpus); ++i) devices.insert(std::to_string(i));
  const auto beside = others_in(files, "/etc/cdi", devices), above = others_in(files, "/run/cdi", devices);
  const auto& winners = above.empty() ? beside : above;
  out.refreshed = has_refresh_unit(files);
  out.ours_in_the_way = out.refreshed || !beside.empty();
  if (winners.empty() && out.refreshed)
    out.problem = fmt::format("{} has written no file for {} to /run/cdi: see `systemctl status {}`",
                              kRefresh, kKind, kRefresh);
  if (winners.empty()) return out;
  const Other& first = winners.front();
  const bool alone = above.empty() || out.ours_in_the_way;
  // Two files in one folder that define the same device cancel each other, even if the other folder also
  // defines it: engines ignore devices in conflict.
  const auto& doubled = beside.size() > 1 ? beside : above;
  if (doubled.size() > 1) {
    out.problem = fmt::format(
        "{} and {} both define {} devices, so container engines use neither definition: remove one file",
        doubled[0].path, doubled[1].path, kKind);
  } else if (const std::string lacks = lacking(files, first, gpus, alone); !lacks.empty()) {
    out.problem = fmt::format(
        "{} {}, but container engines read devices from this file: regenerate it (`nvidia-ctk cdi generate "
        "--output={}`) or remove it (`rm {}`)",
        first.path, lacks, first.path, first.path);
  } else {
    out.served_by = first.path;
  }
  return out;
}

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
  for (const auto& line : split_lines(known)) {
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

Result<OwnFile> file_of(StepContext& context, int64_t gpus) {
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

Result<CheckResult> check_cdi(StepContext& context, const WantedCdi& want) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no device files; the step is checked on nodes"};
  TRY(const OwnFile file, file_of(context, want.gpus));
  const CdiOthers found = others(context.files, want.gpus);
  Diff diff;
  if (!found.problem.empty()) diff.add(found.problem);
  if (!found.ours_in_the_way)
    add_difference(context.files, file, diff);
  else if (context.files.exists(kFile))
    diff.add(found.refreshed
                 ? fmt::format("{} must be removed: {} writes one", kFile, kRefresh)
                 : fmt::format("{} must be removed: container engines ignore a device that two files in one "
                               "folder define",
                               kFile));
  CheckResult out = diff.result();
  if (standin_gpus(context.files))
    out.note = fmt::format("{}: the devices are the lab's stand-ins", kSimulatedGpu);
  if (!found.served_by.empty())
    out.note += fmt::format("{}container engines use the host's own file {}", out.note.empty() ? "" : "; ",
                            found.served_by);
  return out;
}

Status apply_cdi(StepContext& context, const WantedCdi& want) {
  TRY(const OwnFile file, file_of(context, want.gpus));
  CdiOthers found = others(context.files, want.gpus);
  if (found.refreshed && !found.problem.empty()) {
    TRY_(run_tool(context, {"systemctl", "restart", kRefresh}));  // a start does nothing: it stays active
    found = others(context.files, want.gpus);
  }
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

// The toolkit lists what engines find in all files together, one qualified name a line.
Status listed(StepContext& context, int64_t gpus) {
  TRY(const std::string list, run_tool(context, {kToolkit, "cdi", "list"}));
  const std::string kind = std::string(kKind) + "=";
  std::set<std::string> names;
  for (const auto& line : split_lines(list))
    if (line.starts_with(kind)) names.insert(trim(line.substr(kind.size())));
  const std::string lacks = unnamed(names, gpus);
  if (lacks.empty()) return Ok{};
  return fail(Code::failed,
              fmt::format("`nvidia-ctk cdi list` {}; it lists {} devices of {}", lacks, names.size(), kKind));
}

Status verify_cdi(StepContext& context, const WantedCdi& want) {
  TRY(const auto seen, check_cdi(context, want));
  if (seen.holds == Holds::not_applicable) return Ok{};
  if (seen.holds == Holds::no) return fail(Code::failed, seen.diff);
  if (context.files.exists(kToolkit)) TRY_(listed(context, want.gpus));
  if (others(context.files, want.gpus).ours_in_the_way) return Ok{};  // the host's own file was checked
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
  return step_module<WantedCdi>({
      .name = "cdi",
      .help =
          "Writes /etc/cdi/nvidia.json for container engines: each GPU as nvidia.com/gpu=N, all of them as "
          "nvidia.com/gpu=all, with the driver's device files, its libraries known to ldconfig, and "
          "nvidia-smi. Every path in the file is then verified to exist, and `nvidia-ctk cdi list`, where "
          "NVIDIA's Container Toolkit is installed, must list each device. A host's own file for these "
          "devices in /etc/cdi or /run/cdi is kept, whether it names GPUs by index or UUID, or MIG devices: "
          "if it is complete, muster's file is not written; otherwise the step fails. Where the toolkit's "
          "nvidia-cdi-refresh.service is installed, muster's file is removed; if that of the service is "
          "missing or stale, the service is restarted.",
      .check = check_cdi,
      .apply = apply_cdi,
      .verify = verify_cdi,
  });
}

}  // namespace muster::steps
