#include "controller/hosts/lost_reason.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/utf8.h"
#include "sys/os.h"

namespace muster {
namespace {

constexpr size_t kLineBytes = 300, kKept = 4096;

// Checked in this order: a line may be followed by a less specific one.
struct ReasonWords {
  const char* part;
  Code code;         // unavailable: again; any other: final
  const char* text;  // shown instead of the line that was found; empty: the line is shown
};
constexpr const char* kMultiplexer =
    "a start-up file of the login shell (~/.bashrc, ~/.zshenv) starts tmux or screen, which need a terminal: "
    "start it in interactive shells only";
constexpr ReasonWords kWords[] = {
    // The host's key.
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", Code::denied,
     "its host key differs from the one in known_hosts: a different machine answered, or the host was "
     "reinstalled"},
    {"host key is known for", Code::denied,
     "its host key is not in known_hosts: connect once by hand and confirm the key, or add the key to the "
     "file"},
    {"Host key verification failed", Code::denied,
     "its host key is missing from known_hosts, or differs from the one there"},
    // PAM: pam_nologin, pam_limits, pam_unix, pam_sss, pam_slurm_adopt, pam_slurm, pam_access.
    {"System is booting up", Code::unavailable, ""},
    {"System is going down", Code::unavailable, ""},
    {"pam_nologin(8)", Code::unavailable, ""},
    {"Too many logins for", Code::unavailable, ""},
    {"account has expired", Code::denied, ""},
    {"Password change required", Code::denied,
     "the account's password has expired: change it, or exempt the account from expiry (`passwd -x -1`)"},
    {"password has expired", Code::denied, ""},
    {"required to change your password", Code::denied, ""},
    {"Permission denied. ", Code::denied, ""},  // of an account that expired in the directory
    {"no active jobs on this node", Code::denied, ""},
    {"pam_slurm", Code::denied, ""},
    // sshd's refusals.
    {"with partial success", Code::denied,
     "the key was accepted, but the host requires a password or code as well, which cannot be entered here: "
     "exempt the account, or open a shared connection first (ControlMaster, ControlPath in ssh_config)"},
    {"Permission denied (", Code::denied, ""},
    {"Too many authentication failures", Code::denied, ""},
    {"No more authentication methods", Code::denied, ""},
    {"account is currently not available", Code::denied, ""},
    {"Exceeded MaxStartups", Code::unavailable, ""},
    {"Not allowed at this time", Code::unavailable, ""},
    {"Unable to negotiate with", Code::denied, ""},
    // A start-up file that becomes tmux or screen.
    {"open terminal failed: ", Code::failed, kMultiplexer},
    {"Must be connected to a terminal", Code::failed, kMultiplexer},
    // sudo, where a command of --via uses it.
    {"sudo: a password is required", Code::denied, ""},
    {"sudo: a terminal is required", Code::denied, ""},
    {"is not in the sudoers file", Code::denied, ""},
    {"must have a tty to run sudo", Code::denied, ""},
    {"sudo: unknown user", Code::denied, ""},
    // ssh on this machine, and the network.
    {"Could not resolve hostname", Code::not_found, ""},
    {"Can't open user config file", Code::invalid, ""},
    {"Bad owner or permissions on", Code::invalid, ""},
    {"Bad configuration option", Code::invalid, ""},
    {"fork failed: Resource temporarily unavailable", Code::unavailable, kNoMoreProcesses},  // for a proxy
    {"terminating, ", Code::invalid, ""},  // "FILE: terminating, 1 bad configuration options"
    {"Connection refused", Code::unavailable, ""},
    {"timed out", Code::unavailable, ""},
    {"No route to host", Code::unavailable, ""},
    {"Network is unreachable", Code::unavailable, ""},
    // A jump host, of the host behind it.
    {"open failed: connect failed: Name or service not known", Code::not_found, ""},
    {"open failed: administratively prohibited", Code::denied,
     "the jump host does not forward connections to it: see AllowTcpForwarding and PermitOpen in the jump "
     "host's sshd_config"},
    {"open failed: ", Code::unavailable, ""},
    {"stdio forwarding failed", Code::unavailable, ""},
    // Last: it follows most of the lines above, and says nothing then.
    {"_exchange_identification: ", Code::unavailable,
     "sshd closed the connection before the login: too many at once (MaxStartups), this address is "
     "blocked, or sshd is starting"},
};
// How ssh ends; whatever stands before says why.
constexpr std::array<std::string_view, 4> kEndings = {"Connection closed by ", "Connection reset by ",
                                                      "Connection to ", "Disconnected from "};
// Progress: a prefix of most lines, and the lines without it.
constexpr std::string_view kProgress = "debug1: ";
constexpr std::array<std::string_view, 3> kMoreProgress = {"Authenticated to ", "Transferred: sent ",
                                                           "Bytes per second: sent "};
// What sshd sends instead of its version.
constexpr std::string_view kInstead = "kex_exchange_identification: banner line ";
constexpr const char* kAfterTheKey =
    "the host accepted the key and then closed the connection without a reason: PAM does not admit this "
    "account (pam_access, /etc/security/access.conf; see the host's log of sshd)";
constexpr const char* kShellEnded =
    "the login shell ended before /bin/sh started: a start-up file exits (~/.bashrc, /etc/bash.bashrc, "
    "/etc/profile.d), or the account may not run commands";
// Exit statuses: 126 found but not executable; 127 not found; 255 ssh failed.
constexpr int kNotExecutable = 126, kNoCommand = 127, kSshFailed = 255;

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }
bool begins_any(std::string_view text, const auto& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view with) { return begins(text, with); });
}
bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Bytes of the escape sequence at the beginning of `text`, which begins with ESC: "ESC [ 0 m", "ESC ( B".
size_t escape_bytes(std::string_view text) {
  const bool control = text.size() > 1 && text[1] == '[';
  const size_t end = control ? text.find_first_not_of("0123456789;:<=>? !\"#$%&'()*+,-./", 2)
                             : text.find_first_not_of(" !\"#$%&'()*+,-./", 1);
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::string line_with(const std::vector<std::string>& lines, const char* part) {
  for (const std::string& line : lines)
    if (has(line, part)) return one_line(line);
  return "";
}

// The last line of ssh's standard error before its ending; without one, "".
std::string last_words(const std::vector<std::string>& lines) {
  std::string found;
  for (const std::string& line : lines)
    if (std::string shown = one_line(line); !shown.empty() && !begins_any(shown, kEndings))
      found = std::move(shown);
  return found;
}

}  // namespace

