// HostWire: the connection to one running host through a command's pipe: ssh, or the command of `--via`.
//
// Owned by a session (controller/hosts/session.h), one for each host. Starts the command, whose remote end is
// a shell, sends it a short script (bootstrap.h) and then the agent, and then uses the agent's protocol. On
// the host everything is in memory: nothing is left when the pipe is closed, for whatever reason. What the
// agent sends is untrusted: a line longer than kLongestLine, or one that violates the protocol, ends the wire
// with Code::invalid. If a wire is lost, its owner opens a new one.
//
// After the output of start-up files, which is skipped, the host's first line is `MUSTER1 {HostHello}`. Then
// one JSON object per line, both ways:
//     host:     {"poll": {"have": [ID], "boot": BOOT, ...}, "n": N}   answer: {"n": N, "orders": PollReply}
//               {"post": EventBatch, "n": N}                         answer: {"n": N, "ack": SEQ}
//               {"program": SHA256, "n": N}   answer: {"n": N, "bytes": B, "raw": R} and
//                                             B bytes of gzip, R when unpacked
//               {"looked": HostLooked}                               once, before the first poll
//               {"alive": true}                                      every 10 s; both ways
//     command:  an answer, also {"n": N, "error": {"code", "message"}}; {"leave": true}: the agent ends
// Thread: the reactor's; callbacks never run inside a call.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "base/wire.h"
#include "controller/hosts/packed_program.h"
#include "controller/ports/run_ports.h"
#include "sys/reactor.h"

namespace muster {

// After leave() a command has at most this long to end: the agent's grace, then SIGTERM, then SIGKILL.
inline constexpr DurationMs kLongestLeave = 14 * kSecond;

struct HostHello {
  int version = 1;
  std::string boot_id, incarnation;
  std::string machine;   // uname -m
  std::string hostname;  // kernel's, for people
  bool root = false;     // the agent runs as root
  std::string how;       // "root", "sudo", "user"
  std::string why_user;  // why it is a plain user although --user was not given: what sudo printed
  std::string folder;    // where the agent was executed from, for people: "/dev/shm"
  std::string agent_version;
  std::vector<std::string> addresses = {};  // IPv4, of its ports, with prefix: "10.0.0.11/24"
  std::string ssh_server = {};              // where its sshd took the connection (SSH_CONNECTION)
};

// What the agent found before any load: inventory and agent/measuring/look_first.h.
struct HostLooked {
  Json facts;  // HardwareFacts, base/facts.h
  Json look;   // HostLook, agent/measuring/look_first.h
};

struct HostWireOptions {
  std::string host;               // its name in the hosts file
  std::vector<std::string> argv;  // command that is started on this machine; its last words start a POSIX
                                  // shell on the host: "/bin/sh"
  bool as_user = false;           // never sudo
  std::string why_user = {};      // reported as HostHello::why_user: why an earlier wire set as_user
  std::string agent;              // path of muster-agent on this machine
  // Digest of muster-accept-nvml, which `program` can return: the agent uses it to find the processes that
  // hold GPU memory. Empty: the agent cannot find them, and reports that.
  std::string nvml = {};
  // Of the session, which puts load on the host: the agent takes the host's lock of measurements. An agent
  // that an earlier wire of the session left behind does not count as another measurement. Empty: no load,
  // no lock.
  std::string session = {};
  DurationMs patience = 60 * kSecond;  // maximum silence of the host before MUSTER1
  // Returns a program by digest, or not_found. Called on a thread of the pool.
  std::function<Result<PackedProgram>(const std::string& sha256)> program = {};
};

struct HostWireEvents {
  std::function<void(const HostHello&)> hello;
  std::function<void(const HostLooked&)> looked;
  std::function<void(std::set<std::string> have, Presence, std::function<void(wire::PollReply)> answer)> poll;
  std::function<void(wire::EventBatch, std::function<void(Result<uint64_t>)> answer)> post;
  // The wire is down; called once. denied: login or host key refused (do not retry); not_found: unknown host;
  // unavailable: the connection was lost, or never established, and another try can help; invalid: the host
  // does not use the protocol; timeout: sudo does not answer, and a wire with as_user can do without;
  // failed: the host is not as needed (no folder from which a program may run, the wrong machine type, a
  // start-up file that exits, a terminal in between).
  std::function<void(Error)> lost;
};

class HostWire {
 public:
  virtual ~HostWire() = default;  // ends the child and everything that it started
  // Requests the agent to end, and closes the pipe; `lost` is not called. `done`: the child has ended.
  virtual void leave(std::function<void()> done) = 0;
};

inline constexpr size_t kLongestLine = 64u << 20;

std::unique_ptr<HostWire> open_host_wire(RealReactor& reactor, HostWireOptions options,
                                         HostWireEvents events);

}  // namespace muster
