// ufw: the whole rule set of the firewall, declared. Applied in two phases (two_phase.h).
//
// The ufw program is Python and costs seconds per call, so muster writes ufw's own files (its tuple comments
// included: `ufw status` shows the rules) and loads them the way ufw's init script does. What the kernel has
// is asked from iptables, never assumed.
#include <algorithm>

#include <fmt/format.h>

#include "agent/steps/system/accounts.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/two_phase.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

constexpr const char* kRules = "/etc/ufw/user.rules";
constexpr const char* kConf = "/etc/ufw/ufw.conf";
constexpr const char* kDefaults = "/etc/default/ufw";
constexpr const char* kInit = "/lib/ufw/ufw-init";

struct Rule {
  std::string from, proto, comment, ports;  // ports: "22", "1024:65535", empty: all
  std::string to;                           // one of the node's addresses; empty: any of them
};

bool is_cidr(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789./") == std::string::npos &&
         std::count(text.begin(), text.end(), '.') == 3;
}

bool is_port(const std::string& text) {
  return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == std::string::npos &&
         std::stoi(text) <= 65535;
}

Result<Rule> rule_of(const Json& element) {
  if (!element.is_object()) return fail(Code::invalid, "ufw: every rule is an object");
  for (const auto& [key, value] : element.items())
    if (key != "from" && key != "port" && key != "ports" && key != "proto" && key != "comment" && key != "to")
      return fail(Code::invalid, "ufw: unknown key '" + key + "' in a rule");
  Rule rule{text_of(element, "from", "0.0.0.0/0"), text_of(element, "proto"), text_of(element, "comment"),
            text_of(element, "ports"), text_of(element, "to")};
  if (const int64_t port = int_of(element, "port", 0)) rule.ports = std::to_string(port);
  if (!rule.ports.empty() && rule.proto.empty()) rule.proto = "tcp";
  if (!is_cidr(rule.from)) return fail(Code::invalid, "ufw: '" + rule.from + "' is not an IPv4 network");
  if (!rule.to.empty() && (!is_cidr(rule.to) || rule.to.find('/') != std::string::npos))
    return fail(Code::invalid, "ufw: '" + rule.to + "' is not an IPv4 address");
  const auto range = split(rule.ports, ':');
  if (!rule.ports.empty() &&
      (range.empty() || range.size() > 2 || !std::all_of(range.begin(), range.end(), is_port)))
    return fail(Code::invalid, "ufw: '" + rule.ports + "' is neither a port nor a range");
  if (!rule.proto.empty() && rule.proto != "tcp" && rule.proto != "udp")
    return fail(Code::invalid, "ufw: proto is tcp or udp");
  return rule;
}

// What iptables -S prints for it.
std::string chain_line(const Rule& rule) {
  std::string from = rule.from;
  if (from.find('/') == std::string::npos) from += "/32";
  std::string line = "-A ufw-user-input";
  if (from != "0.0.0.0/0") line += " -s " + from;
  if (!rule.to.empty()) line += " -d " + rule.to + "/32";
  if (!rule.proto.empty()) line += " -p " + rule.proto;
  if (rule.ports.find(':') != std::string::npos)
    line += " -m multiport --dports " + rule.ports;
  else if (!rule.ports.empty())
    line += fmt::format(" -m {} --dport {}", rule.proto, rule.ports);
  return line + " -j ACCEPT";
}

// A rule whose `from` is present but empty is left out: a network that the spec does not declare. So is one
// that says what an earlier one says.
Result<std::vector<Rule>> rules_of(const Json& params) {
  std::vector<Rule> out;
  const auto list = params.find("allow");
  if (list == params.end()) return out;
  for (const auto& element : *list) {
    if (element.is_object() && element.contains("from") && element["from"] == "") continue;
    TRY(auto rule, rule_of(element));
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const Rule& r) { return chain_line(r) == chain_line(rule); });
    if (!known) out.push_back(std::move(rule));
  }
  return out;
}

// `comment` in the way ufw stores it.
std::string tuple(const Rule& rule) {
  return fmt::format("### tuple ### allow {} {} {} any {} in{}", rule.proto.empty() ? "any" : rule.proto,
                     rule.ports.empty() ? "any" : rule.ports, rule.to.empty() ? "0.0.0.0/0" : rule.to,
                     rule.from, rule.comment.empty() ? "" : " comment=" + to_hex(rule.comment));
}

std::string rules_text(const std::vector<Rule>& rules) {
  std::string out = "*filter\n";
  for (const char* chain : {"user-input", "user-output", "user-forward", "user-limit", "user-limit-accept"})
    out += fmt::format(":ufw-{} - [0:0]\n", chain);
  out += "### RULES ###\n";
  for (const auto& rule : rules) out += "\n" + tuple(rule) + "\n" + chain_line(rule) + "\n";
  return out +
         "\n### END RULES ###\n"
         "-A ufw-user-limit -m limit --limit 3/minute -j LOG --log-prefix \"[UFW LIMIT BLOCK] \"\n"
         "-A ufw-user-limit -j REJECT\n-A ufw-user-limit-accept -j ACCEPT\nCOMMIT\n";
}

// A shell-style settings file with these values; other lines stay.
std::string with_settings(const std::string& text,
                          const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string out;
  std::vector<bool> placed(settings.size());
  for (const auto& line : lines_of(text)) {
    size_t match = settings.size();
    for (size_t i = 0; i < settings.size(); ++i)
      if (line.rfind(settings[i].first + "=", 0) == 0) match = i;
    if (match == settings.size())
      out += line + "\n";
    else if (!placed[match])
      out += settings[match].first + "=" + settings[match].second + "\n", placed[match] = true;
  }
  for (size_t i = 0; i < settings.size(); ++i)
    if (!placed[i]) out += settings[i].first + "=" + settings[i].second + "\n";
  return out;
}

