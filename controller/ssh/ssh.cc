#include "controller/ssh/ssh.h"

#include <libssh/libssh.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

#include "base/digest.h"
#include "base/shell_text.h"
#include "controller/ssh/ssh_agent.h"
#include "controller/ssh/ssh_keys.h"

namespace muster {
namespace {

constexpr const char* kAgentPath = "/usr/sbin/muster-agent";
// libssh's own list, but with AES-GCM first: with hardware AES, client and server need a third less CPU time
// than for ChaCha20 (measured with OpenSSH), which matters because the agent is sent to many hosts at once.
constexpr const char* kCiphers =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,"
    "aes128-ctr";

// Host key types, tried in turn if the host's preferred key is not the expected one.
constexpr const char* kOtherKeys[] = {"ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521",
                                      "rsa-sha2-512,rsa-sha2-256", "ssh-ed25519"};

// The real command is sent as the first line of input (base/shell_text.h), and its output begins after this.
constexpr std::string_view kBegins = "muster: the command begins\n";

using Clock = std::chrono::steady_clock;

struct SessionFree {
  void operator()(ssh_session s) const {
    ssh_disconnect(s);
    ssh_free(s);
  }
};
struct ChannelFree {
  void operator()(ssh_channel c) const {
    ssh_channel_close(c);
    ssh_channel_free(c);
  }
};
using SessionPtr = std::unique_ptr<std::remove_pointer_t<ssh_session>, SessionFree>;
using ChannelPtr = std::unique_ptr<std::remove_pointer_t<ssh_channel>, ChannelFree>;

std::string words(ssh_session s) { return ssh_get_error(s); }

Result<std::string> host_key_of(ssh_session s) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(s, &key) != SSH_OK)
    return fail(Code::failed, "the server presented no host key");
  auto fingerprint = fingerprint_of(key);
  ssh_key_free(key);
  return fingerprint;
}

// A session after the key exchange, not authenticated yet. `types` of host keys; null: libssh's default.
Result<SessionPtr> handshake(const std::string& address, uint16_t port, const std::string& user,
                             DurationMs deadline, const char* types = nullptr) {
  SessionPtr session(ssh_new());
  if (!session) return fail(Code::failed, "libssh: out of memory");
  const int process_config = 0;  // ssh_config files on this machine must have no effect
  const unsigned int port_number = port;
  const long seconds = std::max<long>(1, static_cast<long>(deadline / 1000));
  ssh_options_set(session.get(), SSH_OPTIONS_PROCESS_CONFIG, &process_config);
  ssh_options_set(session.get(), SSH_OPTIONS_HOST, address.c_str());
  ssh_options_set(session.get(), SSH_OPTIONS_PORT, &port_number);
  ssh_options_set(session.get(), SSH_OPTIONS_USER, user.c_str());
  ssh_options_set(session.get(), SSH_OPTIONS_TIMEOUT, &seconds);
  for (const auto direction : {SSH_OPTIONS_CIPHERS_C_S, SSH_OPTIONS_CIPHERS_S_C})
    ssh_options_set(session.get(), direction, kCiphers);
  if (types) ssh_options_set(session.get(), SSH_OPTIONS_HOSTKEYS, types);
  if (ssh_connect(session.get()) != SSH_OK)
    return fail(Code::unavailable,
                "ssh " + address + ":" + std::to_string(port) + ": " + words(session.get()));
  return session;
}

struct Shown {
  SessionPtr session;
  std::string key;
};

// A session whose host key, of any type, is in `wanted`; if the host has none, with its preferred key.
Result<Shown> handshake_for(const std::string& address, uint16_t port, const std::string& user,
                            DurationMs deadline, const std::vector<std::string>& wanted) {
  const auto shown_by = [](Result<SessionPtr> session) -> Result<Shown> {
    if (!session.ok()) return session.error();
    TRY(std::string key, host_key_of(session->get()));
    return Shown{std::move(session).value(), std::move(key)};
  };
  const auto is_wanted = [&](const Shown& shown) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), shown.key) != wanted.end();
  };
  TRY(Shown first, shown_by(handshake(address, port, user, deadline)));
  if (is_wanted(first)) return first;
  for (const char* types : kOtherKeys)
    if (auto other = shown_by(handshake(address, port, user, deadline, types));
        other.ok() && is_wanted(*other))
      return other;
  return first;
}

