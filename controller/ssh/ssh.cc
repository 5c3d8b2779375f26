#include "controller/ssh/ssh.h"

#include <libssh/libssh.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/digest.h"
#include "controller/ssh/agent_keys.h"

namespace muster {

namespace {

constexpr const char* kAgentPath = "/usr/sbin/muster-agent";
// libssh's own list, AES-GCM first: with the processor's instructions for it, either end spends a third less
// time than on ChaCha20 (measured with OpenSSH), and the agent is sent to many hosts at once.
constexpr const char* kCiphers =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,"
    "aes128-ctr";

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

Result<std::string> fingerprint_of(ssh_key key) {
  unsigned char* hash = nullptr;
  size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0)
    return fail(Code::failed, "the host key cannot be hashed");
  char* text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
  ssh_clean_pubkey_hash(&hash);
  const std::string fingerprint = text ? text : "";
  ssh_string_free_char(text);
  return fingerprint;
}

Result<std::string> host_key_of(ssh_session s) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(s, &key) != SSH_OK) return fail(Code::failed, "the server showed no host key");
  auto fingerprint = fingerprint_of(key);
  ssh_key_free(key);
  return fingerprint;
}

// A host shows one of its keys, of a type that the client chooses. Any first, then each by itself: what is
// pinned may be of a type that this library would not choose.
constexpr const char* kHostKeyTypes[] = {nullptr, "ssh-ed25519",
                                         "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521",
                                         "rsa-sha2-512,rsa-sha2-256"};

// Connected and key-exchanged, not yet authenticated. `types`: of the host key; null: any.
Result<SessionPtr> handshake(const std::string& address, uint16_t port, const std::string& user,
                             DurationMs deadline, const char* types = nullptr) {
  SessionPtr session(ssh_new());
  if (!session) return fail(Code::failed, "libssh: out of memory");
  const int process_config = 0;  // ssh_config files of this machine must not change what we do
  const unsigned int port_number = port;
  const long seconds = std::max<long>(1, static_cast<long>(deadline / 1000));
  ssh_options_set(session.get(), SSH_OPTIONS_PROCESS_CONFIG, &process_config);
  ssh_options_set(session.get(), SSH_OPTIONS_HOST, address.c_str());
  ssh_options_set(session.get(), SSH_OPTIONS_PORT, &port_number);
  ssh_options_set(session.get(), SSH_OPTIONS_USER, user.c_str());
  ssh_options_set(session.get(), SSH_OPTIONS_TIMEOUT, &seconds);
  if (types != nullptr) ssh_options_set(session.get(), SSH_OPTIONS_HOSTKEYS, types);
  for (const auto direction : {SSH_OPTIONS_CIPHERS_C_S, SSH_OPTIONS_CIPHERS_S_C})
    ssh_options_set(session.get(), direction, kCiphers);
  if (ssh_connect(session.get()) != SSH_OK)
    return fail(Code::unavailable,
                "ssh " + address + ":" + std::to_string(port) + ": " + words(session.get()));
  return session;
}

constexpr size_t kChunk = 32 * 1024;
constexpr size_t kMaxOutput = 4 << 20;

Status send(ssh_channel channel, std::string_view input, Clock::time_point until) {
  while (!input.empty()) {
    if (Clock::now() > until) return fail(Code::timeout, "ssh: input not taken before the deadline");
    const auto piece = input.substr(0, kChunk);
    const int n = ssh_channel_write(channel, piece.data(), static_cast<uint32_t>(piece.size()));
    if (n <= 0)
      return fail(Code::timeout,
                  "ssh: connection lost while sending: " + words(ssh_channel_get_session(channel)));
    input.remove_prefix(static_cast<size_t>(n));
  }
  return Ok{};
}

// What has come within a tenth of a second, or at once. False: nothing, and nothing more will.
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

