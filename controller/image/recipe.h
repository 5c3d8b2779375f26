// ImageRecipe: the content of a node image, read from images/<name>.yaml. Pure functions, except
// load_recipe(), which reads files.
//
// Keys: from (another recipe, to which this one adds), distribution (default: default_distribution()), suite,
// components (of the archive; default: the distribution's), kernel {cloud, full}, packages, exclude (dpkg
// path-exclude patterns), mask, disable, enable (systemd units), firmware (packages of the distribution's
// component for firmware, if it has one: adapters' firmware, microcode), files [{path, content, mode}], run
// [[argv...]] (executed in the chroot, without a shell), mirror (optional: "http://host/debian"; default: the
// host's own), and with it security_mirror (URL or "none"; default: derived from mirror) and updates (true,
// false). An unknown key is an error. Thread safety: plain value types, stateless functions; load_recipe()
// blocks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/distribution.h"
#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

struct RecipeFile {
  std::string path;  // absolute
  std::string content;
  unsigned mode = 0644;
};

struct ImageRecipe {
  std::string distribution = default_distribution().id;
  std::string suite = {};
  std::vector<std::string> components = {};  // empty: those of the distribution
  std::string mirror = {};
  std::string security_mirror =
      {};                // with a mirror: never empty; kNoMirror if that mirror has no security pocket
  bool updates = true;   // the mirror has SUITE-updates
  std::string key = {};  // AptMirror::key; only a spec declares one
  std::map<std::string, std::string> kernel = {};  // variant -> package
  std::vector<std::string> packages = {};
  std::vector<std::string> firmware = {};  // packages that need the distribution's component for firmware
  std::vector<std::string> exclude = {};
  std::vector<std::string> mask = {};
  std::vector<std::string> disable = {};
  std::vector<std::string> enable = {};
  std::vector<RecipeFile> files = {};
  std::vector<std::vector<std::string>> run = {};
};

// Parses a recipe; reports all errors, one per line. `source`: for messages ("images/debian-12.yaml:7: ...").
// `base`: the recipe that `from` names; lists are appended to its lists, other keys replace its keys.
Result<ImageRecipe> parse_recipe(const std::string& text, const std::string& source,
                                 const ImageRecipe* base = nullptr);
// Reads FOLDER/NAME.yaml and the recipe that its `from` names, which must not have a `from` itself.
// Code::not_found if either is missing.
Result<ImageRecipe> load_recipe(const std::string& folder, const std::string& name);
// All recipes in the folder, in order of their names. A recipe that cannot be read is there with its error.
std::vector<KnownRecipe> known_recipes(const std::string& folder);
// Returns canonical text: equal recipes give equal text. Part of the key under which a built image is cached,
// so keys that came later are in it only where they differ from what held before.
std::string canonical(const ImageRecipe& recipe);

}  // namespace muster
