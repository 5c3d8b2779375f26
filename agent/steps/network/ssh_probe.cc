// ssh_probe: tests which login methods a node's SSH server offers, seen from another node. Changes nothing.
//
// The server answers a login attempt with the method "none" by listing the methods that it accepts, so no
// password is tried and no account is required. A healthy node that is busy with its own acceptance may need
// long to send its banner, so the timeout is one minute.
#include <algorithm>

#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedSshProbe {
  std::string host;
  int64_t port = 22;
  Texts refused, offered;
};
MUSTER_PARAMETERS(WantedSshProbe, required(host, "numeric address"), optional(port, "TCP port"),
                  optional(refused,
                           "methods that must not be offered, such as password and keyboard-interactive"),
                  optional(offered, "methods that must be offered, such as publickey"))

// Returns the authentication methods in ssh's message "USER@HOST: Permission denied (publickey,password)."
Result<std::vector<std::string>> offered(StepContext& context, const std::string& host, int64_t port) {
  Command command;
  command.argv = {"ssh",
                  "-F",
                  "none",
                  "-n",
                  "-T",
                  "-o",
                  "BatchMode=yes",
                  "-o",
                  "PreferredAuthentications=none",
                  "-o",
                  "StrictHostKeyChecking=no",
                  "-o",
                  "UserKnownHostsFile=/dev/null",
                  "-o",
                  "LogLevel=ERROR",
                  "-o",
                  "ConnectTimeout=60",
                  "-p",
                  std::to_string(port),
                  "muster-probe@" + host,
                  "true"};
  command.deadline = 150 * kSecond;
  TRY(const Output out, context.process.run(command));
  if (out.ok()) return std::vector<std::string>{"none"};
  const auto begin = out.err.rfind("Permission denied (");
  const auto end = begin == std::string::npos ? begin : out.err.find(')', begin);
  if (end == std::string::npos)
    return fail(Code::unavailable, "no SSH server responds at " + host + ": " + out.err.substr(0, 200));
  return split(out.err.substr(begin + 19, end - begin - 19), ',');
}

Result<CheckResult> check_ssh_probe(StepContext& context, const WantedSshProbe& want) {
  TRY(const auto methods, offered(context, want.host, want.port));
  const auto has = [&](const std::string& method) {
    return std::find(methods.begin(), methods.end(), method) != methods.end();
  };
  Diff diff;
  if (has("none")) diff.add("accepts logins without authentication");
  for (const auto& method : want.refused)
    if (has(method)) diff.add("offers " + method);
  for (const auto& method : want.offered)
    if (!has(method)) diff.add("does not offer " + method);
  if (diff.empty()) return holds();
  return differs("the SSH server at " + want.host + " " + diff.result().diff + " (it offers " +
                 join(methods, ", ") + ")");
}

}  // namespace

StepModule ssh_probe_module() {
  return step_module<WantedSshProbe>({
      .name = "ssh_probe",
      .help = "Tests from this node which login methods the SSH server of another machine offers. Changes "
              "nothing.",
      .check = check_ssh_probe,
  });
}

}  // namespace muster::steps
