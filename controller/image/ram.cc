#include "controller/image/ram.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/digest.h"
#include "base/json.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "controller/image/cpio.h"
#include "controller/image/elf.h"
#include "controller/image/ram_modules.h"
#include "sys/os.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

// Storage drivers: common ones and those of virtual machines first. Adapters of a machine's local drives.
// Those of shared storage (Fibre Channel, FCoE, iSCSI offload) are left out: a volume shared by many machines
// would appear among the disks of each of them while disks are selected and written.
const Names kStorage = {
    "nvme",         "ahci",          "sd_mod",   "virtio_pci", "virtio_blk", "virtio_scsi",  "megaraid_sas",
    "mpt3sas",      "smartpqi",      "hpsa",     "aacraid",    "mpi3mr",     "vmd",          "crc32c_generic",
    "crc32c_intel", "arcmsr",        "pm80xx",   "mvsas",      "mvumi",      "isci",         "hptiop",
    "stex",         "esas2r",        "3w-9xxx",  "3w-sas",     "3w-xxxx",    "ipr",          "ips",
    "pmcraid",      "megaraid_mbox", "mptsas",   "mptspi",     "myrb",       "myrs",         "aic79xx",
    "aic7xxx",      "sym53c8xx",     "mtip32xx", "vmw_pvscsi", "hv_storvsc", "xen-blkfront", "xen-scsifront",
    "pci-hyperv"};
// Every Ethernet driver of the image's kernel, PHY drivers, and a few USB drivers, since a node whose port
// has no driver is unreachable. Network modules in addition to the folders below: drivers of virtual machines
// and of USB adapters that firmware can boot from; bonding and VLANs.
const Names kNetwork = {"virtio_net", "vmxnet3",      "hv_netvsc", "xen-netfront", "r8152", "asix",
                        "cdc_ncm",    "ax88179_178a", "cdc_ether", "bonding",      "8021q"};
const Names kNetworkFolders = {"kernel/drivers/net/ethernet/", "kernel/drivers/net/phy/",
                               "kernel/drivers/net/mdio/", "kernel/drivers/net/pcs/"};
const Names kOther = {"virtio_rng", "xfs",    "fuse",        "raid0",       "raid1",        "raid10",
                      "raid456",    "dm_mod", "mlx5_ib",     "ipmi_si",     "ipmi_devintf", "ipmi_ssif",
                      "xhci_pci",   "usbhid", "hid_generic", "usb_storage", "uas"};

void append(Names& to, const Names& more) { to.insert(to.end(), more.begin(), more.end()); }

// Returns the modules that are loaded at start, in this order; the rest are loaded when a device needs them.
Names modules_at_start() { return {"ext4", "vfat", "nls_ascii", "nls_cp437", "nls_iso8859-1", "efivarfs"}; }

// These return names in the form that closure() takes.
Names storage_modules(const ModuleIndex& index) {
  Names out = kStorage;
  append(out, index.below("kernel/drivers/ata/"));
  return out;
}

Names network_modules(const ModuleIndex& index) {
  Names out = kNetwork;
  for (const auto& folder : kNetworkFolders)
    for (const auto& name : index.below(folder))
      if (!name.ends_with("_cs")) out.push_back(name);  // drivers of PC Cards in notebooks
  return out;
}

Names ram_system_modules(const ModuleIndex& index) {
  Names out = modules_at_start();
  append(out, storage_modules(index));
  append(out, network_modules(index));
  append(out, kOther);
  return out;
}

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

const Names kTools = {"sfdisk",   "mkfs.vfat", "fsck.vfat", "mkfs.ext4", "e2fsck", "resize2fs", "tune2fs",
                      "mkfs.xfs", "mdadm",     "wipefs",    "blkid",     "lsblk",  "blkdiscard"};
