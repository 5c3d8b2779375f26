// ufw: the whole rule set of the firewall, declared. Applied in two phases (two_phase.h).
//
// The ufw program is Python and costs seconds per call, so muster writes ufw's own files (its tuple comments
// included: `ufw status` shows the rules) and loads them the way ufw's init script does. What the kernel has
// is asked from iptables and ip6tables, never assumed: whatever INPUT reaches and accepts is declared, or
// of ufw's own files as the package brings them, or the step does not hold.
#include <algorithm>

#include <fmt/format.h>

#include "agent/steps/network/packet_filter.h"
#include "agent/steps/system/accounts.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/two_phase.h"
#include "base/digest.h"

namespace muster::steps {
namespace {

constexpr const char* kRules = "/etc/ufw/user.rules";
constexpr const char* kRules6 = "/etc/ufw/user6.rules";
constexpr const char* kPackaged = "/usr/share/ufw/iptables/";
constexpr const char* kConf = "/etc/ufw/ufw.conf";
constexpr const char* kDefaults = "/etc/default/ufw";
constexpr const char* kInit = "/lib/ufw/ufw-init";

struct Family {
  const char *tool, *suffix, *prefix;
};
constexpr Family kFamilies[] = {{"iptables", "", "ufw"}, {"ip6tables", "6", "ufw6"}};

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

// Of one family; `prefix` is "ufw" or "ufw6". Every rule is an IPv4 network's: IPv6 lets in nothing of its
// own.
std::string rules_text(const std::vector<Rule>& rules, const std::string& prefix = "ufw") {
  std::string out = "*filter\n";
  for (const char* chain : {"user-input", "user-output", "user-forward", "user-limit", "user-limit-accept"})
    out += fmt::format(":{}-{} - [0:0]\n", prefix, chain);
  out += "### RULES ###\n";
  for (const auto& rule : rules) out += "\n" + tuple(rule) + "\n" + chain_line(rule) + "\n";
  return out + fmt::format(
                   "\n### END RULES ###\n"
                   "-A {0}-user-limit -m limit --limit 3/minute -j LOG --log-prefix \"[UFW LIMIT BLOCK] \"\n"
                   "-A {0}-user-limit -j REJECT\n-A {0}-user-limit-accept -j ACCEPT\nCOMMIT\n",
                   prefix);
}

// ufw's file of rules before or behind its own, without the lines that let in more than the package's
// does; "" when it is right as it is. Lines that do something else (NAT, logging) stay.
std::string without_accepts(const Files& files, const std::string& name, const std::string& prefix) {
  const std::string have = files.read("/etc/ufw/" + name).value_or("");
  const auto packaged = accepts_around(lines_of(files.read(kPackaged + name).value_or("")), prefix);
  const auto more = accepts_around(lines_of(have), prefix);
  std::string out;
  bool changed = false;
  for (const auto& line : lines_of(have)) {
    const bool accepts = std::count(more.begin(), more.end(), line) > 0;
    const bool goes = accepts && std::count(packaged.begin(), packaged.end(), line) == 0;
    changed = changed || goes;
    if (!goes) out += line + "\n";
  }
  return changed ? out : "";
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
  std::vector<File> out = {
      {kRules, rules_text(rules), 0640},
      {kRules6, rules_text({}, "ufw6"), 0640},
      {kDefaults,
       with_settings(defaults, {{"IPV6", "yes"},
                                {"DEFAULT_INPUT_POLICY", "\"DROP\""},
                                {"DEFAULT_OUTPUT_POLICY", "\"ACCEPT\""},
                                {"DEFAULT_FORWARD_POLICY", "\"DROP\""}}),
       0644},
      {kConf, with_settings(conf, {{"ENABLED", "yes"}, {"LOGLEVEL", text_of(params, "logging", "off")}}),
       0644}};
  for (const Family& family : kFamilies)
    for (const std::string part : {"before", "after"}) {
      const std::string name = part + family.suffix + ".rules";
      if (!context.files.exists(kPackaged + name)) continue;  // an older ufw: nothing to compare with
      if (const std::string text = without_accepts(context.files, name, family.prefix); !text.empty())
        out.push_back({"/etc/ufw/" + name, text, 0640});
    }
  return out;
}

Result<FilterRules> loaded(StepContext& context, const Family& family) {
  Command command;
  command.argv = {family.tool, "-S"};
  TRY(const Output out, context.process.run(command));
  if (!out.ok()) return fail(Code::failed, std::string(family.tool) + " -S: " + out.err.substr(0, 200));
  return filter_rules(out.out);
}

bool is_there(const Files& files, const Family& family) {
  return *family.suffix == '\0' || files.exists("/proc/sys/net/ipv6");
}

// What lets in more than is declared, and what lets in less, of one family.
void family_diff(const FilterRules& have, const std::vector<std::string>& want, const Family& family,
                 const Files& files, Diff& diff) {
  const std::string user = std::string(family.prefix) + "-user-input", what = family.tool;
  if (!have.chains.count(user)) return diff.add(what + ": firewall is not loaded");
  if (have.input_policy != "DROP") return diff.add(what + ": incoming traffic is not denied by default");
  if (const auto& lines = have.chains.at(user); lines != want)
    diff.add(fmt::format("{}: loaded rules differ: {} loaded, {} declared", what, lines.size(), want.size()));
  const auto input = have.chains.find("INPUT");
  for (const auto& jump : input_jumps(family.prefix)) {
    const std::string line = "-A INPUT -j " + jump;
    if (input == have.chains.end() || !std::count(input->second.begin(), input->second.end(), line))
      diff.add(what + ": INPUT does not lead to " + jump);
  }
  std::vector<std::string> accepting = accepting_lines(have, user, family.prefix), around;
  for (const std::string part : {"before", "after"})
    for (const auto& line : accepts_around(
             lines_of(files.read("/etc/ufw/" + part + family.suffix + ".rules").value_or("")), family.prefix))
      around.push_back(line);
  const size_t own = accepts_around(accepting, family.prefix).size();
  for (const auto& line : accepting)
    if (accepts_around({line}, family.prefix).empty()) diff.add(what + ": not declared: " + line);
  if (own > around.size())
    diff.add(fmt::format("{}: {} rules before and behind ufw's own let in, its files have {}", what, own,
                         around.size()));
}

// How the kernel's rules differ from the declared ones. `active`: IPv4's are loaded and deny the rest.
Status live_diff(StepContext& context, const std::vector<Rule>& rules, Diff& diff, bool* active) {
  std::vector<std::string> want;
  for (const auto& rule : rules) want.push_back(chain_line(rule));
  for (const Family& family : kFamilies) {
    if (!is_there(context.files, family)) continue;
    TRY(const FilterRules have, loaded(context, family));
    const bool first = *family.suffix == '\0';
    if (first && active) *active = have.chains.count("ufw-user-input") > 0 && have.input_policy == "DROP";
    family_diff(have, first ? want : std::vector<std::string>(), family, context.files, diff);
  }
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

// INPUT of one family as ufw makes it: what accepts there without being declared goes, jumps that are gone
// come back in their order. Others' jumps and rules stay. Its policy denies all the while.
Status mend_input(StepContext& context, const Family& family) {
  TRY(const FilterRules have, loaded(context, family));
  const auto found = have.chains.find("INPUT");
  const std::vector<std::string> lines =
      found == have.chains.end() ? std::vector<std::string>() : found->second;
  for (const auto& line : lines) {
    if (line.size() < 10 || line.substr(line.size() - 10) != " -j ACCEPT") continue;
    std::vector<std::string> argv = {family.tool, "-D"};
    for (const auto& word : split(line.substr(3), ' ')) argv.push_back(word);
    TRY(auto out, run_tool(context, argv));
    (void)out;
  }
  const auto jumps = input_jumps(family.prefix);
  const bool whole = std::all_of(jumps.begin(), jumps.end(), [&](const std::string& jump) {
    return std::count(lines.begin(), lines.end(), "-A INPUT -j " + jump) > 0;
  });
  for (const auto& jump : jumps) {
    if (whole) break;
    const bool there = std::count(lines.begin(), lines.end(), "-A INPUT -j " + jump) > 0;
    if (there) {
      TRY(auto gone, run_tool(context, {family.tool, "-D", "INPUT", "-j", jump}));
      (void)gone;
    }
    TRY(auto added, run_tool(context, {family.tool, "-A", "INPUT", "-j", jump}));
    (void)added;
  }
  return Ok{};
}

// The table `filter` of a rules file: a second load of its NAT rules would double them.
std::string filter_table(const std::string& text) {
  std::string out;
  bool inside = false;
  for (const auto& line : lines_of(text)) {
    if (!line.empty() && line[0] == '*') inside = line == "*filter";
    if (inside) out += line + "\n";
  }
  return out;
}

// Puts the chains of a file in the place of those that accept more. Until the hooks are back only
// connections that are open get through.
Status reload_around(StepContext& context, const Family& family, const std::string& part) {
  const std::string prefix = family.prefix,
                    text = context.files.read("/etc/ufw/" + part + family.suffix + ".rules").value_or("");
  TRY(const FilterRules have, loaded(context, family));
  const auto chain = have.chains.find(prefix + "-" + part + "-input");
  const auto now =
      chain == have.chains.end() ? std::vector<std::string>() : accepts_around(chain->second, prefix);
  if (now.size() <= accepts_around(lines_of(text), prefix).size()) return Ok{};
  const std::string path = "/run/muster/ufw-" + part + family.suffix + ".rules";
  TRY_(context.files.write(path, filter_table(text), 0600));
  TRY(auto out, run_tool(context, {std::string(family.tool) + "-restore", "-n", path}));
  (void)out;
  for (const std::string way : {"input", "output", "forward"}) {
    if (part != "before") break;
    TRY(auto hooked,
        run_tool(context, {family.tool, "-A", prefix + "-before-" + way, "-j", prefix + "-user-" + way}));
    (void)hooked;
  }
  return context.files.remove(path);
}

// Loads ufw's files of one family over what is loaded. A restore replaces the chains that its file names,
// at once.
Status reload(StepContext& context, const Family& family) {
  for (const std::string part : {"before", "after"}) TRY_(reload_around(context, family, part));
  TRY(auto out, run_tool(context, {std::string(family.tool) + "-restore", "-n",
                                   "/etc/ufw/user" + std::string(family.suffix) + ".rules"}));
  (void)out;
  return mend_input(context, family);
}

Status load(StepContext& context, bool active) {
  if (active) {
    for (const Family& family : kFamilies)
      if (is_there(context.files, family)) TRY_(reload(context, family));
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
  // A rule that was in INPUT before, and accepts all, is older than ufw's.
  for (const Family& family : kFamilies)
    if (is_there(context.files, family)) TRY_(mend_input(context, family));
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
  TwoPhase phases{"ufw", {kRules, kRules6, kDefaults, kConf}, {}, int_of(params, "rollback_seconds", 120)};
  TRY(const auto files, wanted_files(context, params));
  for (const auto& file : files)
    if (!std::count(phases.files.begin(), phases.files.end(), file.path)) phases.files.push_back(file.path);
  if (active)
    for (const Family& family : kFamilies) {
      if (!is_there(context.files, family)) continue;
      const std::string restore = std::string(family.tool) + "-restore";
      if (context.files.exists("/etc/ufw/user" + std::string(family.suffix) + ".rules"))
        phases.after.push_back({restore, "-n", "/etc/ufw/user" + std::string(family.suffix) + ".rules"});
    }
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
