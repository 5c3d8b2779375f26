// Params of the order `kexec`, with which a node's own agent starts the RAM system.
//
// Thread: any; blocks while it reads the image's folder.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/boot/boot.h"
#include "controller/spec/spec.h"

namespace muster {

// Makes the params. `decision`: the node's RAM system and its token. invalid: the kernel arguments do not fit
// on the kernel command line.
Result<Json> kexec_order(const Spec& cluster, const NodeSpec& node, const BootDecision& decision,
                         const std::string& image_folder);

}  // namespace muster
