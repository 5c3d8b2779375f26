#include "agent/boot/ram_init.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_vlan.h>
#include <linux/reboot.h>
#include <linux/route.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>

#include "agent/boot/kernel_modules.h"
#include "base/lower.h"
#include "host/net_ports.h"
#include "sys/log.h"

namespace muster {
namespace {

constexpr const char* kBond = "mbond";

// Makes one ioctl call on a temporary socket.
Status call(unsigned long what, void* request, const std::string& purpose) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Code::failed, std::string("socket: ") + strerror(errno));
  const bool done = ::ioctl(fd, what, request) == 0 || errno == EEXIST;
  const int error = errno;
  ::close(fd);
  return done ? Status(Ok{}) : fail(Code::failed, purpose + ": " + strerror(error));
}

Result<ifreq> request_for(const std::string& device) {
  ifreq request = {};
  if (device.size() >= IFNAMSIZ) return fail(Code::invalid, "not a valid interface name: " + device);
  std::memcpy(request.ifr_name, device.data(), device.size());
  return request;
}

Status switch_up(const std::string& device) {
  TRY(ifreq request, request_for(device));
  TRY_(call(SIOCGIFFLAGS, &request, "flags of " + device));
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return call(SIOCSIFFLAGS, &request, "switching on " + device);
}

Status set_mtu(const std::string& device, int mtu) {
  TRY(ifreq request, request_for(device));
  request.ifr_mtu = mtu;
  return call(SIOCSIFMTU, &request, fmt::format("MTU {} of {}", mtu, device));
}

Result<std::string> make_vlan(const std::string& device, int id) {
  vlan_ioctl_args request = {};
  const std::string made = fmt::format("{}.{}", device, id);
  if (made.size() >= sizeof request.device1)
    return fail(Code::invalid, "not a valid interface name: " + made);
  request.cmd = SET_VLAN_NAME_TYPE_CMD;
  request.u.name_type = VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD;
  TRY_(call(SIOCSIFVLAN, &request, "setting the format of VLAN names"));
  request = {};
  request.cmd = ADD_VLAN_CMD;
  std::memcpy(request.device1, device.data(), device.size());
  request.u.VID = id;
  TRY_(call(SIOCSIFVLAN, &request, "VLAN " + made));
  return made;
}

Status add_default_route(const std::string& gateway) {
  rtentry route = {};
  const auto set = [](sockaddr& place, const std::string& text) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    if (!text.empty()) ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
    std::memcpy(&place, &address, sizeof address);
  };
  set(route.rt_dst, "");
  set(route.rt_genmask, "");
  set(route.rt_gateway, gateway);
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  return call(SIOCADDRT, &route, "route through " + gateway);
}

// Shared between process 1 and the agent's process: monotonic time of the last contact.
std::atomic<int64_t>* shared_contact = nullptr;

int64_t monotonic_ms() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

void pause_ms(int64_t ms) {
  const timespec t{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1000000)};
  ::nanosleep(&t, nullptr);
}

struct Mount {
  const char *type, *at, *options;
  bool required;
};
constexpr Mount kMounts[] = {{"proc", "/proc", "", true},
                             {"sysfs", "/sys", "", true},
                             {"devtmpfs", "/dev", "mode=0755", true},
                             {"tmpfs", "/run", "mode=0755", true},
                             {"tmpfs", "/tmp", "mode=1777", true},
                             {"efivarfs", "/sys/firmware/efi/efivars", "", false}};

Status mount_one(const Mount& m) {
  ::mkdir(m.at, 0755);
  if (::mount(m.type, m.at, m.type, MS_NOSUID | MS_NOEXEC * (strcmp(m.type, "devtmpfs") != 0), m.options) ==
          0 ||
      errno == EBUSY)
    return Ok{};
  return fail(Code::failed, std::string("mounting ") + m.at + ": " + strerror(errno));
}

Status load_by_name(const Files& files, const std::string& name) {
  utsname u;
  ::uname(&u);
  return ModuleLoader(files, std::string("/usr/lib/modules/") + u.release, insert_module).load(name);
}

void load_modules(RamEnvironment& env) {
  utsname u;
  ::uname(&u);
  const Files files("/");
  ModuleLoader loader(files, std::string("/usr/lib/modules/") + u.release, insert_module);
  std::istringstream names(files.read("/usr/lib/muster/modules-load").value_or(""));
  for (std::string name; names >> name;)
    if (auto s = loader.load(name); !s) env.problems.push_back(s.error().message);
  const auto problems = loader.load_for_devices();
  env.problems.insert(env.problems.end(), problems.begin(), problems.end());
}

