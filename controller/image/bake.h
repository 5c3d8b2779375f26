// Baking: the image-phase steps of the playbooks an image names, as parts of its build. Pure.
//
// A playbook of plain packages, files and units goes into the recipe's own tree, with one run of apt for all
// of them. Any other is a layer of its own above it (controller/image/layers.h): the agent carries out its
// steps in a chroot, in their order. Such steps may name the spec's own variables ({{vars.x}}, those of the
// cluster). One that needs a value of a node is Code::invalid: the playbook must leave it to the node phase.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "controller/image/image.h"
#include "controller/spec/playbook.h"

namespace muster {

struct BakeInputs {
  std::map<std::string, std::string> vars = {};  // the spec's
  std::string suite = {};                        // of the recipe: "trixie"
};
Status bake(const ImageSpec& image, const std::map<std::string, Playbook>& playbooks, const BakeInputs& in,
            ImageRequest& request);

}  // namespace muster
