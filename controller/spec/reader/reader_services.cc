// Network services, firewall rules, packages and kernel parameters; the schema checks the values' format.
#include <fmt/format.h>

#include <algorithm>

#include "controller/spec/reader/reader.h"

namespace muster {
namespace {

constexpr size_t kMostNameServers = 3;  // the C library ignores further ones

// Calls `use` with each text item and its path, but `twice` with an item that is repeated.
template <class Use, class Twice>
void each_text(const YamlNode* list, const std::string& path, const Use& use, const Twice& twice) {
  if (!list || !list->is_list()) return;
  std::set<std::string> seen;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const YamlNode& item = list->items[i];
    if (!item.is_text()) continue;
    const std::string where = fmt::format("{}[{}]", path, i);
    if (seen.insert(item.text).second)
      use(item, where);
    else
      twice(item, where);
  }
}

}  // namespace

void SpecReader::read_services() {
  const YamlNode* network = child(&root_, "network");
  read_dns(network);
  read_ntp(network);
  read_proxy(network);
  read_apt(network);
  spec_.time_zone = text(&root_, "time_zone");
  if (!spec_.time_zone.empty()) must_have_playbook(*child(&root_, "time_zone"), "time_zone", "base", "");
  read_firewall();
  read_additions(&root_, "", spec_.additions);
  const YamlNode* roles = child(&root_, "roles");
  if (!roles || !roles->is_map()) return;
  for (const YamlEntry& role : roles->entries)
    read_additions(&role.value, "roles." + role.key + ".", spec_.role_additions[role.key]);
}

void SpecReader::read_dns(const YamlNode* network) {
  const YamlNode *dns = child(network, "dns"), *search = child(network, "search");
  const auto twice = [this](const YamlNode& at, const std::string& path) { error(at, path, "given twice"); };
  const auto server = [this](const YamlNode& at, const std::string& path) {
    if (!parse_ipv4(at.text))
      return error(at, path, fmt::format("'{}' is not an address such as 10.20.0.53", at.text));
    if (spec_.network.dns.size() == kMostNameServers)
      return error(
          at, path,
          fmt::format("there can be at most {} name servers: resolvers ignore the rest", kMostNameServers));
    spec_.network.dns.push_back(at.text);
  };
  const auto domain = [this](const YamlNode& at, const std::string& path) {
    if (!is_dns_name(at.text))
      return error(at, path, fmt::format("'{}' is not a domain such as cluster.example", at.text));
    spec_.network.search.push_back(at.text);
  };
  each_text(dns, "network.dns", server, twice);
  each_text(search, "network.search", domain, twice);
  if (search && !dns)
    error(*search, "network.search",
          "needs network.dns: search domains have no effect without a name server");
}

void SpecReader::read_ntp(const YamlNode* network) {
  const YamlNode* ntp = child(network, "ntp");
  if (!ntp) return;
  each_text(
      ntp, "network.ntp",
      [this](const YamlNode& at, const std::string& path) {
        if (!parse_ipv4(at.text) && !is_dns_name(at.text))
          return error(at, path,
                       fmt::format("'{}' is neither an address such as 10.20.0.1 nor a host name", at.text));
        spec_.network.ntp.push_back(at.text);
      },
      [this](const YamlNode& at, const std::string& path) { error(at, path, "given twice"); });
  must_have_playbook(*ntp, "network.ntp", "base", "");
}

void SpecReader::read_proxy(const YamlNode* network) {
  const YamlNode *proxy = child(network, "proxy"), *none = child(network, "no_proxy");
  if (proxy && proxy->is_text()) {
    // A password would be readable by every user of a node and every reader of the spec.
    if (proxy->text.find('@') != std::string::npos)
      error(*proxy, "network.proxy", "the URL of a proxy must not contain a user or password");
    else if (url_host(proxy->text).empty())
      error(*proxy, "network.proxy",
            fmt::format("'{}' is not a URL such as http://10.20.0.1:3128", proxy->text));
    else
      spec_.network.proxy = proxy->text;
    must_have_playbook(*proxy, "network.proxy", "base", "");
  }
  each_text(
      none, "network.no_proxy",
      [this](const YamlNode& at, const std::string& path) {
        const std::string name = at.text.substr(at.text.starts_with('.') ? 1 : 0);
        if (!parse_ipv4(at.text) && !is_dns_name(name) && !parse_cidr(at.text).ok())
          return error(at, path,
                       fmt::format("'{}' is not a host name, a domain such as .example, an address or a "
                                   "network such as 10.0.0.0/8",
                                   at.text));
        spec_.network.no_proxy.push_back(at.text);
      },
      [this](const YamlNode& at, const std::string& path) { error(at, path, "given twice"); });
  if (none && !proxy) error(*none, "network.no_proxy", "has no effect without network.proxy");
}

void SpecReader::read_firewall() {
  const YamlNode* rules = child(&root_, "firewall");
  if (!rules || !rules->is_list() || rules->items.empty()) return;
  must_have_playbook(*rules, "firewall", "firewall", "");
  for (size_t i = 0; i < rules->items.size(); ++i)
    if (rules->items[i].is_map()) read_rule(rules->items[i], fmt::format("firewall[{}]", i));
}

