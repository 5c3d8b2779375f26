// The rate that each measured port negotiated, held to what the spec declares; otherwise to the highest of
// what the port can do, what the node's other ports of that adapter model have, and what the same port of
// like nodes has. So a rail that came up at half its speed on all nodes is found, although every
// measurement reaches what that rate allows. One check per port, "GROUP/port_rate", by its place. Thread
// safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// Of `network` in the spec, or its vars `rail_rate` and `port_rate`, which `muster accept --hosts` sets.
DeclaredRates declared_rates(const Spec& spec);

// Takes expand()ed steps; adds to the checks of the nodes that measured. A port of which neither its rate
// nor its ability is known (virtual machines, software) has no check.
void judge_port_rates(const std::vector<MeasuredStep>& steps, const DeclaredRates& declared,
                      std::map<std::string, std::vector<Check>>& checks);

// Why a rate is none, where more was measured, or (measured 0) where it stands for an unknown one.
std::string unknown_rate(double gbps, const std::string& text, double measured);

}  // namespace muster
