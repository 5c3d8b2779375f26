#include "agent/facts/host_properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "agent/steps/gpu/acs.h"
#include "base/digest.h"
#include "base/lower.h"
#include "base/split.h"
#include "base/utf8.h"
#include "host/net_ports.h"
#include "host/pci_parts.h"
#include "host/rdma_devices.h"
#include "host/real_drives.h"

namespace muster {
namespace {

constexpr size_t kLongest = 2000;  // bytes of a value: a command line has up to 4 KiB
constexpr const char* kCpus = "/sys/devices/system/cpu";
constexpr const char* kPciDevices = "/sys/bus/pci/devices";

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string joined(const std::set<std::string>& values) { return fmt::format("{}", fmt::join(values, ", ")); }

// "always [madvise] never" -> "madvise"
std::string in_brackets(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? ""
                                                                 : text.substr(open + 1, close - open - 1);
}

// The text after "key:" on the first line that begins with it, without surrounding white space.
std::string field_of(const std::string& text, const std::string& key) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    const size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
  }
  return "";
}

class Collected {
 public:
  explicit Collected(const Files& files) : files_(files) {}
  void put(const std::string& name, const std::string& value) {
    if (!value.empty()) out_[name] = std::string(first_bytes(value, kLongest));
  }
  void put_file(const std::string& name, const std::string& path) { put(name, files_.read_line(path)); }
  // Records "1" and "0" as words.
  void put_switch(const std::string& name, const std::string& path, const char* one = "on",
                  const char* zero = "off") {
    const std::string text = files_.read_line(path);
    put(name, text == "1" ? one : text == "0" ? zero : text);
  }
  const Files& files() const { return files_; }
  Properties take() { return std::move(out_); }

 private:
  const Files& files_;
  Properties out_;
};

