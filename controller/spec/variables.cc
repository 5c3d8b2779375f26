#include "controller/spec/variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/spec/spec.h"

namespace muster {
namespace {

// A variable that is of no use without another, of another group.
struct NeededVariable {
  const char *variable, *needs;
};
constexpr NeededVariable kNeeded[] = {{"pyxis_url", "enroot_url"}};  // pyxis starts enroot

std::string wrong_bridge(const std::string& value) {
  if (bridge_network(value)) return "";
  return fmt::format("'{}' is not the address of a bridge with its network, such as 10.201.0.1/24", value);
}

std::string wrong_number(const std::string& value) {
  constexpr size_t kMostDigits = 7;
  const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && value[0] != '0' && value.size() <= kMostDigits) return "";
  return fmt::format("'{}' is not a whole number above 0, such as 500", value);
}

// A variable whose value has a form. `wrong`: "" if it has.
struct FormedVariable {
  const char* variable;
  std::string (*wrong)(const std::string& value);
};
constexpr FormedVariable kFormed[] = {{"docker_bridge", wrong_bridge}, {"container_cache_gib", wrong_number}};

bool is_set(const std::map<std::string, std::string>& vars, const std::string& name) {
  const auto found = vars.find(name);
  return found != vars.end() && !found->second.empty();
}

// Appends the first variable of the group that is set, if others are not.
void check_group(const std::map<std::string, std::string>& vars, const std::vector<std::string>& group,
                 std::vector<WrongVariable>& out) {
  const auto set = [&](const std::string& name) { return is_set(vars, name); };
  const auto first = std::find_if(group.begin(), group.end(), set);
  if (first == group.end() || std::all_of(group.begin(), group.end(), set)) return;
  std::vector<std::string> missing;
  for (const std::string& name : group)
    if (!set(name)) missing.push_back(fmt::format("`{}`", name));
  out.push_back({*first, fmt::format("needs {}, too", fmt::join(missing, ", "))});
}

}  // namespace

bool is_optional(const VarGroups& groups, const std::string& name) {
  return std::any_of(groups.begin(), groups.end(), [&](const std::vector<std::string>& group) {
    return std::find(group.begin(), group.end(), name) != group.end();
  });
}

std::optional<Cidr> bridge_network(const std::string& value) {
  const size_t slash = std::min(value.find('/'), value.size());
  const auto address = parse_ipv4(value.substr(0, slash));
  const auto size = parse_cidr("0.0.0.0" + value.substr(slash));
  if (!address || !size.ok()) return std::nullopt;
  const Cidr network{*address & size->mask(), size->prefix};
  return network.hosts(*address) ? std::optional(network) : std::nullopt;
}

std::vector<WrongVariable> wrong_variables(const std::map<std::string, std::string>& vars,
                                           const VarGroups& groups, const std::vector<std::string>& known) {
  std::vector<WrongVariable> out;
  std::vector<std::string> unset;
  for (const auto& group : groups) {
    check_group(vars, group, out);
    for (const std::string& name : group)
      if (!is_set(vars, name)) unset.push_back(name);
  }
  for (const auto& [variable, needs] : kNeeded)
    if (is_optional(groups, variable) && is_set(vars, variable) && !is_set(vars, needs))
      out.push_back({variable, fmt::format("needs `{}`, too", needs)});
  for (const auto& [variable, wrong] : kFormed)
    if (is_optional(groups, variable) && is_set(vars, variable))
      if (std::string reason = wrong(vars.at(variable)); !reason.empty())
        out.push_back({variable, std::move(reason)});
  for (const auto& [name, value] : vars) {
    if (is_optional(groups, name) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const std::string near = nearest_spelling(name, unset); !near.empty())
      out.push_back(
          {name, fmt::format("no playbook of this spec has this variable, did you mean '{}'?", near)});
  }
  return out;
}

}  // namespace muster
