#include "agent/steps/network/firewall_rules.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

using Words = std::vector<std::string>;

// ufw's chains, in the order in which ufw-init makes INPUT, OUTPUT and FORWARD jump to them.
const Words kPrimary = {"before-logging", "before", "after", "after-logging", "reject", "track"};
// Prefixes of bridges that other programs create for guests of this host.
const Words kGuestBridges = {"virbr", "podman", "cni", "lxcbr", "lxdbr", "incusbr"};
const std::vector<std::pair<std::string, std::string>> kHooks = {
    {"INPUT", "input"}, {"OUTPUT", "output"}, {"FORWARD", "forward"}};

// Splits a line at blanks; text in double quotes is one word.
Words words_of(const std::string& line) {
  Words out;
  bool begun = false, quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (!quoted && (c == ' ' || c == '\t')) {
      begun = false;
      continue;
    }
    if (!begun) out.emplace_back();
    begun = true;
    if (c == '"')
      quoted = !quoted;
    else
      out.back() += c == '\\' && quoted && i + 1 < line.size() ? line[++i] : c;
  }
  return out;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return word == name; });
}

// "" if the rule has none of these options.
std::string value_of(const Words& words, std::initializer_list<const char*> names) {
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (is_one_of(words[i], names)) return words[i + 1];
  return "";
}

std::string target_of(const FilterTable::Rule& rule) {
  return value_of(rule.words, {"-j", "--jump", "-g", "--goto"});
}

bool own_icmp(const std::string& type, Family family) {
  const std::string name = type.substr(0, type.find('/'));
  if (family == Family::v4)
    return is_one_of(name, {"3", "4", "8", "11", "12", "destination-unreachable", "source-quench",
                            "echo-request", "time-exceeded", "parameter-problem"});
  return is_one_of(name, {"1",
                          "2",
                          "3",
                          "4",
                          "128",
                          "129",
                          "130",
                          "131",
                          "132",
                          "133",
                          "134",
                          "135",
                          "136",
                          "141",
                          "142",
                          "143",
                          "144",
                          "145",
                          "146",
                          "147",
                          "148",
                          "149",
                          "151",
                          "152",
                          "153",
                          "destination-unreachable",
                          "packet-too-big",
                          "time-exceeded",
                          "parameter-problem",
                          "echo-request",
                          "echo-reply",
                          "router-solicitation",
                          "router-advertisement",
                          "neighbor-solicitation",
                          "neighbour-solicitation",
                          "neighbor-advertisement",
                          "neighbour-advertisement"});
}

bool own_udp(const Words& words, Family family) {
  const std::string from = value_of(words, {"--sport", "--source-port"}),
                    to = value_of(words, {"--dport", "--destination-port"}),
                    source = value_of(words, {"-s", "--source", "--src"});
  std::string target = value_of(words, {"-d", "--destination", "--dst"});
  target = target.substr(0, target.find('/'));
  if (family == Family::v4)
    return (from == "67" && to == "68") || (to == "5353" && target == "224.0.0.251") ||
           (to == "1900" && target == "239.255.255.250");
  return (from == "547" && to == "546" && source == "fe80::/10") || (to == "5353" && target == "ff02::fb") ||
         (to == "1900" && target == "ff02::f");
}

// True if the rule allows no more than ufw's own rules. Further conditions only narrow it, except for a `!`.
bool is_own(const Words& words, Family family) {
  if (std::find(words.begin(), words.end(), "!") != words.end()) return false;
  if (value_of(words, {"-i", "--in-interface"}) == "lo") return true;
  const Words states = split(value_of(words, {"--ctstate", "--state"}), ',');
  const auto known = [](const std::string& state) { return state == "RELATED" || state == "ESTABLISHED"; };
  if (!states.empty() && std::all_of(states.begin(), states.end(), known)) return true;
  const std::string protocol = value_of(words, {"-p", "--protocol", "--proto"});
  if (is_one_of(protocol, {"udp", "17"})) return own_udp(words, family);
  const bool icmp = family == Family::v4 ? is_one_of(protocol, {"icmp", "1"})
                                         : is_one_of(protocol, {"ipv6-icmp", "icmpv6", "58"});
  return icmp && own_icmp(value_of(words, {"--icmp-type", "--icmpv6-type"}), family);
}

