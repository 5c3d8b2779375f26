// sshd: changes settings of the SSH server in a drop-in that is read first (the first value wins), in two
// phases.
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/tcp.h"
#include "agent/steps/two_phase.h"
#include "base/distribution.h"
#include "base/lower.h"

namespace muster::steps {
namespace {

constexpr const char* kFolder = "/etc/ssh/sshd_config.d";
constexpr const char* kDropIn = "/etc/ssh/sshd_config.d/00-muster.conf";
constexpr const char* kMain = "/etc/ssh/sshd_config";

struct WantedSshd {
  std::map<std::string, Json> settings;
  std::string controller;
  int64_t port = 22, rollback_seconds = 120;
};
MUSTER_PARAMETERS(WantedSshd, required(settings, "setting -> value"),
                  optional(controller, "URL that must be reachable after the change"),
                  optional(port, "port on which the server must still respond; 0: not checked"),
                  optional(rollback_seconds, "time after which an unconfirmed change is rolled back"))

std::string sshd_value(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value_text(value);
}

std::string drop_in(const WantedSshd& want) {
  std::string out =
      "# Written by muster. Read first: of several values for a setting, sshd takes the first.\n";
  for (const auto& [name, value] : want.settings) out += name + " " + sshd_value(value) + "\n";
  return out;
}

// Splits a line as sshd does: at blanks, tabs and one `=` after the keyword; quoted text stays together, and
// a comment at the end is left out.
std::vector<std::string> sshd_words(const std::string& line) {
  std::vector<std::string> out;
  bool begun = false, equals = false;
  char quote = 0;
  for (const char c : line) {
    const bool blank = quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\f');
    const bool separator = quote == 0 && c == '=' && out.size() == 1 && !equals;
    equals = equals || separator;
    if (quote == 0 && c == '#' && !begun) break;
    if (blank || separator) {
      begun = false;
    } else if (c == quote) {
      quote = 0;
    } else {
      if (!begun) out.emplace_back();
      begun = true;
      if (quote == 0 && (c == '"' || c == '\''))
        quote = c;
      else
        out.back() += c;
    }
  }
  return out;
}

// The files that match this pattern of an Include, in reading order; kDropIn even if it does not exist.
std::vector<std::string> included(const Files& files, std::string pattern) {
  if (pattern.empty() || pattern[0] != '/') pattern = "/etc/ssh/" + pattern;
  const std::string folder = pattern.substr(0, pattern.rfind('/'));
  std::vector<std::string> out;
  const auto take = [&](const std::string& path) {
    if (::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0) out.push_back(path);
  };
  for (const auto& name : files.list(folder))
    if (folder + "/" + name != kDropIn) take(folder + "/" + name);
  take(kDropIn);
  std::sort(out.begin(), out.end());
  return out;
}

// The files that are read before the drop-in. conflict: the main file sets something before it includes the
// drop-in, or never includes it.
Result<std::vector<std::string>> read_before(const StepContext& context) {
  TRY(const std::string text, context.files.read(kMain));
  std::vector<std::string> out;
  for (const auto& line : split_lines(text)) {
    const auto words = sshd_words(line);
    if (words.empty()) continue;
    if (lower(words[0]) != "include") break;
    for (size_t i = 1; i < words.size(); ++i)
      for (const auto& path : included(context.files, words[i])) {
        if (path == kDropIn) return out;
        out.push_back(path);
      }
  }
  return fail(Code::conflict, std::string(kMain) + " does not begin with an `Include` line for " + kFolder);
}

using Settings = std::map<std::string, std::string>;

// According to `sshd -T`, by name in lower case; of a list only the first line.
Result<Settings> in_effect(StepContext& context) {
  TRY(const std::string out, run_tool(context, {"/usr/sbin/sshd", "-T"}));
  Settings have;
  for (const auto& line : split_lines(out))
    if (const auto space = line.find(' '); space != std::string::npos)
      have.emplace(line.substr(0, space), line.substr(space + 1));
  return have;
}

// sshd prints some values under their older names.
std::string canonical(const std::string& value) {
  const std::string text = lower(value);
  return text == "prohibit-password" ? "without-password" : text;
}

Status effective(const Settings& have, const WantedSshd& wanted) {
  for (const auto& [name, value] : wanted.settings) {
    const auto it = have.find(lower(name));
    // Lists are printed with one element per line; only the first line is compared.
    if (it == have.end()) return fail(Code::failed, "sshd has no setting " + name);
    const std::string want = canonical(sshd_value(value));
    if (canonical(it->second) != want && !want.starts_with(canonical(it->second) + " "))
      return fail(Code::failed, "the effective value of " + name + " is '" + it->second + "', not '" +
                                    sshd_value(value) + "'");
  }
  return Ok{};
}

// Fails if these settings would lock out an account that now logs in by key: without PAM, a `!` in front of
// the password also disables login by key.
Status keeps_logins(StepContext& context, const WantedSshd& want) {
  bool off = false;
  for (const auto& [name, value] : want.settings)
    off = off || (lower(name) == "usepam" && lower(sshd_value(value)) == "no");
  if (!off) return Ok{};
  const auto now = in_effect(context);
  if (now.ok() && now->count("usepam") > 0 && now->at("usepam") == "no") return Ok{};
  std::vector<std::string> shut;
  for (const PasswdEntry& user : users_of(context.files)) {
    if (context.files.read(user.home + "/.ssh/authorized_keys").value_or("").empty()) continue;
    if (password_field(context.files, user.name).starts_with('!')) shut.push_back(user.name);
  }
  if (shut.empty()) return Ok{};
  return fail(Code::conflict,
              "`UsePAM no` would lock out accounts that have a locked password and log in by key: " +
                  join(shut, ", ") + " (`usermod -p '*' NAME` keeps login by key)");
}

// A reload of the wrong unit would change nothing. Elsewhere sshd.service is a link in /etc, if it exists.
Status known_unit(const Files& files) {
  const std::string units = "/usr/lib/systemd/system/";
  if (!files.exists(units + "sshd.service") || files.exists(units + "ssh.service")) return Ok{};
  return fail(Code::conflict,
              "the SSH server is sshd.service here, which this step does not reload: it knows " +
                  supported_releases());
}

Result<CheckResult> check_sshd(StepContext& context, const WantedSshd& want) {
  if (!context.files.exists(kMain)) return differs("the SSH server is not installed");
  TRY_(known_unit(context.files));
  TRY(const auto earlier, read_before(context));
  Diff diff;
  const auto have = context.files.read(kDropIn);
  if (!have.ok())
    diff.add(std::string(kDropIn) + " does not exist");
  else if (*have != drop_in(want))
    diff.add(std::string(kDropIn) + " differs");
  if (is_armed(context.files, "sshd")) diff.add("an earlier change was not confirmed");
  for (const auto& path : earlier) diff.add(path + " is read before muster's settings");
  if (!diff.empty()) return diff.result();
  // Even correct files may not be in effect. If that cannot be read, it is not a difference.
  if (const auto now = in_effect(context); now.ok())
    if (const Status holds_so = effective(*now, want); !holds_so.ok()) diff.add(holds_so.error().message);
  return diff.result();
}

// Checks that the server still responds with SSH after the reload.
Status answers(int64_t port) {
  if (port <= 0) return Ok{};
  // A reload restarts the server: it does not listen for a moment, or for seconds on a slow machine.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < until) {
    TRY(const TcpAnswer answer, tcp_probe("127.0.0.1", static_cast<uint16_t>(port), 10 * kSecond, true));
    if (answer.banner.starts_with("SSH-2.0")) return Ok{};
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  return fail(Code::failed, "the SSH server no longer responds");
}

// How a running server reads its settings again; one that ssh.socket starts later reads them then. One that
// ssh.socket started is restarted, which leaves sessions alone: on a reload OpenSSH 9.2 (Debian 12) closes
// the socket that systemd gave it, cannot bind another one, and ends, or listens on IPv6 only.
std::vector<std::string> reading_again(StepContext& context) {
  const auto active = context.process.run({.argv = {"systemctl", "is-active", "--quiet", "ssh.socket"}});
  const bool by_socket = active.ok() && active->ok();
  return {"systemctl", by_socket ? "try-restart" : "try-reload-or-restart", "ssh.service"};
}

Status change(StepContext& context, const WantedSshd& want, const std::vector<std::string>& again) {
  TRY_(context.files.write(kDropIn, drop_in(want), 0600));
  // `sshd -t` fails without the privilege separation folder; a socket-activated sshd creates it only when
  // used.
  TRY_(context.files.make_directories("/run/sshd", 0755));
  TRY_(run_tool(context, {"/usr/sbin/sshd", "-t"}));
  TRY_(run_tool(context, again));
  TRY(const Settings now, in_effect(context));
  TRY_(effective(now, want));
  TRY_(answers(want.port));
  return want.controller.empty() ? Ok{} : reach(want.controller, 20 * kSecond);
}

Status apply_sshd(StepContext& context, const WantedSshd& want) {
  TRY_(known_unit(context.files));
  TRY(const auto earlier, read_before(context));
  if (!earlier.empty()) return fail(Code::conflict, earlier[0] + " would be read before muster's settings");
  TRY_(keeps_logins(context, want));
  const auto again = reading_again(context);
  const TwoPhase phases{"sshd", {kDropIn}, {again}, want.rollback_seconds};
  return in_two_phases(context, phases, [&] { return change(context, want, again); });
}

}  // namespace

StepModule sshd_module() {
  return step_module<WantedSshd>({
      .name = "sshd",
      .help = "Changes settings of the SSH server. They are tested before the reload, compared with those "
              "in effect (`sshd -T`), and rolled back by a timer unless the server still responds and the "
              "controller is reachable.",
      .check = check_sshd,
      .apply = apply_sshd,
  });
}

}  // namespace muster::steps
