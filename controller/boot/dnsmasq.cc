#include "controller/boot/dnsmasq.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/utf8.h"

namespace muster {
namespace {

void pause_ms(long ms) {
  const timespec t{ms / 1000, ms % 1000 * 1000000};
  ::nanosleep(&t, nullptr);
}

std::string tail(const std::string& text) { return end_of_output(text, 600); }

// Who dnsmasq runs as: what every host of the network can send to it is never read by root. The package
// dnsmasq-base makes a user for it.
Result<std::string> own_user() {
  for (const char* name : {"dnsmasq", "nobody"})
    if (::getpwnam(name)) return std::string(name);
  return fail(Code::denied, "DHCP is not started: there is no user dnsmasq; install dnsmasq-base");
}

// The first folder on the way to `folder` that not every user may enter; "" if all may.
std::string closed_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  for (fs::path p = folder; p.has_relative_path(); p = p.parent_path()) {
    struct stat st;
    if (::stat(p.c_str(), &st) != 0 || !(st.st_mode & S_IXOTH)) return p.string();
  }
  return "";
}

// Its ports below 1024; answers to machines that have no address yet; pings.
constexpr int kCapabilities[] = {CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW};

// In the child: turns root into this user, with those capabilities and no way to others. Not left to dnsmasq,
// which would begin as root, and whose change of user cancels the parent-death signal. System calls only,
// because the daemon has threads.
bool become(uid_t user, gid_t group) {
  uint32_t mask = 0;
  for (const int one : kCapabilities) mask |= 1u << one;
  for (int one = 0; ::prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one)
    if (one > 31 || !(mask & 1u << one)) ::prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
  __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {{mask, mask, mask}, {0, 0, 0}};
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || ::syscall(SYS_setgroups, 0, nullptr) != 0 ||
      ::syscall(SYS_setresgid, group, group, group) != 0 || ::syscall(SYS_setresuid, user, user, user) != 0 ||
      ::syscall(SYS_capset, &head, data) != 0)
    return false;
  for (const int one : kCapabilities)
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0) != 0) return false;
  return true;
}

// The folder is root's, the two files that dnsmasq writes are its own.
Status give_file(const std::string& path, uid_t user, gid_t group) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  const bool given = fd >= 0 && ::fchown(fd, user, group) == 0;
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (given) return Ok{};
  return fail(Code::failed, fmt::format("{}: {}", path, strerror(number)));
}

// dnsmasq answers router solicitations only on an interface with an address in the advertised network (see
// kRaPrefix).
void set_ra_address(const std::string& interface, bool present) {
  struct {  // linux/ipv6.h clashes with netinet/in.h
    in6_addr address;
    uint32_t prefix;
    int index;
  } request = {};
  ::inet_pton(AF_INET6, (std::string(kRaPrefix) + "1").c_str(), &request.address);
  request.prefix = 64;
  request.index = static_cast<int>(::if_nametoindex(interface.c_str()));
  const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;  // no IPv6: machines still boot, only some seconds later
  (void)::ioctl(fd, present ? SIOCSIFADDR : SIOCDIFADDR, &request);
  ::close(fd);
}

// Ends a dnsmasq that survived a killed daemon: the signal may not have ended it yet.
void end_leftover(const std::string& run_dir, const std::string& argument) {
  const pid_t pid = std::atoi(Files("/").read_line(run_dir + "/dnsmasq.pid", "0").c_str());
  const std::string proc = fmt::format("/proc/{}/cmdline", pid);
  if (pid <= 1 || Files("/").read(proc).value_or("").find(argument + '\0') == std::string::npos) return;
  ::kill(pid, SIGTERM);
  for (int i = 0; i < 100 && Files("/").exists(proc); ++i) pause_ms(10);
}

}  // namespace

Result<std::map<std::string, std::string>> interfaces_by_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail(Code::failed, std::string("getifaddrs: ") + strerror(errno));
  std::map<std::string, std::string> out;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
    out[text] = i->ifa_name;
  }
  ::freeifaddrs(list);
  return out;
}

Result<std::string> interface_of(const std::string& address) {
  TRY(const auto all, interfaces_by_address());
  const auto found = all.find(address);
  if (found == all.end())
    return fail(Code::not_found, "no network interface of this machine has the address " + address);
  return found->second;
}