void add_board(Collected& out) {
  const std::string dmi = "/sys/class/dmi/id/";
  out.put_file("BIOS date", dmi + "bios_date");
  out.put_file("BIOS release", dmi + "bios_release");
  out.put_file("BMC or EC firmware", dmi + "ec_firmware_release");
  std::string board;
  for (const char* file : {"board_vendor", "board_name", "board_version"})
    if (const std::string text = out.files().read_line(dmi + file); !text.empty())
      board += (board.empty() ? "" : " ") + text;
  out.put("board", board);
  // The first four bytes of an EFI variable are its attributes.
  const auto secure =
      out.files().read("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
  if (secure.ok() && secure->size() == 5) out.put("secure boot", secure->back() == 1 ? "on" : "off");
}

void add_kernel(Collected& out) {
  out.put("kernel command line", comparable_kernel_line(out.files().read_line("/proc/cmdline")));
  out.put("kernel build", out.files().read_line("/proc/sys/kernel/version"));
  out.put_file("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const std::string pages = "/sys/kernel/mm/transparent_hugepage/";
  out.put("transparent huge pages", in_brackets(out.files().read_line(pages + "enabled")));
  out.put("transparent huge pages, defragmentation", in_brackets(out.files().read_line(pages + "defrag")));
  out.put("kernel lockdown", in_brackets(out.files().read_line("/sys/kernel/security/lockdown")));
  for (const char* name :
       {"kernel/numa_balancing", "vm/zone_reclaim_mode", "vm/swappiness", "vm/overcommit_memory",
        "vm/nr_hugepages", "net/core/rmem_max", "net/core/wmem_max", "net/ipv4/tcp_congestion_control"}) {
    std::string shown = name;
    std::replace(shown.begin(), shown.end(), '/', '.');
    out.put_file("sysctl " + shown, std::string("/proc/sys/") + name);
  }
  out.put_file("tuned profile", "/etc/tuned/active_profile");
}

std::vector<std::string> processors(const Files& files) {
  std::vector<std::string> out;
  for (const auto& name : files.list(kCpus))
    if (name.starts_with("cpu") && is_number(name.substr(3))) out.push_back(std::string(kCpus) + "/" + name);
  return out;
}

// Returns the value of all processors: "performance", or "performance, powersave" if they differ.
std::string of_all(const Files& files, const std::vector<std::string>& folders, const std::string& file) {
  std::set<std::string> values;
  for (const auto& folder : folders)
    if (std::string value = files.read_line(folder + file); !value.empty()) values.insert(std::move(value));
  return joined(values);
}

// "POLL, C1, C6 (off)"
std::string idle_states(const Files& files) {
  const std::string folder = std::string(kCpus) + "/cpu0/cpuidle";
  std::vector<std::string> out;
  for (const auto& state : files.list(folder)) {
    const std::string name = files.read_line(folder + "/" + state + "/name");
    const bool off = files.read_line(folder + "/" + state + "/disable") == "1";
    if (!name.empty()) out.push_back(off ? name + " (off)" : name);
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string microcode(const Files& files) {
  std::set<std::string> versions;
  const std::string text = files.read("/proc/cpuinfo").value_or("");
  for (const std::string& line : split(text, '\n'))
    if (line.starts_with("microcode")) versions.insert(field_of(line, "microcode"));
  return joined(versions);
}

std::string turbo(const Files& files) {
  const std::string forbidden = files.read_line(std::string(kCpus) + "/intel_pstate/no_turbo"),
                    boost = files.read_line(std::string(kCpus) + "/cpufreq/boost");
  if (forbidden == "0" || forbidden == "1") return forbidden == "0" ? "on" : "off";
  return boost == "1" ? "on" : boost == "0" ? "off" : "";
}

size_t numa_nodes(const Files& files) {
  const auto names = files.list("/sys/devices/system/node");
  return static_cast<size_t>(std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("node") && is_number(name.substr(4));
  }));
}

void add_processors(Collected& out) {
  const Files& files = out.files();
  out.put("microcode", microcode(files));
  out.put_switch("SMT", std::string(kCpus) + "/smt/active");
  if (const size_t nodes = numa_nodes(files)) out.put("NUMA nodes", fmt::format("{}", nodes));
  const auto all = processors(files);
  out.put("CPU governor", of_all(files, all, "/cpufreq/scaling_governor"));
  out.put("CPU frequency driver", of_all(files, all, "/cpufreq/scaling_driver"));
  out.put("CPU frequency, least", of_all(files, all, "/cpufreq/scaling_min_freq"));
  out.put("CPU frequency, most", of_all(files, all, "/cpufreq/scaling_max_freq"));
  out.put("CPU energy preference", of_all(files, all, "/cpufreq/energy_performance_preference"));
  out.put("turbo", turbo(files));
  out.put("C-states", idle_states(files));
  out.put_file("idle driver", std::string(kCpus) + "/cpuidle/current_driver");
  out.put_file("isolated processors", std::string(kCpus) + "/isolated");
  for (const auto& name : files.list(std::string(kCpus) + "/vulnerabilities"))
    out.put_file("mitigation of " + name, std::string(kCpus) + "/vulnerabilities/" + name);
}

void add_gpus(Collected& out) {
  const Files& files = out.files();
  const std::string version = files.read_line("/sys/module/nvidia/version");
  const std::string text = files.read("/proc/driver/nvidia/version").value_or("");
  const bool open = text.find("Open Kernel Module") != std::string::npos;
  if (!version.empty()) out.put("GPU driver", version + (open ? " (open)" : ""));
  std::set<std::string> vbios, firmware;
  const std::string folder = "/proc/driver/nvidia/gpus";
  for (const auto& address : files.list(folder)) {
    const std::string gpu = files.read(folder + "/" + address + "/information").value_or("");
    if (auto found = field_of(gpu, "Video BIOS"); found.find('?') == std::string::npos && !found.empty())
      vbios.insert(std::move(found));
    if (auto found = field_of(gpu, "GPU Firmware"); !found.empty()) firmware.insert(std::move(found));
  }
  out.put("GPU VBIOS", joined(vbios));
  out.put("GPU firmware", joined(firmware));
  if (version.empty()) return;
  std::set<std::string> peers;
  for (const char* name : {"nvidia_peermem", "nv_peer_mem", "gdrdrv"})
    if (files.exists(std::string("/sys/module/") + name)) peers.insert(name);
  out.put("GPU memory for RDMA", peers.empty() ? "no module" : joined(peers));
}

// Searches the usual places only: which version a job uses is determined by the job's own environment.
void add_libraries(Collected& out) {
  const Files& files = out.files();
  std::vector<std::string> nccl;
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib",
                             "/usr/local/cuda/lib64", "/opt/nccl/lib", "/opt/nccl/build/lib"}) {
    const std::string file =
        last_component(files.read_link(std::string(folder) + "/libnccl.so.2").value_or(""));
    if (file.starts_with("libnccl.so.")) nccl.push_back(fmt::format("{} in {}", file.substr(11), folder));
  }
  out.put("NCCL", fmt::format("{}", fmt::join(nccl, ", ")));
  std::string cuda = files.read_link("/usr/local/cuda").value_or("");
  if (cuda.starts_with("/etc/alternatives/")) cuda = files.read_link(cuda).value_or("");
  if (const std::string name = last_component(cuda); name.starts_with("cuda-"))
    out.put("CUDA", name.substr(5));
}

