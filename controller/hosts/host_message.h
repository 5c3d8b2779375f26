// What a host's agent sends over its wire (controller/hosts/host_wire.h), line by line. All of it is
// untrusted: an error is Code::invalid. Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/wire.h"
#include "controller/hosts/host_wire.h"

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

// Parses one line after the hello.
Result<HostMessage> host_message_of(const std::string& line);
// Parses the text after `MUSTER1 `.
Result<HostHello> host_hello_of(const std::string& text);
// Parses the text after `MUSTERNO `: "CODE TEXT".
Error refusal_of(const std::string& text);

}  // namespace muster
