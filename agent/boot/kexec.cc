#include "agent/boot/kexec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <iterator>

#include "agent/boot/boot_once.h"
#include "agent/image/boot_network.h"
#include "agent/image/image_job.h"
#include "base/digest.h"
#include "base/json_dump.h"
#include "base/record.h"
#include "base/split.h"
#include "sys/log.h"

namespace muster {
namespace {

Status get_ready(const Files& files, Process& process) {
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  TRY(const Json params, parse_json(text));
  TRY(const wire::KexecJob job, wire::kexec_job_from_json(params));
  const auto ready = prepare_kexec({files, process, fetch_from_boot_server, [] { return false; }}, job);
  if (!ready.ok()) {
    forget_kexec(files, process);
    return ready.error();
  }
  fmt::print("{}\n", dump_ascii(*ready));
  return Ok{};
}

constexpr const char* kFolder = "/run/muster-kexec";  // memory
constexpr const char* kAgent = "/usr/sbin/muster-agent";
constexpr const char* kUnit = "/run/systemd/system/muster-kexec.service";
// Like systemd-reboot.service with a different program, and with the timeout of reboot.target (30 min there).
constexpr const char* kUnitText =
    "[Unit]\n"
    "Description=Hand over to muster's RAM system\n"
    "DefaultDependencies=no\n"
    "Requires=shutdown.target umount.target final.target\n"
    "After=shutdown.target umount.target final.target\n"
    "JobTimeoutSec=15min\n"
    "JobTimeoutAction=reboot-force\n"
    "\n"
    "[Service]\n"
    "Type=oneshot\n"
    "ExecStart=/usr/sbin/muster-agent kexec --now\n";
constexpr const char* kLoaded = "/sys/kernel/kexec_loaded";
constexpr const char* kSecureBootFile =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr useconds_t kLook = 100'000;
constexpr size_t kLongestLine = 2047;  // COMMAND_LINE_SIZE of x86, including the terminator
constexpr int kRefused = 4;            // exit status of the child if the kernel does not allow it

// "none [integrity] confidentiality" -> "integrity"
std::string chosen(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']');
  return open == std::string::npos || close == std::string::npos || close < open
             ? ""
             : text.substr(open + 1, close - open - 1);
}

// "http://10.20.0.1:7480" -> "10.20.0.1"
std::string host_of(const std::string& url) {
  const size_t scheme = url.find("://");
  const std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
  if (!rest.empty() && rest.front() == '[') return rest.substr(1, rest.find(']') - 1);
  return rest.substr(0, rest.find_first_of(":/"));
}

int64_t available_kib(const Files& files) {
  for (const std::string& line : split_lines(files.read("/proc/meminfo").value_or("")))
    if (line.starts_with("MemAvailable:")) return std::atoll(line.c_str() + std::strlen("MemAvailable:"));
  return 0;
}

Result<Output> child(Process& process, const Json& request) {
  Command command;
  command.argv = {"/proc/self/exe", "kexec", "--stdin"};
  command.input = dump_json(request) + "\n";
  command.deadline = 2 * kMinute;
  return process.run(command);
}

void clean_up(const KexecDeps& deps, bool unload) {
  if (unload) (void)child(deps.process, {{"unload", true}});
  for (const char* name : {"/vmlinuz", "/initrd"}) (void)deps.files.remove(kFolder + std::string(name));
}

Result<std::string> fetch(const KexecDeps& deps, const wire::KexecJob& job, const std::string& path,
                          const std::string& digest) {
  if (deps.cancelled()) return fail(Code::cancelled, "withdrawn by the controller");
  TRY(std::string bytes, deps.fetch(job.base_url, path));
  // The file may have been rebuilt after the order was sent; the next order contains the new digest.
  if (sha256(bytes) != digest) return fail(Code::failed, path + " does not have the announced SHA-256");
  return bytes;
}

Status fetch_into_memory(const KexecDeps& deps, const wire::KexecJob& job, const std::string& path,
                         const std::string& digest, const std::string& name) {
  TRY(const std::string bytes, fetch(deps, job, path, digest));
  constexpr int64_t kKib = 1024, kSpareKib = 256 * kKib, kCopies = 4;  // file, segment, unpacked, in use
  const int64_t needed = static_cast<int64_t>(bytes.size()) / kKib * kCopies + kSpareKib;
  if (const int64_t free = available_kib(deps.files); free < needed)
    return fail(Code::denied,
                fmt::format("{} MiB of memory is free, but {} MiB is needed", free / kKib, needed / kKib));
  return deps.files.write(kFolder + name, bytes, 0600);
}

Status load(const KexecDeps& deps, const std::string& command_line) {
  const Json request = {{"kernel", deps.files.real(std::string(kFolder) + "/vmlinuz")},
                        {"initrd", deps.files.real(std::string(kFolder) + "/initrd")},
                        {"command_line", command_line}};
  TRY(const Output out, child(deps.process, request));
  if (out.ok()) return Ok{};
  const std::string why = out.err.empty() ? fmt::format("exit status {}", out.exit_code) : out.err;
  return fail(out.exit_code == kRefused ? Code::denied : Code::failed,
              "loading the RAM system's kernel: " + why.substr(0, why.find('\n')));
}

Status fetch_files(const KexecDeps& deps, const wire::KexecJob& job) {
  TRY_(deps.files.make_directories(kFolder, 0700));
  TRY_(fetch_into_memory(deps, job, job.kernel_path, job.kernel_sha256, "/vmlinuz"));
  TRY_(fetch_into_memory(deps, job, job.initrd_path, job.initrd_sha256, "/initrd"));
  if (deps.cancelled()) return fail(Code::cancelled, "withdrawn by the controller");
  return Ok{};
}

Status arm_loader(const KexecDeps& deps, const wire::KexecJob& job, const std::string& loader,
                  const std::string& command_line) {
  OneTimeBoot boot;
  TRY(boot.kernel, fetch(deps, job, job.kernel_path, job.kernel_sha256));
  TRY(boot.initrd, fetch(deps, job, job.initrd_path, job.initrd_sha256));
  boot.command_line = command_line;
  if (deps.cancelled()) return fail(Code::cancelled, "withdrawn by the controller");
  return arm_boot_once(deps.files, deps.process, loader, boot);
}

// Code::denied: the reason why this system cannot hand over at all.
Status may_leave(const Files& files) {
  if (!files.is_directory("/run/systemd/system"))
    return fail(Code::denied, "systemd is not running: this system cannot be shut down cleanly");
  if (!files.exists(kAgent))
    return fail(Code::denied, std::string(kAgent) + " is missing, but is required to start the RAM system");
  // The RAM system does not feed the watchdog, which would reset the machine while its disk is written.
  for (const auto& name : files.list("/sys/class/watchdog"))
    if (files.read_line("/sys/class/watchdog/" + name + "/state") == "active")
      return fail(Code::denied,
                  "the hardware watchdog " + name +
                      " is running (see RuntimeWatchdogSec of systemd) and would reset the machine");
  return Ok{};
}

// Checks the network: there is no other way to reach a machine without remote power control.
Status finds_its_way_back(const RamNetwork& network, const wire::KexecJob& job) {
  const bool known = network.mac == job.mac ||
                     std::find(network.ports.begin(), network.ports.end(), job.mac) != network.ports.end();
  if (!known)
    return fail(
        Code::denied,
        fmt::format("the new system would have no network: its network is declared on port {}, but the "
                    "controller is reached through port {}",
                    job.mac, network.mac));
  const std::string controller = host_of(job.base_url);
  const bool neighbour = on_network(job.address_cidr, controller);
  if (network.gateway.empty() && !neighbour)
    return fail(
        Code::denied,
        fmt::format("the controller {} is reached without a router, but the new system would have {}, which "
                    "is on a different network",
                    controller, job.address_cidr));
  if (network.gateway.empty()) return Ok{};
  if (neighbour)
    return fail(
        Code::denied,
        fmt::format("the controller {} is reached through the router {}, but the new system would have {} "
                    "and no router to the controller",
                    controller, network.gateway, job.address_cidr));
  if (job.gateway != network.gateway)
    return fail(Code::denied, fmt::format("the controller is reached through the router {}, but the declared "
                                          "router of the new system is {}",
                                          network.gateway, job.gateway.empty() ? "none" : job.gateway));
  return Ok{};
}

// Runs `work` in a process of its own, and gives it up if it still hangs after a minute.
void try_for_a_minute(void (*work)()) {
  constexpr int kLooks = 600;
  const pid_t worker = ::fork();
  if (worker == 0) {
    work();
    ::_exit(0);
  }
  for (int i = 0; worker > 0 && i < kLooks && ::waitpid(worker, nullptr, WNOHANG) == 0; ++i) ::usleep(kLook);
}

// A remaining mount may be a network file system whose server is gone: a sync would wait forever.
void write_back() {
  try_for_a_minute([] { ::sync(); });
}

// GPUs whose driver is still loaded do not always work under the next kernel. Nothing uses them now.
void unload_gpu_drivers() {
  try_for_a_minute([] {
    for (const char* name :
         {"nvidia_uvm", "nvidia_peermem", "nvidia_fs", "gdrdrv", "nvidia_drm", "nvidia_modeset", "nvidia"})
      (void)::syscall(SYS_delete_module, name, O_NONBLOCK);
  });
}

}  // namespace

