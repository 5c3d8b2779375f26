// Checks the text of firewall rules, from the kernel and from ufw's files: which rules allow undeclared
// packets, which of ufw's basic rules are missing, and the rules that correct this for IPv4 or IPv6.
//
// A packet is accepted if a rule of the filter table accepts it in INPUT or in a chain that INPUT jumps to,
// so all these chains are checked, whichever program made them. What ufw itself always allows counts as
// declared: packets on `lo` or of an existing connection, the ICMP types in its rules, replies of a DHCP
// server, and multicast discovery (mDNS, UPnP). So do rules for guests' bridges in other programs' chains
// (libvirt's DNS on virbr0). An nft table can only reject more. A redirection in the nat table, which changes
// a packet's port first, is not checked. Thread safety: stateless functions, no I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::steps {

enum class Family { v4, v6 };

// The filter table, as printed by `iptables -S` or read from a file for iptables-restore.
struct FilterTable {
  struct Rule {
    std::string chain, line;         // "-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT"
    std::vector<std::string> words;  // those after the chain's name
  };
  std::map<std::string, std::string> policies;  // of built-in chains: "INPUT" -> "DROP"
  std::set<std::string> chains;
  std::vector<Rule> rules;
};
FilterTable filter_table(const std::string& text);

// ufw_chain(Family::v6, "user-input") is "ufw6-user-input".
std::string ufw_chain(Family family, const std::string& name);
// In their order.
std::vector<std::string> lines_of_chain(const FilterTable& table, const std::string& chain);

// The rules that allow what neither ufw itself nor `declared` allows: in INPUT, in ufw's chains for incoming
// packets (also if INPUT does not jump to them: ufw adds these jumps itself), and in all that these jump to.
std::vector<std::string> undeclared_accepts(const FilterTable& table, Family family,
                                            const std::vector<std::string>& declared);
// The text of one of ufw's files, such as before.rules, with such undeclared rules commented out.
std::string without_undeclared(const std::string& text, Family family);

// The rules that block declared packets from all senders before ufw's own rules are reached: a REJECT that
// the provider put at the end of INPUT, a chain of another program that drops the rest. Rules that apply only
// to some senders, to one interface or above a rate do not count.
std::vector<std::string> closed_before(const FilterTable& table, Family family,
                                       const std::vector<std::string>& declared);

// The basic rules of ufw that are missing in the kernel: jumps from INPUT to its chains and to the declared
// rules, and the rules for `lo` and for existing connections.
std::vector<std::string> missing_frame(const FilterTable& table, Family family);

// The input for `iptables-restore -n` that corrects the kernel's rules `live` in one transaction:
// undeclared accepts are removed, and ufw's chains for incoming packets are replaced by those in its files.
// Incoming packets are denied by default, outgoing ones allowed. Other programs' rules that allow nothing
// stay, but are moved after ufw's if they would block declared packets. `by_number`: deletes rules by their
// number in `live`, for rules that iptables cannot match by their text (recent, connlimit).
struct UfwFiles {
  std::string before, after, user;  // content of before.rules, after.rules and user.rules
};
std::string load_text(const FilterTable& live, Family family, const UfwFiles& files,
                      const std::vector<std::string>& declared, bool by_number = false);

}  // namespace muster::steps