const Names kApplets = {
    "sh",          "ash",    "mount",    "umount", "ip",     "modprobe",  "insmod",  "lsmod", "ls",
    "cat",         "dmesg",  "ps",       "sleep",  "reboot", "poweroff",  "mkdir",   "cp",    "mv",
    "rm",          "ln",     "grep",     "sed",    "awk",    "vi",        "hexdump", "ping",  "free",
    "df",          "du",     "top",      "kill",   "find",   "head",      "tail",    "dd",    "sync",
    "switch_root", "chroot", "udhcpc",   "wget",   "stat",   "sha256sum", "env",     "uname", "hostname",
    "echo",        "true",   "false",    "test",   "date",   "less",      "sort",    "wc",    "cut",
    "readlink",    "setsid", "cttyhack", "lspci"};

// /init of the installed system's initrd: finds the root partition by its unique id and starts the installed
// system. Waits for slow storage controllers; never guesses a device name, and mounts nothing if the root is
// given by a label or if two partitions have that id.
constexpr const char* kBootInit = R"(#!/bin/sh
export PATH=/usr/sbin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
init=/sbin/init
for word in $(cat /proc/cmdline); do case $word in root=*) root=${word#root=};; init=*) init=${word#init=};; esac; done
stop() { echo "muster: $1; rebooting in 60 s"; sleep 60; reboot -f; exit 1; }
case $root in PARTUUID=*|UUID=*) ;; *) stop "root=$root does not name a partition by its id";; esac
modprobe -a ext4 sd_mod 2>/dev/null
n=0
while [ $n -lt 600 ]; do
  case $n in 0|5|20|100) for bus in pci acpi virtio vmbus xen scsi; do modprobe -a $(cat /sys/bus/$bus/devices/*/modalias 2>/dev/null) 2>/dev/null; done;; esac
  dev=$(blkid -l -o device -t "$root" 2>/dev/null)
  [ -n "$dev" ] && set -- $(blkid -o device -t "$root" 2>/dev/null) && [ $# -gt 1 ] && stop "$root is $*, and one is a copy of the other: remove it"
  [ -n "$dev" ] && mount -t ext4 -o rw "$dev" /root && break
  n=$((n + 1)); sleep 0.1
done
if [ ! -x "/root$init" ] && [ ! -L "/root$init" ]; then stop "no root file system $root"; fi
mount --move /proc /root/proc; mount --move /sys /root/sys; mount --move /dev /root/dev
exec switch_root /root "$init"
)";

Status copy_into(const std::string& from, const std::string& to) {
  std::error_code ec;
  fs::create_directories(fs::path(to).parent_path(), ec);
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, ec);
  if (ec) return fail(Code::failed, fmt::format("{} -> {}: {}", from, to, ec.message()));
  return Ok{};
}

std::string without(std::string text, std::string_view word) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) text.erase(at, word.size());
  return text;
}

// Debian compresses modules with xz, Ubuntu with zstd.
std::string packed_as(const std::string& modules_dep) {
  for (const char* suffix : {".xz", ".zst"})
    if (modules_dep.find(std::string(".ko") + suffix + ":") != std::string::npos) return suffix;
  return "";
}

Status unpack(const std::string& from, const std::string& to) {
  const auto process = make_process();
  const std::string tool = from.substr(from.rfind('.')) == ".xz" ? "xz" : "zstd";
  TRY(const std::string content, run_ok(*process, {.argv = {tool, "-dc", from}}));
  return Files("/").write(to, content);
}

// Collects programs into a tree, with the libraries that the dynamic loader would use.
class Collector {
 public:
  Collector(std::string tree, std::string out) : tree_(std::move(tree)), out_(std::move(out)) {}

  Status skeleton() {
    for (const char* d : {"usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "run", "tmp",
                          "etc", "mnt", "root"})
      TRY_(Files(out_).make_directories(std::string("/") + d));
    for (const char* d : {"bin", "sbin", "lib", "lib64"})
      TRY_(Files(out_).symlink(std::string("usr/") + d, std::string("/") + d));
    return Ok{};
  }

  // If the tree lacks the program, this is an error only if it is `required`.
  Status program(const std::string& name, bool required) {
    for (const char* folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"}) {
      std::error_code ec;
      const fs::path real = fs::canonical(tree_ + folder + name, ec);
      if (!ec) return add(real.string(), "/usr/sbin/" + name, 0755);
    }
    return required
               ? Status(fail(Code::not_found, "the image lacks " + name + ", which the RAM system needs"))
               : Status(Ok{});
  }

  Status busybox() {
    TRY_(program("busybox", true));
    for (const auto& applet : kApplets)
      if (!Files(out_).exists("/usr/sbin/" + applet))
        TRY_(Files(out_).symlink("/usr/sbin/busybox", "/usr/bin/" + applet));
    // The kernel runs modprobe under exactly this path.
    return Files(out_).symlink("busybox", "/usr/sbin/modprobe");
  }

  // Collects the modules that `choose` returns, their dependencies, and their firmware.
  Result<RamContents> modules(const std::string& release, Names (*choose)(const ModuleIndex&)) {
    const std::string folder = "/usr/lib/modules/" + release;
    const Files tree(tree_);
    TRY(const std::string dep, tree.read(folder + "/modules.dep"));
    TRY(const std::string alias, tree.read(folder + "/modules.alias"));
    // Newer kernels compress each module; the RAM system's modules are decompressed once, at this point.
    const std::string suffix = packed_as(dep);
    const ModuleIndex index(suffix.empty() ? dep : without(dep, suffix),
                            tree.read(folder + "/modules.softdep").value_or(""), alias);
    const Names names = choose(index), paths = index.closure(names);
    const auto builtin = builtin_modules(tree.read(folder + "/modules.builtin").value_or(""));
    RamContents out;
    for (const auto& name : names)
      if (!index.has(name) && builtin.count(module_name(name)) == 0) out.absent.push_back(name);
    for (const auto& path : paths) {
      const std::string to = out_ + folder + "/" + path;
      TRY_(suffix.empty() ? copy_into(tree_ + folder + "/" + path, to)
                          : unpack(tree_ + folder + "/" + path + suffix, to));
      std::error_code ec;
      out.module_bytes += fs::file_size(to, ec);
    }
    out.modules = paths.size();
    TRY(out.firmware, collect_firmware(tree_, out_, folder, paths));
    const Files files(out_);
    TRY_(files.write(folder + "/modules.dep", index.dep_lines(paths)));
    TRY_(files.write(folder + "/modules.softdep", index.softdep_lines(paths)));
    TRY_(files.write(folder + "/modules.alias", alias_lines(alias, paths)));
    TRY_(files.write(folder + "/modules.builtin", tree.read(folder + "/modules.builtin").value_or("")));
    return out;
  }

 private:
  Status add(const std::string& real, const std::string& to, unsigned mode) {
    if (!done_.insert(to).second) return Ok{};
    TRY(const std::string bytes, Files("/").read(real));
    auto elf = read_elf(bytes);
    if (!elf) return std::move(elf).error().with(real);
    TRY_(Files(out_).write(to, bytes, mode));
    Names wanted = elf->needed;
    if (!elf->interpreter.empty())
      wanted.push_back(elf->interpreter.substr(elf->interpreter.find_last_of('/') + 1));
    for (const auto& name : wanted) TRY_(library(name, real));
    return Ok{};
  }

  Status library(const std::string& name, const std::string& wanted_by) {
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "/usr/lib/"}) {
      std::error_code ec;
      const fs::path real = fs::canonical(tree_ + folder + name, ec);
      if (ec) continue;
      // The dynamic loader has a fixed path; libraries go to the folder that it searches first.
      const bool loader = name.starts_with("ld-linux");
      return add(real.string(), (loader ? "/usr/lib64/" : "/usr/lib/x86_64-linux-gnu/") + name, 0755);
    }
    return fail(Code::not_found, wanted_by + " needs " + name + ", which is not in the image");
  }

  std::string tree_, out_;
  std::set<std::string> done_ = {};
};

std::string payload_key(const RamRequest& request, const std::string& agent_sha, Json& files) {
  files = Json::array();
  files.push_back({{"path", "/init"}, {"mode", 0755}, {"sha256", agent_sha}});
  for (const auto& p : request.payload)
    files.push_back({{"path", p.path}, {"mode", p.mode}, {"sha256", sha256_file(p.source).value_or("")}});
  return sha256(dump_json(Json{{"files", files}, {"level", request.level}, {"version", ram_tree_version()}}));
}

std::string changed_files(const Json& record, const Json& now) {
  std::string out;
  const Json before = record.value("payload", Json::array());
  for (const Json& file : now) {
    const std::string path = file.value("path", "");
    if (std::find(before.begin(), before.end(), file) != before.end()) continue;
    out += (out.empty() ? "" : ", ") +
           (path == "/init" ? std::string("muster-agent") : path.substr(path.rfind('/') + 1));
  }
  return out.empty() ? "this version of muster packs it differently" : out + " changed";
}

// The RAM system that is already packed. Code::conflict: it cannot be used, for the reason in the message.
Result<RamInfo> present(const RamRequest& request, const std::string& key, const Json& payload) {
  TRY(const std::string text, Files("/").read(request.image_folder + "/ram.json"));
  const auto record = parse_json(text);
  if (!record || !record->is_object()) return fail(Code::conflict, "its record is damaged");
  const Json& json = *record;
  if (json.value("key", "") != key) return fail(Code::conflict, changed_files(json, payload));
  RamInfo info{request.image_folder + "/ram-vmlinuz", json.value("kernel_sha256", ""),
               request.image_folder + "/ram-initrd", json.value("initrd_sha256", ""), true};
  if (sha256_file(info.initrd).value_or("") != info.initrd_sha256)
    return fail(Code::conflict, "its initrd is damaged");
  if (sha256_file(info.kernel).value_or("") != info.kernel_sha256)
    return fail(Code::conflict, "its kernel is damaged");
  return info;
}

Result<std::string> pack(const RamRequest& request, const std::string& agent) {
  CpioWriter cpio;
  TRY_(cpio.tree(request.image_folder + "/ram"));
  // The kernel opens /dev/console before /init can mount anything.
  cpio.device("dev/console", 0600, 5, 1);
  cpio.device("dev/null", 0666, 1, 3);
  cpio.file("init", agent, 0755);
  cpio.symlink("usr/sbin/muster-agent", "/init");
  std::set<std::string> folders = {"usr", "usr/bin", "usr/sbin", "usr/lib", "etc"};
  for (const auto& p : request.payload) {
    // Stored under /payload: seeding copies everything there into the installed system.
    const std::string path = "payload" + p.path;
    for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
      if (folders.insert(path.substr(0, slash)).second) cpio.directory(path.substr(0, slash));
    TRY(const std::string content, Files("/").read(p.source));
    cpio.file(path, content, p.mode);
  }
  TRY(const std::string early, early_microcode(request.image_folder + "/ram"));
  TRY(const std::string packed, compress_initramfs(cpio.finish(), request.level));
  return early + packed;
}

}  // namespace

int ram_tree_version() { return 4; }

std::string boot_init() { return kBootInit; }

Result<std::string> kernel_release(const std::string& tree) {
  const Names found = Files(tree).list("/usr/lib/modules");
  if (found.size() != 1)
    return fail(Code::failed,
                fmt::format("the image has {} kernels; it must have exactly one", found.size()));
  return found[0];
}

Result<RamContents> collect_ram_tree(const std::string& tree, const std::string& release,
                                     const std::string& out) {
  Collector c(tree, out);
  TRY_(c.skeleton());
  for (const auto& tool : kTools) TRY_(c.program(tool, tool == "mkfs.vfat" || tool == "mkfs.ext4"));
  TRY_(c.busybox());
  TRY(RamContents contents, c.modules(release, ram_system_modules));
  TRY_(collect_microcode(tree, out));
  const Files files(out);
  std::string load;
  for (const auto& name : modules_at_start()) load += name + "\n";
  TRY_(files.write("/usr/lib/muster/modules-load", load));
  TRY_(files.write("/etc/mke2fs.conf", Files(tree).read("/etc/mke2fs.conf").value_or("")));
  TRY_(files.write("/etc/os-release", "PRETTY_NAME=\"muster RAM system\"\nID=muster-ram\n"));
  return contents;
}

std::string to_text(const RamContents& contents) {
  constexpr uint64_t kMiB = 1 << 20;
  constexpr size_t kAbsentNamed = 12;  // of the tables above; kernels for virtual machines lack many
  const auto mib = [](uint64_t bytes) { return (bytes + kMiB - 1) / kMiB; };
  const FirmwareTaken& firmware = contents.firmware;
  std::string out =
      fmt::format("{} kernel modules ({} MiB), {} firmware files ({} of at most {} MiB)", contents.modules,
                  mib(contents.module_bytes), firmware.files, mib(firmware.bytes), mib(kMostFirmware));
  if (!firmware.too_large.empty())
    out += fmt::format("; left out as too large: {}", fmt::join(firmware.too_large, ", "));
  if (!firmware.lacking.empty())
    out += fmt::format("; this image has no firmware for {}", fmt::join(firmware.lacking, ", "));
  if (!contents.absent.empty()) out += "; this kernel has no " + some_of(contents.absent, kAbsentNamed);
  return out;
}

bool needs_initrd(const std::string& tree, const std::string& release) {
  const auto builtin =
      builtin_modules(Files(tree).read("/usr/lib/modules/" + release + "/modules.builtin").value_or(""));
  return builtin.count("ext4") == 0 || builtin.count("nvme") == 0;
}

Status make_boot_initrd(const std::string& tree, const std::string& release, const std::string& out) {
  const std::string folder = out + ".tree";
  Collector c(tree, folder);
  TRY_(c.skeleton());
  TRY_(c.program("blkid", true));
  TRY_(c.busybox());
  TRY(const RamContents contents, c.modules(release, [](const ModuleIndex& index) {
    Names names = storage_modules(index);
    names.insert(names.begin(), "ext4");
    return names;
  }));
  (void)contents;
  TRY_(Files(folder).write("/init", kBootInit, 0755));
  CpioWriter cpio;
  TRY_(cpio.tree(folder));
  cpio.device("dev/console", 0600, 5, 1);
  TRY(const std::string early, early_microcode(tree));
  TRY(const std::string packed, compress_initramfs(cpio.finish(), 15));
  std::error_code ec;
  fs::remove_all(folder, ec);
  return Files("/").write(out, early + packed);
}

Result<RamInfo> packed_ram_system(const std::string& image_folder) {
  TRY(const std::string text, Files("/").read(image_folder + "/ram.json"));
  TRY(const Json record, parse_json(text));
  RamInfo info{image_folder + "/ram-vmlinuz", text_at(record, "kernel_sha256"), image_folder + "/ram-initrd",
               text_at(record, "initrd_sha256"), true};
  if (info.kernel_sha256.empty() || info.initrd_sha256.empty())
    return fail(Code::corrupt, image_folder + "/ram.json contains no digests");
  return info;
}

Result<RamInfo> build_ram_system(const RamRequest& request) {
  const Files files("/");
  auto agent = files.read(request.agent);
  if (!agent) return std::move(agent).error().with("the agent for the RAM system");
  TRY(const ElfInfo elf, read_elf(*agent));
  if (!elf.is_elf || !elf.interpreter.empty())
    return fail(Code::invalid, request.agent + " is not statically linked: it cannot run as /init");
  Json payload;
  const std::string key = payload_key(request, sha256(*agent), payload);
  auto packed = present(request, key, payload);
  if (packed) return packed;
  TRY(const std::string initrd, pack(request, *agent));
  RamInfo info{request.image_folder + "/ram-vmlinuz",
               "",
               request.image_folder + "/ram-initrd",
               sha256(initrd),
               false,
               {}};
  if (packed.error().code == Code::conflict) info.why = packed.error().message;
  // Replaced atomically: a node may be downloading it.
  TRY(const std::string kernel, files.read(request.image_folder + "/vmlinuz"));
  info.kernel_sha256 = sha256(kernel);
  TRY_(files.write(info.kernel, kernel));
  TRY_(files.write(info.initrd, initrd));
  const Json record = {{"key", key},
                       {"kernel_sha256", info.kernel_sha256},
                       {"initrd_sha256", info.initrd_sha256},
                       {"payload", payload}};
  TRY_(files.write(request.image_folder + "/ram.json", dump_json(record)));
  return info;
}

}  // namespace muster
