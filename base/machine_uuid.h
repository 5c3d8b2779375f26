// Machines by their product UUID (SMBIOS): whether two spellings mean the same one, and which node each is
// bound to.
//
// A UUID that a board's vendor left at its placeholder identifies no machine, so it is bound to no node.
// Pure.
#pragma once

#include <map>
#include <string>

namespace muster {

// Either may have its first three fields in the other byte order: SMBIOS stores them little-endian, some BMCs
// show them unswapped.
bool same_uuid(const std::string& a, const std::string& b);
// Not empty, not all zeros or ones, nor a value that many boards share (base/placeholders.h).
bool names_one_machine(const std::string& uuid);
// The UUID if it identifies a machine, else "", which is never compared.
std::string machine_of(const std::string& uuid);

class Machines {
 public:
  // Of several nodes with one UUID the first counts.
  void bind(const std::string& uuid, const std::string& node);
  // A remark about this machine, after its node's name in node_of(), or alone where no node is bound to it.
  void remark(const std::string& uuid, const std::string& text);
  // The node that this machine is; "" when no node is bound to it.
  std::string node_of(const std::string& uuid) const;

 private:
  std::map<std::string, std::string> nodes_;  // by UUID, lower case
};

}  // namespace muster