bool SpecReader::check_ports(const YamlNode& at, const std::string& path) {
  const size_t colon = at.text.find(':');
  const auto number = [](const std::string& digits) {
    const bool fine =
        !digits.empty() && digits.size() <= 5 && digits.find_first_not_of("0123456789") == std::string::npos;
    return fine ? std::stoi(digits) : 0;
  };
  const int first = number(at.text.substr(0, colon));
  const int last = colon == std::string::npos ? 0 : number(at.text.substr(colon + 1));
  if (first > 0 && first < last && last <= 65535) return true;
  error(at, path, fmt::format("'{}' is not a range of ports such as 8000:8100", at.text));
  return false;
}

void SpecReader::read_rule(const YamlNode& entry, const std::string& path) {
  const YamlNode *from = child(&entry, "from"), *port = child(&entry, "port"),
                 *ports = child(&entry, "ports"), *roles = child(&entry, "roles");
  FirewallRule rule{text(&entry, "from"), "", text(&entry, "proto"), text(&entry, "comment"), {}};
  if (from && from->is_text()) {
    // Returns the form that iptables shows: with a prefix, except for a single address.
    const Result<Cidr> network = parse_cidr(rule.from, 0, 32);
    if (!parse_ipv4(rule.from) && !network.ok()) error(*from, path + ".from", network.error().message);
  }
  if (port && ports) error(*ports, path + ".ports", "give 'port' or 'ports', not both");
  if (port && yaml_is_integer(*port)) rule.ports = std::to_string(integer(&entry, "port", 0));
  if (ports && ports->is_text() && check_ports(*ports, path + ".ports")) rule.ports = ports->text;
  const bool everywhere = !from || rule.from == "0.0.0.0/0";
  if (everywhere && !port && !ports)
    error(entry, path, "would allow everything from everywhere: give 'from', 'port' or 'ports'");
  each_text(
      roles, path + ".roles",
      [&](const YamlNode& at, const std::string& where) {
        std::vector<std::string> known;
        for (const auto& [name, playbooks] : spec_.roles) known.push_back(name);
        if (!spec_.roles.count(at.text)) return must_be_known(at, where, "role", at.text, known);
        must_have_playbook(at, where, "firewall", at.text);
        rule.roles.push_back(at.text);
      },
      [this](const YamlNode& at, const std::string& where) { error(at, where, "given twice"); });
  spec_.firewall.push_back(std::move(rule));
}

void SpecReader::read_additions(const YamlNode* map, const std::string& path, Additions& out) {
  const YamlNode *packages = child(map, "packages"), *sysctls = child(map, "sysctls");
  const std::string role = path.empty() ? "" : path.substr(6, path.size() - 7);  // "roles.gpu."
  each_text(
      packages, path + "packages",
      [&](const YamlNode& at, const std::string&) { out.packages.push_back(at.text); },
      [&](const YamlNode& at, const std::string& where) {
        error(at, where, fmt::format("package '{}' is listed twice", at.text));
      });
  if (sysctls && sysctls->is_map())
    for (const YamlEntry& entry : sysctls->entries)
      if (entry.value.is_text()) out.sysctls[entry.key] = entry.value.text;
  if (!out.packages.empty()) must_have_playbook(*packages, path + "packages", "base", role);
  if (!out.sysctls.empty()) must_have_playbook(*sysctls, path + "sysctls", "base", role);
}

// Rules that also depend on the nodes.
void SpecReader::check_services() {
  const auto imaged = std::find_if(spec_.nodes.begin(), spec_.nodes.end(),
                                   [](const NodeSpec& n) { return !n.adopt.declared(); });
  const YamlNode* network = child(&root_, "network");
  // A name that is not a node's needs a name server, and images do not include the configuration of one.
  if (child(network, "dns") || imaged == spec_.nodes.end() || nodes_incomplete_) return;
  const auto check = [&](const YamlNode& at, const std::string& path, const std::string& host) {
    if (host.empty() || parse_ipv4(host) || spec_.node(host)) return;
    error(at, path,
          fmt::format("'{}' is a name, but {} has no name server to resolve it: declare network.dns", host,
                      imaged->name));
  };
  const YamlNode *ntp = child(network, "ntp"), *proxy = child(network, "proxy");
  each_text(
      ntp, "network.ntp",
      [&](const YamlNode& at, const std::string& path) {
        if (is_dns_name(at.text)) check(at, path, at.text);
      },
      [](const YamlNode&, const std::string&) {});
  if (!spec_.network.proxy.empty()) check(*proxy, "network.proxy", url_host(spec_.network.proxy));
  // If there is a proxy, the proxy resolves the names.
  if (!spec_.network.proxy.empty()) return;
  for (const auto& [id, mirror] : spec_.network.apt) {
    const Distribution& distribution = *find_distribution(id);
    const YamlNode* declared = mirror_section(network, distribution);
    const std::string path = apt_path(distribution);
    check(*child(declared, "mirror"), path + ".mirror", mirror_host(mirror.mirror));
    if (const YamlNode* security = child(declared, "security_mirror"))
      check(*security, path + ".security_mirror", mirror_host(mirror.security));
  }
}

// Checks `role`, or all roles if it is empty: without a playbook that applies the setting, it has no effect.
void SpecReader::must_have_playbook(const YamlNode& at, const std::string& path, const std::string& playbook,
                                    const std::string& role) {
  for (const auto& [name, playbooks] : spec_.roles)
    if ((role.empty() || name == role) &&
        std::find(playbooks.begin(), playbooks.end(), playbook) != playbooks.end())
      return;
  error(at, path,
        role.empty()
            ? fmt::format("is applied by the playbook '{}', which no role has", playbook)
            : fmt::format("is applied by the playbook '{}', which role '{}' does not have", playbook, role));
}

}  // namespace muster