// The chains that incoming packets may reach.
std::set<std::string> reached(const FilterTable& table, Family family) {
  std::set<std::string> out = {"INPUT", ufw_chain(family, "user-input"),
                               ufw_chain(family, "skip-to-policy-input")};
  for (const auto& name : kPrimary) out.insert(ufw_chain(family, name + "-input"));
  for (bool more = true; more;) {
    more = false;
    for (const auto& rule : table.rules) {
      const std::string target = target_of(rule);
      if (out.count(rule.chain) > 0 && table.chains.count(target) > 0 && !is_own(rule.words, family))
        more = out.insert(target).second || more;
    }
  }
  return out;
}

// An unconditional jump, as ufw-init adds it.
std::string jump(const std::string& from, const std::string& to) { return "-A " + from + " -j " + to; }

bool has_line(const FilterTable& table, const std::string& line) {
  return std::any_of(table.rules.begin(), table.rules.end(), [&](const auto& r) { return r.line == line; });
}

// The lines between "*filter" and "COMMIT", without the rules of built-in chains: ufw-init adds those when it
// starts, and here they would be added again each time.
std::string filter_block(const std::string& text) {
  std::string out;
  bool inside = false;
  for (const auto& line : split_lines(text)) {
    if (!line.empty() && line[0] == '*') inside = line == "*filter";
    if (!inside || line.empty() || line[0] == '#' || line[0] == '*' || line == "COMMIT") continue;
    const Words words = words_of(line);
    const std::string chain = words[0][0] == ':' ? words[0].substr(1) : words.size() > 1 ? words[1] : "";
    const bool built_in =
        std::any_of(kHooks.begin(), kHooks.end(), [&](const auto& hook) { return hook.first == chain; });
    if (!built_in) out += line + "\n";
  }
  return out;
}

// True for another program's rule for its own guests, "-A LIBVIRT_INP -i virbr0 -p udp -m udp --dport 53".
// The program adds it again whenever it starts, and it only accepts packets from the guests' bridge.
bool is_of_guests(const FilterTable::Rule& rule) {
  if (rule.chain == "INPUT" || rule.chain.starts_with("ufw")) return false;
  const std::string port = value_of(rule.words, {"-i", "--in-interface"});
  return std::find(rule.words.begin(), rule.words.end(), "!") == rule.words.end() &&
         std::any_of(kGuestBridges.begin(), kGuestBridges.end(),
                     [&](const std::string& bridge) { return port.starts_with(bridge); });
}

// True if the ports of a rule ("22", "1024:65535", or a list: "22,80:90") include a declared port. `declared`
// is empty if all ports are declared.
bool names_a_port_of(const std::string& ports, const std::string& declared) {
  const auto ends = [](const std::string& range) {
    const size_t colon = range.find(':');
    const int first = std::atoi(range.c_str());
    return std::pair(first, colon == std::string::npos ? first : std::atoi(range.c_str() + colon + 1));
  };
  if (declared.empty()) return false;  // a rule for some ports does not block a declaration of all ports
  const auto [from, to] = ends(declared);
  for (const auto& one : split(ports, ',')) {
    const auto [first, last] = ends(one);
    if (first <= to && from <= last) return true;
  }
  return false;
}

// True if this condition does not limit a rule to some senders, an interface or a rate.
bool is_broad(const std::string& option, const std::string& value) {
  if (is_one_of(option, {"-m", "--match"}))
    return is_one_of(value, {"tcp", "udp", "multiport", "comment", "conntrack", "state"});
  if (is_one_of(option, {"-p", "--protocol", "--proto"}))
    return is_one_of(value, {"tcp", "udp", "all", "6", "17"});
  if (is_one_of(option, {"--ctstate", "--state"})) return value.find("NEW") != std::string::npos;
  return is_one_of(option, {"-j", "--jump", "-g", "--goto", "--comment", "--reject-with", "--dport",
                            "--dports", "--destination-port", "--destination-ports"});
}

bool refuses(const std::string& target) { return is_one_of(target, {"DROP", "REJECT", "TARPIT"}); }