Result<ChannelPtr> channel_for(ssh_session session, const std::string& command) {
  ChannelPtr channel(ssh_channel_new(session));
  if (!channel || ssh_channel_open_session(channel.get()) != SSH_OK)
    return fail(Code::unavailable, "ssh: no channel: " + words(session));
  if (ssh_channel_request_exec(channel.get(), command.c_str()) != SSH_OK)
    return fail(Code::unavailable, "ssh: the server refused the command: " + words(session));
  return channel;
}

// What it complained of, or else what it said.
std::string words_in(const Output& output) {
  std::string text = output.err.empty() ? output.out : output.err;
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

class LibsshDialog : public SshDialog {
 public:
  explicit LibsshDialog(ChannelPtr channel) : channel_(std::move(channel)) {}

  Result<std::string> ask(const std::string& line, DurationMs deadline) override {
    // What came unasked (a complaint on its error output) is not the answer; that it ended is.
    const int waiting = ssh_channel_poll(channel_.get(), 0);
    if (waiting < 0 || !ssh_channel_is_open(channel_.get()) || ssh_channel_is_eof(channel_.get()))
      return fail(Code::unavailable, "ssh: the program on the host has ended, or the connection");
    const auto until = Clock::now() + std::chrono::milliseconds(deadline);
    TRY_(send(channel_.get(), line + "\n", until));
    return next_line(until);
  }

  // `timeout` when there is none: what was asked may have been done.
  Result<std::string> next_line(Clock::time_point until) {
    for (bool more = true;;) {
      if (const auto end = heard_.out.find('\n'); end != std::string::npos) {
        std::string line = heard_.out.substr(0, end);
        heard_.out.erase(0, end + 1);
        return line;
      }
      if (!more) return fail(Code::timeout, "ssh: the program on the host ended: " + last_words());
      if (Clock::now() > until) return fail(Code::timeout, "ssh: no answer before the deadline");
      TRY(more, receive_some(channel_.get(), heard_));
    }
  }
  bool said_something() const { return !heard_.out.empty() || !heard_.err.empty(); }
  std::string last_words() const {
    const std::string text = words_in(heard_);
    return text.empty() ? "without a word" : text;
  }

 private:
  ChannelPtr channel_;
  Output heard_;
};

class LibsshSession : public SshSession {
 public:
  explicit LibsshSession(SessionPtr session) : session_(std::move(session)) {}

  Result<Output> run(const std::string& command, SshInput input, DurationMs deadline) override {
    const auto until = Clock::now() + std::chrono::milliseconds(deadline);
    TRY(const ChannelPtr channel, channel_for(session_.get(), command));
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
    return output;
  }

  Result<std::unique_ptr<SshDialog>> talk(const std::string& command, std::string_view input,
                                          DurationMs deadline) override {
    const auto until = Clock::now() + std::chrono::milliseconds(deadline);
    TRY(ChannelPtr channel, channel_for(session_.get(), command));
    const Status sent = send(channel.get(), input, until);
    auto dialog = std::make_unique<LibsshDialog>(std::move(channel));
    // Who ended before all was sent said why.
    const auto ready = dialog->next_line(until);
    if (!ready.ok() && dialog->said_something()) return fail(Code::failed, dialog->last_words());
    if (!sent.ok()) return fail(Code::failed, sent.error().message);
    if (!ready.ok()) return fail(Code::failed, ready.error().message);
    return std::unique_ptr<SshDialog>(std::move(dialog));
  }

 private:
  SessionPtr session_;
};

// With its own way to root: what `sudo` says when it is not allowed comes back as the command's error output.
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

 private:
  static std::string as_root(const std::string& command) {
    return "sudo -n -- sh -c " + shell_quote(command);
  }
  std::unique_ptr<SshSession> inner_;
};

struct KeyFree {
  void operator()(ssh_key key) const { ssh_key_free(key); }
};
using KeyPtr = std::unique_ptr<std::remove_pointer_t<ssh_key>, KeyFree>;

Result<KeyPtr> private_key_in(const std::string& text) {
  ssh_key key = nullptr;
  if (ssh_pki_import_privkey_base64(text.c_str(), nullptr, nullptr, nullptr, &key) != SSH_OK)
    return fail(Code::invalid,
                "ssh: the private key cannot be read (an encrypted key? then put it into an SSH agent)");
  return KeyPtr(key);
}

