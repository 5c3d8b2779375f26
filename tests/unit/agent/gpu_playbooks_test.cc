// What the playbooks for NVIDIA's driver lock to one version, in the names that NVIDIA's archives (for Debian
// and for Ubuntu) and Ubuntu's own have had from branch 570 on; that they do the same things in the same way;
// and that each keeps the other archive's packages out.
#include <fnmatch.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/split.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

Playbook shipped(const std::string& name) {
  std::ifstream in(source_dir() + "/playbooks/" + name + ".yaml");
  const auto parsed = parse_playbook({std::istreambuf_iterator<char>(in), {}});
  for (const auto& error : parsed.errors) FAIL(name << ": " << error.message);
  return parsed.playbook;
}

const PlaybookStep& step_of(const Playbook& playbook, const std::string& name) {
  for (const auto& step : playbook.steps)
    if (step.name == name) return step;
  FAIL(playbook.name << " has no step " << name);
  return playbook.steps.front();
}

bool covers(const Json& patterns, const std::string& name) {
  for (const auto& pattern : patterns)
    if (fnmatch(pattern.get<std::string>().c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

Json patterns_of(const std::string& pin) {
  Json out = Json::array();
  for (const auto& word : split_words(pin)) out.push_back(word);
  return out;
}

// Of NVIDIA's archive for Debian.
const Names kDebian = {"libcuda1",
                       "libcudadebugger1",
                       "libegl-nvidia0",
                       "libgles-nvidia1",
                       "libgles-nvidia2",
                       "libglx-nvidia0",
                       "libnvcuvid1",
                       "libnvidia-allocator1",
                       "libnvidia-api1",
                       "libnvidia-cfg1",
                       "libnvidia-eglcore",
                       "libnvidia-encode1",
                       "libnvidia-fbc1",
                       "libnvidia-glcore",
                       "libnvidia-glvkspirv",
                       "libnvidia-gpucomp",
                       "libnvidia-ml1",
                       "libnvidia-ngx1",
                       "libnvidia-nvvm4",
                       "libnvidia-nvvm70",
                       "libnvidia-opticalflow1",
                       "libnvidia-pkcs11-openssl3",
                       "libnvidia-ptxjitcompiler1",
                       "libnvidia-rtcore",
                       "libnvidia-sandboxutils",
                       "libnvidia-vksc-core",
                       "libnvoptix1",
                       "nvidia-driver",
                       "nvidia-driver-bin",
                       "nvidia-driver-cuda",
                       "nvidia-driver-libs",
                       "nvidia-egl-icd",
                       "nvidia-kernel-open-dkms",
                       "nvidia-kernel-support",
                       "nvidia-modprobe",
                       "nvidia-opencl-icd",
                       "nvidia-persistenced",
                       "nvidia-settings",
                       "nvidia-smi",
                       "nvidia-vdpau-driver",
                       "nvidia-vulkan-icd",
                       "nvidia-xconfig",
                       "xserver-xorg-video-nvidia",
                       "firmware-nvidia-gsp",
                       "cuda-drivers"};
// Of its archives for Ubuntu; until 580 each of these names ends in the branch, or has it before -open.
const Names kUbuntu = {"libnvidia-cfg1",
                       "libnvidia-common",
                       "libnvidia-compute",
                       "libnvidia-decode",
                       "libnvidia-encode",
                       "libnvidia-extra",
                       "libnvidia-fbc1",
                       "libnvidia-gl",
                       "libnvidia-gpucomp",
                       "nvidia-compute-utils",
                       "nvidia-dkms",
                       "nvidia-driver",
                       "nvidia-firmware",
                       "nvidia-headless",
                       "nvidia-headless-no-dkms",
                       "nvidia-kernel-common",
                       "nvidia-kernel-source",
                       "nvidia-utils",
                       "xserver-xorg-video-nvidia",
                       "cuda-drivers"};
const Names kUbuntuOpen = {"nvidia-dkms", "nvidia-driver", "nvidia-headless", "nvidia-headless-no-dkms",
                           "nvidia-kernel-source"};
// Of both; until 570 with the branch, and nvidia-open until 580.
const Names kFabric = {"nvidia-fabricmanager", "libnvidia-nscq", "libnvsdm", "nvidia-imex"};

Names names_of(const std::string& branch) {
  Names out = kDebian;
  const std::string of_driver = branch <= "580" ? "-" + branch : "";
  const std::string of_fabric = branch <= "570" ? "-" + branch : "";
  for (const auto& name : kUbuntu) out.push_back(name + of_driver);
  for (const auto& name : kUbuntuOpen) out.push_back(name + of_driver + "-open");
  for (const auto& name : kFabric) out.push_back(name + of_fabric);
  out.push_back("nvidia-open" + of_driver);
  out.push_back("nvidia-open");
  out.push_back("nvidia-firmware-" + branch + "-" + branch + ".1.1");
  return out;
}

// Of NVIDIA's archives, or of the distributions' for them, with versions of their own.
const Names kOthers = {"nvlsm",
                       "nvidia-container-toolkit",
                       "nvidia-container-toolkit-base",
                       "libnvidia-container1",
                       "libnvidia-container-tools",
                       "libnvidia-egl-wayland1",
                       "libnvidia-egl-gbm1",
                       "libnvidia-egl-xcb1",
                       "nvidia-gds",
                       "nvidia-gds-13-0",
                       "nvidia-fs",
                       "nvidia-fs-dkms",
                       "nvidia-driver-assistant",
                       "nvidia-driver-pinning-580",
                       "nvidia-support",
                       "nvidia-prime",
                       "nvidia-cuda-toolkit",
                       "cuda-toolkit-13-0",
                       "gdrdrv-dkms",
                       "libgdrapi",
                       "libnccl2",
                       "libxnvctrl0",  // Open MPI needs the distribution's, through hwloc
                       "linux-modules-nvidia-580-server-open-6.8.0-60-generic"};

TEST_CASE("gpu-vendor: whatever the driver's packages are called, they are locked to its version", "[gpu]") {
  const Playbook playbook = shipped("gpu-vendor");
  const Json lock = step_of(playbook, "driver, fabric manager, CUDA, NCCL and DCGM").params["locked"][0];
  CHECK(lock["version"] == "{{vars.nvidia_driver}}-*");
  for (const char* branch : {"570", "580", "595"})
    for (const auto& name : names_of(branch)) {
      INFO(branch << " " << name);
      CHECK(covers(lock["packages"], name));
    }
  for (const auto& name : kOthers) {
    INFO(name);
    CHECK_FALSE(covers(lock["packages"], name));
  }
}

TEST_CASE("gpu-vendor: the packages that are locked are pinned to that version, too", "[gpu]") {
  const Playbook playbook = shipped("gpu-vendor");
  const Json pins = step_of(playbook, "archive").params["pins"];
  // apt takes the first entry that fits, and Ubuntu's packages may have the same version.
  CHECK(pins[0]["pin"] == "release o=Ubuntu");
  CHECK(pins[0]["priority"] == -1);
  REQUIRE(pins[1]["pin"] == "version {{vars.nvidia_driver}}-*");
  CHECK(pins[1]["priority"] == 1001);  // also below what is installed
  const Json pinned = patterns_of(pins[1]["packages"].get<std::string>());
  for (const char* branch : {"570", "580", "595"})
    for (const auto& name : names_of(branch)) {
      INFO(branch << " " << name);
      CHECK(covers(pinned, name));
    }
}

// Of Ubuntu's own archive, branch 580; the first four and the last two are those that gpu-ubuntu names.
const Names kCanonical = {"nvidia-headless-no-dkms-580-server-open",
                          "nvidia-utils-580-server",
                          "nvidia-compute-utils-580-server",
                          "nvidia-kernel-common-580-server",
                          "nvidia-kernel-source-580-server-open",
                          "nvidia-firmware-580-server-580.159.03",
                          "libnvidia-cfg1-580-server",
                          "libnvidia-common-580-server",
                          "libnvidia-compute-580-server",
                          "libnvidia-decode-580-server",
                          "libnvidia-encode-580-server",
                          "libnvidia-extra-580-server",
                          "libnvidia-fbc1-580-server",
                          "libnvidia-gl-580-server",
                          "libnvidia-gpucomp-580-server",
                          "nvidia-imex-580",
                          "nvidia-fabricmanager-580",
                          "libnvidia-nscq-580"};

TEST_CASE("gpu-ubuntu: the branch's packages are locked, the modules of a kernel are not", "[gpu]") {
  const Playbook playbook = shipped("gpu-ubuntu");
  const auto& driver = step_of(playbook, "driver, fabric manager and NSCQ");
  const Json lock = driver.params["locked"][0];
  CHECK(lock["version"] == "{{vars.nvidia_branch}}.*");
  for (const auto& name : kCanonical) {
    INFO(name);
    CHECK(covers(lock["packages"], name));
  }
  for (const auto& name : kOthers) {
    INFO(name);
    CHECK_FALSE(covers(lock["packages"], name));
  }
  CHECK(driver.params["hold"] == true);
  CHECK(driver.params["names"][0] == "linux-modules-nvidia-{{vars.nvidia_branch}}-server-open-{kernel}");
}

TEST_CASE("each driver's playbook keeps the other archive's packages out", "[gpu]") {
  const Playbook vendor = shipped("gpu-vendor"), ubuntu = shipped("gpu-ubuntu");
  const Json theirs =
      patterns_of(step_of(vendor, "archive").params["pins"][0]["packages"].get<std::string>());
  for (const auto& name : kCanonical) {
    INFO(name);
    CHECK(covers(theirs, name));
  }
  CHECK(covers(theirs, "linux-modules-nvidia-580-server-open-6.8.0-60-generic"));
  CHECK_FALSE(covers(theirs, "libnvidia-egl-wayland1"));  // NVIDIA's packages may need Ubuntu's

  const Json pin = step_of(ubuntu, "restricted and multiverse").params["pins"][0];
  CHECK(pin["pin"] == "release o=NVIDIA");
  CHECK(pin["priority"] == -1);
  const Json vendors = patterns_of(pin["packages"].get<std::string>());
  for (const char* branch : {"570", "580", "595"}) {
    const std::string of_driver = branch == std::string("595") ? "" : std::string("-") + branch;
    for (const auto& list : {kUbuntu, kFabric})
      for (const auto& name : list) {
        INFO(branch << " " << name);
        CHECK(covers(vendors, name));
        CHECK(covers(vendors, name + of_driver));
      }
  }
  // cuda-vendor takes these from NVIDIA's archive.
  for (const char* name : {"cuda-toolkit-13-0", "libnccl2", "datacenter-gpu-manager-4-core"})
    CHECK_FALSE(covers(vendors, name));
}

TEST_CASE("the playbooks for GPUs do what they have in common in the same way", "[gpu]") {
  const Playbook vendor = shipped("gpu-vendor");
  std::map<std::string, int> shared;
  for (const char* name : {"gpu-ubuntu", "cuda-vendor"}) {
    const Playbook other = shipped(name);
    for (const auto& step : other.steps) {
      // These are about what only one of them has.
      if (step.name == "archive" || step.name == "services" || step.name == "module of the running kernel")
        continue;
      for (const auto& own : vendor.steps) {
        if (own.name != step.name) continue;
        INFO(name << ": " << step.name);
        ++shared[name];
        CHECK(own.phase == step.phase);
        CHECK(own.module == step.module);
        CHECK(own.for_each == step.for_each);
        CHECK(own.params == step.params);
        CHECK(own.verify == step.verify);
      }
    }
  }
  CHECK(shared["gpu-ubuntu"] == 8);
  CHECK(shared["cuda-vendor"] == 4);
}

// Whether the fabric manager's unit starts where lspci prints this and these devices have this vital product
// data.
bool fabric_manager_starts(const std::string& lspci, const std::map<std::string, std::string>& adapters) {
  const TempDir dir;
  dir.write("bin/lspci", "#!/bin/sh\nprintf '%s' '" + lspci + "'\n");
  std::filesystem::permissions(dir.path("bin/lspci"), std::filesystem::perms::owner_all);
  dir.write("sys/0000:01:00.0/vendor", "0x8086\n");
  for (const auto& [address, vpd] : adapters) {
    dir.write("sys/" + address + "/vendor", "0x15b3\n");
    if (!vpd.empty()) dir.write("sys/" + address + "/vpd", vpd);
  }
  const Playbook playbook = shipped("gpu-vendor");
  std::string text = step_of(playbook, "fabric manager settings").params["content"].get<std::string>();
  const std::string begin = "ExecCondition=/bin/sh -c '";
  const size_t at = text.find(begin) + begin.size();
  text = text.substr(at, text.find("'\n", at) - at);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"/sys/bus/pci/devices", dir.path("sys")},
                                 {"/proc/driver/nvidia-nvswitch", dir.path("proc")}})
    text.replace(text.find(from), from.size(), to);
  const auto run = make_process()->run(
      {.argv = {"/bin/sh", "-c", text}, .env = {{"PATH", dir.path("bin") + ":/usr/bin:/bin"}}});
  REQUIRE(run.ok());
  CHECK(run->exit_code < 255);  // which systemd takes for a failure
  return run->exit_code == 0;
}