// True if this rule blocks declared packets from all senders; for IPv6, where nothing is declared, if it
// blocks what the network itself needs. A rule for some senders, an interface or a rate (fail2ban, a limit)
// does not count, because the site's own restrictions stay. Nor does a chain that returns for some packets
// before it rejects the rest.
bool closes(const FilterTable& table, Family family, const FilterTable::Rule& rule, const Words& declared,
            std::set<std::string>& seen) {
  const Words& words = rule.words;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string value = i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "--tcp-flags" && i + 2 < words.size() && words[i + 2] == "SYN")
      ++i;  // how the kernel prints --syn
    else if (!is_broad(words[i], value))
      return false;
  }
  const std::string target = target_of(rule);
  if (table.chains.count(target) > 0 && !target.starts_with("ufw")) {
    if (!seen.insert(target).second) return false;
    for (const auto& inner : table.rules) {
      if (inner.chain != target) continue;
      if (closes(table, family, inner, declared, seen)) return true;
      if (target_of(inner) == "RETURN" && !is_own(inner.words, family)) return false;
    }
    return false;
  }
  if (!refuses(target)) return false;
  const std::string ports =
                        value_of(words, {"--dport", "--dports", "--destination-port", "--destination-ports"}),
                    mine = value_of(words, {"-p", "--protocol", "--proto"});
  if (declared.empty()) return ports.empty() && mine.empty();
  return std::any_of(declared.begin(), declared.end(), [&](const std::string& line) {
    const Words of = words_of(line);
    const std::string its = value_of(of, {"-p"});
    return (its.empty() || mine.empty() || mine == its) &&
           (ports.empty() || names_a_port_of(ports, value_of(of, {"--dport", "--dports"})));
  });
}

// True for a rule for banned senders, for a rate, or for packets that belong to no connection.
bool is_ban(const Words& words) {
  if (std::find(words.begin(), words.end(), "!") != words.end()) return false;
  const std::string states = value_of(words, {"--ctstate", "--state"});
  if (!states.empty() && states.find("NEW") == std::string::npos) return true;
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return is_one_of(word, {"-s", "--source", "--src", "--src-range", "--match-set", "recent", "limit",
                            "hashlimit", "connlimit"});
  });
}

// True if `what` holds for this rule or for a rule in a chain that it jumps to.
template <typename What>
bool leads_to(const FilterTable& table, const FilterTable::Rule& rule, const What& what,
              std::set<std::string> seen = {}) {
  if (what(rule)) return true;
  const std::string target = target_of(rule);
  if (table.chains.count(target) == 0 || target.starts_with("ufw") || is_ban(rule.words)) return false;
  if (!seen.insert(target).second) return false;
  return std::any_of(table.rules.begin(), table.rules.end(), [&](const auto& inner) {
    return inner.chain == target && leads_to(table, inner, what, seen);
  });
}

// The rules of a chain that block declared packets and come before `jump`; all of them if it has no `jump`.
Words closing_before(const FilterTable& table, Family family, const std::string& chain,
                     const std::string& jump, const Words& declared) {
  Words out;
  for (const auto& rule : table.rules) {
    if (rule.chain != chain) continue;
    if (rule.line == jump) return out;
    std::set<std::string> seen;
    if (closes(table, family, rule, declared, seen)) out.push_back(rule.line);
  }
  return out;
}

// The minimum that replaces a missing before.rules, so that existing connections continue.
std::string least_before(Family family) {
  std::string out;
  for (const char* way : {"input", "output", "forward"}) {
    const std::string chain = ufw_chain(family, std::string("before-") + way);
    out += ":" + chain + " - [0:0]\n-A " + chain + " -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n";
  }
  return out + "-A " + ufw_chain(family, "before-input") + " -i lo -j ACCEPT\n-A " +
         ufw_chain(family, "before-output") + " -o lo -j ACCEPT\n";
}

