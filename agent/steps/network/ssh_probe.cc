// ssh_probe: which ways of logging in a node's SSH server offers, seen from another node. Pure test.
//
// An attempt with the method "none" is answered by the list of methods the server would take: nothing is
// guessed and no account is needed. A node that is busy with its own acceptance takes long for its banner: it
// has a minute for that, and is healthy all the same.
#include <algorithm>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

// "muster-probe@10.20.0.12: Permission denied (publickey,password)."
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
    return fail(Code::unavailable, "no SSH server answers at " + host + ": " + out.err.substr(0, 200));
  return split(out.err.substr(begin + 19, end - begin - 19), ',');
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  TRY(const auto methods, offered(context, text_of(params, "host"), int_of(params, "port", 22)));
  const auto has = [&](const std::string& method) {
    return std::find(methods.begin(), methods.end(), method) != methods.end();
  };
  Diff diff;
  if (has("none")) diff.add("accepts logins without authentication");
  for (const auto& method : list_of(params, "refused"))
    if (has(method)) diff.add("offers " + method);
  for (const auto& method : list_of(params, "offered"))
    if (!has(method)) diff.add("does not offer " + method);
  if (diff.empty()) return holds();
  return differs("SSH of " + text_of(params, "host") + " " + diff.result().diff + " (it offers " +
                 join(methods, ", ") + ")");
}

}  // namespace

StepModule ssh_probe_module() {
  StepModule m;
  m.name = "ssh_probe";
  m.help =
      "The SSH server of another machine, seen from this node, offers these login methods and not those.";
  m.parameters = Json::array({parameter("host", "string", true, "numeric address"),
                              parameter("port", "int", false, "TCP port", 22),
                              parameter("refused", "list", false,
                                        "methods that must not be offered: password, keyboard-interactive"),
                              parameter("offered", "list", false, "methods that must be: publickey")});
  m.check = check;
  return m;
}

}  // namespace muster::steps
