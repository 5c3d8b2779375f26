// What a host's agent sends, as values; controller/hosts/host_wire.h has the protocol. All of it is
// untrusted: an error is Code::invalid. Thread: plain functions.
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "base/wire.h"
#include "controller/hosts/host_wire.h"
#include "controller/run/run_ports.h"

namespace muster {

struct HostMessage {
  enum class Kind { alive, looked, poll, post, program };
  Kind kind = Kind::alive;
  uint64_t number = 0;  // of the request; 0: none
  HostLooked looked = {};
  std::set<std::string> have = {};
  Presence present = {};
  wire::EventBatch batch = {};
  std::string program = {};  // digest, 64 hexadecimal digits
};

// One line after the hello.
Result<HostMessage> host_message_of(const std::string& line);
// What follows `MUSTER1 `.
Result<HostHello> host_hello_of(const std::string& text);
// What follows `MUSTERNO `: "CODE TEXT".
Error refusal_of(const std::string& text);

}  // namespace muster
