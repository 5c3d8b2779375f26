// The kernel's packet filter as `iptables -S` prints it: who gets in, by which rule. For both families. Pure.
//
// Only acceptance counts: a rule that drops or logs opens nothing. A chain that INPUT never reaches opens
// nothing either.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::steps {

struct FilterRules {
  std::string input_policy = {};                           // "DROP"; "" when the list holds none
  std::map<std::string, std::vector<std::string>> chains;  // name -> its lines, "-A CHAIN ...", in order
};
FilterRules filter_rules(const std::string& printed);

// The six chains of ufw that INPUT leads to, in ufw's order; `prefix` is "ufw" or "ufw6".
std::vector<std::string> input_jumps(const std::string& prefix);

// Lines that accept, of the chains that INPUT reaches without the chain `except`. Not counted are those of
// other programs' own chains that are about one interface (bridges of containers and virtual machines).
std::vector<std::string> accepting_lines(const FilterRules& rules, const std::string& except,
                                         const std::string& prefix);

// Lines of a rules file, or of the kernel, that accept in the chains before and behind ufw's own rules.
// They say the same in different words (addresses with their mask, modules named), so they are compared by
// their number.
std::vector<std::string> accepts_around(const std::vector<std::string>& lines, const std::string& prefix);

}  // namespace muster::steps
