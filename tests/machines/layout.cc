#include "tests/machines/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/digest.h"
#include "base/split.h"
#include "tests/machines/description.h"
#include "tests/machines/layout_parts.h"

namespace muster::machines {
namespace {

namespace fs = std::filesystem;

void add_system(const Tree& tree, const Json& node) {
  const std::string dmi = "/sys/class/dmi/id/";
  tree.put(dmi + "sys_vendor", text(node, "system/vendor"));
  tree.put(dmi + "product_name", text(node, "system/product"));
  tree.put(dmi + "product_serial", "S" + digits_of(node, "system", 9));
  tree.put(dmi + "product_uuid", uuid_of(node, "system"));
  tree.put(dmi + "bios_vendor", text(node, "system/bios", "American Megatrends International, LLC."));
  tree.put(dmi + "bios_version", "1.4");
  tree.put("/proc/sys/kernel/osrelease", text(node, "system/kernel"));
  tree.put("/proc/sys/kernel/hostname", fmt::format("node{:02}", whole(node, "number")));
  tree.put("/proc/sys/kernel/random/boot_id", uuid_of(node, "boot"));
  tree.put("/etc/machine-id", digits_of(node, "machine-id", 32));
  tree.put("/etc/os-release", fmt::format("PRETTY_NAME=\"{}\"", text(node, "system/os")));
  tree.put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=" + uuid_of(node, "root") + " ro");
  tree.put("/proc/uptime", "90000.00 1000.00");
  tree.put("/proc/self/cgroup", "0::/");
  tree.put("/proc/self/mounts", "");
  tree.put("/proc/self/mountinfo", "");
  tree.put("/proc/net/tcp", "");
  tree.put("/proc/net/route",
           "Iface\tDestination\tGateway\tFlags\n" + text(node, "address_on") + "\t00000000\tFE03000A\t0003");
  tree.put("/sys/firmware/efi/fw_platform_size", "64");
  tree.put("/usr/bin/setpriv", "");
  tree.folder("/var/tmp");
  tree.put("/dev/kmsg", "6,1,0,-;Linux version " + text(node, "system/kernel"));
}

void add_memory(const Tree& tree, const Json& node) {
  const auto gib = static_cast<uint64_t>(whole(node, "memory/gib"));
  tree.put("/proc/meminfo", fmt::format("MemTotal:       {} kB\nMemFree:        {} kB\nMemAvailable:   {} kB",
                                        gib * 1031798, gib * 900000, gib * 1000000));
  const int blocks = 16;
  tree.put("/sys/devices/system/memory/block_size_bytes", fmt::format("{:x}", (gib << 30) / blocks));
  for (int i = 0; i < blocks; ++i)
    tree.put(fmt::format("/sys/devices/system/memory/memory{}/state", i), "online");
  const int dimms = whole(node, "memory/dimms"), sockets = whole(node, "cpu/sockets", 1);
  const int each = std::max(dimms / sockets, 1),
            lanes = std::max(whole(node, "memory/channels") / sockets, 1);
  for (int i = 0; i < dimms; ++i)
    tree.put_bytes(fmt::format("/sys/firmware/dmi/entries/17-{}/raw", i),
                   memory_device({.mib = static_cast<unsigned>(gib * 1024 / static_cast<uint64_t>(dimms)),
                                  .mt_s = static_cast<unsigned>(whole(node, "memory/mt_s")),
                                  .type = text(node, "memory/type") == "DDR4" ? 0x1au : 0x22u,
                                  .locator = fmt::format("P{}_Node0_Channel{}_Dimm{}", i / each,
                                                         i % each % lanes, i % each / lanes)}));
  for (int i = 0; i < whole(node, "memory/edac"); ++i) {
    tree.put(fmt::format("/sys/devices/system/edac/mc/mc{}/ce_count", i), "0");
    tree.put(fmt::format("/sys/devices/system/edac/mc/mc{}/ue_count", i), "0");
  }
}

// Files of processors are many, and the same on each node.
void add_processors(const Tree& tree, const Json& node, const std::string& shared) {
  const Tree common(shared);
  if (!fs::exists(shared)) write_processors(common, node);
  for (const char* name : {"/sys/devices/system/cpu", "/sys/devices/system/node", "/proc/cpuinfo"})
    tree.link(name, shared + name);
}

void add_gpu(const Tree& tree, const Json& node, const Json& gpu, int number) {
  const std::string address = text(gpu, "at");
  const Json& model = at(gpu, "model");
  if (!model.is_string() || at(node, "driver").is_null()) return;
  tree.put(
      "/proc/driver/nvidia/gpus/" + address + "/information",
      fmt::format("Model: \t\t {}\nIRQ:   \t\t {}\nGPU UUID: \t {}\nVideo BIOS: \t {}\nBus Type: \t PCIe\n"
                  "DMA Size: \t 52 bits\nBus Location: \t {}\nDevice Minor: \t {}",
                  text(gpu, "model"), 200 + number, gpu_uuid(node, gpu), text(gpu, "vbios", "96.00.61"),
                  address, number));
  tree.put(fmt::format("/dev/nvidia{}", number), "");
}

void add_driver(const Tree& tree, const Json& node) {
  const std::string version = text(node, "driver");
  if (version.empty()) return;
  tree.put("/sys/module/nvidia/version", version);
  tree.put("/proc/driver/nvidia/version",
           "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + version + "  Release Build");
  tree.put("/dev/nvidiactl", "");
  tree.put("/etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu");
  tree.put("/sys/module/nvidia_peermem/refcnt", "0");
  std::string state;
  int number = 0;
  for (const Json& gpu : devices(node, "gpu")) {
    if (!gpu.contains("model")) continue;
    std::string model = text(gpu, "model");
    for (char& c : model) c = c == ' ' ? '_' : c;
    state += fmt::format("name {0} {1}\nuuid {0} {2}\n", number, model, gpu_uuid(node, gpu));
    for (int link = 0; link < whole(gpu, "links"); ++link)
      state += fmt::format("link {} {} {}\n", number, link, link < whole(gpu, "links_up", 99) ? 1 : 0);
    state += fmt::format("field {} 1 1\n", number);  // ECC is on
    if (std::atoi(version.c_str()) >= 570)
      state += fmt::format("field {0} 230 0\nfield {0} 251 0\nfield {0} 252 0\nfield {0} 253 0\n", number);
    if (gpu.contains("fields"))
      for (const auto& [field, value] : gpu["fields"].items())
        state += fmt::format("field {} {} {}\n", number, field, value.get<int64_t>());
    ++number;
  }
  for (const Json& line : at(node, "nvml")) state += line.get<std::string>() + "\n";
  tree.put_bytes(nvml_state(""), fmt::format("gpus {}\n", number) + state);
}

}  // namespace

std::string digits_of(const Json& node, const std::string& part, size_t count) {
  const std::string key = fmt::format("{} {} {}", text(node, "name"), whole(node, "number"), part);
  return sha256(key).substr(7, count);
}

std::string uuid_of(const Json& node, const std::string& part) {
  const std::string hex = digits_of(node, part, 30);
  return fmt::format("{}-{}-4{}-8{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 3),
                     hex.substr(15, 3), hex.substr(18, 12));
}

std::string mac_of(const Json& node, const std::string& part) {
  const std::string hex = digits_of(node, "mac " + part, 6);
  return fmt::format("94:6d:ae:{}:{}:{}", hex.substr(0, 2), hex.substr(2, 2), hex.substr(4, 2));
}

std::string gpu_uuid(const Json& node, const Json& gpu) { return "GPU-" + uuid_of(node, text(gpu, "at")); }

std::vector<Json> devices(const Json& node, const std::string& kind) {
  std::vector<Json> out;
  for (const Json& device : at(node, "devices"))
    if (text(device, "kind") == kind) out.push_back(device);
  return out;
}

std::string nvml_state(const std::string& root) { return root + "/nvml-state"; }

void lay_out(const Json& node, const std::string& root, const std::string& shared) {
  const Tree tree(root);
  add_system(tree, node);
  add_memory(tree, node);
  add_processors(tree, node, shared);
  add_driver(tree, node);
  Places places(tree, node);
  std::map<std::string, int> numbers;
  for (const Json& device : at(node, "devices")) {
    const std::string kind = text(device, "kind");
    const int number = numbers[kind == "drive" ? kind + text(device, "bus") : kind]++;
    if (!text(device, "at").empty()) places.add(device);
    if (kind == "gpu") add_gpu(tree, node, device, number);
    if (kind == "port") add_port(places, node, device, number);
    if (kind == "net") add_interface(places, node, device);
    if (kind == "drive") add_drive(places, node, device, number);
  }
  if (node.contains("files"))
    for (const auto& [path, content] : node["files"].items()) tree.put(path, content.get<std::string>());
}

void load(const Json& node, const std::string& root) {
  const Tree tree(root);
  tree.put("/proc/uptime", "90900.00 1000.00");
  const Json& during = at(node, "during");
  if (during.contains("files"))
    for (const auto& [path, by] : during["files"].items()) {
      if (!fs::exists(root + path)) FAIL("no file " << path);
      tree.put(path, std::to_string(std::stoull(tree.get(path)) + by.get<uint64_t>()));
    }
  int sequence = 100;
  for (const Json& line : at(during, "log"))
    tree.append("/dev/kmsg", fmt::format("3,{},900000,-;{}", sequence++, line.get<std::string>()));
  for (const Json& line : at(during, "nvml")) tree.append(nvml_state(""), line.get<std::string>());
}

}  // namespace muster::machines