std::string who_is(const SshTarget& target) { return "ssh " + target.user + "@" + target.address; }

// Connected to the machine whose key is pinned.
Result<SessionPtr> connect_pinned(const SshTarget& target, DurationMs deadline) {
  std::string shown;
  for (const char* types : kHostKeyTypes) {
    auto session = handshake(target.address, target.port, target.user, deadline, types);
    if (!session.ok() && shown.empty()) return session;  // nobody there
    if (!session.ok()) continue;                         // it has no key of this type
    TRY(const auto found, host_key_of(session->get()));
    if (found == target.host_key) return session;
    if (shown.find(found) == std::string::npos) shown += (shown.empty() ? "" : " and ") + found;
  }
  return fail(Code::denied, "ssh " + target.address + ": the host key is " + shown + ", pinned is " +
                                target.host_key + "; another machine answers, or it was re-installed");
}

// Two keys a connection: servers of careful people end it after three.
Result<SessionPtr> connect_by_agent(const SshTarget& target, DurationMs deadline) {
  constexpr size_t kAtOnce = 2;
  const auto keys = AgentKeys::open();
  if (!keys.ok()) return fail(Code::denied, who_is(target) + ": no key: " + keys.error().message);
  for (size_t first = 0; first < keys->count(); first += kAtOnce) {
    TRY(SessionPtr session, connect_pinned(target, deadline));
    TRY(const int offered, keys->offer(first, kAtOnce));
    ssh_set_agent_socket(session.get(), offered);
    if (ssh_userauth_agent(session.get(), nullptr) == SSH_AUTH_SUCCESS) return session;
  }
  return fail(Code::denied, who_is(target) + ": none of the SSH agent's " + std::to_string(keys->count()) +
                                " keys was taken (`ssh-add -l` lists them)");
}

Status authenticate(ssh_session session, const SshTarget& target) {
  const std::string who = who_is(target);
  TRY(const KeyPtr key, private_key_in(target.private_key));
  if (ssh_userauth_publickey(session, nullptr, key.get()) != SSH_AUTH_SUCCESS)
    return fail(Code::denied, who + ": the key was refused");
  return Ok{};
}

std::string last_words(const Output& output) {
  const std::string text = words_in(output);
  return text.empty() ? "exit " + std::to_string(output.exit_code) : text;
}

}  // namespace

Result<std::unique_ptr<SshDialog>> SshSession::talk(const std::string&, std::string_view, DurationMs) {
  return fail(Code::unavailable, "this session runs single commands only");
}

std::string shell_quote(const std::string& word) {
  std::string out = "'";
  for (const char c : word) {
    // Both outside the quotes: fish takes a backslash inside them for the beginning of an escape.
    if (c == '\'')
      out += "'\\''";
    else if (c == '\\')
      out += "'\\\\'";
    else
      out += c;
  }
  return out + "'";
}

Result<std::string> learn_host_key(const std::string& address, uint16_t port, DurationMs deadline) {
  TRY(auto session, handshake(address, port, "muster", deadline));
  return host_key_of(session.get());
}

Result<std::vector<std::string>> learn_host_keys(const std::string& address, uint16_t port,
                                                 DurationMs deadline) {
  std::vector<std::string> out;
  for (const char* types : kHostKeyTypes) {
    auto session = handshake(address, port, "muster", deadline, types);
    if (!session.ok() && out.empty()) return session.error();
    if (!session.ok()) continue;
    TRY(const std::string key, host_key_of(session->get()));
    if (std::find(out.begin(), out.end(), key) == out.end()) out.push_back(key);
  }
  return out;
}