Result<std::string> fetch_from_boot_server(const std::string& base_url, const std::string& path) {
  TRY(const auto source, http_source(base_url));
  return source->whole(path);
}

Status hand_over(bool ready) {
  const Files files;
  const auto process = make_process();
  return ready ? get_ready(files, *process) : leave_by_kexec(files, *process);
}

Status may_kexec(const Files& files) {
  TRY_(may_leave(files));
  if (!files.exists(kLoaded)) return fail(Code::denied, "this kernel was built without kexec");
  if (files.read_line("/proc/sys/kernel/kexec_load_disabled", "0") != "0")
    return fail(Code::denied, "kexec is disabled until the next boot (kernel.kexec_load_disabled)");
  const std::string lockdown = chosen(files.read_line("/sys/kernel/security/lockdown"));
  if (!lockdown.empty() && lockdown != "none")
    return fail(Code::denied, "the kernel is locked down (" + lockdown +
                                  "): it does not start a kernel without a trusted signature");
  // Four bytes of attributes, one of value.
  const std::string secure = files.read(kSecureBootFile).value_or("");
  if (secure.size() == 5 && secure[4] == 1)
    return fail(Code::denied,
                "Secure Boot is on: the running kernel starts only kernels that are signed for this machine");
  return Ok{};
}