constexpr size_t kChunk = 32 * 1024;
constexpr size_t kMaxOutput = 4 << 20;

Status send(ssh_channel channel, std::string_view input, Clock::time_point until) {
  while (!input.empty()) {
    if (Clock::now() > until)
      return fail(Code::timeout, "ssh: the host did not accept the input before the deadline");
    const auto piece = input.substr(0, kChunk);
    const int n = ssh_channel_write(channel, piece.data(), static_cast<uint32_t>(piece.size()));
    if (n <= 0)
      return fail(Code::timeout,
                  "ssh: connection lost while sending: " + words(ssh_channel_get_session(channel)));
    input.remove_prefix(static_cast<size_t>(n));
  }
  return Ok{};
}

// Reads available output, waiting for at most 0.1 s. Returns false at the end of the output.
Result<bool> receive_some(ssh_channel channel, Output& output) {
  std::string buffer(kChunk, '\0');
  const int out = ssh_channel_read_timeout(channel, buffer.data(), kChunk, 0, 100);
  if (out > 0) output.out.append(buffer.data(), static_cast<size_t>(out));
  const int err = ssh_channel_read_nonblocking(channel, buffer.data(), kChunk, 1);
  if (err > 0) output.err.append(buffer.data(), static_cast<size_t>(err));
  if (out == SSH_ERROR || err == SSH_ERROR)
    return fail(Code::timeout, "ssh: connection lost: " + words(ssh_channel_get_session(channel)));
  if (output.out.size() + output.err.size() > kMaxOutput)
    return fail(Code::failed, "ssh: more than 4 MiB of output");
  return out > 0 || err > 0 || !ssh_channel_is_eof(channel);
}

Result<ChannelPtr> channel_for(ssh_session session) {
  ChannelPtr channel(ssh_channel_new(session));
  if (!channel || ssh_channel_open_session(channel.get()) != SSH_OK)
    return fail(Code::unavailable, "ssh: cannot open a channel: " + words(session));
  if (ssh_channel_request_exec(channel.get(), run_next_line("sh", "").c_str()) != SSH_OK)
    return fail(Code::unavailable, "ssh: the server rejected the command: " + words(session));
  return channel;
}

// The line that the shell on the host reads.
std::string first_line(const std::string& command) {
  const std::string says = shell_word(std::string(kBegins.substr(0, kBegins.size() - 1)));
  return as_next_line("echo " + says + "; echo " + says + " >&2; " + command);
}

// Drops output from before the command began; returns false if it has not begun yet.
bool drop_until_it_begins(std::string& text) {
  const size_t at = text.find(kBegins);
  if (at == std::string::npos) return false;
  text.erase(0, at + kBegins.size());
  return true;
}

