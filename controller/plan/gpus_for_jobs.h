// How many GPUs the scheduler gets of a node. No other code decides this. Pure functions, no I/O.
//
// A card without NVIDIA's driver has no device file, for which slurmd would wait at every start. So GPUs
// count where the spec declares them, a playbook installs the driver, the node's image has it, or the
// inventory names their model, which only a driver does. An image counts for cards without a display only:
// the driver may not be one for a small display card, in a head node for example.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// `facts` null: never seen. `driver_in_image`: the image that the node will run has the driver.
int gpus_for_jobs(const Spec& spec, const NodeSpec& node, const HardwareFacts* facts, bool driver_in_image);

// For the operator: the nodes of the scheduler with GPUs that it does not get, and what to do. "" if none.
// Cards that may be for a display count where the image has the driver.
// `with_driver`: the nodes of which the image has the driver.
std::string unused_gpu_note(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines,
                            const std::set<std::string>& with_driver);

}  // namespace muster