// Waits, because some cards' drivers are slow. Some ports of a bond may never appear.
void wait_for_ports(const Files& files, const RamNetwork& network, int64_t until) {
  const auto there = [&](const std::string& mac) { return interface_with_mac(files, mac).ok(); };
  const std::vector<std::string> wanted =
      network.ports.empty() ? std::vector<std::string>{network.mac} : network.ports;
  while (!std::all_of(wanted.begin(), wanted.end(), there) && monotonic_ms() < until) pause_ms(50);
}

void bring_up_network(RamEnvironment& env, const RamOptions& options) {
  (void)configure_ipv4("lo", "127.0.0.1/8");
  const auto network = ram_network(env.cmdline);
  if (!network) {
    env.problems.push_back(network.error().message + ": no network");
    return;
  }
  const Files files("/");
  const auto load = [&files](const std::string& name) { return load_by_name(files, name); };
  wait_for_ports(files, *network, monotonic_ms() + options.wait_for_link);
  auto device =
      network->bond_mode.empty() ? interface_with_mac(files, network->mac) : make_bond(files, *network, load);
  if (device.ok()) device = address_device(*device, *network, load);
  if (device.ok())
    env.interface = *device;
  else
    env.problems.push_back(device.error().message);
}

[[noreturn]] void reboot_now() {
  ::sync();
  ::reboot(LINUX_REBOOT_CMD_RESTART);
  for (;;) pause_ms(1000);  // reboot(2) failed; process 1 must not end
}

pid_t start_agent(const std::function<int(const RamEnvironment&)>& agent, const RamEnvironment& env) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setsid();
  ::_exit(agent(env));
}

// Reaps all children, restarts the agent, and checks the dead-man timer.
[[noreturn]] void supervise(const std::function<int(const RamEnvironment&)>& agent, const RamEnvironment& env,
                            const RamOptions& options, int64_t started) {
  pid_t child = -1;
  int64_t start_after = 0;
  for (;;) {
    if (child < 0 && monotonic_ms() >= start_after) child = start_agent(agent, env);
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child) continue;
      child = -1;
      start_after = monotonic_ms() + options.restart_pause;
      log::error("the agent ended and will be restarted", {{"status", std::to_string(status)}});
    }
    if (gives_up(options, started, shared_contact->load(), monotonic_ms())) {
      log::error("no contact with the controller: rebooting from disk");
      reboot_now();
    }
    pause_ms(200);
  }
}

}  // namespace

Result<std::string> make_bond(const Files& files, const RamNetwork& network,
                              const std::function<Status(const std::string&)>& load) {
  TRY_(load("bonding"));
  const std::string folder = std::string("/sys/class/net/") + kBond + "/bonding/";
  if (!files.exists(folder))
    TRY_(files.write_raw("/sys/class/net/bonding_masters", std::string("+") + kBond));
  TRY_(files.write_raw(folder + "mode", network.bond_mode));
  TRY_(files.write_raw(folder + "miimon", "100"));
  int taken = 0;
  for (const auto& mac : network.ports) {
    const auto port = interface_with_mac(files, mac);
    if (!port.ok()) continue;
    TRY_(files.write_raw(folder + "slaves", "+" + *port));
    ++taken;
  }
  if (taken == 0) return fail(Code::not_found, "none of the ports of the bond is present");
  return std::string(kBond);
}

Result<std::string> address_device(const std::string& device, const RamNetwork& network,
                                   const std::function<Status(const std::string&)>& load) {
  std::string top = device;
  // A VLAN's MTU cannot exceed that of the device below it.
  if (network.mtu > 0) TRY_(set_mtu(device, network.mtu));
  if (network.vlan > 0) {
    TRY_(load("8021q"));
    TRY_(switch_up(device));
    TRY(top, make_vlan(device, network.vlan));
  }
  TRY_(configure_ipv4(top, network.cidr));
  if (!network.gateway.empty()) TRY_(add_default_route(network.gateway));
  return top;
}

bool is_ram_init() { return ::getpid() == 1 && Files("/").exists("/usr/lib/muster/modules-load"); }

void ram_contact() {
  if (shared_contact) shared_contact->store(monotonic_ms());
}