// Returns the error output; if that is empty, the standard output.
std::string words_in(const Output& output) {
  std::string text = output.err.empty() ? output.out : output.err;
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

class LibsshDialog : public SshDialog {
 public:
  explicit LibsshDialog(ChannelPtr channel) : channel_(std::move(channel)) {}

  Result<std::string> request(const std::string& line, DurationMs deadline) override {
    // Output from before the request is not the answer; only whether the program has ended matters here.
    const int waiting = ssh_channel_poll(channel_.get(), 0);
    if (waiting < 0 || !ssh_channel_is_open(channel_.get()) || ssh_channel_is_eof(channel_.get()))
      return fail(Code::unavailable, "ssh: the program on the host or the connection has ended");
    const auto until = Clock::now() + std::chrono::milliseconds(deadline);
    TRY_(send(channel_.get(), line + "\n", until));
    return next_line(until);
  }

  // Returns the next line of output. `timeout` if none arrives: the request may have been carried out.
  Result<std::string> next_line(Clock::time_point until) {
    for (bool more = true;;) {
      begun_ = begun_ || drop_until_it_begins(received_.out);
      if (const auto end = begun_ ? received_.out.find('\n') : std::string::npos; end != std::string::npos) {
        std::string line = received_.out.substr(0, end);
        received_.out.erase(0, end + 1);
        return line;
      }
      if (!more) return fail(Code::timeout, "ssh: the program on the host ended: " + last_words());
      if (Clock::now() > until) return fail(Code::timeout, "ssh: no answer before the deadline");
      TRY(more, receive_some(channel_.get(), received_));
    }
  }
  std::string words() const {
    Output received = received_;
    drop_until_it_begins(received.err);
    return words_in(received);
  }
  std::string last_words() const {
    const std::string text = words();
    return text.empty() ? "no output" : text;
  }

 private:
  ChannelPtr channel_;
  Output received_;
  bool begun_ = false;
};

class LibsshSession : public SshSession {
 public:
  LibsshSession(SessionPtr session, std::string own_key)
      : session_(std::move(session)), own_key_(std::move(own_key)) {}
  std::string own_key() const override { return own_key_; }

  Result<Output> run(const std::string& command, SshInput input, DurationMs deadline) override {
    const auto until = Clock::now() + std::chrono::milliseconds(deadline);
    TRY(const ChannelPtr channel, channel_for(session_.get()));
    TRY_(send(channel.get(), first_line(command), until));
    TRY_(send(channel.get(), input.first, until));
    TRY_(send(channel.get(), input.second, until));
    ssh_channel_send_eof(channel.get());
    Output output;
    for (bool more = true; more;) {
      if (Clock::now() > until)
        return fail(Code::timeout, "ssh: the command did not end before its deadline");
      TRY(more, receive_some(channel.get(), output));
    }
    output.exit_code = ssh_channel_get_exit_status(channel.get());
    // If the command never began, the output holds the reason and is kept.
    if (drop_until_it_begins(output.out)) drop_until_it_begins(output.err);
    return output;
  }

  Result<std::unique_ptr<SshDialog>> talk(const std::string& command, std::string_view input,
                                          DurationMs deadline) override {
    const auto until = Clock::now() + std::chrono::milliseconds(deadline);
    TRY(ChannelPtr channel, channel_for(session_.get()));
    Status sent = send(channel.get(), first_line(command), until);
    if (sent.ok()) sent = send(channel.get(), input, until);
    auto dialog = std::make_unique<LibsshDialog>(std::move(channel));
    // If the command ended before all input was sent, its output holds the reason.
    const auto ready = dialog->next_line(until);
    if (!ready.ok() && !dialog->words().empty()) return fail(Code::failed, dialog->last_words());
    if (!sent.ok()) return fail(Code::failed, sent.error().message);
    if (!ready.ok()) return fail(Code::failed, ready.error().message);
    return std::unique_ptr<SshDialog>(std::move(dialog));
  }

 private:
  SessionPtr session_;
  const std::string own_key_;
};

// Runs commands through sudo. If sudo is not allowed, its message is returned as the command's error output.
class RootSession : public SshSession {
 public:
  explicit RootSession(std::unique_ptr<SshSession> inner) : inner_(std::move(inner)) {}
  Result<Output> run(const std::string& command, SshInput input, DurationMs deadline) override {
    return inner_->run(as_root(command), input, deadline);
  }
  Result<std::unique_ptr<SshDialog>> talk(const std::string& command, std::string_view input,
                                          DurationMs deadline) override {
    return inner_->talk(as_root(command), input, deadline);
  }
  std::string own_key() const override { return inner_->own_key(); }

 private:
  static std::string as_root(const std::string& command) { return "sudo -n -- sh -c " + shell_word(command); }
  std::unique_ptr<SshSession> inner_;
};

Result<KeyPtr> private_key_in(const std::string& text) {
  ssh_key key = nullptr;
  if (ssh_pki_import_privkey_base64(text.c_str(), nullptr, nullptr, nullptr, &key) != SSH_OK)
    return fail(Code::invalid,
                "ssh: the private key cannot be read (if it is encrypted, add it to an SSH agent)");
  return KeyPtr(key);
}

std::string who(const SshTarget& target) { return "ssh " + target.user + "@" + target.address; }

// Returns a session with the pinned host key, not authenticated yet.
Result<SessionPtr> connected(const SshTarget& target, DurationMs deadline) {
  TRY(Shown shown, handshake_for(target.address, target.port, target.user, deadline, {target.host_key}));
  if (shown.key != target.host_key)
    return fail(Code::denied, "ssh " + target.address + ": the host key is " + shown.key + ", but " +
                                  target.host_key +
                                  " is pinned; a different machine answers, or this machine was reinstalled");
  return std::move(shown.session);
}

Result<std::unique_ptr<SshSession>> log_in_with_key(const SshTarget& target, DurationMs deadline) {
  TRY(auto session, connected(target, deadline));
  TRY(const KeyPtr key, private_key_in(target.private_key));
  if (ssh_userauth_publickey(session.get(), nullptr, key.get()) != SSH_AUTH_SUCCESS)
    return fail(Code::denied, who(target) + ": the key was rejected");
  TRY(std::string own, public_key_of(target.private_key));
  return std::unique_ptr<SshSession>(std::make_unique<LibsshSession>(std::move(session), std::move(own)));
}

Result<std::vector<std::string>> keys_to_offer(const SshTarget& target) {
  auto keys = ssh_agent_keys();
  if (!keys.ok()) return fail(Code::denied, who(target) + ": " + keys.error().message);
  if (keys->empty())
    return fail(Code::denied, who(target) + ": the SSH agent has no keys (see `ssh-add -l`)");
  if (target.agent_key.empty()) return keys;
  if (std::find(keys->begin(), keys->end(), target.agent_key) == keys->end())
    return fail(
        Code::denied,
        who(target) + ": the SSH agent does not have the specified key (`ssh-add -L` lists its keys)");
  return std::vector<std::string>{target.agent_key};
}

// Non-blocking: otherwise libssh 0.10 waits for its whole timeout if the server has disconnected.
bool agent_lets_in(ssh_session session, Clock::time_point until) {
  ssh_set_blocking(session, 0);
  int said = SSH_AUTH_AGAIN;
  while (said == SSH_AUTH_AGAIN && ssh_is_connected(session) && Clock::now() < until) {
    said = ssh_userauth_agent(session, nullptr);
    pollfd news = {ssh_get_fd(session), POLLIN, 0};
    if (said == SSH_AUTH_AGAIN) ::poll(&news, 1, 100);
  }
  ssh_set_blocking(session, 1);
  if (said == SSH_AUTH_AGAIN) ssh_disconnect(session);  // in the middle of a request
  return said == SSH_AUTH_SUCCESS;
}

// Offers one key after the other. The server disconnects after several unknown keys; the remaining keys are
// offered over new connections, but only a few, since servers may block an address after failed logins.
Result<std::unique_ptr<SshSession>> log_in_with_agent(const SshTarget& target, DurationMs deadline) {
  constexpr int kConnections = 3;
  TRY(const auto keys, keys_to_offer(target));
  size_t next = 0, at_once = 0;
  for (int i = 0; i < kConnections && next < keys.size(); ++i) {
    TRY(auto session, connected(target, deadline));
    TRY(const auto view, SshAgentView::open());
    ssh_set_agent_socket(session.get(), view->socket());
    for (size_t first = next; next < keys.size();) {
      view->show(keys[next]);
      if (agent_lets_in(session.get(), Clock::now() + std::chrono::milliseconds(deadline)))
        return std::unique_ptr<SshSession>(std::make_unique<LibsshSession>(std::move(session), keys[next]));
      ++next;
      at_once = next - first;
      if (!ssh_is_connected(session.get())) break;
    }
  }
  const std::string offered = std::to_string(next), all = std::to_string(keys.size());
  if (next < keys.size())
    return fail(Code::denied,
                who(target) + ": the server disconnects after " + std::to_string(at_once) +
                    " keys, and none of the first " + offered + " of the SSH agent's " + all +
                    " keys was accepted: specify the right one with --key FILE (the .pub file is enough)");
  return fail(Code::denied, who(target) + ": none of the SSH agent's " + all +
                                " keys was accepted (`ssh-add -l` lists them)");
}

std::string last_words(const Output& output) {
  const std::string text = words_in(output);
  return text.empty() ? "exit " + std::to_string(output.exit_code) : text;
}

}  // namespace

