// What each PCI Express link can do by what its two ends report, held to the highest of what the GPU table
// has for the model, what the node's other parts of that model can do, and what the same place of like nodes
// can do. So a link whose ends both report too little is found, also on all nodes where the model is known.
// How the link was trained is held to what its ends can do by the profile. One check per link,
// "GROUP/link_rate", by the address of its lower end. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// Takes expand()ed steps; adds to the checks of the nodes that measured. Nothing in a lab, nor of ports that
// a hypervisor emulates: what these report says nothing about the part.
void judge_pcie_links(const std::vector<MeasuredStep>& steps,
                      const std::map<std::string, const HardwareFacts*>& facts,
                      std::map<std::string, std::vector<Check>>& checks);

}  // namespace muster