struct File {
  std::string path, text;
  unsigned mode;
};

Result<std::vector<File>> wanted_files(const StepContext& context, const Json& params) {
  TRY(const auto rules, rules_of(params));
  TRY(const std::string conf, context.files.read(kConf));
  TRY(const std::string defaults, context.files.read(kDefaults));
  return std::vector<File>{
      {kRules, rules_text(rules), 0640},
      {kDefaults,
       with_settings(defaults, {{"IPV6", "yes"},
                                {"DEFAULT_INPUT_POLICY", "\"DROP\""},
                                {"DEFAULT_OUTPUT_POLICY", "\"ACCEPT\""},
                                {"DEFAULT_FORWARD_POLICY", "\"DROP\""}}),
       0644},
      {kConf, with_settings(conf, {{"ENABLED", "yes"}, {"LOGLEVEL", text_of(params, "logging", "off")}}),
       0644}};
}

// Lines of the kernel's rule list; empty when the chain is not there (firewall not loaded).
Result<std::vector<std::string>> loaded(StepContext& context) {
  Command command;
  command.argv = {"iptables", "-S"};
  TRY(const Output out, context.process.run(command));
  if (!out.ok()) return fail(Code::failed, "iptables -S: " + out.err.substr(0, 200));
  return lines_of(out.out);
}

// How the kernel's rules differ from the declared ones.
Status live_diff(StepContext& context, const std::vector<Rule>& rules, Diff& diff, bool* active) {
  TRY(const auto lines, loaded(context));
  std::vector<std::string> have, want;
  bool drop = false, chain = false;
  for (const auto& line : lines) {
    drop = drop || line == "-P INPUT DROP";
    chain = chain || line == "-N ufw-user-input";
    if (line.rfind("-A ufw-user-input ", 0) == 0) have.push_back(line);
  }
  for (const auto& rule : rules) want.push_back(chain_line(rule));
  if (active) *active = chain && drop;
  if (!chain)
    diff.add("firewall is not loaded");
  else if (!drop)
    diff.add("incoming traffic is not denied by default");
  else if (have != want)
    diff.add(fmt::format("loaded rules differ: {} loaded, {} declared", have.size(), want.size()));
  return Ok{};
}

Result<CheckResult> check(StepContext& context, const Json& params) {
  if (!context.files.exists(kConf)) return differs("ufw is not installed");
  TRY(const auto rules, rules_of(params));
  TRY(const auto files, wanted_files(context, params));
  Diff diff;
  for (const auto& file : files) {
    const auto have = context.files.read(file.path);
    if (!have.ok() || *have != file.text) diff.add(file.path + " differs");
  }
  if (is_armed(context.files, "ufw")) diff.add("an earlier change was not confirmed");
  if (diff.empty()) TRY_(live_diff(context, rules, diff, nullptr));
  return diff.result();
}

Status load(StepContext& context, bool active) {
  if (active) {
    TRY(auto out, run_tool(context, {"iptables-restore", "-n", kRules}));
    (void)out;
    return Ok{};
  }
  // Not through the unit: it counts as started from the boot on, and restarting it would first run its slow
  // stop part.
  if (!context.files.exists("/etc/systemd/system/multi-user.target.wants/ufw.service")) {
    TRY(auto enabled, run_tool(context, {"systemctl", "enable", "ufw.service"}));
    (void)enabled;
  }
  TRY(auto started, run_tool(context, {kInit, "start"}, 2 * kMinute));
  (void)started;
  return Ok{};
}

Status change(StepContext& context, const Json& params, bool active) {
  TRY(const auto rules, rules_of(params));
  TRY(const auto files, wanted_files(context, params));
  for (const auto& file : files) {
    const auto have = context.files.read(file.path);
    if (!have.ok() || *have != file.text) TRY_(context.files.write(file.path, file.text, file.mode));
  }
  TRY_(load(context, active));
  Diff diff;
  TRY_(live_diff(context, rules, diff, nullptr));
  if (!diff.empty()) return fail(Code::failed, diff.result().diff);
  if (const std::string controller = text_of(params, "controller"); !controller.empty())
    return reach(controller, 20 * kSecond);
  return Ok{};
}

Status apply(StepContext& context, const Json& params) {
  if (!context.files.exists(kConf)) return fail(Code::not_found, "ufw is not installed");
  bool active = false;
  Diff ignored;
  TRY(const auto rules, rules_of(params));
  TRY_(live_diff(context, rules, ignored, &active));
  TwoPhase phases{"ufw", {kRules, kDefaults, kConf}, {}, int_of(params, "rollback_seconds", 120)};
  if (active)
    phases.after = {{"iptables-restore", "-n", kRules}};
  else
    phases.after = {{kInit, "force-stop"}, {"systemctl", "disable", "ufw.service"}};
  return in_two_phases(context, phases, [&] { return change(context, params, active); });
}

}  // namespace

StepModule ufw_module() {
  StepModule m;
  m.name = "ufw";
  m.help =
      "The firewall's whole rule set: what `allow` lists may come in, everything else may not. Taken back by "
      "a timer unless the controller is still reachable afterwards.";
  m.parameters = Json::array(
      {parameter(
           "allow", "list", true,
           "[{from: CIDR, to: own address, port | ports: \"A:B\", proto, comment}]; without port: everything "
           "from there; without `to`: to any of the node's addresses"),
       parameter("controller", "string", false, "URL that must be reachable afterwards"),
       parameter("logging", "string", false, "ufw log level", "off"),
       parameter("rollback_seconds", "int", false, "taken back after so long without confirmation", 120)});
  m.check = check;
  m.apply = apply;
  return m;
}

}  // namespace muster::steps