Result<std::unique_ptr<SshDialog>> SshSession::talk(const std::string&, std::string_view, DurationMs) {
  return fail(Code::unavailable, "this session supports single commands only");
}

Result<std::string> learn_host_key(const std::string& address, uint16_t port, DurationMs deadline,
                                   const std::vector<std::string>& wanted) {
  TRY(auto shown, handshake_for(address, port, "muster", deadline, wanted));
  return shown.key;
}

Result<std::string> public_key_of(const std::string& private_key) {
  TRY(const KeyPtr key, private_key_in(private_key));
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key.get(), &text) != SSH_OK)
    return fail(Code::failed, "ssh: the public key cannot be derived from the private key");
  const std::string base64 = text;
  ssh_string_free_char(text);
  return base64;
}

Result<std::unique_ptr<SshSession>> ssh_connect(const SshTarget& target, DurationMs deadline) {
  if (target.host_key.empty())
    return fail(Code::denied,
                "ssh " + target.address + ": no host key is pinned: confirm the host's key first");
  return target.private_key.empty() ? log_in_with_agent(target, deadline) : log_in_with_key(target, deadline);
}

std::unique_ptr<SshSession> as_root(std::unique_ptr<SshSession> session) {
  return std::make_unique<RootSession>(std::move(session));
}

