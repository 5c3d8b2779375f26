#include "tests/fakes/fake_machine.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "agent/disk/bearers.h"
#include "agent/disk/disk.h"
#include "agent/disk/gpt.h"
#include "agent/steps/step_modules.h"
#include "base/digest.h"
#include "base/lower.h"
#include "sys/open_fd.h"

namespace muster::tests {
namespace {

namespace fs = std::filesystem;

Output good(std::string out = "") { return {0, std::move(out), ""}; }
Output bad(std::string err) { return {1, "", std::move(err)}; }

std::string after(const std::vector<std::string>& argv, const std::string& option) {
  for (size_t i = 0; i + 1 < argv.size(); ++i)
    if (argv[i] == option) return argv[i + 1];
  return "";
}
bool has(const std::vector<std::string>& argv, const std::string& word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

std::string value_of(const std::vector<std::string>& argv, const std::string& prefix) {
  for (const auto& word : argv)
    if (word.starts_with(prefix)) return word.substr(prefix.size());
  return "";
}

// Of what a file holds. Disks are files with almost nothing in them: only blocks that are not zero are read
// and count.
std::string digest_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const off_t size = ::lseek(fd, 0, SEEK_END);
  std::string block(64 << 10, '\0');
  Sha256 hash;
  hash.update(std::to_string(size));
  for (off_t at = ::lseek(fd, 0, SEEK_DATA); at >= 0 && at < size; at = ::lseek(fd, at, SEEK_DATA)) {
    at -= at % static_cast<off_t>(block.size());
    const ssize_t n = ::pread(fd, block.data(), block.size(), at);
    if (n <= 0) break;
    const std::string_view bytes(block.data(), static_cast<size_t>(n));
    if (bytes.find_first_not_of('\0') != std::string_view::npos)
      hash.update(std::to_string(at) + ":"), hash.update(bytes);
    at += static_cast<off_t>(block.size());
  }
  ::close(fd);
  return hash.finish();
}

}  // namespace

FakeMachine::FakeMachine() {
  char name[] = "/tmp/muster-machine-XXXXXX";
  root_ = ::mkdtemp(name);
  put("/proc/self/mountinfo", "");
  put("/proc/swaps", "Filename Type\n");
  put("/etc/passwd",
      fmt::format("root:x:{}:{}:root:/root:/bin/bash\nnobody:x:{}:{}::/nonexistent:/usr/sbin/nologin\n",
                  getuid(), getgid(), getuid(), getgid()));
  put("/etc/shadow", "root:*:1::::::\n");
  put("/etc/group", fmt::format("root:x:{0}:\nnogroup:x:{0}:\n", getgid()));
}

FakeMachine::~FakeMachine() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

StepContext FakeMachine::context() {
  static std::map<std::string, Files> held;  // StepContext keeps a reference
  StepContext out{held.insert_or_assign(root_, Files(root_)).first->second, *this, "node01"};
  out.module = [](const std::string& module) { return find_step_module(module); };
  // Nothing on a dead machine waits.
  out.cancelled = [this] { return dies_at >= 0 && static_cast<int>(calls.size()) > dies_at; };
  return out;
}

void FakeMachine::put(const std::string& path, const std::string& content) const {
  fs::create_directories(fs::path(root_ + path).parent_path());
  std::ofstream(root_ + path, std::ios::binary) << content;
}

void FakeMachine::append(const std::string& path, const std::string& text) const {
  put(path, get(path) + text);
}

void FakeMachine::add_disk(const std::string& name, const std::string& serial, uint64_t size,
                           const std::string& model) {
  const std::string folder = "/sys/block/" + name;
  put(folder + "/size", std::to_string(size / 512) + "\n");
  put(folder + "/wwid", "eui." + serial + "\n");
  put(folder + "/device/serial", serial + "\n");
  put(folder + "/device/model", model + "\n");
  put(folder + "/device/transport", "pcie\n");
  put(folder + "/queue/logical_block_size", "512\n");
  put(folder + "/dev", fmt::format("259:{}\n", next_device_++));
  fs::create_directories(root_ + folder + "/holders");
  fs::create_directories(root_ + "/sys/class/block");
  fs::create_symlink("../../block/" + name, root_ + "/sys/class/block/" + name);
  put("/dev/" + name, "");
  fs::resize_file(root_ + "/dev/" + name, size);
}

Json FakeMachine::approved(const std::string& serial, const std::string& policy) const {
  for (const auto& disk : scan_disks(files()))
    if (disk.serial == serial)
      return {{"serial", serial},
              {"wwid", disk.wwid},
              {"model", disk.model},
              {"size_bytes", disk.size_bytes},
              {"content_hash", disk.content_hash},
              {"policy", policy}};
  return nullptr;
}

void FakeMachine::write_disk(const std::string& name, uint64_t offset, const std::string& bytes) const {
  std::fstream out(root_ + "/dev/" + name, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(static_cast<std::streamoff>(offset));
  out << bytes;
}

std::string FakeMachine::disk_bytes(const std::string& name, uint64_t offset, size_t size) const {
  std::ifstream in(root_ + "/dev/" + name, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  std::string out(size, '\0');
  in.read(out.data(), static_cast<std::streamsize>(size));
  return out;
}

void FakeMachine::mount_entry(const std::string& name, const std::string& target, const std::string& type,
                              const std::string& options) {
  std::string flags;
  for (const char* flag : {"nosuid", "nodev", "noexec"})
    if (("," + options + ",").find(fmt::format(",{},", flag)) != std::string::npos)
      flags += fmt::format(",{}", flag);
  append("/proc/self/mountinfo",
         fmt::format("30 1 {} / {} rw{},relatime - {} /dev/{} rw\n",
                     files().read_line("/sys/class/block/" + name + "/dev",
                                       files().read_line("/sys/block/" + name + "/dev", "0:50")),
                     target, flags, type, name));
}

void FakeMachine::add_system(const std::string& name, const std::string& serial) {
  add_disk(name, serial);
  constexpr uint64_t kMiB = 1 << 20;
  GptTable table;
  const auto guid = [&](int part) {
    std::string hex = sha256(fmt::format("{} {}", serial, part)).substr(7, 32);
    for (const size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
    return hex;
  };
  table.disk_guid = guid(0);
  int number = 0;
  for (const char* title : {"muster-esp", "muster-root-a", "muster-root-b", "muster-state"}) {
    const std::string part = partition_path(name, ++number), folder = "/sys/block/" + name + "/" + part;
    put(folder + "/partition", std::to_string(number) + "\n");
    put(folder + "/uevent",
        fmt::format("DEVNAME={}\nDEVTYPE=partition\nPARTN={}\nPARTNAME={}\n", part, number, title));
    put(folder + "/dev", fmt::format("259:{}\n", next_device_++));
    put(folder + "/size", "2048\n");
    fs::create_symlink("../../block/" + name + "/" + part, root_ + "/sys/class/block/" + part);
    put("/dev/" + part, "");
    fs::resize_file(root_ + "/dev/" + part, kMiB);
    table.partitions.push_back({number, number == 1 ? kTypeEsp : kTypeLinux, guid(number), title,
                                static_cast<uint64_t>(number) * kMiB, kMiB});
  }
  const auto device = BlockDevice::open(files().real("/dev/" + name), BlockDevice::Access::exclusive_write);
  (void)(device.ok() && write_gpt(*device, table).ok());
}

std::map<std::string, std::string> FakeMachine::snapshot() const {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    struct stat s = {};
    lstat(entry.path().c_str(), &s);
    std::string what = fmt::format("{:o} ", s.st_mode);
    if (entry.is_symlink())
      what += fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      what += digest_of(entry.path().string());
    out[entry.path().string().substr(root_.size())] = what;
  }
  return out;
}

bool FakeMachine::called(const std::string& part) const {
  return std::any_of(calls.begin(), calls.end(),
                     [&](const std::string& call) { return call.find(part) != std::string::npos; });
}

Result<Output> FakeMachine::run(const Command& command) {
  const int number = static_cast<int>(calls.size());
  calls.push_back(steps::join(command.argv, " "));
  if (dies_at >= 0 && number >= dies_at) return fail(Code::timeout, "the machine died");
  auto out = execute(command);
  if (number == loses_reply_at) return fail(Code::timeout, "the answer was lost");
  return out;
}

Result<Output> FakeMachine::execute(const Command& command) {
  const auto& argv = command.argv;
  for (const auto& start : broken)
    if (calls.back().starts_with(start)) return bad("broken on purpose");
  const std::string& program = argv[0];
  if (const auto slow = takes.find(program); slow != takes.end() && slow->second > command.deadline)
    return fail(Code::timeout, program + " was killed at its deadline");
  if (program == "systemctl") return systemctl(argv);
  if (program == "mdadm") return mdadm(argv);
  if (program == "sfdisk") return sfdisk(command);
  if (program == "useradd" || program == "usermod" || program == "groupadd" || program == "visudo")
    return accounts(argv);
  if (program == "/usr/sbin/mfsmaster") return mfsmaster(argv);
  if (program == "mount" || program == "mkfs.xfs" || program.starts_with("mfs")) return storage(argv);
  if (program.starts_with("iptables") || program.starts_with("ip6tables")) return tables(argv, command);
  if (program == "/lib/ufw/ufw-init") return ufw_init(argv[1]);
  if (program == "/usr/sbin/sshd") return network(argv, command);
  if (program == "systemd-run") {
    const std::string unit = value_of(argv, "--unit=");
    for (const char* kind : {".service", ".timer"})
      if (!unit.empty() && units.count(unit + kind))
        return bad("Failed to start transient timer unit: Unit " + unit + kind +
                   " was already loaded or has a fragment file.");
    if (!unit.empty()) units[unit + ".timer"].active = true;
    return good();
  }
  if (program == "true") return good();
  if (program == "false") return bad("");
  if (program == "sinfo" || program == "squeue" || program == "scontrol") return slurm(argv);
  if (program.starts_with("ceph") || program == "monmaptool" || program == "chown" || program == "rm" ||
      program == "mv")
    return ceph(command);
  if (program == "exportfs") return exportfs(argv);
  if (program == "ip") return ip(argv);
  if (program == "networkctl") return networkctl(argv);
  if (program == "dcb") return dcb(argv);
  if (program == "stat" || program == "dd" || program == "cat" || program == "journalctl") {
    if (program == "stat" && files().exists("/mfs/dead"))
      return bad("stat: cannot read file system information: Transport endpoint is not connected");
    if (program != "journalctl" && files().exists("/site/gone"))
      return fail(Code::timeout, program + " did not end within its time and was killed");
    return site(command);
  }
  if (program == "ldconfig") return good(get("/ldconfig"));
  if (program == "/usr/bin/nvidia-ctk") return list_cdi_devices();
  if (program == "slurmctld" || program == "slurmd" || program == "slurmdbd" || program == "mariadbd")
    return good(get("/versions/" + program));
  if (program == "touch") return put(argv[1], ""), good();
  if (program == "sync") return good();
  if (program == "cp" && argv[2] == "-T")
    return fs::copy(root_ + argv[3], root_ + argv[4], fs::copy_options::recursive), good();
  if (program == "cp") {  // -a FILE... FOLDER
    for (size_t i = 2; i + 1 < argv.size(); ++i)
      fs::copy_file(root_ + argv[i], root_ + argv.back() + "/" + fs::path(argv[i]).filename().string());
    return good();
  }
  // The program that a MooseFS master's unit asks: another master answers where a test says so.
  if (program == "/etc/mfs/muster-only-master")
    return files().exists("/mfs/other-master") ? Output{1, "another one answers: master 10.20.0.12\n", ""}
                                               : good();
  if (program == "apt-cache") return show_package(argv.back());
  if (program == "dpkg-deb")  // -f FILE FIELD...; the file is its own description
    return get(argv[2]).starts_with("Package: ") ? good(get(argv[2])) : bad("not a Debian format archive");
  if (program == "apt-get" || program == "apt-mark" || program == "/usr/lib/apt/apt-helper")
    return packages(argv);
  if (program == "modprobe" || program == "rmmod" || program == "update-initramfs" || program == "udevadm" ||
      program == "update-grub" || program == "umount")
    return system(argv);
  if (program == "tar") return unpack(command);
  return fail(Code::not_found, "no program " + program);
}

// Two deb822 sources of one address that name their keys differently: apt reads no list at all.
Output FakeMachine::read_sources(const std::vector<std::string>& argv) const {
  std::map<std::string, std::string> keys;
  std::string folder;
  for (const auto& word : argv)
    if (word.starts_with("Dir::Etc::sourceparts=")) folder = word.substr(22);
  for (const auto& name : files().list(folder)) {
    std::string uri;
    for (const auto& line : split_lines(get(folder + name))) {
      if (line.starts_with("URIs: ")) uri = line.substr(6);
      if (!line.starts_with("Signed-By: ")) continue;
      const auto [known, added] = keys.emplace(uri, line.substr(11));
      if (!added && known->second != line.substr(11))
        return bad("E: Conflicting values set for option Signed-By regarding source " + uri);
    }
  }
  return good();
}

Output FakeMachine::packages(const std::vector<std::string>& argv) {
  if (argv[0] == "/usr/lib/apt/apt-helper") {
    const std::string& path = argv[argv.size() - 2];
    const auto it = web.find(argv[argv.size() - 3]);
    if (it == web.end()) return bad("404 Not Found");
    const bool right = argv.back() == "SHA256:" + sha256(it->second).substr(7);
    put(right ? path : path + ".FAILED", it->second);
    return right ? good() : bad("Hash Sum mismatch");
  }
  std::vector<std::string> names;
  for (size_t i = 2; i < argv.size(); ++i)
    if (argv[i][0] != '-' && argv[i].find(':') == std::string::npos && argv[i] != "install")
      names.push_back(argv[i]);
  if (argv[0] == "apt-mark") {
    std::string text = get("/var/lib/dpkg/status");
    for (const auto& name : names) {
      const std::string from =
          "Package: " + name + (argv[1] == "hold" ? "\nStatus: install " : "\nStatus: hold ");
      const size_t at = text.find(from);
      if (at != std::string::npos)
        text.replace(at, from.size(),
                     "Package: " + name + (argv[1] == "hold" ? "\nStatus: hold " : "\nStatus: install "));
    }
    return put("/var/lib/dpkg/status", text), good();
  }
  if (has(argv, "indextargets")) return read_sources(argv);
  if (argv.back() == "update") lists_are_stale = false;
  if (!has(argv, "install")) return good();
  if (has(argv, "--simulate"))
    return good((apt_removes.empty() ? "" : "Remv " + apt_removes + " [1]\n") + apt_brings);
  for (const auto& name : names) {
    if (name[0] == '/') {
      std::string text = get(name);
      text.insert(text.find('\n') + 1, "Status: install ok installed\n");
      append("/var/lib/dpkg/status", text + "\n");
      continue;
    }
    const size_t equals = name.find('=');
    append("/var/lib/dpkg/status",
           fmt::format("Package: {}\nStatus: install ok installed\nVersion: {}\n\n", name.substr(0, equals),
                       equals == std::string::npos ? "1" : name.substr(equals + 1)));
  }
  return good();
}

// `apt-cache show NAME` or `NAME=VERSION`, in which `*` is a wildcard.
Output FakeMachine::show_package(const std::string& word) const {
  const size_t equals = word.find('=');
  const auto found = archive.find(word.substr(0, equals));
  if (lists_are_stale || found == archive.end()) return bad("E: No packages found");
  for (const auto& version : found->second)
    if (equals == std::string::npos || fnmatch(word.substr(equals + 1).c_str(), version.c_str(), 0) == 0)
      return good("Package: " + found->first + "\nVersion: " + version + "\n");
  return bad("E: No packages found");
}

Output FakeMachine::system(const std::vector<std::string>& argv) {
  std::string module = argv.back();
  std::replace(module.begin(), module.end(), '-', '_');
  if (argv[0] == "modprobe") return put("/sys/module/" + module + "/refcnt", "0\n"), good();
  if (argv[0] == "rmmod") {
    if (files().read_line("/sys/module/" + module + "/refcnt") != "0")
      return bad("Module " + module + " is in use");
    fs::remove_all(root_ + "/sys/module/" + module);
    return good();
  }
  if (argv[0] == "umount") {
    std::string rest;
    for (const auto& line : split_lines(get("/proc/self/mountinfo")))
      if (line.find(" " + argv.back() + " ") == std::string::npos) rest += line + "\n";
    return put("/proc/self/mountinfo", rest), good();
  }
  return good();
}

Output FakeMachine::unpack(const Command& command) const {
  if (after(command.argv, "--file") != "/proc/self/fd/0") return bad("tar: cannot open");
  const std::string bytes = read_bytes(command.input_file, "standard input").value_or("");
  const std::string bin =
      fmt::format("/proc/self/fd/{}/{}/bin", command.folder, after(command.argv, "--directory"));
  fs::create_directories(bin);
  std::ofstream(bin + "/tool") << "from " << bytes;
  return good();
}

Output FakeMachine::systemctl(const std::vector<std::string>& argv) {
  if (argv.back() == "reboot") {
    fs::remove_all(root_ + "/run/muster");
    return put("/proc/sys/kernel/random/boot_id", "boot-after\n"), good();
  }
  if (argv[1] == "is-active") {
    if (before_is_active) before_is_active();
    bool any = false;
    std::string out;
    for (size_t i = 2; i < argv.size(); ++i) {
      if (argv[i][0] == '-') continue;
      const bool active = units.count(argv[i]) && units[argv[i]].active;
      const bool passing = units.count(argv[i]) && units[argv[i]].passing;
      any |= active && !passing;
      out += passing ? "deactivating\n" : active ? "active\n" : "inactive\n";
    }
    return {any ? 0 : 3, has(argv, "--quiet") ? "" : out, ""};
  }
  if (argv[1] == "daemon-reexec") return reexec(), good();
  if (argv[1] == "show" && value_of(argv, "--property=Default") != "") {
    std::string out;
    for (const auto& [key, value] : manager_) out += key + "=" + value + "\n";
    return good(out);
  }
  if (argv[1] == "show") {
    std::string out;
    for (size_t i = 2; i < argv.size(); ++i) {
      if (argv[i][0] == '-') continue;
      const bool known = units.count(argv[i]) > 0;
      const Unit unit = known ? units[argv[i]] : Unit{};
      out += fmt::format(
          "Id={}\nNames={}\nLoadState={}\nActiveState={}\nUnitFileState={}\nNeedDaemonReload={}"
          "\nActiveEnterTimestampMonotonic={}\n\n",
          argv[i], argv[i],
          unit.masked ? "masked"
          : known     ? "loaded"
                      : "not-found",
          unit.active ? "active" : "inactive",
          unit.masked                ? "masked"
          : !unit.remembered.empty() ? unit.remembered.c_str()
          : unit.enabled             ? "enabled"
          : known                    ? "disabled"
                                     : "",
          reload_due_ ? "yes" : "no", "0");
    }
    return good(out);
  }
  // As since systemd 254: links that were changed make every unit outdated until all are loaded again.
  if (argv[1] == "enable" || argv[1] == "disable" || argv[1] == "daemon-reload")
    reload_due_ = has(argv, "--no-reload");
  if (argv[1] == "daemon-reload")
    for (auto& [name, unit] : units) unit.remembered.clear();
  if (argv[1] == "reload" && has(argv, "moosefs-chunkserver.service")) put("/mfs/reloaded", "");
  for (size_t i = 2; i < argv.size(); ++i) {
    std::string name = argv[i];
    if (name[0] == '-') continue;
    if (argv[1] == "stop" &&
        name.starts_with("muster-rollback-")) {  // a transient unit: gone once it is stopped
      if (!units.erase(name)) return {5, "", "Failed to stop " + name + ": Unit " + name + " not loaded."};
      continue;
    }
    if (argv[1] == "stop" && name.find(".timer") != std::string::npos && !units.count(name)) continue;
    Unit& unit = units[name];
    if (argv[1] == "enable") unit.enabled = true;
    if (argv[1] == "disable") unit.enabled = false;
    if (argv[1] == "mask") unit.masked = true;
    if (argv[1] == "unmask") unit.masked = false;
    if (argv[1] == "start" || argv[1] == "restart") unit.active = true;
    if (argv[1] == "stop") unit.active = false;
    if (name.find("ceph-") != std::string::npos && (argv[1] == "start" || argv[1] == "restart"))
      ceph_starts(name);
    if (name.starts_with("muster-external-") && unit.active) {
      const Output mounted = site({.argv = {"mount", get("/etc/systemd/system/" + name)}});
      unit.active = mounted.ok();
      if (!mounted.ok()) return mounted;
    }
    if (name.starts_with("muster-mfs-")) mount_moosefs(name, unit.active);
    // Writes what the driver has now: the file /cdi-generated.
    if (name == "nvidia-cdi-refresh.service" && argv[1] == "restart" && files().exists("/cdi-generated"))
      put("/run/cdi/nvidia.yaml", get("/cdi-generated"));
  }
  return good();
}

// What its unit says: of the master after -H, at the folder after the program; away with the service.
void FakeMachine::mount_moosefs(const std::string& unit, bool there) {
  const auto words = split(get("/etc/systemd/system/" + unit), ' ');
  std::string target = "/shared", master = "10.20.0.11", rest;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-H") master = words[i + 1];
    if (words[i].find("ExecStart=/usr/bin/mfsmount") != std::string::npos) target = words[i + 1];
  }
  for (const auto& line : split_lines(get("/proc/self/mountinfo")))
    if (there || line.find(" " + target + " ") == std::string::npos) rest += line + "\n";
  // A mount whose process is gone stays in the kernel's list; a process that starts above it is refused.
  if (there && files().exists("/mfs/dead") &&
      get("/proc/self/mountinfo").find(" " + target + " ") != std::string::npos)
    return;
  (void)files().remove("/mfs/dead");
  put("/proc/self/mountinfo", rest);
  if (there)
    append("/proc/self/mountinfo",
           fmt::format("40 1 0:50 / {} rw,nosuid,nodev - fuse mfs\\043{}:9421 rw\n", target, master));
}

// systemd reads its own settings again.
void FakeMachine::reexec() {
  manager_.clear();
  for (const auto& name : files().list("/etc/systemd/system.conf.d"))
    for (const auto& line : split_lines(get("/etc/systemd/system.conf.d/" + name)))
      if (const size_t equals = line.find('='); equals != std::string::npos)
        manager_[line.substr(0, equals)] = line.substr(equals + 1);
}

// The real program on the file that stands for the disk; the kernel's view of what it made, and blank
// partitions, are added here.
Result<Output> FakeMachine::sfdisk(const Command& command) {
  const std::string disk = command.argv.back().substr(5);
  Command real = command;
  real.argv.back() = files().real(command.argv.back());
  TRY(auto out, make_process()->run(real));
  if (!out.ok()) return out;
  TRY(const auto device, BlockDevice::open(real.argv.back(), BlockDevice::Access::read));
  TRY(const GptTable table, read_gpt(device));
  for (const auto& p : table.partitions) {
    const std::string name = partition_path(disk, p.number), folder = "/sys/block/" + disk + "/" + name;
    put(folder + "/partition", std::to_string(p.number) + "\n");
    put(folder + "/start", std::to_string(p.start / 512) + "\n");
    put(folder + "/size", std::to_string(p.size / 512) + "\n");
    put(folder + "/dev", fmt::format("259:{}\n", next_device_++));
    if (!fs::is_symlink(root_ + "/sys/class/block/" + name))
      fs::create_symlink("../../block/" + disk + "/" + name, root_ + "/sys/class/block/" + name);
    put("/dev/" + name, "");
    fs::resize_file(root_ + "/dev/" + name, p.size);
  }
  return out;
}

Output FakeMachine::accounts(const std::vector<std::string>& argv) {
  const std::string name = argv.back();
  if (argv[0] == "visudo") return good();
  if (argv[0] == "groupadd")
    return append("/etc/group",
                  name + ":x:" + (after(argv, "-g").empty() ? "900" : after(argv, "-g")) + ":\n"),
           good();
  if (argv[0] == "usermod") {
    if (after(argv, "-p").empty() && !has(argv, "-L")) return good();
    std::string text;
    for (const auto& line : split_lines(get("/etc/shadow"))) {
      const size_t begin = name.size() + 1, end = line.find(':', begin);
      const bool own = line.starts_with(name + ":");
      const std::string field = !own ? "" : line.substr(begin, end - begin);
      text +=
          !own ? line : name + ":" + (has(argv, "-L") ? "!" + field : after(argv, "-p")) + line.substr(end);
      text += "\n";
    }
    return put("/etc/shadow", text), good();
  }
  // Ids are those of the test, so that files can be given to them without being root.
  append("/etc/passwd",
         fmt::format("{}:x:{}:{}::{}:{}\n", name, getuid(), getgid(), after(argv, "-d"), after(argv, "-s")));
  const std::string password = after(argv, "-p");
  append("/etc/shadow", name + ":" + (password.empty() ? "!" : password) + ":1::::::\n");
  append("/etc/group", fmt::format("{}:x:{}:\n", name, getgid()));
  fs::create_directories(root_ + after(argv, "-d"));
  return good();
}

// As mount looks it up: of several that carry a name, one.
std::string FakeMachine::device_of(const std::string& source) const {
  const std::string value = source.substr(source.find('=') + 1);
  if (source.starts_with("/dev/")) return source.substr(5);
  if (source.starts_with("LABEL=")) {
    const auto link = files().read_link("/dev/disk/by-label/" + value);
    return link.ok() ? link->substr(link->rfind('/') + 1) : "";
  }
  for (const auto& name : files().list("/sys/class/block")) {
    const auto device = BlockDevice::open(files().real("/dev/" + name), BlockDevice::Access::read);
    const auto found = device.ok() ? probe_region(*device, 0, device->size())
                                   : Result<std::vector<Signature>>(device.error());
    if (!found.ok()) continue;
    for (const auto& s : *found)
      if (source == "UUID=" + file_system_uuid(s)) return name;
  }
  return "";
}

Output FakeMachine::storage(const std::vector<std::string>& argv) {
  if (argv[0] == "mkfs.xfs") {
    const std::string label = after(argv, "-L");
    std::string block(512, '\0');
    block.replace(0, 4, "XFSB");
    block.replace(4, 4, std::string("\0\0\x10\0", 4));
    block.replace(32, 16, fmt::format("fedcba98{:08}", next_device_++));  // no two are the same
    block.replace(108, label.size(), label);
    block.replace(102, 2, std::string("\x02\0", 2));
    write_disk(argv.back().substr(5), 0, block);
    fs::create_directories(root_ + "/dev/disk/by-label");
    if (!fs::is_symlink(root_ + "/dev/disk/by-label/" + label))
      fs::create_symlink("../../" + argv.back().substr(5), root_ + "/dev/disk/by-label/" + label);
    return good();
  }
  if (argv[0] == "mount" && argv[2].starts_with("remount,")) {
    std::string all;
    for (const auto& line : split_lines(get("/proc/self/mountinfo"))) {
      auto words = split(line, ' ');
      if (words.size() > 5 && words[4] == argv.back()) words[5] += "," + argv[2].substr(8);
      for (size_t i = 0; i < words.size(); ++i) all += (i ? " " : "") + words[i];
      all += "\n";
    }
    return put("/proc/self/mountinfo", all), good();
  }
  if (argv[0] == "mount") {
    if (on_mount) on_mount();
    const std::string name = device_of(argv[argv.size() - 2]);
    if (name.empty()) return bad("can't find " + argv[argv.size() - 2]);
    mount_entry(name, argv.back(), after(argv, "-t"), after(argv, "-o"));
    return good();
  }
  if (argv[0] == "mfssetgoal" || argv[0] == "mfssettrashtime")
    return attributes_["mfsget" + argv[0].substr(6)] = argv[1], good();
  if (argv[0] == "mfsgetgoal" || argv[0] == "mfsgettrashtime")
    return good(argv[1] + ": " + (attributes_.count(argv[0]) ? attributes_[argv[0]] : "1") + "\n");
  if (argv[0] == "mfscli" && argv.back().starts_with("-CM")) return maintain(argv.back());
  if (argv[0] == "mfscli" && files().exists("/mfs/servers")) return good(volume());
  if (argv[0] == "mfscli")
    return good("chunk servers:|10.20.0.11|9422|1|-|3.0.117|0|" + maintenance_of("10.20.0.11") +
                "|0|210|1027|-|0|0|0\n"
                "disks:|10.20.0.11:9422:/srv/mfs/C/|1|no errors|ok|-|-|-|-|-|-|-|-|21|102\n");
  return bad("unknown tool");
}

// What is exported changes only with -ra.
Output FakeMachine::exportfs(const std::vector<std::string>& argv) {
  if (argv[1] == "-s") return good(exports_);
  exports_.clear();
  std::string all = get("/etc/exports");
  for (const auto& name : files().list("/etc/exports.d")) all += get("/etc/exports.d/" + name);
  for (const auto& line : split_lines(all)) {
    const auto words = split(line, ' ');
    for (size_t i = 1; i < words.size() && words[0][0] == '/'; ++i)
      exports_ += words[0] + "  " + words[i].substr(0, words[i].size() - 1) +
                  ",sec=sys,rw,secure,root_squash,no_all_squash)\n";
    if (words.size() == 1 && words[0][0] == '/')
      exports_ += words[0] + "  *(ro,sec=sys,secure,root_squash,no_all_squash)\n";
  }
  return good();
}

// A MooseFS volume of the servers in /mfs/servers, one disk each; this one's is marked for removal by the
// star in its list, and is empty once the chunk server was reloaded. /mfs/missing, /mfs/endangered and
// /mfs/undergoal: how many chunks are.
std::string FakeMachine::volume() {
  std::string out;
  for (const auto& server : split(get("/mfs/servers"), ' ')) {
    const bool leaving =
        server == get("/mfs/own") && get("/etc/mfs/mfshdd.cfg").find("*/") != std::string::npos;
    const std::string state = !leaving                          ? "ok"
                              : files().exists("/mfs/reloaded") ? "marked for removal (ready)"
                                                                : "marked for removal (not ready)";
    out += fmt::format("chunk servers:|{}|9422|1|-|3.0.117|0|{}|8|1000|{}|-|0|0|0\n", server,
                       maintenance_of(server), files().exists("/mfs/full") ? 1100 : 100000);
    out +=
        fmt::format("disks:|{}:9422:/srv/mfs/C/|8|no errors|{}|-|-|-|-|-|-|-|-|1000|100000\n", server, state);
  }
  for (const char* what : {"missing", "endangered", "undergoal", "stable"})
    out += fmt::format("all chunks matrix:|chunkclass {}:|{}\n", what,
                       files().exists(std::string("/mfs/") + what) ? get(std::string("/mfs/") + what) : "0");
  return out;
}

// "-CM1/10.20.0.11/9422". One that the master does not know is named on the output, and no error.
Output FakeMachine::maintain(const std::string& word) {
  const auto parts = split(word, '/');
  const std::string known = files().exists("/mfs/servers") ? get("/mfs/servers") : "10.20.0.11";
  const auto servers = split(known, ' ');
  if (std::find(servers.begin(), servers.end(), parts[1]) == servers.end())
    return good("server " + parts[1] + ":9422 not found\n");
  put("/mfs/maintenance/" + parts[1], parts[0] == "-CM1" ? "on" : "off");
  return good();
}

std::string FakeMachine::maintenance_of(const std::string& server) const {
  return get("/mfs/maintenance/" + server) == "on" ? "maintenance_on" : "maintenance_off";
}

// /slurm/NODE: "state|reason" or "state|reason|user|time". /slurm-suspended/NODE and /slurm-jobs/NODE: ids of
// its suspended and its running jobs, a line each; a node that has only suspended ones counts as drained.
// With the file /slurm-maintenance all nodes are in a reservation for maintenance, which sinfo shows as Slurm
// 24.11 does. /slurm-started/NODE: when the slurmd that registered it was started; without it, none has.
Output FakeMachine::slurm(const std::vector<std::string>& argv) {
  if (argv[0] == "sinfo") {
    std::string out;
    for (const auto& node : files().list("/slurm")) {
      std::string text = get("/slurm/" + node);
      if (const size_t end = text.find('|'); files().exists("/slurm-maintenance") && end != std::string::npos)
        text = (text.substr(0, end) == "idle" ? "maint" : text.substr(0, end) + "$") + text.substr(end);
      const bool anonymous = std::count(text.begin(), text.end(), '|') < 3;
      out += node + "|" + text + (anonymous ? "|Unknown|Unknown\n" : "\n");
    }
    return good(out);
  }
  if (argv[0] == "squeue") {
    const auto on = std::find(argv.begin(), argv.end(), "-w");
    if (on == argv.end() || on + 1 == argv.end()) return good();
    return good(get("/slurm-suspended/" + *(on + 1)) + get("/slurm-jobs/" + *(on + 1)));
  }
  if (has(argv, "show")) {
    const std::string started = get("/slurm-started/" + argv.back());
    return good("NodeName=" + argv.back() +
                " State=IDLE SlurmdStartTime=" + (started.empty() ? "None" : started) + " LastBusyTime=1\n");
  }
  const std::string node = value_of(argv, "nodename="), state = value_of(argv, "state=");
  if (!files().exists("/slurm/" + node)) return bad("Invalid node name specified");
  const std::string now = get("/slurm/" + node),
                    drained = get("/slurm-jobs/" + node).empty() ? "drained" : "draining";
  const bool lacking = now.starts_with("inval|");
  if (state == "resume" && lacking) return bad("slurm_update error: Invalid node state specified");
  put("/slurm/" + node,
      state == "drain" ? (lacking ? "inval" : drained) + "|" + value_of(argv, "reason=") : "idle|none");
  return good();
}

Output FakeMachine::tables(const std::vector<std::string>& argv, const Command& command) {
  FakeFirewall& table = firewall[argv[0].substr(0, argv[0].find('-'))];
  if (argv[0].find("-save") != std::string::npos) return good(table.save());
  if (argv[0].find("-restore") == std::string::npos) return good(table.list());
  const bool keep = has(argv, "-n");
  const bool file = argv.back()[0] == '/';
  if (file && !files().exists(argv.back())) return bad("Can't open " + argv.back());
  const std::string error = table.restore(file ? get(argv.back()) : command.input, keep);
  return error.empty() ? good() : bad(error);
}

Output FakeMachine::ufw_init(const std::string& verb) {
  const std::pair<const char*, const char*> families[] = {{"iptables", "ufw-"}, {"ip6tables", "ufw6-"}};
  if (verb != "start") {
    for (const auto& [tool, prefix] : families) firewall[tool].ufw_stop(prefix);
    return good();
  }
  if (get("/etc/ufw/ufw.conf").find("ENABLED=yes") == std::string::npos)
    return good("Skip starting firewall");
  if (firewall["iptables"].has_chain("ufw-user-input")) return good("Firewall already started");
  const std::string defaults = get("/etc/default/ufw");
  const bool open = defaults.find("DEFAULT_INPUT_POLICY=\"ACCEPT\"") != std::string::npos;
  for (const auto& [tool, prefix] : families) {
    const std::string six = std::string(tool) == "ip6tables" ? "6" : "";
    if (!six.empty() && defaults.find("IPV6=yes") == std::string::npos) {
      firewall[tool].policies["INPUT"] = "DROP";
      continue;
    }
    const auto file = [&](const char* name) { return get("/etc/ufw/" + std::string(name) + six + ".rules"); };
    const std::string error = firewall[tool].ufw_start(prefix, {file("before"), file("after"), file("user")},
                                                       open ? "ACCEPT" : "DROP");
    if (!error.empty()) return bad(error);
  }
  return good();
}

Output FakeMachine::network(const std::vector<std::string>& argv, const Command&) {
  if (!has(argv, "-T")) return good();
  if (!sshd_in_effect.empty()) return good(sshd_in_effect);
  std::string out;
  for (const auto& line : split_lines(get("/etc/ssh/sshd_config.d/00-muster.conf")))
    out += lower(line) + "\n";
  return good(out);
}

}  // namespace muster::tests
