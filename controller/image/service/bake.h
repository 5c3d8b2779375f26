// Baking: turns the image-phase steps of an image's playbooks into parts of its build. Pure function, no I/O.
//
// A playbook with only packages, files and units goes into the recipe's own tree, with one run of apt for all
// such playbooks. Any other becomes a layer above that tree (controller/image/layers.h): the agent carries
// out its steps in a chroot, in order. Steps may use the cluster's variables from the spec ({{vars.x}}); one
// whose `when` is false is left out. A step that needs a node's value is Code::invalid: the playbook must
// move it to the node phase. So is a playbook for another distribution.
#pragma once

#include <map>
#include <string>

#include "base/distribution.h"
#include "base/result.h"
#include "controller/image/image.h"
#include "controller/spec/playbook.h"

namespace muster {

struct BakeInputs {
  std::map<std::string, std::string> vars = {};  // the spec's
  OsRelease system = {};                         // of the recipe: id and codename
};
Status bake(const ImageSpec& image, const std::map<std::string, Playbook>& playbooks, const BakeInputs& in,
            ImageRequest& request);

}  // namespace muster
