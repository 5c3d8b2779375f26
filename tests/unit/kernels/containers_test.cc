// What containers can use of a node's devices, over engines that keep images and honour requests.
#include "kernels/containers/containers.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "kernels/containers/test_container.h"
#include "tests/catch.h"
#include "tests/fakes/sys_tree.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::kernels;

namespace {

using Set = std::set<std::string>;

const std::string kNoGpus = "NVIDIA_VISIBLE_DEVICES=void";
// Two GPUs, two RDMA devices, and a virtual function, which is none.
constexpr const char* kNode = R"(/proc/driver/nvidia/gpus/0000:17:00.0/information = Device Minor: 	 0
/proc/driver/nvidia/gpus/0000:2a:00.0/information = Device Minor: 	 1
/sys/class/infiniband/mlx5_0/ports/1/state = 4: ACTIVE
/sys/class/infiniband/mlx5_1/ports/1/state = 4: ACTIVE
/sys/class/infiniband/mlx5_2/ports/1/state = 4: ACTIVE
/sys/class/infiniband/mlx5_2/device/physfn/vendor = 0x15b3
/sys/class/infiniband_verbs/abi_version = 6
/sys/class/infiniband_verbs/uverbs0/ibdev = mlx5_0
/sys/class/infiniband_verbs/uverbs1/ibdev = mlx5_1
/sys/class/infiniband_verbs/uverbs2/ibdev = mlx5_2
/dev/nvidia0 = x
/dev/nvidia1 = x
/dev/nvidiactl = x
/dev/infiniband/uverbs0 = x
/dev/infiniband/uverbs1 = x
/dev/infiniband/rdma_cm = x
/etc/cdi/nvidia.yaml = kind: nvidia.com/gpu
/tmp/x = x
/var/tmp/x = x)";

bool exists(const std::string& path) { return std::filesystem::exists(path); }

// The programs of a node. Engines know the images that were imported, and give a container the devices that
// the request is for, except `hidden`; those in `shut` are there and cannot be opened.
struct Node : Process {
  TempDir dir;
  Files files{dir.path("")};
  Json docker = nullptr;                           // what `docker info` prints; null: it is not installed
  std::map<std::string, std::string> others = {};  // engine -> version
  std::map<std::string, Output> refuses = {};      // engine, or word of a request -> its answer
  Set images = {}, hidden = {}, shut = {};
  Set noexec = {};               // folders
  std::string broken_hook = {};  // what enroot's hook for GPUs prints, for all containers that request GPUs
  std::vector<std::vector<std::string>> runs = {};
  std::string program = dir.path("program");

  Node() {
    tests::write_tree(files, kNode);
    dir.write("program", "static");
  }