void add_ports(Collected& out) {
  const Files& files = out.files();
  std::map<std::string, std::set<std::string>> firmware;
  std::map<std::string, int> rates;
  for (const RdmaPart& port : rdma_parts(files)) {
    const std::string device = "/sys/class/infiniband/" + port.device;
    std::string board = files.read_line(device + "/board_id");
    if (board.empty()) board = files.read_line(device + "/hca_type");
    if (std::string version = files.read_line(device + "/fw_ver"); !version.empty())
      firmware[board.empty() ? "an RDMA device" : "RDMA device " + board].insert(std::move(version));
    if (const std::string rate = files.read_line(port.folder + "/rate"); !rate.empty())
      ++rates[fmt::format("{} {}", files.read_line(port.folder + "/link_layer"), rate)];
  }
  for (const auto& [what, versions] : firmware) out.put("firmware of " + what, joined(versions));
  out.put("RDMA ports", tally(rates));
  std::set<std::string> sizes;
  for (const NetPort& port : net_ports(files))
    if (port.link) sizes.insert(files.read_line("/sys/class/net/" + port.name + "/mtu"));
  out.put("MTU of ports with a link", joined(sizes));
  for (const char* module : {"mlx5_core", "ice", "bnxt_en"})
    out.put_file(fmt::format("driver {}", module), fmt::format("/sys/module/{}/version", module));
}

void add_drives(Collected& out) {
  const Files& files = out.files();
  std::map<std::string, std::set<std::string>> firmware;
  for (const auto& name : real_drives(files)) {
    const std::string drive = "/sys/block/" + name + "/device";
    std::string version = files.read_line(drive + "/firmware_rev");
    if (version.empty()) version = files.read_line(drive + "/rev");
    firmware[files.read_line(drive + "/model")].insert(version);
  }
  for (auto& [model, versions] : firmware) {
    versions.erase("");
    if (!model.empty()) out.put("firmware of drives " + model, joined(versions));
  }
}

const char* plural_of(PciKind kind) {
  if (kind == PciKind::gpu) return "GPUs";
  if (kind == PciKind::nvme) return "NVMe drives";
  return kind == PciKind::nic ? "NICs" : "";
}

// ACS redirects keep GPUs and NICs from reaching each other directly. Only root can read the registers.
void add_acs(Collected& out) {
  std::map<std::string, int> bridges;
  for (const auto& address : out.files().list(kPciDevices)) {
    if (!out.files().read_line(std::string(kPciDevices) + "/" + address + "/class").starts_with("0x0604"))
      continue;
    const auto acs = steps::read_acs(out.files(), address);
    if (!acs.ok()) return;
    if (*acs) ++bridges[(**acs & steps::kAcsRedirects) ? "with redirects" : "without"];
  }
  out.put("PCIe ACS of bridges", tally(bridges));
}

// Records only the number of active lanes, because an idle GPU lowers its link rate. A virtual function has
// no link of its own, and the registers of a device without a link read as 63 or 255 lanes.
void add_pcie(Collected& out) {
  const Files& files = out.files();
  std::map<std::string, std::map<std::string, int>> widths;
  for (const PciPart& part : pci_parts(files)) {
    const std::string what = plural_of(part.kind);
    if (what.empty() || part.why != Why::real) continue;
    const std::string lanes = files.read_line(part.folder + "/current_link_width");
    if (is_number(lanes) && lanes.size() <= 2 && lanes != "0" && lanes != "63") ++widths[what]["x" + lanes];
  }
  for (const auto& [what, counts] : widths) out.put("PCIe lanes of " + what, tally(counts));
  if (widths.count("GPUs")) add_acs(out);
  if (files.list(kPciDevices).empty()) return;
  const std::string type = files.read_line("/sys/kernel/iommu_groups/0/type");
  const bool on = !files.list("/sys/class/iommu").empty();
  out.put("IOMMU", !on ? "off" : type.empty() ? "on" : fmt::format("on ({})", type));
}

struct Mount {
  std::string source, point, type, options;
};