RamOptions ram_options(const std::string& cmdline, RamOptions options) {
  constexpr int64_t kLeast = 30, kMost = 24 * 3600;
  const std::string text = cmdline_value(cmdline, "muster.give_up");
  int64_t seconds = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || wrong != std::errc() || end != text.data() + text.size()) return options;
  options.dead_man = std::clamp(seconds, kLeast, kMost) * kSecond;
  options.until_joined = true;
  return options;
}

bool gives_up(const RamOptions& options, int64_t started, int64_t contact, int64_t now) {
  if (options.until_joined && contact != started) return false;
  return now - contact > options.dead_man;
}

Status mount_kernel_file_systems() {
  // Where the kernel's own root is open to all (1777), sys/folder_trust.h counts its entries as others'.
  (void)::chmod("/", 0755);
  for (const auto& m : kMounts) {
    Status s = mount_one(m);
    if (!s && m.required) return s;
  }
  return Ok{};
}

Result<std::string> interface_with_mac(const Files& files, const std::string& mac) {
  std::string wanted = lower(mac);
  std::replace(wanted.begin(), wanted.end(), '-', ':');
  std::string last;
  // USB adapters may use the board's MAC: a physical port is preferred.
  for (const NetPort& port : net_devices(files)) {
    if (port.mac != wanted) continue;
    if (port.why == Why::real) return port.name;
    if (last.empty()) last = port.name;
  }
  if (!last.empty()) return last;
  return fail(Code::not_found, "no network interface has the address " + wanted);
}

Status configure_ipv4(const std::string& interface, const std::string& cidr) {
  const size_t slash = cidr.find('/');
  const int prefix = slash == std::string::npos ? 32 : std::atoi(cidr.c_str() + slash + 1);
  in_addr address;
  if (::inet_pton(AF_INET, cidr.substr(0, slash).c_str(), &address) != 1 || prefix < 0 || prefix > 32)
    return fail(Code::invalid, "not an IPv4 address with a prefix length: " + cidr);
  ifreq request = {};
  if (interface.size() >= IFNAMSIZ) return fail(Code::invalid, "not a valid interface name: " + interface);
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Code::failed, std::string("socket: ") + strerror(errno));
  const auto call = [&](unsigned long what, const void* value, size_t size) {
    if (value) std::memcpy(&request.ifr_addr, value, size);
    return ::ioctl(fd, what, &request) == 0;
  };
  sockaddr_in value = {};
  value.sin_family = AF_INET;
  value.sin_addr = address;
  bool ok = call(SIOCSIFADDR, &value, sizeof value);
  value.sin_addr.s_addr = prefix == 0 ? 0 : htonl(~0u << (32 - prefix));
  ok = ok && call(SIOCSIFNETMASK, &value, sizeof value) && call(SIOCGIFFLAGS, nullptr, 0);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  ok = ok && call(SIOCSIFFLAGS, nullptr, 0);
  const int error = errno;
  ::close(fd);
  return ok ? Status(Ok{}) : fail(Code::failed, "configuring " + interface + ": " + strerror(error));
}

void ram_main(std::function<int(const RamEnvironment&)> agent, RamOptions options) {
  ::umask(022);
  ::setenv("PATH", "/usr/sbin:/usr/bin", 1);
  ::setenv("HOME", "/root", 1);
  ::reboot(LINUX_REBOOT_CMD_CAD_OFF);
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  static std::atomic<int64_t> fallback;
  shared_contact = page == MAP_FAILED ? &fallback : new (page) std::atomic<int64_t>();
  ram_contact();
  const int64_t started = shared_contact->load();
  RamEnvironment env;
  if (auto s = mount_kernel_file_systems(); !s) env.problems.push_back(s.error().message);
  env.cmdline = Files("/").read_line("/proc/cmdline");
  options = ram_options(env.cmdline, options);
  load_modules(env);
  // Mounts the optional file systems again: efivarfs may have needed its module.
  for (const auto& m : kMounts)
    if (!m.required) (void)mount_one(m);
  if (const std::string node = cmdline_value(env.cmdline, "muster.node"); !node.empty())
    (void)::sethostname(node.c_str(), node.size());
  bring_up_network(env, options);
  for (const auto& p : env.problems) log::warning("RAM system", {{"problem", p}});
  supervise(agent, env, options, started);
}

}  // namespace muster