Result<std::vector<std::string>> host_keys_in(const std::string& text,
                                              const std::vector<std::string>& names) {
  constexpr size_t kDigits = 7 + 43;  // "SHA256:" and base64 of 32 bytes without padding
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (first.empty() || first[0] == '#') continue;
    // A line of known_hosts: "NAME,NAME TYPE KEY".
    if (ssh_key_type_from_name(second.c_str()) != SSH_KEYTYPE_UNKNOWN && !names.empty()) {
      if (first[0] == '|')
        return fail(Code::invalid,
                    "host names are hashed there: `ssh-keygen -lF HOST` shows the fingerprint");
      const std::string listed = "," + first + ",";
      if (std::none_of(names.begin(), names.end(), [&](const std::string& name) {
            return listed.find("," + name + ",") != std::string::npos;
          }))
        continue;
      first = second;
      words >> second;
    }
    if (const auto at = line.find("SHA256:"); at != std::string::npos) {
      found.push_back(line.substr(at, kDigits));
      continue;
    }
    ssh_key key = nullptr;
    if (ssh_pki_import_pubkey_base64(second.c_str(), ssh_key_type_from_name(first.c_str()), &key) != SSH_OK)
      return fail(Code::invalid,
                  "'" + first + " ...' is neither a fingerprint (SHA256:...) nor a public key");
    auto fingerprint = fingerprint_of(key);
    ssh_key_free(key);
    if (!fingerprint.ok()) return fingerprint.error();
    found.push_back(*fingerprint);
  }
  if (found.empty()) return fail(Code::invalid, "no host key is named there");
  return found;
}

Result<std::string> public_key_of(const std::string& private_key) {
  TRY(const KeyPtr key, private_key_in(private_key));
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key.get(), &text) != SSH_OK)
    return fail(Code::failed, "ssh: the key has no public half that can be read");
  const std::string base64 = text;
  ssh_string_free_char(text);
  return base64;
}

Result<std::unique_ptr<SshSession>> ssh_connect(const SshTarget& target, DurationMs deadline) {
  if (target.host_key.empty())
    return fail(Code::denied, "ssh " + target.address + ": no host key pinned; show it first and confirm it");
  if (target.private_key.empty()) {
    TRY(auto by_agent, connect_by_agent(target, deadline));
    return std::unique_ptr<SshSession>(std::make_unique<LibsshSession>(std::move(by_agent)));
  }
  TRY(auto session, connect_pinned(target, deadline));
  TRY_(authenticate(session.get(), target));
  return std::unique_ptr<SshSession>(std::make_unique<LibsshSession>(std::move(session)));
}

std::unique_ptr<SshSession> as_root(std::unique_ptr<SshSession> session) {
  return std::make_unique<RootSession>(std::move(session));
}

namespace {

// Takes the agent from its standard input and becomes it; what follows there is the agent's. What arrives is
// what was sent, by the connection's own check of each packet; whether all of it did is asked here.
std::string unseen(const std::string& agent_binary, const std::string& arguments) {
  // /dev/shm, because no program looks there for anything that muster checks. What is mounted over it is seen
  // by this command only.
  const std::string program = "/dev/shm/muster-agent", size = std::to_string(agent_binary.size());
  const std::string inside =
      "set -e; mount -n -t tmpfs -o mode=0700,size=256m muster-preview /dev/shm; head -c " + size + " > " +
      program + "; [ $(wc -c < " + program + ") = " + size +
      " ] || { echo 'the connection ended before all of the agent was here' >&2; exit 1; }; chmod 0700 " +
      program + "; exec " + program + " " + arguments;
  return "exec unshare --mount -- sh -c " + shell_quote(inside);
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
  // Written beside, checked, then renamed: a torn upload is never started.
  const std::string take = "set -e; umask 022; cat > " + path + ".new; echo " +
                           shell_quote(digest + "  " + path + ".new") +
                           " | sha256sum -c --quiet; chmod 755 " + path + ".new; mv " + path + ".new " + path;
  TRY(const auto sent, session.run(take, agent_binary, deadline));
  if (!sent.ok()) return fail(Code::failed, "agent not installed: " + last_words(sent));
  return Ok{};
}

}  // namespace muster
