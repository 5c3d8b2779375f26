// Baking: the image-phase steps of the playbooks an image names, as packages, files and commands of its build. Pure.
//
// Only what means the same in a tree that is not running can be baked: packages, files, and enabling or masking units.
// Any other step, and one that needs a node's values, is Code::invalid: the playbook must leave it to the node phase.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "controller/image/image.h"
#include "controller/spec/playbook.h"

namespace muster {

Status bake(const ImageSpec& image, const std::map<std::string, Playbook>& playbooks, ImageRequest& request);

}  // namespace muster
