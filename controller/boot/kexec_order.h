// Params of the order `kexec`: what a node's own agent needs to start the RAM system by itself.
//
// Thread: any; reads the image's folder.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/boot/boot.h"
#include "controller/spec/spec.h"

namespace muster {

// `decision`: the RAM system of this node, with its token. invalid: its arguments do not fit on a command
// line.
Result<Json> kexec_order(const Spec& cluster, const NodeSpec& node, const BootDecision& decision,
                         const std::string& image_folder);

}  // namespace muster