  Measurement look(double seconds = 60) {
    return run_containers(files, *this, {.seconds = seconds, .program = program});
  }
  bool ran(const std::string& word) const {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const auto& argv) { return std::count(argv.begin(), argv.end(), word) > 0; });
  }
  size_t left_behind() const { return files.list("/var/tmp").size() + files.list("/tmp").size() - 2; }

  Result<Output> run(const Command& command) override {
    const auto& argv = command.argv;
    runs.push_back(argv);
    if (argv[0].ends_with(kContainersProgram)) return outside(argv[0]);
    if (argv[0] == "tar") return tar(argv);
    const bool is_docker = argv[0] == "docker";
    if (is_docker ? docker.is_null() : !others.count(argv[0]))
      return fail(Code::not_found, argv[0] + ": not found");
    if (is_docker && argv[1] == "info") return Output{0, docker.dump() + "\n", "WARNING: no swap limit\n"};
    if (argv.size() == 2) return Output{0, argv[0] + " version " + others[argv[0]] + "\n", ""};
    if (argv[1] == "import") return import_image(argv);
    if (argv[1] == "rmi") return Output{images.erase(argv.back()) ? 0 : 1, "", ""};
    if (argv[1] == "rm") return Output{1, "", "no such container"};
    for (const auto& word : argv)
      if (const auto refused = refuses.find(word); refused != refuses.end()) return refused->second;
    if (argv[0] == "enroot" && !broken_hook.empty() && !std::count(argv.begin(), argv.end(), kNoGpus))
      return Output{1, "", broken_hook};
    const bool there =
        argv[0] == "apptainer" ? exists(argv[argv.size() - 2] + argv.back())
        : argv[0] == "enroot"
            ? exists(command.env.at("ENROOT_DATA_PATH") + "/" + argv[argv.size() - 2] + argv.back())
            : images.count(argv[argv.size() - 2]) > 0;
    if (!there) return Output{125, "", "no such image"};
    return Output{0, "a note\n" + devices_text(given(argv)) + "\n", ""};
  }

 private:
  Output outside(const std::string& path) const {
    for (const auto& folder : noexec)
      if (path.starts_with(files.real(folder) + "/")) return {126, "", "Permission denied"};
    return {0, devices_text(open_devices(files)) + "\n", ""};
  }
  Output tar(const std::vector<std::string>& argv) {
    if (!exists(argv[2] + kContainersProgram)) return {2, "", "tar: no such folder"};
    REQUIRE(Files().write(argv[argv.size() - 2], "archive").ok());
    return {0, "", ""};
  }
  Output import_image(const std::vector<std::string>& argv) {
    if (!exists(argv[2])) return {1, "", "no such archive"};
    images.insert(argv[3]);
    return {0, "sha256:1\n", ""};
  }
  DeviceFiles given(const std::vector<std::string>& argv) const {
    const auto has_word = [&](const std::string& word) {
      return std::count(argv.begin(), argv.end(), word) > 0;
    };
    const bool gpus = has_word("nvidia.com/gpu=all") || has_word("--gpus") || has_word("--nv") ||
                      has_word("NVIDIA_VISIBLE_DEVICES=all");
    const bool all_rdma = argv[0] == "apptainer" || has_word("/dev/infiniband:/dev/infiniband");
    DeviceFiles out;
    for (const auto& [path, why] : open_devices(files)) {
      const bool granted = path.starts_with("/dev/nvidia") ? gpus : all_rdma || has_word(path);
      if (granted && !hidden.count(path)) out[path] = shut.count(path) ? "Operation not permitted" : why;
    }
    return out;
  }
};

Json docker_with_cdi() {
  return {{"ServerVersion", "28.5.1"},
          {"CDISpecDirs", Json::array({"/etc/cdi", "/var/run/cdi"})},
          {"Runtimes", nullptr}};
}

// Null: there is no such part.
Json result_of(const Measurement& m, const std::string& engine) {
  for (const Json& part : m.parts)
    if (part["subject"] == engine) return part["result"];
  return nullptr;
}
double value(const Json& result, const char* metric) {
  return result["metrics"][metric]["value"].get<double>();
}
Set moved(const Json& result, const char* metric) {
  Set out;
  const Json parts = result["detail"].value("moved", Json::object());
  for (const auto& [part, by] : parts.items())
    if (by.contains(metric)) out.insert(part);
  return out;
}
bool is_absent(const Json& result, const char* metric) {
  const Json& absent = result["detail"]["absent"];
  return std::count(absent.begin(), absent.end(), Json(metric)) > 0;
}

}  // namespace

TEST_CASE("containers: each engine of the node is tried, and nothing is left behind", "[containers]") {
  Node node;
  node.docker = docker_with_cdi();
  node.others = {
      {"podman", "5.4.2"}, {"apptainer", "1.4.5"}, {"enroot", "4.1.2"}, {"nvidia-container-cli", "1.18.0"}};
  const Measurement m = node.look();
  REQUIRE(m.parts.size() == 4);
  for (const char* engine : {"docker", "podman", "apptainer", "enroot"}) {
    CAPTURE(engine);
    const Json result = result_of(m, engine);
    REQUIRE(result["outcome"] == "measured");
    CHECK(value(result, "gpus") == 2);
    CHECK(value(result, "rdma_devices") == 2);  // without the virtual function
    CHECK(value(result, "gpus_missing") == 0);
    CHECK(value(result, "rdma_missing") == 0);
    CHECK_FALSE(result["detail"].contains("moved"));
  }
  CHECK(result_of(m, "podman")["detail"]["version"] == "5.4.2");
  CHECK(node.images.empty());
  CHECK(node.left_behind() == 0);
}

TEST_CASE("containers: a device that a container lacks is named with its engine", "[containers]") {
  Node node;
  node.docker = docker_with_cdi();
  node.others = {{"apptainer", "1.4.5"}};
  node.hidden = {"/dev/nvidia1"};
  node.shut = {"/dev/infiniband/uverbs0"};
  const Measurement m = node.look();
  for (const std::string engine : {"docker", "apptainer"}) {
    CAPTURE(engine);
    const Json result = result_of(m, engine);
    CHECK(result["outcome"] == "measured");
    CHECK(value(result, "gpus") == 1);
    CHECK(value(result, "gpus_missing") == 1);
    CHECK(value(result, "rdma_missing") == 1);
    CHECK(moved(result, "gpus_missing") == Set{"/dev/nvidia1 in " + engine});
    CHECK(moved(result, "rdma_missing") ==
          Set{"/dev/infiniband/uverbs0 in " + engine + " (Operation not permitted)"});
  }
}