// Returns the position in INPUT at which the jumps to ufw's chains must be inserted so that declared packets
// reach them: 0 if they are already correct, else the number that the first rule blocking such packets will
// have once `accepts` and `jumps` are deleted. A rule that blocks one interface, or all but some, also counts
// if it follows a deleted accept, because it now blocks packets that were accepted before.
size_t place_in_input(const FilterTable& live, Family family, const Words& declared, const Words& accepts,
                      const Words& jumps) {
  const auto is_in = [](const Words& lines, const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  const auto goes = [&](const FilterTable::Rule& rule) { return is_in(accepts, rule.line); };
  const auto keeps_out = [&](const FilterTable::Rule& rule) {
    return refuses(target_of(rule)) && !is_ban(rule.words);
  };
  size_t at = 1;
  bool gone = false;
  for (const auto& rule : live.rules) {
    if (rule.chain != "INPUT") continue;
    if (rule.line == jump("INPUT", ufw_chain(family, "before-input"))) return 0;
    gone = gone || leads_to(live, rule, goes);
    std::set<std::string> seen;
    if (closes(live, family, rule, declared, seen) || (gone && leads_to(live, rule, keeps_out))) return at;
    if (!goes(rule) && !is_in(jumps, rule.line)) ++at;
  }
  return 0;
}

// The rules that make the built-in chains jump to ufw's chains, in ufw's order. Correct jumps stay in place.
std::string hung_in(const FilterTable& live, Family family, const Words& declared, const Words& accepts) {
  std::string out;
  for (const auto& [built_in, way] : kHooks) {
    Words want, have;
    for (const auto& name : kPrimary) want.push_back(jump(built_in, ufw_chain(family, name + "-" + way)));
    for (const auto& line : lines_of_chain(live, built_in))
      if (std::find(want.begin(), want.end(), line) != want.end()) have.push_back(line);
    const size_t at = built_in == "INPUT" ? place_in_input(live, family, declared, accepts, want) : 0;
    if (have == want && at == 0) continue;
    for (const auto& line : have) out += "-D" + line.substr(2) + "\n";
    for (size_t i = 0; i < want.size(); ++i)
      out += at == 0 ? want[i] + "\n"
                     : "-I INPUT " + std::to_string(at + i) + want[i].substr(std::string("-A INPUT").size()) +
                           "\n";
  }
  return out;
}

}  // namespace

std::string ufw_chain(Family family, const std::string& name) {
  return (family == Family::v6 ? "ufw6-" : "ufw-") + name;
}

FilterTable filter_table(const std::string& text) {
  FilterTable out;
  bool inside = true;
  for (const auto& line : split_lines(text)) {
    Words words = words_of(line);
    if (words.empty() || words[0][0] == '#') continue;
    if (words[0][0] == '*') inside = words[0] == "*filter";
    if (!inside) continue;
    if (words[0][0] == ':' && words.size() > 1) {
      const std::string chain = words[0].substr(1);
      if (words[1] == "-")
        out.chains.insert(chain);
      else
        out.policies[chain] = words[1];
    } else if (words[0] == "-P" && words.size() > 2) {
      out.policies[words[1]] = words[2];
    } else if (words[0] == "-N" && words.size() > 1) {
      out.chains.insert(words[1]);
    } else if (is_one_of(words[0], {"-A", "-I", "--append", "--insert"}) && words.size() > 1) {
      out.rules.push_back({words[1], line, Words(words.begin() + 2, words.end())});
    }
  }
  return out;
}

std::vector<std::string> lines_of_chain(const FilterTable& table, const std::string& chain) {
  Words out;
  for (const auto& rule : table.rules)
    if (rule.chain == chain) out.push_back(rule.line);
  return out;
}

std::vector<std::string> undeclared_accepts(const FilterTable& table, Family family,
                                            const std::vector<std::string>& declared) {
  const auto chains = reached(table, family);
  Words out;
  for (const auto& rule : table.rules) {
    if (chains.count(rule.chain) == 0 || target_of(rule) != "ACCEPT" || is_own(rule.words, family) ||
        is_of_guests(rule))
      continue;
    if (std::find(declared.begin(), declared.end(), rule.line) == declared.end()) out.push_back(rule.line);
  }
  return out;
}

