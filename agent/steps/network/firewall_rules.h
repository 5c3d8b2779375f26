// Rules of the kernel's firewall and of ufw's files, as text: which of them allow undeclared packets, which
// of ufw's own basic rules are missing, and the text that corrects an address family.
//
// A packet comes in when a rule of the filter table accepts it on its way from INPUT, so every chain that
// INPUT leads to is checked, whichever program made it. What ufw itself always allows counts as declared:
// packets on `lo` or of an existing connection, the ICMP types that it names, answers of a DHCP server, and
// multicast names (mDNS, UPnP). So do guests' bridges in other programs' chains (libvirt's DNS on virbr0).
// Tables of nft can reject a packet but never allow one past these; a redirection in the table nat changes
// its port first, and is not checked. Thread: plain functions; no I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::steps {

enum class Family { v4, v6 };

// The filter table, as `iptables -S` prints it or a file of iptables-restore has it.
struct FilterTable {
  struct Rule {
    std::string chain, line;         // "-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT"
    std::vector<std::string> words;  // after the chain's name
  };
  std::map<std::string, std::string> policies;  // of built-in chains: "INPUT" -> "DROP"
  std::set<std::string> chains;
  std::vector<Rule> rules;
};
FilterTable filter_table(const std::string& text);

// Name of one of ufw's chains: ufw_chain(Family::v6, "user-input") is "ufw6-user-input".
std::string ufw_chain(Family family, const std::string& name);
// Lines of a chain, in their order.
std::vector<std::string> lines_of_chain(const FilterTable& table, const std::string& chain);

// Lines that allow what neither ufw itself nor `declared` allows: in INPUT, in ufw's chains for incoming
// packets (in a file, because ufw adds them; in the kernel, whether INPUT jumps to them or not), and in all
// chains that these lead to.
std::vector<std::string> undeclared_accepts(const FilterTable& table, Family family,
                                            const std::vector<std::string>& declared);
// The text of one of ufw's files, such as before.rules, with those lines commented out.
std::string without_undeclared(const std::string& text, Family family);

// Lines that block declared packets of all senders before ufw's own rules are reached: the REJECT at the end
// of a provider's INPUT, another program's chain that drops the rest. Restrictions of some senders, of an
// interface or of a rate do not count.
std::vector<std::string> closed_before(const FilterTable& table, Family family,
                                       const std::vector<std::string>& declared);

// Which of ufw's basic rules are missing in the kernel: jumps from INPUT to its chains and to the declared
// rules, and the rule for answers of existing connections. Empty if complete.
std::vector<std::string> missing_frame(const FilterTable& table, Family family);

// For `iptables-restore -n`: in one transaction everything undeclared is removed, and ufw's chains for
// incoming packets become those of its files, whatever `live` was. Incoming packets are denied by default,
// outgoing ones allowed; other programs' rules that allow nothing stay, but after ufw's if they would block
// declared packets. `by_number`: rules are deleted by their number in `live`, for rules whose text iptables
// does not find again (recent, connlimit).
struct UfwFiles {
  std::string before, after, user;  // content of before.rules, after.rules and user.rules
};
std::string load_text(const FilterTable& live, Family family, const UfwFiles& files,
                      const std::vector<std::string>& declared, bool by_number = false);

}  // namespace muster::steps