namespace {

// Reads the agent from standard input and execs it on the rest. SSH ensures integrity: only size is checked.
std::string unseen(const std::string& agent_binary, const std::string& arguments) {
  // Nothing that muster checks is stored on /dev/shm. Only this command sees the tmpfs mounted over it.
  const std::string program = "/dev/shm/muster-agent", size = std::to_string(agent_binary.size());
  const std::string inside =
      "set -e; mount -n -t tmpfs -o mode=0700,size=256m muster-preview /dev/shm; head -c " + size + " > " +
      program + "; [ $(wc -c < " + program + ") = " + size +
      " ] || { echo 'the connection ended before the whole agent had arrived' >&2; exit 1; }; chmod 0700 " +
      program + "; exec " + program + " " + arguments;
  return "exec unshare --mount -- sh -c " + shell_word(inside);
}

}  // namespace

Result<std::string> run_agent_unseen(SshSession& session, const std::string& agent_binary,
                                     const std::string& arguments, std::string_view input,
                                     DurationMs deadline) {
  TRY(const auto done, session.run(unseen(agent_binary, arguments), {agent_binary, input}, deadline));
  if (!done.ok()) return fail(Code::failed, last_words(done));
  return done.out;
}

Result<std::unique_ptr<SshDialog>> talk_to_agent_unseen(SshSession& session, const std::string& agent_binary,
                                                        const std::string& arguments, DurationMs deadline) {
  return session.talk(unseen(agent_binary, arguments), agent_binary, deadline);
}

Status put_agent(SshSession& session, const std::string& agent_binary, DurationMs deadline) {
  const std::string digest = sha256(agent_binary).substr(7);
  const std::string path = kAgentPath;
  TRY(const auto have, session.run("sha256sum " + path + " 2>/dev/null | cut -c1-64", "", deadline));
  if (have.out.find(digest) == 0) return Ok{};
  // Written under a temporary name, checked, then renamed: an incomplete upload is never started.
  const std::string take = "set -e; umask 022; cat > " + path + ".new; echo " +
                           shell_word(digest + "  " + path + ".new") + " | sha256sum -c --quiet; chmod 755 " +
                           path + ".new; mv " + path + ".new " + path;
  TRY(const auto sent, session.run(take, agent_binary, deadline));
  if (!sent.ok()) return fail(Code::failed, "the agent could not be installed: " + last_words(sent));
  return Ok{};
}

}  // namespace muster
