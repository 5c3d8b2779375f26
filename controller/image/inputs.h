// What an image is built from, as one value: it decides whether a built image is still the one that would be
// built now, and describes what changed. Pure.
//
// The host's apt sources are not part of it: a different mirror of the same suite means the same image.
// Neither is the agent: it is in the RAM system, which is repacked without a build (ram.h).
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "controller/image/layers.h"
#include "controller/image/recipe.h"

namespace muster {

// {"builder", "ram", "variant", "recipe"}: `recipe` with everything that was baked into its own tree;
// "layers" where there are any.
Json build_inputs(const ImageRecipe& recipe, const std::string& variant, int builder_version,
                  const std::vector<ImageLayer>& layers = {});

// "packages: +htop -vim-tiny; files: /etc/motd"; empty when both would make the same image. `built` may come
// from another version of muster and have any shape.
std::string input_changes(const Json& built, const Json& now);

}  // namespace muster