TEST_CASE("containers: GPUs of an enroot without NVIDIA's toolkit are not looked at", "[containers]") {
  Node node;
  node.others = {{"enroot", "4.1.2"}};
  const Json result = result_of(node.look(), "enroot");
  CHECK_FALSE(result["metrics"].contains("gpus_missing"));
  CHECK(value(result, "rdma_missing") == 0);
}

TEST_CASE("containers: where enroot requests the GPUs for all containers, they are looked at all the same",
          "[containers]") {
  Node node;
  node.others = {{"enroot", "4.1.2"}};
  node.broken_hook = "[ERROR] Command failed: /etc/enroot/hooks.d/98-nvidia.sh";
  const auto write = [&](const std::string& text) {
    REQUIRE(node.files.write("/etc/enroot/environ.d/60-muster.env", text).ok());
  };
  // Also without NVIDIA's toolkit: no container of a user starts then.
  write("NVIDIA_VISIBLE_DEVICES=all\n");
  const Json result = result_of(node.look(), "enroot");
  CHECK(result["outcome"] == "measured");
  CHECK(value(result, "gpus_missing") == 2);
  CHECK(moved(result, "gpus_missing") == Set{"all GPUs in enroot (" + node.broken_hook + ")"});
  CHECK(value(result, "rdma_missing") == 0);
  for (const char* none : {"NVIDIA_VISIBLE_DEVICES=void\n", "NVIDIA_VISIBLE_DEVICES=\n", "A=NVIDIA\n"}) {
    CAPTURE(none);
    write(none);
    CHECK_FALSE(result_of(node.look(), "enroot")["metrics"].contains("gpus_missing"));
  }
}

TEST_CASE("containers: RDMA devices of each vendor are requested of enroot", "[containers]") {
  Node node;
  node.others = {{"enroot", "4.1.2"}};
  for (const char* device : {"irdma0", "bnxt_re0", "efa_0"}) {
    CAPTURE(device);
    REQUIRE(node.files.write("/sys/class/infiniband_verbs/uverbs0/ibdev", std::string(device) + "\n").ok());
    REQUIRE(node.files.write("/sys/class/infiniband/" + std::string(device) + "/ports/1/state", "4: ACTIVE\n")
                .ok());
    const Json result = result_of(node.look(), "enroot");
    CHECK(value(result, "rdma_devices") == 2);
    CHECK(value(result, "rdma_missing") == 0);
  }
}

TEST_CASE("containers: an engine that starts, and not with the GPUs, gives none of them", "[containers]") {
  Node node;
  node.others = {{"podman", "5.4.2"}};
  node.refuses["nvidia.com/gpu=all"] = {126, "", "Error: unresolvable CDI devices nvidia.com/gpu=all\n"};
  const Json result = result_of(node.look(), "podman");
  CHECK(result["outcome"] == "measured");
  CHECK(value(result, "gpus_missing") == 2);
  CHECK(value(result, "rdma_missing") == 0);
  CHECK(moved(result, "gpus_missing") ==
        Set{"all GPUs in podman (Error: unresolvable CDI devices nvidia.com/gpu=all)"});
}

TEST_CASE("containers: where an engine starts none at all, nothing is said about devices", "[containers]") {
  Node node;
  node.docker = docker_with_cdi();
  node.others = {{"podman", "5.4.2"}};
  node.refuses["docker"] = {127, "", "apparmor_parser: not found"};
  const Measurement m = node.look();
  const Json result = result_of(m, "docker");
  CHECK(result["outcome"] == "unavailable");
  CHECK(result["metrics"].empty());
  CHECK_FALSE(result["detail"].contains("not_looked_at"));
  CHECK(result_of(m, "podman")["outcome"] == "measured");
  CHECK(node.images.empty());
  CHECK(node.left_behind() == 0);

  // Nor where there is no time left.
  const Json late = result_of(node.look(0), "podman");
  CHECK(late["outcome"] == "unavailable");
  CHECK(late["metrics"].empty());
}