// ---- standard error ----

void ErrorText::take(std::string_view bytes) {
  for (const char c : bytes) {
    line_ += c;
    if (c == '\n' || line_.size() >= kKept) take_line();
  }
}

std::string ErrorText::words() const { return words_ + line_.substr(0, line_.find(kProgress)); }

// A banner may end without an end of line, right before a progress line.
void ErrorText::take_line() {
  const std::string line = std::exchange(line_, {});
  const size_t at = line.find(kProgress);
  if (!begins_any(line, kMoreProgress)) words_ += line.substr(0, at);
  if (at != std::string::npos) take_step(std::string_view(line).substr(at + kProgress.size()));
  if (words_.size() > kKept) words_.erase(0, words_.size() - kKept);
}

void ErrorText::take_step(std::string_view step) {
  const bool first_answer = !tried_ && begins(step, "Authentications that can continue");
  const bool accepted = begins(step, "Server accepts key");
  const bool inside = begins(step, "Entering interactive session");
  tried_ = tried_ || first_answer;
  key_accepted_ = key_accepted_ || accepted;
  logged_in_ = logged_in_ || inside;
  if (first_answer || accepted || inside) words_.clear();
  if (!words_.empty() && words_.back() != '\n') words_ += '\n';
  if (begins(step, kInstead))
    words_ += step.substr(std::min(step.size(), step.find(": ", kInstead.size()) + 2));
}

void ErrorText::forget() {
  words_.clear();
  line_.erase(0, line_.find(kProgress));
}

// ---- text for people ----

std::string one_line(std::string_view text) {
  std::string out;
  size_t dropped = 0;
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == 0x1b) {
      at += escape_bytes(text.substr(at));
      continue;
    }
    const bool blank = c == '\t' || c == '\n' || c == '\r' || c == ' ';
    const Utf8Character next = read_utf8(text.substr(at));
    const bool shown = next.valid && !controls_display(next.unicode);
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
    if (!blank && shown) out += text.substr(at, next.bytes);
    if (!blank && !shown) ++dropped;
    at += next.bytes;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (dropped > 2 && dropped * 10 > text.size()) return "";  // a program, not text
  return std::string(last_bytes(out, kLineBytes));
}

std::string last_line(const std::string& text) {
  std::string found;
  for (const std::string& line : lines_of(text))
    if (std::string shown = one_line(line); !shown.empty()) found = std::move(shown);
  return found;
}

// ---- the reason ----

Error lost_reason(const EndedCommand& ended) {
  const std::string words = ended.err.words();
  const std::vector<std::string> err = lines_of(words);
  std::string line = last_words(err);
  if (line.empty() && ended.agent_ran) line = last_line(words);
  if (ended.agent_ran)
    return fail(Code::unavailable, "the connection was lost" + (line.empty() ? "" : ": " + line));
  for (const ReasonWords& known : kWords) {
    std::string found = line_with(err, known.part);
    if (found.empty()) found = line_with({ended.last_out}, known.part);
    if (!found.empty()) return fail(known.code, *known.text ? known.text : found);
  }
  if (line.empty()) line = last_line(ended.last_out);
  const bool silent = line.empty();
  if (!ended.shell_ran &&
      (ended.status == 0 || (silent && ended.err.logged_in() && ended.status < kSshFailed)))
    return fail(Code::failed, kShellEnded + (silent ? "" : "; it printed: " + line));
  if (silent && ended.err.key_accepted() && !ended.err.logged_in()) return fail(Code::denied, kAfterTheKey);
  if (silent) line = last_line(words);
  if (line.empty())
    line = "the command that connects to the host ended with status " + std::to_string(ended.status);
  const bool no_shell = ended.status == kNotExecutable || ended.status == kNoCommand;
  return fail(no_shell ? Code::failed : Code::unavailable, line);
}

}  // namespace muster