// True for mount options that contain a machine's name or address, or a time.
bool differs_by_nature(const std::string& option) {
  for (const char* key : {"addr=", "clientaddr=", "mountaddr=", "mountport=", "port=", "localip=", "uuid=",
                          "fsid=", "name=", "secret=", "key="})
    if (option.starts_with(key)) return true;
  return false;
}

bool is_real(const Mount& mount) {
  static const std::set<std::string> kNetwork = {"nfs",    "nfs4",     "lustre",        "beegfs", "ceph",
                                                 "cifs",   "9p",       "gpfs",          "afs",    "virtiofs",
                                                 "wekafs", "fuse.mfs", "fuse.glusterfs"};
  if (kNetwork.count(mount.type)) return true;
  return mount.source.starts_with("/dev/") && mount.type != "squashfs" &&
         !mount.source.starts_with("/dev/loop");
}

// True for mounts that come and go with containers, pods, logins and media.
bool is_passing(const std::string& point) {
  for (const char* folder : {"/var/lib/docker/", "/var/lib/containers/", "/var/lib/kubelet/", "/run/",
                             "/snap/", "/media/", "/proc/", "/sys/", "/dev/", "/tmp/"})
    if (point.starts_with(folder)) return true;
  return false;
}

std::vector<Mount> mounts_of(const Files& files) {
  std::vector<Mount> out;
  std::set<std::string> automatic;
  for (const std::string& line : split(files.read("/proc/self/mounts").value_or(""), '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 4) continue;
    if (words[2] == "autofs") automatic.insert(words[1]);
    out.push_back({words[0], words[1], words[2], words[3]});
  }
  // Mounts below an automounter are left out: they come and go with use.
  std::erase_if(out, [&](const Mount& mount) {
    return !is_real(mount) || is_passing(mount.point) ||
           std::any_of(automatic.begin(), automatic.end(), [&](const std::string& folder) {
             return mount.point == folder || mount.point.starts_with(folder + "/");
           });
  });
  return out;
}

std::string options_of(const Mount& mount) {
  std::set<std::string> kept;
  for (const std::string& option : split(mount.options, ','))
    if (!differs_by_nature(option)) kept.insert(option);
  return fmt::format("{} {}", mount.type, fmt::join(kept, ","));
}

// True for a kernel argument that names this machine, its disks or the path to them.
bool names_machine(const std::string& argument) {
  static const std::set<std::string> kKeys = {"BOOT_IMAGE",
                                              "initrd",
                                              "root",
                                              "resume",
                                              "resume_offset",
                                              "ip",
                                              "nfsroot",
                                              "BOOTIF",
                                              "hostname",
                                              "systemd.hostname",
                                              "systemd.machine_id",
                                              "cryptdevice",
                                              "netroot",
                                              "ifname",
                                              "ds",
                                              "inst.ks",
                                              "macaddr"};
  const std::string key = argument.substr(0, argument.find('='));
  return kKeys.count(key) > 0 || key.starts_with("rd.") || key.starts_with("muster.") ||
         key.starts_with("iscsi_");
}

}  // namespace

std::string comparable_kernel_line(const std::string& line) {
  std::vector<std::string> kept;
  for (const std::string& argument : split(line, ' '))
    if (!names_machine(argument) && lower(argument).find("uuid=") == std::string::npos)
      kept.push_back(argument);
  return fmt::format("{}", fmt::join(kept, " "));
}

Properties mount_properties(const Files& files) {
  constexpr size_t kMost = 64;
  Properties out;
  std::set<std::string> points;
  for (const Mount& mount : mounts_of(files)) {
    if (points.size() == kMost) break;
    points.insert(mount.point);
    out["mount " + mount.point] = options_of(mount);  // of several at one point, the last is on top
  }
  if (!points.empty()) out["mounts"] = joined(points);
  return out;
}

std::string hidden_machine_id(const Files& files) {
  const std::string id = files.read_line("/etc/machine-id");
  if (id.size() != 32 || id.find_first_not_of("0123456789abcdef") != std::string::npos) return "";
  if (id.find_first_not_of('0') == std::string::npos) return "";
  // machine-id(5) requires that the id stays confidential; a digest of it does not reveal it.
  return sha256("muster machine-id " + id).substr(7, 32);
}

Properties host_properties(const Files& files) {
  Collected out(files);
  add_board(out);
  add_kernel(out);
  add_processors(out);
  add_gpus(out);
  add_libraries(out);
  add_ports(out);
  add_drives(out);
  add_pcie(out);
  for (const auto& [name, value] : mount_properties(files)) out.put(name, value);
  return out.take();
}

}  // namespace muster
