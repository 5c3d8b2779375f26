// Starts a container with each engine of this node, with the node's GPUs and RDMA devices requested as users
// request them, and counts those that the program in the container can open.
//
// How to run:  muster-accept containers
// Reference:   the device files of the GPUs that NVIDIA's driver serves and of the RDMA devices that count
//              (host/rdma_devices.h), as far as this program can open them outside of a container: what a
//              job's cgroup denies is not expected inside.
// Structure:   docker and podman import the test container as an image, which is removed afterwards;
//              apptainer and enroot use its folder. Of each engine first a container without devices: where
//              even this one does not start, nothing is known about devices. Then one with all GPUs, and one
//              with all RDMA devices. enroot's environ.d may request the GPUs for all containers: the first
//              and the last take that back.
// Expected:    no device is missing. Reports of other tools: a CDI file that an engine does not find or that
//              is older than the driver, and device files that are there and denied by the cgroup.
#include "kernels/containers/containers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/json_at.h"
#include "base/lower.h"
#include "base/split.h"
#include "host/rdma_devices.h"
#include "kernels/containers/test_container.h"

namespace muster::kernels {
namespace {

using Arguments = std::vector<std::string>;
using Paths = std::set<std::string>;

constexpr const char* kCdiGpus = "nvidia.com/gpu";
constexpr DurationMs kQueryDeadline = 20 * kSecond, kStartDeadline = 60 * kSecond;

// How an engine is requested to give a container all GPUs.
struct GpuRequest {
  Arguments arguments = {};
  std::string lacks = {};  // why it is not requested; "": it is
  bool by_design = false;  // this version of the engine, as it is configured, cannot
};

struct Engine {
  std::string name = {}, version = {};
  std::string problem = {};  // why it cannot be used; "": no reason is known
  bool denied = false;       // because of this user's rights
  GpuRequest gpus = {};
};

// ---- the engines of this node

// One of the files that engines read in these folders offers GPUs.
bool offers_gpus(const Files& files, const Arguments& folders) {
  for (const auto& folder : folders)
    for (const auto& name : files.list(folder))
      if ((name.ends_with(".yaml") || name.ends_with(".json")) &&
          has(files.read(folder + "/" + name).value_or(""), kCdiGpus))
        return true;
  return false;
}

constexpr const char* kVisibleGpus = "NVIDIA_VISIBLE_DEVICES=";  // enroot's hook for GPUs reads it
const std::string kNoGpus = std::string(kVisibleGpus) + "void";

// enroot requests GPUs for each container: without what its hook needs, none starts.
bool always_requests_gpus(const Files& files) {
  const std::string folder = "/etc/enroot/environ.d";
  for (const auto& name : files.list(folder))
    for (const auto& line : split_lines(files.read(folder + "/" + name).value_or("")))
      if (name.ends_with(".env") && line.starts_with(kVisibleGpus) && line != kVisibleGpus && line != kNoGpus)
        return true;
  return false;
}

GpuRequest by_cdi(const Files& files, const Arguments& folders) {
  if (offers_gpus(files, folders)) return {.arguments = {"--device", std::string(kCdiGpus) + "=all"}};
  return {.lacks = fmt::format("no file in {} offers {}", some_of(folders), kCdiGpus)};
}

Result<Output> query(Process& process, Arguments arguments) {
  return process.run({.argv = std::move(arguments), .deadline = kQueryDeadline, .cwd = "/"});
}
bool is_not_installed(const Result<Output>& output) {
  return !output.ok() && output.error().code == Code::not_found;
}

// `info` is what `docker info` printed. CDISpecDirs is empty where devices by CDI are switched off, and
// absent before version 25.
GpuRequest docker_gpus(const Files& files, const Json& info, const std::string& version) {
  Arguments folders;
  for (const Json& folder : list_at(info, "CDISpecDirs"))
    if (folder.is_string()) folders.push_back(folder.get<std::string>());
  GpuRequest cdi = by_cdi(files, folders);
  if (cdi.lacks.empty()) return cdi;
  if (info.value("Runtimes", Json::object()).contains("nvidia")) return {.arguments = {"--gpus", "all"}};
  if (!folders.empty()) return cdi;
  return {.lacks = fmt::format("Docker {} gives no GPUs: CDI needs version 25 and `features.cdi`", version),
          .by_design = true};
}

std::optional<Engine> find_docker(const Files& files, Process& process) {
  const auto printed = query(process, {"docker", "info", "--format", "{{json .}}"});
  if (is_not_installed(printed)) return std::nullopt;
  Engine out{.name = "docker"};
  const auto info = parse_json(printed.ok() ? trim(printed->out) : "");
  if (info.ok() && info->is_object()) {
    if (info->contains("host")) return std::nullopt;  // podman, called by this name
    out.version = text_at(*info, "ServerVersion");
    for (const Json& error : list_at(*info, "ServerErrors"))
      if (out.problem.empty() && error.is_string()) out.problem = error.get<std::string>();
    out.gpus = docker_gpus(files, *info, out.version);
  }
  if (!out.version.empty()) return out;
  if (out.problem.empty()) out.problem = last_words(printed);
  // Only Docker's words distinguish a socket that this user may not open from a daemon that does not run.
  out.denied = has(lower(out.problem), "permission denied");
  return out;
}

// Of an engine whose version is the last word that it prints.
std::optional<Engine> find_by_version(Process& process, const std::string& name, const std::string& option) {
  const auto printed = query(process, {name, option});
  if (is_not_installed(printed)) return std::nullopt;
  Engine out{.name = name};
  const auto words = split_words(printed.ok() && printed->ok() ? printed->out : "");
  if (words.empty())
    out.problem = last_words(printed);
  else
    out.version = words.back();
  return out;
}

GpuRequest podman_gpus(const Files& files, const std::string& version) {
  const size_t dot = version.find('.');
  const int first = std::atoi(version.c_str()),
            second = dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
  if (std::pair(first, second) >= std::pair(4, 1)) return by_cdi(files, {"/etc/cdi", "/run/cdi"});
  return {.lacks = fmt::format("podman {} gives no GPUs: CDI needs version 4.1", version), .by_design = true};
}

std::vector<Engine> find_engines(const Files& files, Process& process) {
  std::vector<Engine> out;
  if (auto docker = find_docker(files, process)) out.push_back(std::move(*docker));
  if (auto podman = find_by_version(process, "podman", "--version")) {
    podman->gpus = podman_gpus(files, podman->version);
    out.push_back(std::move(*podman));
  }
  if (auto apptainer = find_by_version(process, "apptainer", "--version")) {
    apptainer->gpus.arguments = {"--nv"};
    out.push_back(std::move(*apptainer));
  }
  if (auto enroot = find_by_version(process, "enroot", "version")) {
    enroot->gpus.arguments = {"-e", std::string(kVisibleGpus) + "all"};
    if (!always_requests_gpus(files) &&
        is_not_installed(query(process, {"nvidia-container-cli", "--version"})))
      enroot->gpus.lacks = "enroot's hook for GPUs needs nvidia-container-cli, which is not installed";
    out.push_back(std::move(*enroot));
  }
  return out;
}

// ---- the devices of this node

// "Device Minor: 3" of each GPU that the driver serves is /dev/nvidia3. The files of a lab's stand-ins are
// the same (base/standin.h).
Paths gpus_of(const Files& files) {
  const std::string folder = "/proc/driver/nvidia/gpus", key = "Device Minor:";
  Paths out;
  for (const auto& address : files.list(folder))
    for (const auto& line : split_lines(files.read(folder + "/" + address + "/information").value_or("")))
      if (line.starts_with(key)) out.insert("/dev/nvidia" + trim(line.substr(key.size())));
  return out;
}

Paths rdma_devices_of(const Files& files) {
  const std::string folder = "/sys/class/infiniband_verbs";
  Paths real, out;
  for (const auto& part : rdma_parts(files)) real.insert(part.device);
  for (const auto& name : files.list(folder))
    if (real.count(files.read_line(folder + "/" + name + "/ibdev"))) out.insert("/dev/infiniband/" + name);
  return out;
}

Paths opened(Paths paths, const DeviceFiles& devices) {
  std::erase_if(paths, [&](const std::string& path) {
    const auto found = devices.find(path);
    return found == devices.end() || !found->second.empty();
  });
  return paths;
}

// ---- containers

// The commands with which one engine starts the test container.
struct Commands {
  std::vector<Arguments> make = {}, remove = {};
  Arguments start = {}, end = {};   // those before and after the request for devices
  Arguments plain = {}, rdma = {};  // the request for no device, and that for all RDMA devices
  std::map<std::string, std::string> env = {};
};

Commands commands_of(const std::string& engine, const TestContainer& container, const Paths& rdma) {
  const std::string tree = container.tree();
  if (engine == "apptainer")  // which gives containers the whole of /dev
    return {.start = {engine, "-s", "exec", "--no-home"}, .end = {tree, kContainersProgram}};
  if (engine == "enroot")
    return {.start = {engine, "start"},
            .end = {last_component(tree), kContainersProgram},
            .plain = {"-e", kNoGpus},
            // Its hook for RDMA knows the devices of one vendor only.
            .rdma = {"-e", kNoGpus, "-m", "/dev/infiniband:/dev/infiniband"},
            .env = {{"ENROOT_DATA_PATH", container.folder()}}};
  const std::string archive = container.folder() + "/root.tar", name = "muster-accept-" + container.id(),
                    image = "localhost/muster-accept:" + container.id();
  // SELinux denies containers the GPUs, so NVIDIA's own examples switch its labels off.
  Commands out = {
      .make = {{"tar", "-C", tree, "--owner=0", "--group=0", "--numeric-owner", "-cf", archive, "."},
               {engine, "import", archive, image}},
      .remove = {{engine, "rm", "-f", name}, {engine, "rmi", "-f", image}},
      .start = {engine, "run", "--rm", "--network", "none", "--security-opt", "label=disable", "--name",
                name},
      .end = {image, kContainersProgram}};
  for (const auto& path : rdma) out.rdma.insert(out.rdma.end(), {"--device", path});
  return out;
}

// Makes what the engine needs, and removes it at the end.
class Trial {
 public:
  Trial(Process& process, Commands commands, double until)
      : process_(process), commands_(std::move(commands)), until_(until) {}
  ~Trial() {
    for (const auto& command : commands_.remove) (void)query(process_, command);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const Arguments& plain() const { return commands_.plain; }
  const Arguments& rdma() const { return commands_.rdma; }

  Status make() const {
    for (const auto& command : commands_.make) {
      const auto output = run(command);
      if (!output.ok()) return output.error();
      if (!output->ok()) return fail(Code::failed, last_words(output));
    }
    return Ok{};
  }

  Result<DeviceFiles> start(const Arguments& request) const {
    Arguments all = commands_.start;
    all.insert(all.end(), request.begin(), request.end());
    all.insert(all.end(), commands_.end.begin(), commands_.end.end());
    return read_devices(run(std::move(all)));
  }

 private:
  Result<Output> run(Arguments arguments) const {
    const auto left = static_cast<DurationMs>((until_ - seconds_now()) * 1000);
    if (left <= 0) return fail(Code::timeout, "the time for all engines is over");
    return process_.run({.argv = std::move(arguments),
                         .env = commands_.env,
                         .deadline = std::min(left, kStartDeadline),
                         .cwd = "/"});
  }

  Process& process_;
  Commands commands_;
  double until_;
};

// The devices of one kind: the metrics, and the words for people.
struct Kind {
  const char *missing, *found, *unit, *all;
};
constexpr Kind kGpus = {"gpus_missing", "gpus", "GPUs", "all GPUs"};
constexpr Kind kRdma = {"rdma_missing", "rdma_devices", "devices", "all RDMA devices"};

void count(const Kind& kind, const Paths& expected, const Result<DeviceFiles>& inside,
           const std::string& engine, Measurement& out) {
  const Paths found = inside.ok() ? opened(expected, *inside) : Paths();
  const size_t missing = expected.size() - found.size();
  out.metrics[kind.found] = {static_cast<double>(found.size()), kind.unit};
  out.metrics[kind.missing] = {static_cast<double>(missing), kind.unit};
  const auto note = [&](const std::string& device, const std::string& why, size_t by) {
    const std::string reason = why.empty() ? "" : fmt::format(" ({})", why);
    out.detail["moved"][fmt::format("{} in {}{}", device, engine, reason)][kind.missing] = by;
  };
  if (!inside.ok()) return note(kind.all, inside.error().message, missing);
  for (const auto& path : expected) {
    if (found.count(path)) continue;
    const auto shut = inside->find(path);
    note(path, shut == inside->end() ? "" : shut->second, 1);
  }
}

struct OwnDevices {
  Paths gpus = {}, rdma = {};
};

Measurement unusable(Measurement out, const std::string& engine, const std::string& why) {
  out.outcome = Outcome::unavailable;
  out.error = fmt::format("{} starts no container: {}", engine, why);
  return out;
}

Measurement measure(const Trial& trial, const Engine& engine, const OwnDevices& own) {
  Measurement out;
  out.check = "containers";
  out.detail = {{"version", engine.version},
                {"absent", Json::array()},
                {"verified", "a program in a container opened each device file"}};
  if (const Status made = trial.make(); !made.ok()) return unusable(out, engine.name, made.error().message);
  if (const auto plain = trial.start(trial.plain()); !plain.ok())
    return unusable(out, engine.name, plain.error().message);
  const auto request = [&](const Kind& kind, const Paths& expected, const Arguments& arguments) {
    const auto inside = trial.start(arguments);
    if (!inside.ok() && inside.error().code == Code::timeout) {
      out = unusable(std::move(out), engine.name, inside.error().message);
      return;
    }
    count(kind, expected, inside, engine.name, out);
  };
  if (own.gpus.empty() || engine.gpus.by_design)
    out.detail["absent"].push_back(kGpus.missing);
  else if (!engine.gpus.lacks.empty())
    out.detail["not_looked_at"][kGpus.missing] = engine.gpus.lacks;
  else
    request(kGpus, own.gpus, engine.gpus.arguments);
  if (own.rdma.empty())
    out.detail["absent"].push_back(kRdma.missing);
  else if (out.outcome == Outcome::measured)
    request(kRdma, own.rdma, trial.rdma());
  return out;
}

}  // namespace

Measurement run_containers(const Files& files, Process& process, const ContainersOptions& options) {
  Measurement out;
  out.check = "containers";
  out.parts = Json::array();
  const double until = seconds_now() + options.seconds;
  const auto engines = find_engines(files, process);
  if (engines.empty()) return out;
  const auto container = TestContainer::make(files, process, options.program);
  const DeviceFiles outside = container.ok() ? (*container)->outside() : DeviceFiles();
  const OwnDevices own = {opened(gpus_of(files), outside), opened(rdma_devices_of(files), outside)};
  for (const auto& engine : engines) {
    Measurement result;
    if (engine.problem.empty() && container.ok()) {
      const Trial trial(process, commands_of(engine.name, **container, own.rdma), until);
      result = measure(trial, engine, own);
    } else {
      result.check = out.check;
      result = unusable(std::move(result), engine.name,
                        engine.problem.empty() ? container.error().message : engine.problem);
      if (engine.denied) result.detail["not_looked_at"] = result.error;
    }
    out.parts.push_back({{"subject", engine.name}, {"result", to_json(result)}});
  }
  return out;
}

}  // namespace muster::kernels
