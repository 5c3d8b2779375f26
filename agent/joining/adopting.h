// The agent's end of `muster node add --adopt`: one session over SSH, one upload, several requests.
//
// `muster-agent adopt --stdin` prints {"ready": true} and then answers each line of JSON with one:
//   {"ask": "look", "node", "pin", "steps"?: [wire::Step...]}   what is on this host, and what the steps
//       would change: agent/joining/preview.h. Writes nothing.
//   {"ask": "join", "url", "pin", "token", "node"}              installs this program in /usr/sbin, joins,
//       and keeps the agent running: agent/joining/adopt.h. Answer: {"node": ...}
//   {"ask": "nothing"}   does nothing: a check that it still responds. Answer: {}
// Answers {"error": {"code", "message"}} on failure; the next line may be a retry. Ends when its input ends.
// Thread safety: stateless functions.
#pragma once

#include <functional>
#include <istream>
#include <ostream>
#include <string>

#include "agent/core/identity.h"
#include "sys/os.h"

namespace muster {

// Path of the agent's program on an adopted host.
inline constexpr const char* kAgentProgram = "/usr/sbin/muster-agent";

struct Adopting {
  Files& files;
  Process& process;
  // Joins as requested and keeps the agent running; returns the node's name.
  std::function<Result<std::string>(const BootParameters&)> join;
};
void answer_adopter(const Adopting& host, std::istream& in, std::ostream& out);

// Installs this running program at kAgentProgram, unless it is already there.
Status settle_program(const Files& files);

}  // namespace muster
