// Adds one node to the text of a spec: a copy of a declared node, except for its name, its MAC and its
// addresses. An entry for an adopted host has no image, MAC, power or OS disk, but states how SSH reaches
// the host. Pure functions, no I/O.
//
// Text is only added, after the last entry of `nodes:`; comments, order and layout of existing text stay as
// they are. The result is parsed again, and rejected if anything other than the new node changed, including
// addresses that muster assigned and the lead node.
#pragma once

#include <string>

#include "controller/spec/spec.h"

namespace muster {

struct NewNode {
  std::string name, like;  // `like`: a declared node
  std::string mac, power_address;
  std::string address;  // on the provisioning network; empty: the next free one, or that of the adopted host
  AdoptSpec adopt;      // if declared: a running host that keeps its system, without mac and power_address
};

struct AddedNode {
  std::string text;  // the whole spec with the node
  Spec spec;
};

// Code::invalid, with what to do: the name is taken or not a host name, `like` is unknown, the addresses are
// wrong or taken, or the layout of the file does not allow adding to it.
// `recipes`: what the images of the result are made from, see use_recipes().
Result<AddedNode> add_node(const std::string& text, const NewNode& node,
                           const std::vector<KnownRecipe>& recipes = {});

}  // namespace muster