Dnsmasq::Dnsmasq(DnsmasqOptions options) : options_(std::move(options)) {}
Dnsmasq::~Dnsmasq() { stop(); }

bool Dnsmasq::running() {
  if (pid_ < 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

void Dnsmasq::stop() {
  if (!running()) return;
  ::kill(pid_, SIGTERM);
  for (int i = 0; i < 100 && running(); ++i) pause_ms(10);
  if (running()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
  set_ra_address(interface_, false);
}

Status Dnsmasq::apply(BootNetwork network) {
  if (network.mode == "external") {
    stop();
    return Ok{};
  }
  auto carrier = interface_of(network.address);
  if (!carrier) return fail(Code::denied, "DHCP is not started: " + carrier.error().message);
  if (network.interface.empty()) network.interface = *carrier;
  if (network.interface != *carrier)
    return fail(Code::denied, fmt::format("DHCP is not started: address {} is on interface {}, not on {}",
                                          network.address, *carrier, network.interface));
  network.run_dir = std::filesystem::absolute(network.run_dir).string();
  TRY_(Files("/").make_directories(network.run_dir + "/tftp"));
  TRY(network.user, own_user());
  if (const std::string closed = closed_folder(network.run_dir); !closed.empty())
    return fail(Code::denied, fmt::format("DHCP is not started: user {} cannot enter {}, on the way to {}",
                                          network.user, closed, network.run_dir));
  TRY(const std::string config, dnsmasq_config(network));
  if (running() && config == config_) return Ok{};
  stop();
  return start(network, config);
}

Status Dnsmasq::start(const BootNetwork& network, const std::string& config) {
  const Files files("/");
  const std::string path = network.run_dir + "/dnsmasq.conf", log = network.run_dir + "/dnsmasq.err";
  auto loader = files.read(options_.ipxe);
  if (!loader) return std::move(loader).error().with("the network boot loader (package ipxe)");
  TRY_(files.write(network.run_dir + "/tftp/snponly.efi", *loader));
  TRY_(files.write(path, config));
  const std::string argument = "--conf-file=" + path;
  end_leftover(network.run_dir, argument);
  // The leases are changed only now: a running dnsmasq would overwrite them with its own copy.
  const std::string leases = network.run_dir + "/leases";
  if (const auto have = files.read(leases); have.ok())
    if (const std::string kept = leases_kept(*have, network); kept != *have)
      TRY_(files.write(leases, kept, 0644));
  const passwd* entry = ::getpwnam(network.user.c_str());
  if (!entry) return fail(Code::denied, "DHCP is not started: there is no user " + network.user);
  const uid_t user = entry->pw_uid;
  const gid_t group = entry->pw_gid;
  const bool root = ::geteuid() == 0;
  if (root)
    for (const auto& own : {leases, network.run_dir + "/dnsmasq.log"}) TRY_(give_file(own, user, group));
  interface_ = network.interface;
  set_ra_address(interface_, true);
  const pid_t daemon = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return fail(Code::failed, std::string("fork: ") + strerror(errno));
  if (pid_ == 0) {
    ::umask(022);
    const int err = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 0);
    ::dup2(null, 1);
    ::dup2(err, 2);
    ::close_range(3, ~0u, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (root && !become(user, group)) {
      ::dprintf(2, "its user is refused: %s\n", strerror(errno));
      ::_exit(126);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != daemon) ::_exit(1);
    ::execlp(options_.program.c_str(), options_.program.c_str(), argument.c_str(), nullptr);
    ::_exit(127);
  }
  TRY_(files.write(network.run_dir + "/dnsmasq.pid", fmt::format("{}\n", pid_)));
  // An invalid configuration or an address in use makes dnsmasq exit within moments.
  for (int i = 0; i < 30; ++i) {
    pause_ms(10);
    if (running()) continue;
    const std::string said = files.read_line(log);
    return fail(Code::failed,
                "dnsmasq did not start: " + (said.empty() ? "is dnsmasq-base installed?" : tail(said)));
  }
  config_ = config;
  return Ok{};
}

}  // namespace muster
