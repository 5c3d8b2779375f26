// Machines by their product UUID (SMBIOS): whether two notations mean the same UUID, and which node each
// machine is bound to. A placeholder of a board's vendor identifies no machine, so it is bound to no node.
// Pure functions, no I/O.
#pragma once

#include <map>
#include <string>

namespace muster {

// True if both are the same UUID. Either may have its first three fields in the other byte order: SMBIOS
// stores them little-endian, and some BMCs show them unswapped.
bool same_uuid(const std::string& a, const std::string& b);
// True unless it is empty, all zeros or ones, or a value that many boards share (base/placeholders.h).
bool names_one_machine(const std::string& uuid);
// Returns the UUID if it identifies a machine, else "", which never matches.
std::string machine_of(const std::string& uuid);

class Machines {
 public:
  // If several nodes have the same UUID, the one that was bound first wins.
  void bind(const std::string& uuid, const std::string& node);
  // Adds a remark about a machine; node_of() returns it after the node's name, or alone without one.
  void remark(const std::string& uuid, const std::string& text);
  // "" if no node is bound to this machine.
  std::string node_of(const std::string& uuid) const;

 private:
  std::map<std::string, std::string> nodes_;  // by UUID, lower case
};

}  // namespace muster