TEST_CASE("the fabric manager starts where there are NVSwitches, of whichever kind", "[gpu]") {
  const std::string switches = "07:00.0 0680: 10de:22a3 (rev a1)\n";
  const std::string managed = std::string("\x82") + "CX7 board" + std::string(3, '\0') + "V4SW_MNG";
  CHECK(fabric_manager_starts(switches, {}));
  CHECK(fabric_manager_starts("", {{"0000:05:00.0", managed}}));
  CHECK(fabric_manager_starts("", {{"0000:03:00.0", "plain"}, {"0000:05:00.0", managed}}));
  CHECK_FALSE(fabric_manager_starts("", {}));
  CHECK_FALSE(fabric_manager_starts("", {{"0000:05:00.0", "plain"}}));
  CHECK_FALSE(fabric_manager_starts("", {{"0000:05:00.0", ""}}));  // it has no such data
}

TEST_CASE("gpu-vendor: both namings of each package, of one version", "[gpu]") {
  const Playbook playbook = shipped("gpu-vendor");
  const Json params = render_params(step_of(playbook, "driver, fabric manager, CUDA, NCCL and DCGM").params,
                                    {{"vars",
                                      {{"nvidia_driver", "580.95.05"},
                                       {"nvidia_branch", "580"},
                                       {"nvidia_cuda", "13-0"},
                                       {"nvidia_cuda_major", "13"},
                                       {"nvidia_nccl", "2.28.3-1+cuda13.0"},
                                       {"nvidia_dcgm", "1:4.4.1-1"}}}})
                          .value_or(Json());
  REQUIRE(params.is_object());
  CHECK(params["names"][0] == "nvidia-open-580=580.95.05-*|nvidia-open=580.95.05-*");
  CHECK(params["names"][1] == "nvidia-fabricmanager-580=580.95.05-*|nvidia-fabricmanager=580.95.05-*");
  CHECK(params["if_offered"][0] == "libnvidia-nscq-580=580.95.05-*|libnvidia-nscq=580.95.05-*");
  CHECK(params["hold"] == false);  // NVIDIA's pinning package, which is among them, has the same effect
  CHECK(covers(params["if_offered"], "nvidia-driver-pinning-580.95.05"));
}

}  // namespace
}  // namespace muster