std::string without_undeclared(const std::string& text, Family family) {
  const auto accepts = undeclared_accepts(filter_table(text), family, {});
  if (accepts.empty()) return text;
  std::string out;
  bool inside = true;
  for (const auto& line : split_lines(text)) {
    if (!line.empty() && line[0] == '*') inside = line == "*filter";
    const bool taken = inside && std::find(accepts.begin(), accepts.end(), line) != accepts.end();
    out += (taken ? "# not declared, removed by muster: " : "") + line + "\n";
  }
  return out;
}

std::vector<std::string> closed_before(const FilterTable& table, Family family,
                                       const std::vector<std::string>& declared) {
  const std::string before = ufw_chain(family, "before-input");
  const std::pair<std::string, std::string> ways[] = {
      {"INPUT", jump("INPUT", before)},
      {ufw_chain(family, "before-logging-input"), ""},
      {before, jump(before, ufw_chain(family, "user-input"))}};
  Words out;
  for (const auto& [chain, last] : ways)
    for (const auto& line : closing_before(table, family, chain, last, declared)) out.push_back(line);
  return out;
}

std::vector<std::string> missing_frame(const FilterTable& table, Family family) {
  const std::string before = ufw_chain(family, "before-input");
  Words out;
  for (const auto& name : kPrimary)
    if (const std::string line = jump("INPUT", ufw_chain(family, name + "-input")); !has_line(table, line))
      out.push_back(line);
  if (const std::string line = jump(before, ufw_chain(family, "user-input")); !has_line(table, line))
    out.push_back(line);
  const auto accepts = [&](const auto& condition) {
    return std::any_of(table.rules.begin(), table.rules.end(), [&](const auto& rule) {
      return rule.chain == before && target_of(rule) == "ACCEPT" && is_own(rule.words, family) &&
             condition(rule.words);
    });
  };
  if (!accepts([](const Words& words) { return value_of(words, {"-i", "--in-interface"}) == "lo"; }))
    out.push_back("-A " + before + " -i lo -j ACCEPT");
  if (!accepts([](const Words& words) { return !value_of(words, {"--ctstate", "--state"}).empty(); }))
    out.push_back("-A " + before + " -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
  return out;
}

std::string load_text(const FilterTable& live, Family family, const UfwFiles& files,
                      const std::vector<std::string>& declared, bool by_number) {
  std::string out = "*filter\n";
  const auto chain = [&](const std::string& name) { return ufw_chain(family, name); };
  const auto fresh = [&](const std::string& name) { return ":" + chain(name) + " - [0:0]\n"; };
  const auto once = [&](const std::string& name, const std::string& rule) {
    if (live.chains.count(chain(name)) > 0) return;
    out += fresh(name);
    if (!rule.empty()) out += jump(chain(name), rule) + "\n";
  };
  const auto accepts = undeclared_accepts(live, family, declared);
  std::map<std::string, int> count;
  std::string numbered;  // from the end, so that lower numbers stay valid
  for (const auto& rule : live.rules) {
    ++count[rule.chain];
    if (std::find(accepts.begin(), accepts.end(), rule.line) == accepts.end()) continue;
    if (by_number)
      numbered.insert(0, "-D " + rule.chain + " " + std::to_string(count[rule.chain]) + "\n");
    else
      out += "-D" + rule.line.substr(2) + "\n";
  }
  out += numbered;
  // Naming a chain here empties it. Outgoing and forwarded packets keep the rules from ufw-init.
  for (const auto& name : kPrimary)
    for (const auto& [built_in, way] : kHooks)
      if (way == "input" || is_one_of(name, {"before", "after"}))
        out += fresh(name + "-" + way);
      else
        once(name + "-" + way, "");
  out += hung_in(live, family, declared, accepts);
  once("logging-deny", "");
  once("logging-allow", "");
  out += fresh("skip-to-policy-input") + jump(chain("skip-to-policy-input"), "DROP") + "\n";
  once("skip-to-policy-output", "ACCEPT");
  once("skip-to-policy-forward", "DROP");
  const std::string before = filter_block(files.before);
  out +=
      (before.empty() ? least_before(family) : before) + filter_block(files.after) + filter_block(files.user);
  for (const auto& [built_in, way] : kHooks) out += jump(chain("before-" + way), chain("user-" + way)) + "\n";
  return out + ":INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
}

}  // namespace muster::steps
