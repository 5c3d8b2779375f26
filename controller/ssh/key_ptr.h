// An owned key of libssh. Internal to controller/ssh.
#pragma once

#include <libssh/libssh.h>

#include <memory>
#include <type_traits>

namespace muster {

struct KeyFree {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using KeyPtr = std::unique_ptr<std::remove_pointer_t<ssh_key>, KeyFree>;

}  // namespace muster
