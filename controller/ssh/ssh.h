// SSH to a running Linux host: runs a command, writes its stdin, reads its output. Exec only: no SFTP, no
// SCP, no agent forwarding, no configuration files, no known_hosts. Used by `muster node add --adopt`
// (cli/adopt_verb.cc) to inspect a host and to install the muster agent on it, and by musterd for a system
// that a provider has just installed with a single-use key (controller/power/provider/provider_install.h).
//
// The host key is pinned: "SHA256:<base64>" as ssh-keygen prints it, compared before authentication. With an
// empty pin the connection is refused unless learn_host_key() was used to show the key to the operator first.
// Calls block until their deadline: for worker threads. A session belongs to one thread at a time. Codes:
// `unavailable`: could not connect (nothing was done); `denied`: wrong host key, or the user key was
// rejected; `timeout`: a command's outcome is unknown.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/os.h"

namespace muster {

struct SshTarget {
  std::string address;  // IP address, or a name that the system resolves
  uint16_t port = 22;
  std::string user = "root";
  std::string private_key;  // OpenSSH or PEM text; secret. Empty: the keys of the SSH agent at SSH_AUTH_SOCK
  std::string host_key;     // pin, "SHA256:..."
  std::string agent_key = {};  // use only this key of the SSH agent, as base64; "": try each key
};

// A program on the host that answers each line of input with one line of at most 4 MiB.
class SshDialog {
 public:
  virtual ~SshDialog() = default;
  // Sends a line and returns the answer. `unavailable`: nothing was sent, because the program had ended or
  // the connection was lost. `timeout`: no answer came before the program, the connection or the time ended.
  virtual Result<std::string> request(const std::string& line, DurationMs deadline) = 0;
};

// A command's input in two pieces, so that a binary sent to many hosts is not copied for each of them.
struct SshInput {
  template <class Text>
  SshInput(const Text& all) : first(all) {}
  SshInput(std::string_view one, std::string_view other) : first(one), second(other) {}
  std::string_view first, second = {};
};

class SshSession {
 public:
  virtual ~SshSession() = default;
  // Runs `command` in a POSIX shell, even if the user's login shell is another (fish and csh quote
  // differently). Output of the login shell itself (it reads .bashrc for commands as well) is dropped.
  // exit_code is -1 if the server did not send one.
  virtual Result<Output> run(const std::string& command, SshInput input, DurationMs deadline) = 0;
  // Starts `command`, sends `input` and waits for its first line of output, which means that it is ready.
  // `failed`, with its error output, if it ends first. The session must outlive the dialog.
  virtual Result<std::unique_ptr<SshDialog>> talk(const std::string& command, std::string_view input,
                                                  DurationMs deadline);
  // The public key that this session logged in with, as base64; "": unknown.
  virtual std::string own_key() const { return ""; }
};

Result<std::unique_ptr<SshSession>> ssh_connect(const SshTarget& target, DurationMs deadline);
// Returns the session with its commands run as root through `sudo -n` (no password is ever read or sent).
std::unique_ptr<SshSession> as_root(std::unique_ptr<SshSession> session);
// Returns the fingerprint of the host's key, without authenticating: of the key of the preferred type
// (Ed25519), or, if that is not in `wanted`, of the host's key of another type that is.
Result<std::string> learn_host_key(const std::string& address, uint16_t port, DurationMs deadline,
                                   const std::vector<std::string>& wanted = {});

// The public key of a private key (OpenSSH or PEM text), as base64: the second word of its *.pub file.
Result<std::string> public_key_of(const std::string& private_key);

// Runs the agent binary with `arguments` on the host and leaves no file there: it is on a tmpfs in a mount
// namespace of its own, which ends with the command. `input`: standard input. Requires root, `unshare` and
// `mount`. `failed`, with the host's output, if it could not be run or exited with an error.
Result<std::string> run_agent_unseen(SshSession& session, const std::string& agent_binary,
                                     const std::string& arguments, std::string_view input,
                                     DurationMs deadline);
// The same for an agent that answers several requests, so that the binary is sent only once.
Result<std::unique_ptr<SshDialog>> talk_to_agent_unseen(SshSession& session, const std::string& agent_binary,
                                                        const std::string& arguments, DurationMs deadline);

// Installs the agent as /usr/sbin/muster-agent and checks its digest; does nothing if already installed.
Status put_agent(SshSession& session, const std::string& agent_binary, DurationMs deadline);

}  // namespace muster
