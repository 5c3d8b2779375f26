// Adds one node to the text of a spec: everything like a declared one, except its name, its MAC and its
// addresses. An adopted host gets an entry without image, MAC, power and OS disk, but with how it is reached.
// Pure.
//
// The text is only added to, after the last entry of `nodes:`; comments, order and layout of what is there
// stay as they are. The result is parsed again, and rejected if anything other than the new node changed:
// also if an address that muster assigned, or the lead node, would change.
#pragma once

#include <string>

#include "controller/spec/spec.h"

namespace muster {

struct NewNode {
  std::string name, like;  // `like`: a declared node
  std::string mac, power_address;
  std::string address;  // on the provisioning network; empty: the next free one, or that of the adopted host
  AdoptSpec adopt;      // declared: a running host that keeps its system; mac and power_address are empty
};

struct AddedNode {
  std::string text;  // the whole spec with the node
  Spec spec;
};

// Code::invalid with what to do: the name is taken or not a host name, `like` is unknown, the addresses are
// wrong or taken, or the file is written in a way that cannot be added to.
Result<AddedNode> add_node(const std::string& text, const NewNode& node);

}  // namespace muster
