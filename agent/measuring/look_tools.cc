#include "agent/measuring/look_tools.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/perftest_files.h"
#include "base/ports.h"
#include "base/split.h"
#include "sys/library_places.h"

namespace muster {
namespace {

constexpr int kPorts[] = {kLinkPort, kRdmaPort, kGroupPort};

int port_of(const std::string& text) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

using Range = std::pair<int, int>;

// "22", "7490:7560" (ufw), "7490-7560" (firewalld).
Range range_of(const std::string& text) {
  const size_t between = text.find_first_of(":-");
  const int first = port_of(text.substr(0, between));
  return {first, between == std::string::npos ? first : port_of(text.substr(between + 1))};
}

bool cover(const std::vector<Range>& open) {
  return std::all_of(std::begin(kPorts), std::end(kPorts), [&](int port) {
    return std::any_of(open.begin(), open.end(),
                       [&](const Range& range) { return range.first <= port && port <= range.second; });
  });
}

// `KEY=VALUE` in a file of shell variables, without quotes.
std::string setting(const std::string& text, const std::string& key) {
  for (const std::string& line : split_lines(text))
    if (line.starts_with(key + "=")) return trim(line.substr(key.size() + 1), " \t\r\"");
  return "";
}

// ufw writes each rule that it was given above the lines of iptables that it became:
// "### tuple ### allow tcp 7490:7560 0.0.0.0/0 any 10.0.0.0/8 in".
bool ufw_drops(const Files& files) {
  if (setting(files.read("/etc/ufw/ufw.conf").value_or(""), "ENABLED") != "yes") return false;
  const std::string policy = setting(files.read("/etc/default/ufw").value_or(""), "DEFAULT_INPUT_POLICY");
  const auto rules = files.read("/etc/ufw/user.rules");
  if (!rules.ok() || (policy != "DROP" && policy != "REJECT")) return false;
  std::vector<Range> open;
  for (const std::string& line : split_lines(*rules)) {
    static const std::string start = "### tuple ### ";
    if (!line.starts_with(start)) continue;
    const auto words = split_words(line.substr(start.size()));
    if (words.size() < 6 || !words[0].starts_with("allow") || (words[1] != "tcp" && words[1] != "any"))
      continue;
    if (words[2] == "any") return false;
    for (const std::string& part : split(words[2], ',')) open.push_back(range_of(part));
  }
  return !cover(open);
}

// `NAME="VALUE"` in an element of XML.
std::string attribute(const std::string& element, const std::string& name) {
  const std::string start = " " + name + "=\"";
  const size_t at = element.find(start);
  if (at == std::string::npos) return "";
  const size_t begin = at + start.size();
  return element.substr(begin, element.find('"', begin) - begin);
}

void add_ports(const std::string& zone, std::vector<Range>& open) {
  for (size_t at = zone.find("<port "); at != std::string::npos; at = zone.find("<port ", at + 1)) {
    const std::string element = zone.substr(at, zone.find('>', at) - at);
    if (attribute(element, "protocol") == "tcp") open.push_back(range_of(attribute(element, "port")));
  }
}

bool lets_all_in(const std::string& zone) {
  for (const char* sign : {"target=\"ACCEPT\"", "<rule", "<protocol ", "<source-port "})
    if (has(zone, sign)) return true;
  return false;
}

// Policies, direct rules and services of this host's own may let anything in.
bool has_other_rules(const Files& files) {
  for (const char* folder : {"/etc/firewalld/policies", "/etc/firewalld/services"})
    if (!files.list(folder).empty()) return true;
  return files.exists("/etc/firewalld/direct.xml");
}

// NetworkManager can put a connection into any zone, also one without a file in /etc. A plain user cannot
// read its connections.
bool has_zones_of_connections(const Files& files) {
  static const std::string profiles = "/NetworkManager/system-connections/";
  static const std::string scripts = "/etc/sysconfig/network-scripts/";
  for (const std::string& folder : {"/etc" + profiles, "/run" + profiles, scripts})
    for (const std::string& name : files.list(folder)) {
      if (folder == scripts && !name.starts_with("ifcfg-")) continue;
      const auto text = files.read(folder + name);
      if (!text.ok() || has(*text, "zone=") || has(*text, "ZONE=")) return true;
    }
  return false;
}

// In which zone the hosts come in is not worked out: a rule in any zone counts, and so does one that names
// sources only. Where something that is not read here may let the hosts in, nothing is certain.
bool firewalld_drops(const Files& files) {
  if (!files.exists("/run/firewalld.pid") && !files.exists("/run/firewalld/firewalld.pid")) return false;
  const auto settings = files.read("/etc/firewalld/firewalld.conf");
  if (!settings.ok()) return false;
  const std::string own = setting(*settings, "DefaultZone");
  if (own.empty() || own == "trusted" || has_other_rules(files) || has_zones_of_connections(files))
    return false;
  std::vector<std::string> zones;
  for (const std::string& name : files.list("/etc/firewalld/zones"))
    if (name.ends_with(".xml")) zones.push_back("/etc/firewalld/zones/" + name);
  if (!files.exists("/etc/firewalld/zones/" + own + ".xml"))
    zones.push_back("/usr/lib/firewalld/zones/" + own + ".xml");
  std::vector<Range> open;
  for (const std::string& path : zones) {
    const auto zone = files.read(path);
    if (!zone.ok() || lets_all_in(*zone)) return false;
    add_ports(*zone, open);
  }
  return !cover(open);
}

bool has_program(const Files& files, const std::string& path, const std::string& name) {
  for (const std::string& folder : split(path + ":/usr/bin:/usr/local/bin", ':'))
    if (folder.starts_with("/") && files.exists(folder + "/" + name)) return true;
  return false;
}

// Before 2.34 the library's own name is a link to a file with the version in its name, "libc-2.28.so".
bool has_glibc_2_34(const Files& files) {
  for (const char* path : {"/lib64/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"})
    if (has(files.read_link(path).value_or(""), "libc-2.")) return false;
  return true;
}

// The files that name libibverbs its providers. Without any, it finds no device.
bool has_verbs_providers(const Files& files) {
  const auto names = files.list("/etc/libibverbs.d");
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.ends_with(".driver"); });
}

}  // namespace

std::string closing_firewall(const Files& files) {
  return ufw_drops(files) ? "ufw" : firewalld_drops(files) ? "firewalld" : "";
}

Json look_tools(const Files& files, const std::string& path) {
  return {{"perftest", has_program(files, path, kPerftestBandwidth)},
          {"libibverbs", !library_places(files, "libibverbs.so.1").empty()},
          {"verbs_providers", has_verbs_providers(files)},
          {"glibc_2_34", has_glibc_2_34(files)},
          {"firewall", closing_firewall(files)}};
}

}  // namespace muster