namespace {

// Combines the reasons why neither the kernel nor the boot loader can start the RAM system.
Error no_way(const Error& kernel, const Error& loader) {
  return fail(Code::denied,
              kernel.message + "; a one-time boot entry is not possible either: " + loader.message);
}

}  // namespace

Result<Json> prepare_kexec(const KexecDeps& deps, const wire::KexecJob& job) {
  TRY_(may_leave(deps.files));
  Status kernel = may_kexec(deps.files);
  std::string loader;
  if (!kernel.ok()) {
    auto found = one_time_loader(deps.files, deps.process);
    if (!found.ok()) return no_way(kernel.error(), found.error());
    loader = *found;
  }
  auto network = network_to(deps.files, deps.process, host_of(job.base_url));
  if (!network.ok()) return std::move(network).error().with("the RAM system would not reach the controller");
  TRY_(finds_its_way_back(*network, job));
  const std::string arguments = network_arguments(*network);
  const std::string command_line = job.arguments + arguments;
  if (command_line.size() > kLongestLine || command_line.find_first_of("\n\r") != std::string::npos)
    return fail(Code::denied, "the RAM system's kernel command line is too long or has more than one line");
  Json ready = {{"network", arguments}, {"kernel", deps.files.read_line("/proc/sys/kernel/osrelease")}};
  if (loader.empty()) {
    if (const Status fetched = fetch_files(deps, job); !fetched.ok()) {
      clean_up(deps, true);
      return fetched.error();
    }
    kernel = load(deps, command_line);
    clean_up(deps, !kernel.ok());  // the kernel has its own copies
    if (kernel.ok()) return ready;
    if (kernel.error().code != Code::denied) return kernel.error();
    auto found = one_time_loader(deps.files, deps.process);
    if (!found.ok()) return no_way(kernel.error(), found.error());
    loader = *found;
  }
  if (const Status armed = arm_loader(deps, job, loader, command_line); !armed.ok())
    return armed.error().code == Code::denied ? no_way(kernel.error(), armed.error()) : armed.error();
  ready["way"] = loader + ", one boot";
  return ready;
}

