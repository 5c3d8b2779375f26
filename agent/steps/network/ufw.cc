// ufw: sets the firewall's complete rule set as declared, in two phases (two_phase.h).
//
// The ufw program is written in Python and takes seconds per call, so muster writes ufw's own files
// (including the tuple comments from which `ufw status` shows the rules) and loads them as ufw's init script
// does. The kernel's rules are always read with iptables and ip6tables. The complete rule set includes
// accepts in ufw's other files, rules inserted before ufw's, and IPv6 (firewall_rules.h).
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/network/firewall_rules.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/two_phase.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

constexpr const char* kUfwFolder = "/etc/ufw/";
constexpr const char* kConf = "/etc/ufw/ufw.conf";
constexpr const char* kDefaults = "/etc/default/ufw";
constexpr const char* kInit = "/lib/ufw/ufw-init";
constexpr const char* kWanted = "/etc/systemd/system/multi-user.target.wants/ufw.service";
// Prefix of the files that keep the earlier filter tables, next to the record of the change, until it is
// confirmed.
constexpr const char* kBefore = "/var/lib/muster/rollback/ufw.";

constexpr Family kFamilies[] = {Family::v4, Family::v6};
std::string tool(Family family, const char* what) {
  return std::string(family == Family::v6 ? "ip6tables" : "iptables") + what;
}
std::string rules_file(Family family, const char* name) {
  return std::string(kUfwFolder) + name + (family == Family::v6 ? "6.rules" : ".rules");
}
std::string saved_path(Family family) { return kBefore + tool(family, ""); }

struct Rule {
  std::string from, proto, comment, ports;  // ports: "22", "1024:65535", empty: all
  std::string to;                           // one of the node's addresses; empty: any
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
  if (!element.is_object()) return fail(Code::invalid, "ufw: every rule must be an object");
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
    return fail(Code::invalid, "ufw: '" + rule.ports + "' is neither a port nor a port range");
  if (!rule.proto.empty() && rule.proto != "tcp" && rule.proto != "udp")
    return fail(Code::invalid, "ufw: 'proto' must be tcp or udp");
  return rule;
}

// As `iptables -S` prints it.
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

struct WantedUfw {
  std::vector<Json> allow;
  std::string controller, logging = "off";
  int64_t rollback_seconds = 120;
  std::vector<Rule> rules;  // those of `allow`
};
MUSTER_PARAMETERS(
    WantedUfw,
    required(
        allow,
        "[{from: CIDR, to: address of the node, port | ports: \"A:B\", proto, comment}]; without a port: "
        "all traffic from that network; without `to`: any address of the node"),
    optional(controller, "URL that must be reachable after the change"), optional(logging, "ufw log level"),
    optional(rollback_seconds, "time after which an unconfirmed change is rolled back"))

// A rule with an empty `from` is left out, because it stands for a network that the spec does not declare; so
// is a duplicate of an earlier rule.
Status complete_ufw(const StepContext&, WantedUfw& want) {
  for (const auto& element : want.allow) {
    if (element.is_object() && element.contains("from") && element["from"] == "") continue;
    TRY(auto rule, rule_of(element));
    const bool known = std::any_of(want.rules.begin(), want.rules.end(),
                                   [&](const Rule& r) { return chain_line(r) == chain_line(rule); });
    if (!known) want.rules.push_back(std::move(rule));
  }
  return Ok{};
}

// The tuple comment that ufw stores for a rule, with `comment` in hexadecimal.
std::string tuple(const Rule& rule) {
  return fmt::format("### tuple ### allow {} {} {} any {} in{}", rule.proto.empty() ? "any" : rule.proto,
                     rule.ports.empty() ? "any" : rule.ports, rule.to.empty() ? "0.0.0.0/0" : rule.to,
                     rule.from, rule.comment.empty() ? "" : " comment=" + to_hex(rule.comment));
}

// Declared rules are for IPv4 only, so no incoming IPv6 traffic is accepted.
std::string rules_text(Family family, const std::vector<Rule>& rules) {
  std::string out = "*filter\n";
  for (const char* chain : {"user-input", "user-output", "user-forward", "user-limit", "user-limit-accept"})
    out += ":" + ufw_chain(family, chain) + " - [0:0]\n";
  out += "### RULES ###\n";
  if (family == Family::v4)
    for (const auto& rule : rules) out += "\n" + tuple(rule) + "\n" + chain_line(rule) + "\n";
  const std::string limit = ufw_chain(family, "user-limit");
  return out + "\n### END RULES ###\n-A " + limit +
         " -m limit --limit 3/minute -j LOG --log-prefix \"[UFW LIMIT BLOCK] \"\n-A " + limit +
         " -j REJECT\n-A " + limit + "-accept -j ACCEPT\nCOMMIT\n";
}

