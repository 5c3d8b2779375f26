// FakeFirewall: the filter table of one family as the kernel keeps it, with what iptables, iptables-restore,
// iptables-save and ufw-init do to it. Rules are kept as they are written (the kernel's own form of an option
// is the test's business). As in the original a file is loaded as a whole or not at all: a chain that is not
// there, or a rule to be deleted that is not, refuses it.
// Thread: one.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::tests {

class FakeFirewall {
 public:
  // What stands in a file, or on standard input. `keep`: with -n. Error text; "" when it is loaded.
  std::string restore(const std::string& text, bool keep);
  std::string list() const;  // as `iptables -S` prints it
  std::string save() const;  // as `iptables-save -t filter` prints it
  bool has_chain(const std::string& chain) const { return chains_.count(chain) > 0; }

  // Of one rule, "-A INPUT ..." put first; all of a chain taken out.
  void put_first(const std::string& rule);
  void flush(const std::string& chain) { chains_[chain].clear(); }
  std::map<std::string, std::string> policies = {
      {"INPUT", "ACCEPT"}, {"FORWARD", "ACCEPT"}, {"OUTPUT", "ACCEPT"}};

  // What `ufw-init start` and `force-stop` do to this family. `prefix`: "ufw-" or "ufw6-".
  struct UfwFiles {
    std::string before, after, user;
  };
  std::string ufw_start(const std::string& prefix, const UfwFiles& files, const std::string& policy);
  void ufw_stop(const std::string& prefix);

 private:
  std::map<std::string, std::vector<std::string>> chains_ = {{"INPUT", {}}, {"FORWARD", {}}, {"OUTPUT", {}}};
};

}  // namespace muster::tests
