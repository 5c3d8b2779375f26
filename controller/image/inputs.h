// What an image is built from, as one JSON value: used to decide whether a built image is up to date, and to
// describe what changed. Pure functions, no I/O.
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

// Returns {"builder", "ram", "variant", "recipe"}: `recipe` with everything that was baked into its own tree;
// and "layers" if there are any.
Json build_inputs(const ImageRecipe& recipe, const std::string& variant, int builder_version,
                  const std::vector<ImageLayer>& layers = {});

// Returns the changes, such as "packages: +htop -vim-tiny; files: /etc/motd"; "" if both give the same image.
// `built` may come from another version of muster and have any structure.
std::string input_changes(const Json& built, const Json& now);

}  // namespace muster