// For a shell-style settings file; other lines stay.
std::string with_settings(const std::string& text,
                          const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string out;
  std::vector<bool> placed(settings.size());
  for (const auto& line : split_lines(text)) {
    size_t match = settings.size();
    for (size_t i = 0; i < settings.size(); ++i)
      if (line.starts_with(settings[i].first + "=")) match = i;
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

Result<std::vector<File>> wanted_files(const StepContext& context, const WantedUfw& want) {
  TRY(const std::string conf, context.files.read(kConf));
  TRY(const std::string defaults, context.files.read(kDefaults));
  std::vector<File> out;
  for (const Family family : kFamilies) {
    out.push_back({rules_file(family, "user"), rules_text(family, want.rules), 0640});
    for (const char* name : {"before", "after"})
      if (const auto have = context.files.read(rules_file(family, name)); have.ok())
        out.push_back({rules_file(family, name), without_undeclared(*have, family), 0640});
  }
  out.push_back({kDefaults,
                 with_settings(defaults, {{"IPV6", "yes"},
                                          {"DEFAULT_INPUT_POLICY", "\"DROP\""},
                                          {"DEFAULT_OUTPUT_POLICY", "\"ACCEPT\""},
                                          {"DEFAULT_FORWARD_POLICY", "\"DROP\""}}),
                 0644});
  out.push_back({kConf, with_settings(conf, {{"ENABLED", "yes"}, {"LOGLEVEL", want.logging}}), 0644});
  return out;
}

// nullopt if this kernel has no IPv6.
Result<std::optional<FilterTable>> loaded(StepContext& context, Family family) {
  Command command;
  command.argv = {tool(family, ""), "-S"};
  auto out = context.process.run(command);
  if (out.ok() && out->ok()) return std::optional(filter_table(out->out));
  if (family == Family::v6 && !context.files.exists("/proc/net/if_inet6"))
    return std::optional<FilterTable>();
  if (!out.ok()) return std::move(out).error();
  return fail(Code::failed, command.argv[0] + " -S: " + out->err.substr(0, 200));
}

std::vector<std::string> declared_lines(Family family, const std::vector<Rule>& rules) {
  std::vector<std::string> out;
  if (family == Family::v4)
    for (const auto& rule : rules) out.push_back(chain_line(rule));
  return out;
}

void add_lines(const std::string& title, const std::vector<std::string>& lines, Diff& diff) {
  constexpr size_t kShown = 8;
  if (lines.empty()) return;
  const std::vector<std::string> shown(lines.begin(),
                                       lines.begin() + static_cast<long>(std::min(kShown, lines.size())));
  diff.add(title + ": " + join(shown, ", ") +
           (lines.size() > kShown ? fmt::format(" and {} more", lines.size() - kShown) : ""));
}

bool is_loaded(const FilterTable& table, Family family) {
  return table.chains.count(ufw_chain(family, "user-input")) > 0;
}

// Adds how the kernel's rules of one address family differ from the declared ones.
void family_diff(const FilterTable& live, Family family, const std::vector<Rule>& rules, Diff& diff) {
  const std::string name = family == Family::v6 ? "IPv6" : "IPv4";
  const auto want = declared_lines(family, rules);
  add_lines(name + " allows undeclared traffic", undeclared_accepts(live, family, want), diff);
  const auto policy = live.policies.find("INPUT");
  const bool drops = policy != live.policies.end() && policy->second == "DROP";
  // Without ufw's chains, a DROP policy alone blocks IPv6 as declared: ufw leaves it so for IPV6=no.
  if (!is_loaded(live, family)) {
    if (family == Family::v4) return diff.add("the firewall is not loaded");
    if (!drops) diff.add("the firewall is not loaded for IPv6");
    return;
  }
  if (!drops) diff.add(name + ": incoming traffic is not denied by default");
  add_lines(name + " lacks ufw's own rules", missing_frame(live, family), diff);
  add_lines(name + " blocks declared traffic", closed_before(live, family, want), diff);
  const auto have = lines_of_chain(live, ufw_chain(family, "user-input"));
  if (have != want)
    diff.add(fmt::format("{}: the loaded rules differ from the declared ones ({} loaded, {} declared)", name,
                         have.size(), want.size()));
}

Status live_diff(StepContext& context, const std::vector<Rule>& rules, Diff& diff) {
  for (const Family family : kFamilies) {
    TRY(const auto live, loaded(context, family));
    if (live) family_diff(*live, family, rules, diff);
  }
  return Ok{};
}

Result<CheckResult> check_ufw(StepContext& context, const WantedUfw& want) {
  if (!context.files.exists(kConf)) return differs("ufw is not installed");
  TRY(const auto files, wanted_files(context, want));
  Diff diff;
  for (const auto& file : files) {
    const auto have = context.files.read(file.path);
    if (!have.ok() || *have != file.text) diff.add(file.path + " differs");
  }
  if (is_armed(context.files, "ufw")) diff.add("an earlier change was not confirmed");
  TRY_(live_diff(context, want.rules, diff));
  return diff.result();
}

Status restore(StepContext& context, Family family, const std::string& text) {
  Command command;
  command.argv = {tool(family, "-restore"), "-n"};
  command.input = text;
  auto out = run_ok(context.process, command);
  if (!out.ok()) return std::move(out).error();
  return Ok{};
}

// Corrects the rules in one transaction per address family: at no time is more traffic allowed than before,
// or declared traffic blocked.
Status put_right(StepContext& context, const std::vector<Rule>& rules) {
  for (const Family family : kFamilies) {
    TRY(const auto live, loaded(context, family));
    if (!live) continue;
    UfwFiles files;
    files.before = context.files.read(rules_file(family, "before")).value_or("");
    files.after = context.files.read(rules_file(family, "after")).value_or("");
    files.user = rules_text(family, rules);
    const auto want = declared_lines(family, rules);
    if (restore(context, family, load_text(*live, family, files, want)).ok()) continue;
    TRY_(restore(context, family, load_text(*live, family, files, want, true)));
  }
  return Ok{};
}

Status load(StepContext& context, const std::vector<Rule>& rules, bool active) {
  // The rules are not loaded through the unit: systemd considers it started since boot, and a restart would
  // first run its slow stop script.
  if (!context.files.exists(kWanted)) {
    TRY(auto enabled, run_tool(context, {"systemctl", "enable", "ufw.service"}));
    (void)enabled;
  }
  if (active) return put_right(context, rules);
  TRY(auto started, run_tool(context, {kInit, "start"}, 2 * kMinute));
  (void)started;
  // ufw-init adds its rules to the existing ones, which may allow more.
  Diff left;
  TRY_(live_diff(context, rules, left));
  return left.empty() ? Status(Ok{}) : put_right(context, rules);
}

Status change(StepContext& context, const WantedUfw& want, bool active) {
  TRY(const auto files, wanted_files(context, want));
  for (const auto& file : files) {
    const auto have = context.files.read(file.path);
    if (!have.ok() || *have != file.text) TRY_(context.files.write(file.path, file.text, file.mode));
  }
  TRY_(load(context, want.rules, active));
  Diff diff;
  TRY_(live_diff(context, want.rules, diff));
  if (!diff.empty()) return fail(Code::failed, diff.result().diff);
  return want.controller.empty() ? Status(Ok{}) : reach(want.controller, 20 * kSecond);
}

// Returns how to roll a change back: to the kernel's previous rules, including those of other programs. If an
// earlier attempt was never confirmed, the rules that it saved are used.
Result<TwoPhase> way_back(StepContext& context, int64_t rollback_seconds) {
  TwoPhase out{"ufw", {kDefaults, kConf}, {}, rollback_seconds};
  const bool kept = is_armed(context.files, "ufw");
  for (const Family family : kFamilies) {
    for (const char* name : {"user", "before", "after"}) out.files.push_back(rules_file(family, name));
    TRY(const auto live, loaded(context, family));
    if (!live) continue;
    if (!kept || !context.files.exists(saved_path(family))) {
      TRY(const std::string saved, run_tool(context, {tool(family, "-save"), "-t", "filter"}));
      TRY_(context.files.write(saved_path(family), saved, 0600));
    }
    out.after.push_back({tool(family, "-restore"), saved_path(family)});
  }
  // A unit that was enabled stays enabled: without it the host would be open after a reboot.
  if (!context.files.exists(kWanted)) out.after.push_back({"systemctl", "disable", "ufw.service"});
  return out;
}

Status apply_ufw(StepContext& context, const WantedUfw& want) {
  if (!context.files.exists(kConf)) return fail(Code::not_found, "ufw is not installed");
  TRY(const auto live, loaded(context, Family::v4));
  const bool active = live && is_loaded(*live, Family::v4);
  TRY(const TwoPhase phases, way_back(context, want.rollback_seconds));
  TRY_(in_two_phases(context, phases, [&] { return change(context, want, active); }));
  for (const Family family : kFamilies) TRY_(context.files.remove(saved_path(family)));
  return Ok{};
}

}  // namespace

StepModule ufw_module() {
  return step_module<WantedUfw>({
      .name = "ufw",
      .help =
          "Sets the firewall's complete rule set, for IPv4 and IPv6: only incoming traffic listed in "
          "`allow` is accepted, even if another program's rule would accept more. A timer rolls the change "
          "back unless the controller is still reachable afterwards.",
      .check = check_ufw,
      .apply = apply_ufw,
      .complete = complete_ufw,
  });
}

}  // namespace muster::steps
