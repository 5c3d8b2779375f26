// The address of an abstract Unix socket: a name that the kernel gives to one socket of a network namespace,
// whichever user has it, and that is free again when that socket is closed, in whatever way its process ends.
// There is no file. Value type.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>

namespace muster {

class AbstractAddress {
 public:
  // Only the first 107 bytes of a name count.
  explicit AbstractAddress(const std::string& name) {
    value_.sun_family = AF_UNIX;  // the path's first byte stays 0: an abstract name
    const size_t size = name.copy(value_.sun_path + 1, sizeof value_.sun_path - 1);
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value_); }
  socklen_t size() const { return size_; }

 private:
  sockaddr_un value_ = {};
  socklen_t size_ = 0;
};

}  // namespace muster