TEST_CASE("containers: what Docker's daemon reports decides what is requested of it", "[containers]") {
  Node node;
  const auto look = [&](Json info) {
    node.docker = std::move(info);
    node.runs.clear();
    return result_of(node.look(), "docker");
  };
  // A plain user outside of the group docker; and a daemon that does not run, which is another matter.
  const Json denied = look({{"ServerErrors", Json::array({"permission denied while trying to connect"})}});
  CHECK(denied["outcome"] == "unavailable");
  CHECK(denied["detail"]["not_looked_at"].is_string());
  CHECK_FALSE(node.ran("run"));
  const Json stopped = look({{"ServerErrors", Json::array({"Cannot connect to the Docker daemon"})}});
  CHECK(stopped["outcome"] == "unavailable");
  CHECK_FALSE(stopped["detail"].contains("not_looked_at"));
  // The package podman-docker, which calls podman.
  CHECK(look({{"host", {{"arch", "amd64"}}}}).is_null());

  const Json old = look({{"ServerVersion", "20.10.24"}});
  CHECK(is_absent(old, "gpus_missing"));
  CHECK(old["metrics"].count("gpus_missing") == 0);
  CHECK(value(old, "rdma_missing") == 0);
  const Json runtime = look({{"ServerVersion", "24.0.7"}, {"Runtimes", {{"nvidia", Json::object()}}}});
  CHECK(value(runtime, "gpus_missing") == 0);
  CHECK(node.ran("--gpus"));
  REQUIRE(node.files.remove("/etc/cdi/nvidia.yaml").ok());
  const Json unoffered = look(docker_with_cdi());
  CHECK(unoffered["detail"]["not_looked_at"]["gpus_missing"].is_string());
  CHECK(unoffered["metrics"].count("gpus_missing") == 0);
}

TEST_CASE("containers: podman has GPUs by CDI from 4.1 on", "[containers]") {
  Node node;
  for (const auto& [version, can] : std::map<std::string, bool>{
           {"3.4.4", false}, {"4.0.3", false}, {"4.1.0", true}, {"4.10.1", true}, {"5.0.0", true}}) {
    CAPTURE(version);
    node.others = {{"podman", version}};
    CHECK(is_absent(result_of(node.look(), "podman"), "gpus_missing") != can);
  }
}

TEST_CASE("containers: a node without engines is not touched", "[containers]") {
  Node node;
  const Measurement m = node.look();
  CHECK(m.outcome == Outcome::measured);
  CHECK((m.parts.is_array() && m.parts.empty()));
  CHECK_FALSE(node.ran("tar"));
  CHECK(std::none_of(node.runs.begin(), node.runs.end(),
                     [](const auto& argv) { return argv[0].ends_with(kContainersProgram); }));
}

TEST_CASE("containers: only what can be opened outside is expected inside", "[containers]") {
  Node node;
  node.others = {{"podman", "5.4.2"}};
  for (const char* path : {"/dev/nvidia1", "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"}) {
    REQUIRE(node.files.remove(path).ok());
    REQUIRE(node.files.symlink("/nonexistent", path).ok());
  }
  const Json result = result_of(node.look(), "podman");
  CHECK(value(result, "gpus") == 1);
  CHECK(value(result, "gpus_missing") == 0);
  CHECK(is_absent(result, "rdma_missing"));
}

TEST_CASE("containers: the test container lies where programs may run", "[containers]") {
  Node node;
  node.others = {{"apptainer", "1.4.5"}};
  node.noexec = {"/var/tmp"};
  CHECK(value(result_of(node.look(), "apptainer"), "gpus_missing") == 0);
  CHECK(std::any_of(node.runs.back().begin(), node.runs.back().end(),
                    [&](const std::string& word) { return word.starts_with(node.files.real("/tmp/")); }));
  node.noexec.insert("/tmp");
  CHECK(result_of(node.look(), "apptainer")["outcome"] == "unavailable");
  CHECK(node.left_behind() == 0);
}

TEST_CASE("containers: the program prints the devices under the name that it has inside", "[containers]") {
  const TempDir dir;
  std::filesystem::create_symlink(build_dir() + "/muster-accept", dir.path("sh"));
  const auto process = make_process();
  CHECK(read_devices(process->run({.argv = {dir.path("sh")}})).ok());
  CHECK_FALSE(read_devices(process->run({.argv = {build_dir() + "/muster-accept"}})).ok());
  CHECK(is_containers_program("-sh"));
}
