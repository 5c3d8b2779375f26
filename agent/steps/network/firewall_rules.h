// Rules of the kernel's firewall and of ufw's files, as text: what of them lets in packets that are not
// declared, what of ufw's own frame is missing, and the one text that puts a family right.
//
// A packet comes in when a rule of the filter table accepts it on its way from INPUT, so every chain that
// INPUT leads to is looked at, whatever made it. What ufw itself always lets in counts as declared: what
// is on `lo` or belongs to a connection that exists, the ICMP types that it names, answers of a DHCP
// server, and multicast names (mDNS, UPnP). So do guests' bridges in other programs' chains (libvirt's DNS
// on virbr0). Tables of nft can refuse a packet but never let one past these; a redirection in the table
// nat makes another port of it first, and is not looked at. Thread: plain functions; no I/O.
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
    std::vector<std::string> words;  // behind the chain's name
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

// Lines that let in what neither ufw itself nor `declared` does, in INPUT, ufw's chains for incoming packets
// (in a file, which ufw hangs in, and in the kernel whether they hang there or not) and all that these lead
// to.
std::vector<std::string> undeclared_accepts(const FilterTable& table, Family family,
                                            const std::vector<std::string>& declared);
// The text of one of ufw's files, before.rules for one, with those lines made comments.
std::string without_undeclared(const std::string& text, Family family);

// Lines that keep out what is declared before ufw's own rules are reached, whoever sends it: the REJECT at
// the end of a provider's INPUT, another program's chain that drops the rest. Restrictions of some
// senders, of an interface or of a rate are none.
std::vector<std::string> closed_before(const FilterTable& table, Family family,
                                       const std::vector<std::string>& declared);

// What ufw's frame lacks in the kernel: jumps from INPUT to its chains and to the declared rules, and what
// lets the answers of existing connections in. Empty when it is whole.
std::vector<std::string> missing_frame(const FilterTable& table, Family family);

// For `iptables-restore -n`: in one transaction everything that is not declared goes, and ufw's chains for
// incoming packets become what its files say, whatever `live` was. Incoming packets are denied by default,
// outgoing ones allowed; rules of others that let nothing in stay, behind ufw's where they would keep out
// what is declared. `by_number`: rules are deleted by their number in `live`, for those of which iptables
// does not find the text again (recent, connlimit).
struct UfwFiles {
  std::string before, after, user;  // what before.rules, after.rules and user.rules hold
};
std::string load_text(const FilterTable& live, Family family, const UfwFiles& files,
                      const std::vector<std::string>& declared, bool by_number = false);

}  // namespace muster::steps