Status leave_by_kexec(const Files& files, Process& process) {
  if (boot_once_armed(files)) {
    const auto result = run_ok(
        process, {{"systemctl", "--no-block", "--job-mode=replace-irreversibly", "start", "reboot.target"}});
    if (result.ok()) return Ok{};
    forget_boot_once(files, process);
    return result.error();
  }
  const auto notify = [&]() -> Status {
    TRY_(files.write(kUnit, kUnitText));
    TRY_(run_ok(process, {{"systemctl", "daemon-reload"}}));
    // As with `systemctl reboot`, no later request can cancel this job.
    TRY_(run_ok(process, {{"systemctl", "--no-block", "--job-mode=replace-irreversibly", "start",
                           "muster-kexec.service"}}));
    return Ok{};
  };
  const Status result = notify();
  if (result.ok()) return result;
  (void)files.remove(kUnit);
  (void)child(process, {{"unload", true}});
  return result;
}

void start_loaded_kernel(const Files& files) {
  constexpr int kLooks = 50;
  write_back();
  if (files.exists("/sys/module/nvidia")) unload_gpu_drivers();
  if (::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
    // The remount fails while a file is open for writing. SysRq 'u' forces it, but asynchronously: wait.
    (void)files.write_raw("/proc/sysrq-trigger", "u");
    const auto writable = [&files] {
      for (const std::string& line : split_lines(files.read("/proc/self/mounts").value_or("")))
        if (line.find(" / ") != std::string::npos && line.find(" rw") != std::string::npos) return true;
      return false;
    };
    for (int i = 0; i < kLooks && writable(); ++i) ::usleep(kLook);
  }
  write_back();
  if (files.read_line(kLoaded, "0") == "1")
    (void)::syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, nullptr);
  log::error("the RAM system's kernel did not start: restarting through the firmware");
  (void)::reboot(RB_AUTOBOOT);
  ::_exit(1);
}

void forget_kexec(const Files& files, Process& process) {
  forget_boot_once(files, process);
  // A different program's kernel (crash kernels do not count) is left alone: only muster's has the folder.
  if (!files.is_directory(kFolder) || files.read_line(kLoaded, "0") != "1") return;
  const auto out = child(process, {{"unload", true}});
  log::warning("unloading a kernel that was loaded but not started",
               {{"result", !out.ok()   ? out.error().message
                           : out->ok() ? "done"
                                       : out->err}});
}

Status kexec_refusal(int error) {
  switch (error) {
    case EBUSY:  // another program is loading a kernel at the moment
    case EINTR:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
      return fail(Code::failed, std::string("kexec_file_load: ") + strerror(error));
    default:
      return fail(Code::denied,
                  std::string("the running kernel rejected the new kernel: ") + strerror(error));
  }
}

namespace {
// Of the process that loads or unloads.
struct KexecLoad {
  bool unload = false;
  std::string kernel = {}, initrd = {}, command_line = {};
};
MUSTER_RECORD(KexecLoad, opt(unload), opt(kernel), opt(initrd), opt(command_line))
}  // namespace

Status load_kexec(const std::string& request) {
  TRY(const Json json, parse_json(request));
  TRY(const KexecLoad load, read_record<KexecLoad>(json, "standard input"));
  const int no_file = -1;
  const int kernel_file = load.unload ? no_file : ::open(load.kernel.c_str(), O_RDONLY | O_CLOEXEC);
  const int initrd_file = load.unload ? no_file : ::open(load.initrd.c_str(), O_RDONLY | O_CLOEXEC);
  if (!load.unload && (kernel_file < 0 || initrd_file < 0))
    return fail(Code::failed, std::string("opening the kernel and the initrd: ") + strerror(errno));
  const long done =
      ::syscall(SYS_kexec_file_load, kernel_file, initrd_file, load.unload ? 0 : load.command_line.size() + 1,
                load.unload ? nullptr : load.command_line.c_str(), load.unload ? KEXEC_FILE_UNLOAD : 0);
  return done == 0 ? Status(Ok{}) : kexec_refusal(errno);
}

}  // namespace muster
