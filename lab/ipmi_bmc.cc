#include "lab/ipmi_bmc.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sys/log.h"
#include "sys/os.h"

namespace muster::lab {
namespace {

constexpr int kLook = 100;  // ms

long size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<long>(size);
}

constexpr const char* kEmulator =
    "mc_setbmc 0x20\n"
    "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n"
    "mc_enable 0x20\n";

}  // namespace

Status SolRelay::start(const std::string& address) {
  if (listener_ >= 0) return Ok{};
  sockaddr_in place{};
  place.sin_family = AF_INET;
  socklen_t size = sizeof place;
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0 || ::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1 ||
      ::bind(listener_, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(listener_, 1) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &size) != 0)
    return fail(Code::failed, "cannot open a serial port at " + address + ": " + strerror(errno));
  port_ = ntohs(place.sin_port);
  at_ = size_of(log_);
  thread_ = std::thread([this] { loop(); });
  return Ok{};
}

SolRelay::~SolRelay() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (listener_ >= 0) ::close(listener_);
}

// Only the newest client is served: ipmi_sim reconnects after a restart.
void SolRelay::loop() {
  int client = -1;
  while (!stopping_) {
    pollfd watched{listener_, POLLIN, 0};
    if (::poll(&watched, 1, kLook) > 0) {
      const int next = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (next >= 0 && client >= 0) ::close(client);
      if (next >= 0) client = next;
    }
    pass_on(client);
  }
  if (client >= 0) ::close(client);
}

// Without a client, output is lost, as on a serial port.
void SolRelay::pass_on(int client) {
  const long size = size_of(log_);
  if (size < at_) at_ = 0;  // the log was restarted
  std::ifstream log(log_, std::ios::binary);
  log.seekg(at_);
  std::array<char, 16384> buffer{};
  while (at_ < size && log.read(buffer.data(), buffer.size()).gcount() > 0) {
    at_ += static_cast<long>(log.gcount());
    if (client >= 0)
      (void)!::send(client, buffer.data(), static_cast<size_t>(log.gcount()), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

std::string IpmiBmc::config(bool other_guid) const {
  std::string guid = node_.uuid;
  guid.erase(std::remove(guid.begin(), guid.end(), '-'), guid.end());
  if (other_guid) std::reverse(guid.begin(), guid.end());  // digits reversed: different in any byte order
  return fmt::format(
      R"(name "{node}"
set_working_mc 0x20
  startlan 1
    addr {address} {port}
    priv_limit admin
    guid {guid}
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
  endlan
  sol "tcp:{address}:{sol}" 115200
  chassis_control "{program} lab chassis --dir {dir} {node}"
  user 1 false "" "" user 10 none md2 md5 straight
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
)",
      fmt::arg("node", node_.name), fmt::arg("address", options_.address), fmt::arg("port", options_.port),
      fmt::arg("guid", guid), fmt::arg("program", options_.program), fmt::arg("dir", dir_.root()),
      fmt::arg("sol", serial_.port()), fmt::arg("user", options_.user),
      fmt::arg("password", options_.password));
}

Status IpmiBmc::start(bool other_guid) {
  end();
  Files files("/");
  const std::string pid_file = dir_.node(node_.name, "ipmi.pid"),
                    lan = dir_.node(node_.name, "ipmi-lan.conf"),
                    emulator = dir_.node(node_.name, "ipmi.emu"), state = dir_.node(node_.name, "ipmi");
  if (const auto left = read_pid_file(pid_file); left.ok()) TRY_(terminate(*left, 0));
  TRY_(files.make_directories(state, 0700));
  TRY_(serial_.start(options_.address));
  TRY_(files.write(lan, config(other_guid), 0600));
  TRY_(files.write(emulator, kEmulator));
  Spawn spawn_sim;
  spawn_sim.argv = {kIpmiSim, "-n", "-c", lan, "-f", emulator, "-s", state};
  spawn_sim.log = dir_.node(node_.name, "ipmi.log");
  spawn_sim.mark = lan;
  auto child = spawn(spawn_sim);
  if (!child.ok())
    return std::move(child).error().with("the IPMI BMC of " + node_.name + " (package openipmi)");
  child_ = *child;
  return write_pid_file(pid_file, child_);
}

// With SIGKILL: it has nothing to save, and must end even if it hangs.
void IpmiBmc::end() {
  if (child_.pid <= 0) return;
  if (const auto ended = terminate(child_, 0); !ended.ok())
    log::error("an IPMI BMC did not end", {{"node", node_.name}, {"error", ended.error().message}});
  child_ = {};
  (void)Files("/").remove(dir_.node(node_.name, "ipmi.pid"));
}

std::string chassis_lines(const Json& answer) {
  std::string out;
  if (!answer.is_object()) return out;
  for (const auto& [name, value] : answer.items())
    if (value.is_string()) out += name + ":" + value.get<std::string>() + "\n";
  return out;
}

}  // namespace muster::lab
