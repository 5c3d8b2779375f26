// Params of the order `kexec`, with which a node's own agent starts the RAM system, and its kernel options.
//
// Thread: any; blocks while it reads the image's folder.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/boot/boot.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns the RAM system's kernel options: the controller's (`own`), and of the spec's only those about a
// panic: others may need memory or devices that only the installed system has. `node` may be null.
std::string ram_kernel_options(const std::string& own, const Spec& cluster, const NodeSpec* node);

// `decision`: the node's RAM system and its token. invalid: the arguments do not fit on the command line.
Result<Json> kexec_order(const Spec& cluster, const NodeSpec& node, const BootDecision& decision,
                         const std::string& image_folder);

}  // namespace muster
