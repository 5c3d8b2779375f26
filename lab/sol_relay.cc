#include "lab/sol_relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace muster::lab {
namespace {

constexpr int kLook = 100;  // ms

long size_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<long>(size);
}

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

}  // namespace muster::lab
